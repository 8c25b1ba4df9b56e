package cachetier

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Gather copies the rows of ids into dst, packed, in the order of ids: the row of ids[i] to dst[i*RowBytes:]. An id may
// repeat; its row is read from disk at most once in a call. An id past the table is an error, and dst is then untouched;
// a dst that is too short panics.
//
// Which tier serves an id is decided in the order of ids, so the counters of Stats, seconds apart, depend on the
// options and the calls made so far, and on nothing else. A Gather that fails counts nothing, leaves anything in dst and
// empties the host cache, since rows that it admitted never came.
func (s *Stack) Gather(dst []byte, ids []uint32) error {
	if len(dst)/s.rowBytes < len(ids) {
		panic("cachetier: Gather: dst is too short for ids")
	}
	if int64(len(ids)) > math.MaxUint32 {
		panic("cachetier: Gather: more ids than 32 bits can count")
	}
	rows := s.table.Rows()
	for i, v := range ids {
		if int(v) >= rows {
			return fmt.Errorf("cachetier: ids[%d] is %d, and the table has %d rows", i, v, rows)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		panic("cachetier: Gather after Close")
	}

	device, slab := s.mu.device.Lend(), s.mu.slab.Lend() // to the goroutines of copyRows
	defer s.mu.device.Return()
	defer s.mu.slab.Return()
	p := &s.mu.plan
	s.decideLocked(ids)
	p.uniteWants()
	// What is in the slab is copied out before anything is copied in: a slot may serve a hit and then be given away.
	copyRows(dst, device, p.fromDevice, s.rowBytes)
	copyRows(dst, slab, p.fromHost, s.rowBytes)
	read, err := s.reader.read(dst, p.wants)
	if err != nil {
		s.forgetLocked()
		return fmt.Errorf("cachetier: %w", err)
	}
	copyRows(dst, dst, p.repeats, s.rowBytes)
	s.settleAdmissionsLocked()
	copyRows(slab, dst, p.toHost, s.rowBytes)

	s.count(len(ids), p, read, s.mu.keeper.Len())
	return nil
}

// plan is what one Gather does. Its lists are kept for the next.
type plan struct {
	fromDevice []move    // from the device region to dst
	fromHost   []move    // from the slab to dst
	wants      []request // from disk to dst, in file order, no row twice
	repeats    []move    // from dst to dst: ids whose row is among wants
	toHost     []move    // from dst to the slab

	misses    int // ids that no tier had
	freshHits int // ids found in the host cache where the row is still on its way
	evictions int
}

// move is a row to copy: numbers of rows in the source and the destination.
type move struct{ from, to uint32 }

// decideLocked finds the tier of each id and lets the policy admit what is read. Wants are left unsorted and with repeats.
func (s *Stack) decideLocked(ids []uint32) {
	p, k, fresh, hot := &s.mu.plan, s.mu.keeper, s.mu.fresh, uint32(s.hot)
	*p = plan{fromDevice: p.fromDevice[:0], fromHost: p.fromHost[:0], wants: p.wants[:0], repeats: p.repeats[:0], toHost: p.toHost[:0]}
	for i, v := range ids {
		place := uint32(i)
		if v < hot {
			p.fromDevice = append(p.fromDevice, move{v, place})
			continue
		}
		if slot, ok := k.Get(v); ok {
			if !fresh[slot] {
				p.fromHost = append(p.fromHost, move{uint32(slot), place})
				continue
			}
			p.freshHits++
			p.wants = append(p.wants, want(v, place))
			continue
		}
		p.misses++
		p.wants = append(p.wants, want(v, place))
		if slot, evicted, ok := k.Admit(v); ok {
			fresh[slot] = true
			p.toHost = append(p.toHost, move{place, uint32(slot)})
			if evicted {
				p.evictions++
			}
		}
	}
}

// uniteWants sorts the wants and leaves the first of each row; the others become repeats of it.
func (p *plan) uniteWants() {
	slices.Sort(p.wants)
	n := 0
	for _, q := range p.wants {
		if n > 0 && p.wants[n-1].row() == q.row() {
			p.repeats = append(p.repeats, move{p.wants[n-1].place(), q.place()})
			continue
		}
		p.wants[n] = q
		n++
	}
	p.wants = p.wants[:n]
}

// settleAdmissionsLocked leaves in toHost the last admission to each slot, so that a batch larger than the cache copies
// in only what stays, and clears the fresh marks.
func (s *Stack) settleAdmissionsLocked() {
	all := s.mu.plan.toHost
	first := len(all)
	for i := len(all) - 1; i >= 0; i-- {
		if slot := all[i].to; s.mu.fresh[slot] {
			s.mu.fresh[slot] = false
			first--
			all[first] = all[i]
		}
	}
	// The front of the list stays allocated: the settled ones move there.
	s.mu.plan.toHost = all[:copy(all, all[first:])]
}

// forgetLocked empties the host cache.
func (s *Stack) forgetLocked() {
	clear(s.mu.fresh)
	s.mu.keeper.Reset()
	s.stats.Lock()
	defer s.stats.Unlock()
	s.stats.Tiers.Host.setUsed(0, int64(s.rowBytes))
}

// copyChunkBytes is how much one goroutine copies at a time: some 10 µs of work, against the microsecond that starting
// it costs.
const copyChunkBytes = 128 << 10

// copyRows does moves, whose destinations differ from each other and from all sources, in chunks that do not depend on
// the number of threads.
func copyRows(dst, src []byte, moves []move, rowBytes int) {
	perChunk := max(1, copyChunkBytes/rowBytes)
	chunks := (len(moves) + perChunk - 1) / perChunk
	var taken atomic.Int64
	work := func() {
		for {
			c := int(taken.Add(1)) - 1
			if c >= chunks {
				return
			}
			for _, m := range moves[c*perChunk : min(len(moves), (c+1)*perChunk)] {
				from, to := int(m.from)*rowBytes, int(m.to)*rowBytes
				copy(dst[to:to+rowBytes], src[from:from+rowBytes])
			}
		}
	}
	var wg sync.WaitGroup
	for range min(chunks, runtime.GOMAXPROCS(0)) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
}
