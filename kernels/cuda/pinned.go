//go:build cuda && linux

package cuda

import (
	"errors"
	"math/bits"
	"slices"
	"sync"
	"unsafe"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
)

// pinned is page-locked memory of the host, in slots that copies to and from the device go through.
// It grows to what is under way at a time, and stays until close. It is safe for concurrent use.
type pinned struct {
	by   kernels.Locker
	mu   sync.Mutex
	all  []*slot
	free []*slot
}

// slot is a piece of that memory.
type slot struct {
	memory []byte
	whole  *kernels.HostBuf
	locked kernels.Locked
	used   driver.Event // of the copy that reads it; 0 before the first
	busy   bool         // used was recorded, and may not have come
}

func (s *slot) pointer() unsafe.Pointer { return unsafe.Pointer(&s.memory[0]) }

// leastSlot is the least size of a slot. Sizes are powers of two.
const leastSlot = 64 << 10

// take returns a slot of at least n bytes that nothing uses.
func (p *pinned) take(c *driver.Calls, n int) (*slot, error) {
	size := max(leastSlot, 1<<bits.Len(uint(n-1)))
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, s := range p.free {
		if len(s.memory) != size {
			continue
		}
		if s.busy {
			done, err := c.EventQuery(s.used)
			if err != nil {
				return nil, err
			}
			if !done {
				continue
			}
			s.busy = false
		}
		p.free[i] = p.free[len(p.free)-1]
		p.free = p.free[:len(p.free)-1]
		return s, nil
	}
	whole, err := kernels.NewHostBuf(size)
	if err != nil {
		return nil, err
	}
	s := &slot{memory: whole.Bytes(), whole: whole}
	p.all = append(p.all, s)
	// Where it cannot be locked, copies take longer, and the driver waits for them.
	s.locked = kernels.LockAll(p.by, whole)
	return s, nil
}

// give gives a slot back at once. take does not lend it before the copy that was queued last on the
// stream has read it.
func (p *pinned) give(c *driver.Calls, s *slot, stream driver.Stream) (err error) {
	if s.used == 0 {
		if s.used, err = c.EventCreate(driver.EventDisableTiming); err != nil {
			return err
		}
	}
	if err := c.EventRecord(s.used, stream); err != nil {
		return err
	}
	s.busy = true
	p.done(s)
	return nil
}

// done gives a slot back.
func (p *pinned) done(s *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, s)
}

// keep gives back the slots beyond the first n. Nothing may be under way. A slot whose use has
// failed stays until close.
func (p *pinned) keep(c *driver.Calls, n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	left := p.all[:n:n]
	for _, s := range p.all[n:] {
		at := slices.Index(p.free, s)
		if at < 0 {
			left = append(left, s)
			continue
		}
		p.free = slices.Delete(p.free, at, at+1)
		errs = append(errs, s.close(c))
	}
	p.all = left
	return errors.Join(errs...)
}

// close gives a slot back. Its lock is the backend's to look after.
func (s *slot) close(c *driver.Calls) (err error) {
	if s.used != 0 {
		err = c.EventDestroy(s.used)
	}
	s.whole.Close()
	return err
}

func (p *pinned) close(c *driver.Calls) error {
	var errs []error
	for _, s := range p.all {
		errs = append(errs, s.close(c))
	}
	p.all, p.free = nil, nil
	return errors.Join(errs...)
}
