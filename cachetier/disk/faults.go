package disk

import (
	"syscall"
	"time"
)

// Faults says what befalls a read of size bytes of the file with this index. Several goroutines ask
// at once. Under Mmap a extent counts as a read.
type Faults func(file int, offset int64, size int) Fault

// Fault is what a disk in trouble does to a read. The zero value does nothing.
type Fault struct {
	Errno syscall.Errno // the read fails with it
	Short int           // so many bytes fewer come, but one at least; a memory map has no short reads
	Delay time.Duration // passes before anything comes
}

// at is what befalls this read; of no Faults, nothing.
func (f Faults) at(file int, offset int64, size int) Fault {
	if f == nil {
		return Fault{}
	}
	return f(file, offset, size)
}

// befall makes of the result of a read what the fault leaves of it.
func (f Fault) befall(n int, err error) (int, error) { return f.befallSince(time.Now(), n, err) }

// befallSince is befall of a read that was asked for at began: the delays of reads that are under
// way together pass together.
func (f Fault) befallSince(began time.Time, n int, err error) (int, error) {
	if f.Delay > 0 {
		time.Sleep(time.Until(began.Add(f.Delay)))
	}
	if f.Errno != 0 {
		return 0, f.Errno
	}
	if f.Short > 0 && n > 1 {
		n = max(1, n-f.Short)
	}
	return n, err
}
