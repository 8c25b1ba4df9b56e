//go:build amd64 && !purego

package kernels

import (
	"sync"
	"syscall"

	"github.com/klauspost/cpuid/v2"
)

// Linux gives a process the registers of AMX when it asks: arch_prctl(2), ARCH_REQ_XCOMP_PERM. They
// are 8 KiB more to save for each thread that uses them.
const (
	requestPermission = 0x1023
	tileData          = 18 // the state component of the registers
)

// haveTiles asks the system for AMX, once. It returns why there is none: empty where there is.
var haveTiles = sync.OnceValue(func() string {
	if !cpuid.CPU.Supports(cpuid.AMXTILE, cpuid.AMXBF16) {
		return "the processor has no AMX"
	}
	if _, _, err := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, requestPermission, tileData, 0); err != 0 {
		return "the system does not give the registers of AMX: arch_prctl: " + err.Error()
	}
	return ""
})
