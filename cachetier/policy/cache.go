package policy

import (
	"math/bits"

	"github.com/gnnstore/gnnstore/kernels"
)

// Config sizes a [Cache] and names its policy.
type Config struct {
	Kind  Kind
	Rows  int // of the table, from 1 to 2³²-1
	Slots int // of the cache, from 1 to Rows
}

// Parts is the number of parts into which the steps of a window are divided, so that slots become
// free before the whole window is over: see [Cache.Mark].
const Parts = 15

// classes returns the number of classes of free slots: free now, or after one of the parts of the
// window in use.
func (c Config) classes() int {
	if c.Kind == None {
		return 1
	}
	return 1 + Parts
}

// Bytes returns the memory of a Cache.
func (c Config) Bytes() int64 { return 8*int64(c.words()) + 4*int64(c.numbers()) + int64(c.marks()) }

// words returns the number of 64-bit words: the rows of two indices and gone; the new rows of two
// indices and the free slots by class; under Sieve the visited rows.
func (c Config) words() int {
	n := 3*SetWords(c.Rows) + (2+c.classes())*SetWords(c.Slots)
	if c.Kind == Sieve {
		n += SetWords(c.Rows)
	}
	return n
}

// numbers returns the number of 32-bit numbers: ranks and slots of two indices; under LRU the last
// uses of both, under Sieve the nodes of the queue.
func (c Config) numbers() int {
	n := 2*SetWords(c.Rows) + 2*c.Slots
	if c.Kind == LRU || c.Kind == Sieve {
		n += 2 * c.Slots
	}
	return n
}

// marks returns the length of last in bytes.
func (c Config) marks() int {
	if c.classes() == 1 {
		return 0
	}
	return c.Slots
}

// FixedBytes and SlotBytes bound Bytes from above: Bytes is at most FixedBytes plus SlotBytes for
// each slot.
func (c Config) FixedBytes() int64 {
	c.Slots = 1
	return c.Bytes()
}

// SlotBytes: see FixedBytes.
func (c Config) SlotBytes() int64 {
	c.Slots = 1
	marks := int64(2+c.classes()+7)/8 + int64(c.marks())
	if c.Kind == LRU || c.Kind == Sieve {
		return marks + 16
	}
	return marks + 8
}

// Cache decides which rows are in the slots. Make one with [New].
type Cache struct {
	Config
	words, numbers, marks *kernels.HostBuf

	now, next *Index // next holds the index before now until the next change
	gone      Set    // rows chosen to lose their slot, or to get none
	free      []Set  // slots, by class
	clock     uint32 // changes so far
	queue     queue  // under Sieve
	last      []byte // by rank in now: the part of the window in which the row is used last, 0 if not marked; see Mark
	marked    bool   // last describes now
	parted    bool   // last describes the index before the last change, until BeginMarks: see EachEvicted
}

// Change counts the rows that one change found, admitted and evicted.
type Change struct {
	Hits     int // needed rows that had a slot
	Misses   int // needed rows that had none
	Admitted int // misses that got a slot
	Evicted  int // rows that lost their slot
}

// New returns a Cache whose slots are all free. It panics if config is out of range. The error is a
// *kernels.MemoryError.
func New(config Config) (*Cache, error) {
	if config.Rows < 1 || int64(config.Rows) > 1<<32-1 || config.Slots < 1 || config.Slots > config.Rows || config.Kind.Validate() != nil {
		panic("policy: New: a configuration out of range")
	}
	c := &Cache{Config: config}
	var err error
	if c.words, err = kernels.NewHostBuf(8 * config.words()); err != nil {
		return nil, err
	}
	if c.numbers, err = kernels.NewHostBuf(4 * config.numbers()); err != nil {
		c.words.Close()
		return nil, err
	}
	if c.marks, err = kernels.NewHostBuf(config.marks()); err != nil {
		c.words.Close()
		c.numbers.Close()
		return nil, err
	}
	c.last = c.marks.Bytes()
	words, numbers := c.words.Uint64s(), c.numbers.Uint32s()
	set := func(n int) (s Set) {
		n = SetWords(n)
		s, words = words[:n:n], words[n:]
		return s
	}
	list := func(n int) (l []uint32) {
		l, numbers = numbers[:n:n], numbers[n:]
		return l
	}
	index := func() *Index {
		x := &Index{rows: set(config.Rows), ranks: list(SetWords(config.Rows))}
		x.slots, x.fresh = list(config.Slots), set(config.Slots)
		if config.Kind == LRU {
			x.seen = list(config.Slots)
		}
		return x
	}
	c.now, c.next, c.gone = index(), index(), set(config.Rows)
	for range config.classes() {
		c.free = append(c.free, set(config.Slots))
	}
	if config.Kind == Sieve {
		c.queue = queue{nodes: list(2 * config.Slots), visited: set(config.Rows)}
	}
	c.reset()
	return c, nil
}

