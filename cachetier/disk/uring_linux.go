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

// uring reads through an io_uring. One goroutine at a time drives the ring: it submits the next
// extents, waits for a batch of completed reads, and releases the ring to serve them. Another
// goroutine joins if more completes than one can serve. So the goroutine that waits for the disk
// also serves, and while one is enough, nothing passes between threads. A read took 2.6 µs of the
// processor that way, and 3.3 µs with two goroutines throughout.
type uring struct {
	source
	depth   int // reads under way, at most
	workers int // goroutines that serve at once, at most
	batch   int // reads that a goroutine takes from the ring at a time, at most
	ring    *queues
	buffers *kernels.HostBuf // memory of all slots
	fixed   bool             // buffers are registered with the kernel

	mu struct {
		sync.Mutex
		slots       []slot
		small, wide []*slot // free slots, with smallBuffer and MaxExtent bytes
		underWay    int     // slots submitted to the kernel
		large       bool    // a slot holds an extent larger than its buffer
		broken      error   // the ring failed, perhaps with reads under way
	}
}

// slot is a place for a read under way.
type slot struct {
	transfer
	index  int
	buffer []byte
	large  *kernels.HostBuf // memory of an extent larger than buffer; else nil
	began  time.Time        // when it was first handed to the kernel
	asked  time.Time        // when it was last handed over, if a fault delays it; else began
	fault  Fault

	n     int // result of the last read
	err   error
	ended time.Time // when that result came
	more  bool      // the read came short: turn submits the rest
}

// openRing makes an engine that keeps up to depth reads of src under way. note is empty, or says
// that the buffers could not be registered.
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

// prove tries to read a block: old kernels have the ring, but not this operation.
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

// opened returns the files that u reads.
func (u *uring) opened() source { return u.source }

// discard frees the ring and leaves the files open.
func (u *uring) discard() {
	u.ring.close()
	if u.mu.broken == nil { // else the kernel may still write to them, so they are never freed
		u.buffers.Close()
	}
}

// ringRead is one call of read. The lock of its engine guards its state.
type ringRead struct {
	*uring
	take    func() (Extent, bool)
	serve   func(s Extent, b []byte) error
	g       errgroup.Group
	active  int // goroutines at work
	behind  int // turns in a row that left over half of the reads under way completed already
	held    Extent
	holding bool // held waits for a buffer
	ended   bool // take has no more, or something failed
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
	_ = r.g.Wait() // work fails by r.failed: others go on until the kernel has released every buffer
	return r.failed
}

// work takes batches from the ring and serves them, until there are no more.
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

// settle serves a read that is complete. After a short read it sets s.more, and turn submits the
// rest.
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

// turn releases the slots of done, or submits the rest of short reads. It fills the ring, waits for
// reads to end, and returns their slots in done's memory. None means that this goroutine is no
// longer needed.
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

// patience is the number of turns in a row that a goroutine may be behind before another joins.
// Losing the processor once does not count.
const patience = 4

// fillLocked submits extents in free slots, up to depth reads under way.
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

// slotLocked returns a free slot with room for size bytes, or nil if there is none now. An extent
// that fits no buffer gets memory of its own, one such extent at a time.
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

// failLocked stops submitting extents, and keeps the first error.
func (r *ringRead) failLocked(err error) {
	if r.failed == nil {
		r.failed = err
	}
	r.ended = true
}

// breakLocked records that the ring no longer works. Nobody will see the reads under way end.
func (r *ringRead) breakLocked(err error) {
	r.mu.broken = err
	r.failLocked(err)
}
