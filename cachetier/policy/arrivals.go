package policy

import (
	"math/bits"
	"sync/atomic"

	"github.com/gnnstore/gnnstore/kernels"
)

// Arrivals gives the new rows of an Index their slots as they come, in whatever order that is: each
// gets the next slot that can be had. Without it a row has the slot that the order of rows gave it,
// and waits for that one. Start at [Arrivals.Begin].
//
// Find and Place may be called by many at once, for different rows, and Left beside them; the
// others when nobody does.
type Arrivals struct {
	memory *kernels.HostBuf
	slots  []uint32 // of the new rows, in the order in which they can be had
	here   Set      // by rank: rows that have come
	ends   [1 + Parts]int

	// Of rows that made room, and that later windows want, by part: which, and the first of these
	// windows.
	gone   []uint32
	wants  []uint8
	passed [1 + Parts]struct{ from, to int }

	x      *Index
	n      int
	placed atomic.Int64
}

// ArrivalBytes is what NewArrivals takes for a cache of so many slots.
func ArrivalBytes(slots int) int64 {
	return 8*int64(SetWords(slots)) + 8*int64(slots) + (int64(slots)+7)&^7
}

// MaxLater bounds the windows that Leave is told of.
const MaxLater = 255

// NewArrivals has room for a cache of so many slots. The error is a *kernels.MemoryError.
func NewArrivals(slots int) (*Arrivals, error) {
	m, err := kernels.NewHostBuf(int(ArrivalBytes(slots)))
	if err != nil {
		return nil, err
	}
	words := SetWords(slots)
	lists, bytes := m.Uint32s()[2*words:], m.Bytes()[8*words+8*slots:]
	return &Arrivals{memory: m, here: m.Uint64s()[:words:words], slots: lists[:slots:slots], gone: lists[slots : 2*slots], wants: bytes[:slots]}, nil
}

// Close gives up the memory. A second Close does nothing.
func (a *Arrivals) Close() { a.memory.Close() }

// Begin is for the new rows of x, of which none has come.
func (a *Arrivals) Begin(x *Index) {
	a.x, a.n = x, 0
	a.placed.Store(0)
	a.here.Clear()
	part, rank := 0, 0
	for w, rows := range x.rows {
		n := bits.OnesCount64(rows)
		word := rows
		for f := x.freshAt(rank, n); f != 0; f >>= 1 {
			v := w<<6 + bits.TrailingZeros64(word)
			word &= word - 1
			if f&1 != 0 {
				for ; part < len(x.ends) && v >= x.ends[part]; part++ {
					a.ends[part] = a.n
				}
				a.slots[a.n] = x.slots[rank+n-bits.OnesCount64(word)-1]
				a.n++
			}
		}
		rank += n
	}
	for ; part < len(a.ends); part++ {
		a.ends[part] = a.n
	}
}

// Len is how many rows are new, and Missing how many of them have not come.
func (a *Arrivals) Len() int     { return a.n }
func (a *Arrivals) Missing() int { return a.n - int(a.placed.Load()) }

// End is how many slots can be had once this part of the window before is over: see [Index.End].
func (a *Arrivals) End(part int) int { return a.ends[part] }

// Leave takes note of the rows that lost their slots in the last change of c, as far as among has
// them and one of later, the windows to come, wants them: for Left. It says whether there are any.
func (a *Arrivals) Leave(c *Cache, among Set, later []Rows) bool {
	if len(later) > MaxLater {
		panic("policy: Leave: more windows than a byte can tell apart")
	}
	var parts [1 + Parts]int
	c.EachEvicted(func(_, _ uint32, part int) { parts[part]++ })
	at := 0
	for part, n := range parts {
		a.passed[part].from, a.passed[part].to = at, at
		at += n
	}
	some, uses := false, nextUses{c: c, among: among, later: later, at: -1}
	c.EachEvicted(func(v, _ uint32, part int) {
		window, wanted := uses.of(v)
		if !wanted {
			return
		}
		to := &a.passed[part].to
		a.gone[*to], a.wants[*to] = v, window
		*to, some = *to+1, true
	})
	return some
}

