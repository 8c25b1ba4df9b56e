//go:build cuda && linux

package driver

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// MaxArguments is the most that [Symbol.Call] takes: cublasGemmEx has 19, cuLaunchKernel 11.
const MaxArguments = 20

// Symbol is the address of a C function. A Symbol that [Library.Symbol] found is valid until the
// process ends.
type Symbol uintptr

func checkArguments(args []uintptr) {
	if len(args) > MaxArguments {
		panic(fmt.Sprintf("driver: %d arguments for a call, and at most %d are passed", len(args), MaxArguments))
	}
}

// result returns nil for code 0, and Failure's error for others.
func (c *Calls) result(call string, code Code) error {
	if code == 0 {
		return nil
	}
	return c.Failure(call, code)
}

// ready returns the answer to a query whether work is done.
func (c *Calls) ready(call string, code Code) (bool, error) {
	if code == ErrNotReady {
		return false, nil
	}
	return code == 0, c.result(call, code)
}

// refusedPTX is result with the compiler's log.
func (c *Calls) refusedPTX(code Code, log string) error {
	if code == 0 {
		return nil
	}
	e := c.Failure("cuModuleLoadDataEx", code)
	e.Log = log
	return e
}

// joinLogs returns the compiler's errors, and after them its remarks.
func joinLogs(errors, remarks []byte) string {
	log, more := unix.ByteSliceToString(errors), unix.ByteSliceToString(remarks)
	if log != "" && more != "" {
		log += "\n"
	}
	return log + more
}

// extra returns cuLaunchKernel's argument of this name, nil for a kernel without parameters. It
// panics if an argument is missing.
func (p *Params) extra() unsafe.Pointer {
	p.complete()
	if p.list.Size == 0 {
		return nil
	}
	return unsafe.Pointer(p.options())
}