// Close frees the memory, also of every Index. A second Close does nothing.
func (c *Cache) Close() {
	c.words.Close()
	c.numbers.Close()
	c.marks.Close()
}

// Now lends the index as of the last change.
func (c *Cache) Now() *Index { return c.now }

// Forget frees every slot and returns the number of rows evicted. It changes the current Index in
// place.
func (c *Cache) Forget() (evicted int) {
	if evicted = c.now.n; evicted > 0 {
		c.now.rows.Clear()
		clear(c.now.ranks)
		c.now.settle()
		c.now.n = 0
		c.reset()
	}
	return evicted
}

// reset frees all slots and forgets the order of the rows.
func (c *Cache) reset() {
	for _, f := range c.free {
		f.Clear()
	}
	for s := range c.Slots / 64 {
		c.free[0][s] = ^uint64(0)
	}
	if n := c.Slots % 64; n > 0 {
		c.free[0][c.Slots/64] = 1<<n - 1
	}
	c.queue.reset()
	c.marked = false
}

// freeAll moves all waiting slots to class 0: the window for whose parts they waited is over.
func (c *Cache) freeAll() {
	for _, f := range c.free[1:] {
		for i, w := range f {
			c.free[0][i] |= w
			f[i] = 0
		}
	}
}

// Marks reports whether the cache wants to know when rows are used. If so, the caller calls
// BeginMarks and then Mark, after a Window and before the next change. Marks do not affect which
// rows are kept, only when the slots of evicted rows can be reused: the next Window first gives out
// the slots that the previous window does not use, then the others in the order of the last use of
// their rows. So a window can be loaded bit by bit while the previous one is in use. See
// [Index.End].
func (c *Cache) Marks() bool { return c.classes() > 1 }

// BeginMarks starts the marks of the current Index: no row is marked.
func (c *Cache) BeginMarks() {
	clear(c.last[:c.now.n])
	c.marked = true
}

// Mark records that rows are used in a part of the window, from 1 to Parts. The last call for a row
// counts. Rows without a slot are passed over. Several goroutines may mark different rows.
func (c *Cache) Mark(rows []uint32, part int) {
	var room [lookUps]uint32
	for len(rows) > 0 {
		n := min(len(rows), lookUps)
		ranks := room[:n]
		if !c.now.ranksOf(rows[:n], ranks) {
			ranks = ranks[:0]
			for _, v := range rows[:n] {
				if r, ok := c.now.rank(v); ok {
					ranks = append(ranks, r)
				}
			}
		}
		for _, r := range ranks {
			c.last[r] = byte(part)
		}
		rows = rows[n:]
	}
}

// Fill frees every slot, and then gives slots to the lowest of rows, as many as fit; under None it
// only frees them. The rows are new in the Index. The previous Index is changed in place.
func (c *Cache) Fill(rows Set) *Index {
	c.clock++
	c.Forget()
	if c.Kind == None {
		return c.now
	}
	c.gone.Clear()
	excess := rows.Len() - c.Slots
	for w := len(rows) - 1; w >= 0 && excess > 0; w-- {
		c.gone[w] = highest(rows[w], &excess)
	}
	if c.Kind == Sieve {
		for w, r := range rows {
			each(w, r&^c.gone[w], c.queue.push)
		}
	}
	c.merge(rows, true)
	return c.now
}

