package main

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// pin keeps the calling goroutine on the last processor that this process may run on, until free;
// -1 where it cannot.
func pin() (processor int, free func(), err error) {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return -1, func() {}, fmt.Errorf("asking for processors: %w", err)
	}
	processor = 64*len(all) - 1
	for processor > 0 && !all.IsSet(processor) {
		processor--
	}
	one.Set(processor)
	runtime.LockOSThread()
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		runtime.UnlockOSThread()
		return -1, func() {}, fmt.Errorf("keeping to one processor: %w", err)
	}
	return processor, func() {
		_ = unix.SchedSetaffinity(0, &all) // it was so before
		runtime.UnlockOSThread()
	}, nil
}
