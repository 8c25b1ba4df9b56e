package policy

import (
	"math/bits"
	"sync/atomic"

	"github.com/gnnstore/gnnstore/kernels"
)

// Arrivals gives the new rows of an Index their slots as they come, in any order: each gets the
// next slot that becomes free. Without Arrivals, a row keeps the slot that it got in order of rows,
// and waits for that one. Start at [Arrivals.Begin].
//
// Several goroutines may call Find, Take and Place at once, for different rows, and Missing and
// Left beside them. No other method may run beside any of these.
type Arrivals struct {
	memory *kernels.HostBuf
	slots  []uint32 // of the new rows, in the order in which they become free
	here   Set      // by rank: the rows that have come
	ends   [1 + Parts]int

	// The evicted rows that later windows want, by part: gone has the rows, wants the first window
	// that wants each, and passed the range of each part in both.
	gone   []uint32
	wants  []uint8
	passed [1 + Parts]struct{ from, to int }

	x      *Index
	n      int
	placed atomic.Int64
}

// ArrivalBytes returns the memory that NewArrivals takes for a cache of this number of slots.
func ArrivalBytes(slots int) int64 {
	return 8*int64(SetWords(slots)) + 8*int64(slots) + (int64(slots)+7)&^7
}

// MaxLater bounds the number of later windows that Leave takes.
const MaxLater = 255

// NewArrivals allocates memory for a cache of this number of slots. The error is a
// *kernels.MemoryError.
func NewArrivals(slots int) (*Arrivals, error) {
	m, err := kernels.NewHostBuf(int(ArrivalBytes(slots)))
	if err != nil {
		return nil, err
	}
	words := SetWords(slots)
	lists, bytes := m.Uint32s()[2*words:], m.Bytes()[8*words+8*slots:]
	return &Arrivals{memory: m, here: m.Uint64s()[:words:words], slots: lists[:slots:slots], gone: lists[slots : 2*slots], wants: bytes[:slots]}, nil
}

// Close frees the memory. A second Close does nothing.
func (a *Arrivals) Close() { a.memory.Close() }

// Begin starts over with the new rows of x. None of them has come yet.
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

// Len returns the number of new rows, and Missing the number of them that have not come.
func (a *Arrivals) Len() int     { return a.n }
func (a *Arrivals) Missing() int { return a.n - int(a.placed.Load()) }

// End returns the number of slots that are free once this part of the previous window is over: see
// [Index.End].
func (a *Arrivals) End(part int) int { return a.ends[part] }

// Leave collects, for Left, the rows that lost their slots in the last change of c, if they are in
// among and one of later, the windows to come, wants them. It reports whether there are any. It
// panics if later has more than MaxLater windows.
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

// nextUses finds the first later window that wants each evicted row, one span of rows at a time.
type nextUses struct {
	c      *Cache
	among  Set
	later  []Rows
	at     int // number of the span
	left   [spanWords]uint64
	words  [spanWords + slackWords]uint64
	wanted [spanWords]uint64
	first  [64 * spanWords]uint8 // of the rows in wanted: the window
}

// of returns the first later window that wants row v; ok is false if none does. Calls come in
// ascending order of rows, so that each span is searched once.
func (u *nextUses) of(v uint32) (window uint8, ok bool) {
	if at := int(v / (64 * spanWords)); at != u.at {
		u.at = at
		u.look()
	}
	i := v % (64 * spanWords)
	return u.first[i], u.wanted[i>>6]>>(i&63)&1 != 0
}

// look fills wanted and first for the span.
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

// Left lends the rows of the last Leave that are used last in this part of the previous window,
// ascending, and for each the window that wants it. Both are valid until the next Leave.
func (a *Arrivals) Left(part int) (rows []uint32, windows []uint8) {
	p := a.passed[part]
	return a.gone[p.from:p.to], a.wants[p.from:p.to]
}

// Find records that row v has come. ok is true if v is new and had not come before; rank is then
// its argument for Place.
func (a *Arrivals) Find(v uint32) (rank uint32, ok bool) {
	r, has := a.x.rank(v)
	if !has || a.x.fresh[r>>6]>>(r&63)&1 == 0 {
		return 0, false
	}
	bit := uint64(1) << (r & 63)
	return r, atomic.OrUint64(&a.here[r>>6], bit)&bit == 0
}

// Take reserves the next n slots, for rows that Find found, and returns the number of the first.
func (a *Arrivals) Take(n int) (first int) { return int(a.placed.Add(int64(n))) - n }

// Place gives the row of this rank the slot numbered i, which Take has reserved and which is free
// by now: see End.
func (a *Arrivals) Place(rank uint32, i int) (slot uint32) {
	slot = a.slots[i]
	a.x.slots[rank] = slot
	return slot
}

// Restore gives all new rows the slots again that they got in order of rows. It is for a load that
// failed.
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

// Rest gives the remaining slots to the rows that have not come. It returns a function that lists
// some of these rows at each call, ascending, until it lists none. The lists lie in rows, which is
// overwritten and has room for at least 64.
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