// Window makes room for all of need, which has at most Slots rows, or it panics. future is the
// known need of later windows, the nearest first. The misses are new in the Index. Their slots may
// be written to at once, except where rows were evicted while their window is in use: see
// [Index.End].
func (c *Cache) Window(need Set, future []Rows) (*Index, Change) {
	c.clock++
	did := c.count(need)
	if did.Hits+did.Misses > c.Slots {
		panic("policy: Window: more rows than fit")
	}
	if c.Kind == None {
		return c.replace(need)
	}
	c.gone.Clear()
	c.choose(demand{need: need, future: future, excess: c.now.n + did.Misses - c.Slots})
	did.Admitted, did.Evicted = c.merge(need, true)
	return c.now, did
}

// Step plans a window of one step. Its misses are read straight to where they are used, and those
// that deserve a slot are copied there afterwards. So need may have any number of rows, and the
// others bypass the cache. No row is new in the Index; the caller looks up in Now which misses to
// copy.
func (c *Cache) Step(need Set, future []Rows) Change {
	c.clock++
	c.marked = false
	did := c.count(need)
	if c.Kind == None {
		did.Evicted = c.Forget()
		return did
	}
	c.gone.Clear()
	c.choose(demand{need: need, future: future, excess: c.now.n + did.Misses - c.Slots, step: true})
	if c.same(need) {
		c.Settle()
		c.touch(need)
		return did
	}
	did.Admitted, did.Evicted = c.merge(need, false)
	return did
}

// count counts the rows of need that have a slot, and those that have none.
func (c *Cache) count(need Set) (did Change) {
	for w, n := range need {
		did.Hits += bits.OnesCount64(n & c.now.rows[w])
		did.Misses += bits.OnesCount64(n &^ c.now.rows[w])
	}
	return did
}

// demand is the input of choose.
type demand struct {
	need   Set
	future []Rows
	excess int // rows that must lose their slot, or in a step get none; 0 or less: no row
	step   bool
}

// choose puts into c.gone, which is empty, the rows that lose their slot, or in a step get none.
func (c *Cache) choose(d demand) {
	switch c.Kind {
	case Sieve:
		c.queue.choose(c.now.rows, c.gone, c.Slots, d)
		return
	case Static:
		d.future = nil
	}
	if d.excess <= 0 {
		return
	}
	for w, rows := range c.now.rows { // candidates
		if d.step && c.Kind != LRU {
			rows |= d.need[w]
		} else {
			rows &^= d.need[w]
		}
		c.gone[w] = rows
	}
	if c.Kind == LRU {
		c.now.leastRecent(c.gone, c.clock, d)
	} else {
		farthest(c.gone, d.future, d.excess)
	}
}

// same reports whether adding need and removing c.gone leaves the rows of now as they are.
func (c *Cache) same(need Set) bool {
	for w, old := range c.now.rows {
		if (old|need[w])&^c.gone[w] != old {
			return false
		}
	}
	return true
}

// merge makes the next index: it adds need and removes c.gone. Rows keep their slots. New rows get
// free slots class after class, rows and slots both ascending, so that rows read in file order are
// written in about that order.
func (c *Cache) merge(need Set, window bool) (admitted, evicted int) {
	old, x := c.now, c.next
	c.freeAll()
	c.parted = c.marked
	rank := 0
	for w, rows := range old.rows {
		for g := rows & c.gone[w]; g != 0; g &= g - 1 {
			r, class := rank+bits.OnesCount64(rows&(g&-g-1)), 0
			if c.marked {
				class = int(c.last[r])
			}
			c.free[class].Add(old.slots[r])
			evicted++
		}
		rank += bits.OnesCount64(rows)
	}
	c.marked = false
	x.settle()
	x.endAll()
	from, to := 0, 0                      // ranks in old and in x
	runFrom, runTo := 0, 0                // where the current run of unchanged rows begins, in old and in x
	class, free, left := 0, -1, uint64(0) // class and word of c.free, and the slots of that word not given out yet
	for w, rows := range old.rows {
		x.ranks[w] = uint32(to)
		stay := (rows | need[w]) &^ c.gone[w]
		x.rows[w] = stay
		if stay == rows {
			n := bits.OnesCount64(rows)
			from, to = from+n, to+n
			continue
		}
		x.copyRun(runTo, to, old, runFrom)
		for m := rows | stay; m != 0; m &= m - 1 {
			switch bit := m & -m; {
			case stay&bit == 0:
				from++
			case rows&bit != 0:
				x.copyRun(to, to+1, old, from)
				from, to = from+1, to+1
			default:
				for left == 0 {
					if free++; free == len(c.free[class]) {
						x.ends[class] = w<<6 + bits.TrailingZeros64(bit)
						class, free = class+1, 0
					}
					left, c.free[class][free] = c.free[class][free], 0
				}
				x.slots[to] = uint32(free<<6 + bits.TrailingZeros64(left))
				left &= left - 1
				if window {
					x.fresh.Add(uint32(to))
				}
				to++
				admitted++
			}
		}
		runFrom, runTo = from, to
	}
	x.copyRun(runTo, to, old, runFrom)
	if left != 0 {
		c.free[class][free] = left
	}
	x.n = to
	c.now, c.next = x, old
	c.touch(need)
	return admitted, evicted
}

