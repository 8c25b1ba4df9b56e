package disk

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// uring reads through an io_uring. One goroutine at a time drives the ring: it gives out the next
// extents, waits for a batch that has come, and lets go of the ring to serve it. Another joins
// where more comes than one can serve. So who waits for the disk is who serves, and as long as one
// goroutine is enough, nothing passes between threads: with two at any rate, a read took 3.3 µs of
// the processor, and 2.6 so.
type uring struct {
	source
	depth   int // reads under way, at most
	workers int // goroutines that serve at once, at most
	batch   int // reads that one takes from the ring at a time, at most
	ring    *queues
	buffers *kernels.HostBuf // of all slots
	fixed   bool             // they are registered

	mu struct {
		sync.Mutex
		slots       []slot
		small, wide []*slot // free ones, with smallBuffer and MaxExtent bytes
		underWay    int     // slots that the kernel has
		large       bool    // one holds an extent larger than its buffer
		broken      error   // the ring took no more while reads were under way
	}
}

// slot is a read that may be under way.
type slot struct {
	transfer
	index  int
	buffer []byte
	large  *kernels.HostBuf // of an extent that is larger; nil else
	began  time.Time        // when it was first handed to the kernel
	asked  time.Time        // when it was last
	fault  Fault

	n     int // the result of the last read
	err   error
	ended time.Time // when it came
	more  bool      // it came short
}

// openRing makes an engine of src with depth reads under way. note says what it does without.
func openRing(src source, depth int) (_ engine, note string, err error) {
	small, wide, batch := slotsOf(depth)
	u := &uring{source: src, depth: depth, batch: batch}
	u.workers = min(runtime.GOMAXPROCS(0), u.batch)
	if u.ring, err = newRing(small); err != nil {
		return nil, "", err
	}
	size := wide*MaxExtent + small*smallBuffer
	if u.buffers, err = kernels.NewHostBuf(size); err != nil {
		u.ring.close()
		return nil, "", err
	}
	if err := u.ring.register(u.buffers.Bytes()); err != nil {
		note = fmt.Sprintf("its buffers of %s are not registered (%v; ulimit -l bounds them)", kernels.FormatBytes(int64(size)), err)
	}
	u.fixed = note == ""
	u.mu.slots = make([]slot, small+wide)
	for i, rest := 0, u.buffers.Bytes(); i < len(u.mu.slots); i++ {
		s, n := &u.mu.slots[i], MaxExtent
		if i >= wide {
			n = smallBuffer
		}
		s.index, s.buffer, rest = i, rest[:n:n], rest[n:]
		u.releaseLocked(s)
	}
	if err := u.prove(); err != nil {
		u.discard()
		return nil, "", err
	}
	return u, note, nil
}

// prove reads a block: old kernels know the ring, and not the operation.
func (u *uring) prove() error {
	if len(u.files) == 0 {
		return nil
	}
	s := u.mu.wide[0]
	u.ring.prepare(uint64(s.index), u.fds[0], s.buffer[:u.block], 0, u.fixed)
	if err := u.ring.enter(1); err != nil {
		u.mu.broken = err
		return err
	}
	_, _, err := u.ring.take()
	return err
}

func (u *uring) alignment() int64 { return u.block }

func (u *uring) close() {
	u.discard()
	u.closeOwn()
}

// opened is what it reads.
func (u *uring) opened() source { return u.source }

// discard gives up the ring and leaves the files open.
func (u *uring) discard() {
	u.ring.close()
	if u.mu.broken == nil { // else the kernel may still write to them: the memory stays taken
		u.buffers.Close()
	}
}

// ringRead is one call of read. What it holds is under the lock of its engine.
type ringRead struct {
	*uring
	take    func() (Extent, bool)
	serve   func(s Extent, b []byte) error
	g       errgroup.Group
	active  int // goroutines at work
	behind  int // turns in a row after which most of what is under way had come already
	held    Extent
	holding bool // held waits for a buffer
	ended   bool // take gave none, or something failed
	failed  error
}

func (u *uring) read(take func() (Extent, bool), serve func(s Extent, b []byte) error) error {
	if u.mu.broken != nil {
		return u.mu.broken
	}
	r := &ringRead{uring: u, take: take, serve: serve, active: 1}
	u.buffers.Lend()
	defer u.buffers.Return()
	r.g.Go(r.work)
	_ = r.g.Wait() // work fails by r.failed, since others must go on until the kernel has let go of every buffer
	return r.failed
}