// nextUses is the first windows that want the rows of a span, as far as these made room.
type nextUses struct {
	c      *Cache
	among  Set
	later  []Rows
	at     int // the span
	left   [spanWords]uint64
	words  [spanWords + slackWords]uint64
	wanted [spanWords]uint64
	first  [64 * spanWords]uint8 // of those that are wanted
}

// of is the first window that wants row v, if any does. Rows come ascending.
func (u *nextUses) of(v uint32) (window uint8, ok bool) {
	if at := int(v / (64 * spanWords)); at != u.at {
		u.at = at
		u.look()
	}
	i := v % (64 * spanWords)
	return u.first[i], u.wanted[i>>6]>>(i&63)&1 != 0
}

// look finds out about the span.
func (u *nextUses) look() {
	lo := u.at * spanWords
	hi := min(lo+spanWords, len(u.among))
	left := u.left[:hi-lo]
	for i := range left {
		left[i] = u.c.evicted(lo+i) & u.among[lo+i]
	}
	u.wanted = [spanWords]uint64{}
	for n, w := range u.later {
		if empty(left) {
			return
		}
		for i, need := range w.Words(u.words[:], lo, hi) {
			here := left[i] & need
			left[i], u.wanted[i] = left[i]&^here, u.wanted[i]|here
			for ; here != 0; here &= here - 1 {
				u.first[i<<6+bits.TrailingZeros64(here)] = uint8(n)
			}
		}
	}
}

// Left lends those of them that are used last in this part of the window before, ascending, and of
// each the window that wants it, until the next Leave.
func (a *Arrivals) Left(part int) (rows []uint32, windows []uint8) {
	p := a.passed[part]
	return a.gone[p.from:p.to], a.wants[p.from:p.to]
}

// Find says whether v is new and had not come: it has now, and rank is for Place.
func (a *Arrivals) Find(v uint32) (rank uint32, ok bool) {
	r, has := a.x.rank(v)
	if !has || a.x.fresh[r>>6]>>(r&63)&1 == 0 {
		return 0, false
	}
	bit := uint64(1) << (r & 63)
	return r, atomic.OrUint64(&a.here[r>>6], bit)&bit == 0
}

// Take takes the next n slots, for rows that Find found: those from first on.
func (a *Arrivals) Take(n int) (first int) { return int(a.placed.Add(int64(n))) - n }

// Place gives the row of this rank the i-th slot, once that can be had.
func (a *Arrivals) Place(rank uint32, i int) (slot uint32) {
	slot = a.slots[i]
	a.x.slots[rank] = slot
	return slot
}

// Restore gives all new rows the slots that the order of rows gave them, for a load that failed.
func (a *Arrivals) Restore() {
	if a.x == nil {
		return
	}
	n, rank := 0, 0
	for _, word := range a.x.rows {
		rows := bits.OnesCount64(word)
		for f, r := a.x.freshAt(rank, rows), rank; f != 0; f, r = f>>1, r+1 {
			if f&1 != 0 {
				a.x.slots[r] = a.slots[n]
				n++
			}
		}
		rank += rows
	}
}

// Rest gives the rows that have not come the slots that are left, and lists some of these rows,
// ascending, at each call, until it lists none. They fit into rows, which is overwritten.
func (a *Arrivals) Rest(rows []uint32) func() []uint32 {
	next := int(a.placed.Swap(int64(a.n)))
	w, rank := 0, 0
	return func() []uint32 {
		n := 0
		for ; w < len(a.x.rows) && n+64 <= len(rows); w++ {
			word := a.x.rows[w]
			for f := a.x.freshAt(rank, bits.OnesCount64(word)); word != 0; word, f = word&(word-1), f>>1 {
				if f&1 != 0 && a.here[rank>>6]>>(rank&63)&1 == 0 {
					a.Place(uint32(rank), next)
					next++
					rows[n] = uint32(w<<6 + bits.TrailingZeros64(word))
					n++
				}
				rank++
			}
		}
		return rows[:n]
	}
}
