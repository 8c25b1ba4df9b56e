//go:build cuda && linux && !gorgonia

package driver

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// jit has the arguments of cuModuleLoadDataEx: some point to others, so that they lie in one piece
// of memory outside the Go heap.
type jit struct {
	memory                 []byte
	module, image          uintptr // addresses in memory
	count, options, values uintptr
	handle                 *uint64 // the result
	infoLog, errorLog      []byte
}

// The layout of the memory of a jit: the result, the options, their values, two logs, the image.
const (
	jitOptions = 8
	jitValues  = 32
	jitInfo    = 64
	jitLog     = 16 << 10
	jitImage   = jitInfo + 2*jitLog
)

// newJIT copies ptx and allocates buffers for the compiler's logs.
func newJIT(ptx string) (*jit, error) {
	memory, err := unix.Mmap(-1, 0, jitImage+len(ptx)+1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("memory for PTX: %w", err)
	}
	copy(memory[jitImage:], ptx)
	base := uintptr(unsafe.Pointer(&memory[0]))
	j := &jit{
		memory: memory, module: base, image: base + jitImage,
		count: 4, options: base + jitOptions, values: base + jitValues,
		handle:   (*uint64)(unsafe.Pointer(&memory[0])),
		infoLog:  memory[jitInfo:][:jitLog],
		errorLog: memory[jitInfo+jitLog:][:jitLog],
	}
	// CU_JIT_INFO_LOG_BUFFER and its size, CU_JIT_ERROR_LOG_BUFFER and its size.
	*(*[4]uint32)(unsafe.Pointer(&memory[jitOptions])) = [4]uint32{3, 4, 5, 6}
	*(*[4]uint64)(unsafe.Pointer(&memory[jitValues])) = [4]uint64{
		uint64(base + jitInfo), jitLog, uint64(base + jitInfo + jitLog), jitLog,
	}
	return j, nil
}

// log returns errors, and after them remarks.
func (j *jit) log() string { return joinLogs(j.errorLog, j.infoLog) }

// free gives the memory back.
func (j *jit) free() { _ = unix.Munmap(j.memory) } // it fails for no address that Mmap returned