// work takes batches from the ring and serves them, until there are none.
func (r *ringRead) work() error {
	batch := make([]*slot, 0, r.batch)
	for {
		batch = r.turn(batch)
		if len(batch) == 0 {
			return nil
		}
		err := store.Guard(func() error {
			for _, s := range batch {
				if err := r.settle(s); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			r.mu.Lock()
			r.failLocked(err)
			r.mu.Unlock()
		}
	}
}

// settle serves what has come whole. What came short goes back to the ring with more set.
func (r *ringRead) settle(s *slot) error {
	n, err := s.fault.befallSince(s.asked, s.n, s.err)
	done, err := r.took(&s.transfer, n, err)
	if s.more = !done && err == nil; s.more {
		return nil
	}
	r.meter.ended(len(s.buf), max(s.ended.Sub(s.began), s.asked.Sub(s.began)+s.fault.Delay))
	if err != nil {
		return err
	}
	return r.serve(s.extent, s.lent())
}

// turn gives back the slots of done and has the ring full, waits for reads to end, and returns
// those in done's memory. None means that this goroutine is not needed any more.
func (r *ringRead) turn(done []*slot) []*slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range done {
		if s.more && r.failed == nil {
			r.submitLocked(s)
		} else {
			r.releaseLocked(s)
		}
	}
	done = done[:0]
	if err := store.Guard(r.fillLocked); err != nil {
		r.failLocked(err)
	}
	ready := r.ring.ready()
	switch {
	case r.mu.underWay == 0:
		r.active--
		return done
	case ready == 0 && r.active > 1: // the others are enough
		if err := r.ring.enter(0); err != nil {
			r.breakLocked(err)
		}
		r.active--
		return done
	}
	wait := 0
	if ready == 0 {
		wait = min(max(1, r.batch/2), r.mu.underWay)
	}
	if err := r.ring.enter(wait); err != nil {
		r.breakLocked(err)
		r.active--
		return done
	}
	now := time.Now()
	for ready = r.ring.ready(); ready > 0 && len(done) < r.batch; ready-- {
		user, n, err := r.ring.take()
		s := &r.mu.slots[user]
		s.n, s.err, s.ended = n, err, now
		done = append(done, s)
	}
	r.mu.underWay -= len(done)
	r.meter.underWay.Add(-int64(len(done)))
	if r.behind++; ready <= r.mu.underWay/2 {
		r.behind = 0
	}
	if r.behind == patience && r.active < r.workers {
		r.behind = 0
		r.active++
		r.g.Go(r.work)
	}
	if err := store.Guard(r.fillLocked); err != nil {
		r.failLocked(err)
	}
	if r.ring.queued() > 0 {
		if err := r.ring.enter(0); err != nil {
			r.breakLocked(err)
		}
	}
	return done
}

// patience is how long a goroutine may be behind before another joins: being kept from the
// processor for once does not count.
const patience = 4

// fillLocked gives extents to free slots, up to depth.
func (r *ringRead) fillLocked() error {
	now := time.Now()
	for r.mu.underWay < r.depth && !r.ended {
		if !r.holding {
			if r.held, r.holding = r.take(); !r.holding {
				r.ended = true
				return nil
			}
		}
		lo, hi := hull(r.held, r.block)
		slot, err := r.slotLocked(int(hi - lo))
		if slot == nil || err != nil {
			return err
		}
		memory := slot.buffer
		if slot.large != nil {
			memory = slot.large.Bytes()
		}
		slot.transfer, slot.began = r.begin(r.held, memory), now
		r.holding = false
		r.submitLocked(slot)
	}
	return nil
}

// slotLocked is a free slot with room for size bytes; nil if there is none now. One extent at a
// time that fits no buffer gets memory of its own.
func (u *uring) slotLocked(size int) (s *slot, err error) {
	pop := func(free *[]*slot) *slot {
		last := len(*free) - 1
		s := (*free)[last]
		*free = (*free)[:last]
		return s
	}
	switch {
	case size > MaxExtent:
		if u.mu.large || len(u.mu.small) == 0 {
			return nil, nil
		}
		large, err := kernels.NewHostBuf(size)
		if err != nil {
			return nil, err
		}
		s = pop(&u.mu.small)
		s.large, u.mu.large = large, true
		return s, nil
	case size <= smallBuffer && len(u.mu.small) > 0:
		return pop(&u.mu.small), nil
	case len(u.mu.wide) > 0:
		return pop(&u.mu.wide), nil
	}
	return nil, nil
}

func (r *ringRead) submitLocked(s *slot) {
	rest, offset := s.rest(r.block)
	s.fault, s.more = r.faults.at(s.extent.File, offset, len(rest)), false
	if s.fault.Delay > 0 {
		s.asked = time.Now()
	} else {
		s.asked = s.began
	}
	r.ring.prepare(uint64(s.index), r.fds[s.extent.File], rest, offset, r.fixed && s.large == nil)
	r.mu.underWay++
	r.meter.underWay.Add(1)
}

func (u *uring) releaseLocked(s *slot) {
	if s.large != nil {
		s.large.Close()
		s.large, u.mu.large = nil, false
	}
	s.buf = nil
	if len(s.buffer) == smallBuffer {
		u.mu.small = append(u.mu.small, s)
	} else {
		u.mu.wide = append(u.mu.wide, s)
	}
}

// failLocked ends the giving out. The first error counts.
func (r *ringRead) failLocked(err error) {
	if r.failed == nil {
		r.failed = err
	}
	r.ended = true
}

// breakLocked: the ring does not work any more. Nothing that is under way will be seen to end.
func (r *ringRead) breakLocked(err error) {
	r.mu.broken = err
	r.failLocked(err)
}
