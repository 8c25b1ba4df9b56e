//go:build cuda && linux

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
)

var _ kernels.HostGatherer = (*Backend)(nil)

// locks has the memory of the host that is page-locked.
type locks struct {
	mu     sync.Mutex
	all    []*lock
	failed []error // of unlocking
}

// lock is some of it.
type lock struct {
	memory []byte
	at     driver.Ptr // where the device has it; 0: the device cannot read it
	read   bool       // a kernel on the stream of copies has read it
}

// LockMemory implements [kernels.Locker].
func (b *Backend) LockMemory(memory []byte) (unlock func() error, err error) {
	l := &lock{memory: memory}
	err = b.gpu.Do(func(c *driver.Calls) error {
		err := c.MemHostRegister(l.pointer(), uint64(len(memory)), driver.HostPortable|driver.HostMapped)
		if err != nil {
			return err
		}
		// Where a device cannot read it, memory that is locked still makes copies fast.
		if at, err := c.MemHostGetDevicePointer(l.pointer()); err == nil {
			l.at = at
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	b.locks.mu.Lock()
	defer b.locks.mu.Unlock()
	b.locks.all = append(b.locks.all, l)
	return func() error { return b.unlock(l) }, nil
}

func (l *lock) pointer() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(l.memory)) }

// unlock gives up a lock, unless Close has done so.
func (b *Backend) unlock(l *lock) error {
	b.locks.mu.Lock()
	at := slices.Index(b.locks.all, l)
	if at >= 0 {
		b.locks.all = slices.Delete(b.locks.all, at, at+1)
	}
	read := l.read
	b.locks.mu.Unlock()
	if at < 0 {
		return nil
	}
	err := b.gpu.Do(func(c *driver.Calls) error {
		if read {
			if err := c.StreamSynchronize(b.copies); err != nil {
				return errors.Join(err, c.MemHostUnregister(l.pointer()))
			}
		}
		return c.MemHostUnregister(l.pointer())
	})
	if err != nil {
		b.locks.mu.Lock()
		defer b.locks.mu.Unlock()
		b.locks.failed = append(b.locks.failed, err)
	}
	return err
}

// unlockAll gives up all locks, and returns all errors of unlocking so far.
func (b *Backend) unlockAll() error {
	for {
		b.locks.mu.Lock()
		if len(b.locks.all) == 0 {
			defer b.locks.mu.Unlock()
			return errors.Join(b.locks.failed...)
		}
		l := b.locks.all[0]
		b.locks.mu.Unlock()
		_ = b.unlock(l) // failed has it
	}
}

// find returns where the device has memory that is locked. ok is false if it cannot read it. What
// is found counts as read from here on.
func (b *Backend) find(memory []byte) (at driver.Ptr, ok bool) {
	b.locks.mu.Lock()
	defer b.locks.mu.Unlock()
	from := uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	for _, l := range b.locks.all {
		begin := uintptr(l.pointer())
		if l.at != 0 && from >= begin && from-begin+uintptr(len(memory)) <= uintptr(len(l.memory)) {
			l.read = true
			return l.at + driver.Ptr(from-begin), true
		}
	}
	return 0, false
}

// LockedSlots implements [kernels.Locker].
func (b *Backend) LockedSlots() (l kernels.Locked) {
	b.pinned.mu.Lock()
	defer b.pinned.mu.Unlock()
	for _, s := range b.pinned.all {
		l = l.Add(s.locked)
	}
	return l
}

// word is the number of bytes that the kernel of GatherHost moves at least.
const word = 4

// GatherHost implements [kernels.HostGatherer]. The device reads rows of whole words, which begin
// at a word. The list of rows is read where it is too, in a slot.
func (b *Backend) GatherHost(dst kernels.Tensor, table []byte, ids []uint32) (ok bool) {
	const op = "GatherHost"
	d := b.operand(op, "dst", dst, kernels.F32, kernels.F16, kernels.U32)
	size := dst.Cols * dst.Type.Size()
	if len(ids) != dst.Rows || size > 0 && len(table)%size != 0 {
		panic(fmt.Sprintf("kernels: %s: dst %d×%d of %v, %d ids, a table of %d bytes", op, dst.Rows, dst.Cols, dst.Type, len(ids), len(table)))
	}
	if dst.Len() == 0 {
		return true
	}
	rows := len(table) / size
	if most := slices.Max(ids); int(most) >= rows {
		panic(fmt.Sprintf("kernels: %s: an id of %d, and the table has %d rows", op, most, rows))
	}
	from, ok := b.find(table)
	if !ok || size%word != 0 || from%word != 0 || d.at%word != 0 {
		return false
	}
	s := b.slot(op, word*len(ids))
	list, ok := b.find(s.memory)
	if !ok {
		b.pinned.done(s)
		return false
	}
	copy(unsafe.Slice((*uint32)(s.pointer()), len(ids)), ids)
	cols := size / word
	name := b.wide("gather_rows", cols%4 == 0, d, operand{at: from})
	grid, shift := b.lanes(len(ids), cols, 4)
	b.fill(op, d, s, func(c *driver.Calls) error {
		k, p := b.kernels[name], b.reads // b.mu is held
		p.Start(k.list)
		p.Ptr(d.at)
		p.Ptr(from)
		p.Ptr(list)
		for _, n := range []int{len(ids), rows, cols, shift} {
			p.U32(uint32(n))
		}
		p.Ptr(b.failures.at) // no id is out of range
		return c.LaunchKernel(k.function, grid, driver.Dim{X: threads}, 0, b.copies, p)
	})
	return true
}
