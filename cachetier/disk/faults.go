package disk

import (
	"syscall"
	"time"
)

// Faults returns the fault for a read of size bytes at offset of the file with this index. Several
// goroutines call it at once. Under Mmap it is called once for each extent.
type Faults func(file int, offset int64, size int) Fault

// Fault is trouble injected into a read. The zero value does nothing.
type Fault struct {
	Errno syscall.Errno // if not 0, the read fails with it
	Short int           // bytes cut off the result, which keeps at least one; ignored under Mmap
	Delay time.Duration // time that passes before the read returns
}

// at returns the fault for this read. Nil Faults cause none.
func (f Faults) at(file int, offset int64, size int) Fault {
	if f == nil {
		return Fault{}
	}
	return f(file, offset, size)
}

// befall applies the fault to a read that returned n bytes and err. It returns what the caller of
// the read gets instead.
func (f Fault) befall(n int, err error) (int, error) { return f.befallSince(time.Now(), n, err) }

// befallSince is befall for a read that was issued at began: the delays of reads that are under way
// together overlap.
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