// copyRun copies the slots and last uses of rows that keep their slots: to ranks [lo, hi) of x,
// from rank at on in old.
func (x *Index) copyRun(lo, hi int, old *Index, at int) {
	if hi-lo == 1 {
		x.slots[lo] = old.slots[at]
		if x.seen != nil {
			x.seen[lo] = old.seen[at]
		}
		return
	}
	copy(x.slots[lo:hi], old.slots[at:])
	if x.seen != nil {
		copy(x.seen[lo:hi], old.seen[at:])
	}
}

// replace makes the next index from need alone, under None.
func (c *Cache) replace(need Set) (*Index, Change) {
	old, x := c.now, c.next
	x.n = 0
	for w, rows := range need {
		x.ranks[w] = uint32(x.n)
		x.rows[w] = rows
		x.n += bits.OnesCount64(rows)
	}
	x.settle()
	x.endAll()
	for r := range x.n {
		x.slots[r] = uint32(r)
		x.fresh.Add(uint32(r))
	}
	c.now, c.next = x, old
	return x, Change{Misses: x.n, Admitted: x.n, Evicted: old.n}
}

// EachEvicted calls do with each row that lost its slot in the last change, in ascending order:
// with that slot, and with the part of the previous window in which the row is used last, 0 if it
// is not marked. Call it after a change that evicted rows, before BeginMarks and the next change.
func (c *Cache) EachEvicted(do func(v, slot uint32, part int)) {
	old, rank := c.next, 0
	for w, rows := range old.rows {
		for g := c.evicted(w); g != 0; g &= g - 1 {
			r, part := rank+bits.OnesCount64(rows&(g&-g-1)), 0
			if c.parted {
				part = int(c.last[r])
			}
			do(uint32(w<<6+bits.TrailingZeros64(g)), old.slots[r], part)
		}
		rank += bits.OnesCount64(rows)
	}
}

// evicted returns word w of the rows that EachEvicted visits.
func (c *Cache) evicted(w int) uint64 {
	if c.Kind == None {
		return c.next.rows[w]
	}
	return c.next.rows[w] & c.gone[w]
}

// EvictedFrom returns the slot of a row that EachEvicted visits. It is valid as long as EachEvicted
// is.
func (c *Cache) EvictedFrom(v uint32) (slot uint32) {
	slot, _ = c.next.Slot(v)
	return slot
}

// DropNew frees the slots of the new rows, whose bytes will not come. It changes the current Index
// in place.
func (c *Cache) DropNew() {
	x := c.now
	from, to := 0, 0
	for w, rows := range x.rows {
		x.ranks[w] = uint32(to)
		lost := x.freshRows(w, from)
		for m := rows; m != 0; m &= m - 1 {
			if lost&m&-m != 0 {
				c.free[0].Add(x.slots[from])
			} else {
				x.copyRun(to, to+1, x, from)
				to++
			}
			from++
		}
		x.rows[w] = rows &^ lost
	}
	x.n = to
	x.settle()
	c.marked = false
	if c.Kind == Sieve {
		c.queue.keep(x.rows)
	}
}

// Settle marks every row as not new: Fill, not a window, brought their bytes.
func (c *Cache) Settle() { c.now.settle() }
