package policy

import (
	"math/bits"

	"github.com/gnnstore/gnnstore/kernels"
)

// Config says what a [Keeper] keeps.
type Config struct {
	Kind  Kind
	Rows  int // of the table, from 1 to 2³²-1
	Slots int // of the cache, from 1 to Rows
}

// Parts is how many parts the steps of a window fall into, for the slots that it leaves: see [Keeper.Mark].
const Parts = 15

// classes is how many kinds of free slots are told apart: free now, or after one of the parts of the window in use.
func (c Config) classes() int {
	if c.Kind == None {
		return 1
	}
	return 1 + Parts
}

// Bytes is the memory that a Keeper takes.
func (c Config) Bytes() int64 { return 8*int64(c.words()) + 4*int64(c.numbers()) + int64(c.marks()) }

// words counts the 64-bit numbers: rows of two tables and those given up; new rows of two tables and free slots.
func (c Config) words() int {
	n := 3*SetWords(c.Rows) + (2+c.classes())*SetWords(c.Slots)
	if c.Kind == Sieve {
		n += SetWords(c.Rows)
	}
	return n
}

// numbers counts the 32-bit ones, all of which a slot has two of.
func (c Config) numbers() int {
	n := 2*SetWords(c.Rows)/lineWords + 2*c.Slots
	if c.Kind == LRU || c.Kind == Sieve {
		n += 2 * c.Slots
	}
	return n
}

// marks counts the bytes of last.
func (c Config) marks() int {
	if c.classes() == 1 {
		return 0
	}
	return c.Slots
}

// FixedBytes and SlotBytes bound Bytes from above: what there is without a slot, and what each slot adds.
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

// Keeper decides which rows are in the slots. Use New.
type Keeper struct {
	Config
	words, numbers, marks *kernels.HostBuf

	now, next *Index // next is the one before now, too
	gone      Set    // rows chosen to lose their slot, or not to get one
	free      []Set  // slots, by class
	clock     uint32 // changes so far
	queue     queue  // under Sieve
	last      []byte // by rank in now: the part of its window in which a row is used last, 0 where it has none; see Mark
	marked    bool   // last is of now
}

// Change is what one change did, in rows.
type Change struct {
	Hits     int // needed, and had a slot
	Misses   int // needed, and had none
	Admitted int // misses that have a slot now
	Evicted  int // rows that had a slot, and have none now
}

// New makes a Keeper of free slots. It panics if c is out of range. The error is a *kernels.MemoryError.
func New(c Config) (*Keeper, error) {
	if c.Rows < 1 || int64(c.Rows) > 1<<32-1 || c.Slots < 1 || c.Slots > c.Rows || c.Kind.Validate() != nil {
		panic("policy: New: a configuration out of range")
	}
	k := &Keeper{Config: c}
	var err error
	if k.words, err = kernels.NewHostBuf(8 * c.words()); err != nil {
		return nil, err
	}
	if k.numbers, err = kernels.NewHostBuf(4 * c.numbers()); err != nil {
		k.words.Close()
		return nil, err
	}
	if k.marks, err = kernels.NewHostBuf(c.marks()); err != nil {
		k.words.Close()
		k.numbers.Close()
		return nil, err
	}
	k.last = k.marks.Bytes()
	words, numbers := k.words.Uint64s(), k.numbers.Uint32s()
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
		x := &Index{rows: set(c.Rows), ranks: list(SetWords(c.Rows) / lineWords), slots: list(c.Slots), fresh: set(c.Slots)}
		if c.Kind == LRU {
			x.seen = list(c.Slots)
		}
		return x
	}
	k.now, k.next, k.gone = index(), index(), set(c.Rows)
	for range c.classes() {
		k.free = append(k.free, set(c.Slots))
	}
	if c.Kind == Sieve {
		k.queue = queue{nodes: list(2 * c.Slots), visited: set(c.Rows)}
	}
	k.reset()
	return k, nil
}

// Close gives up the memory, that of each Index included. A second Close does nothing.
func (k *Keeper) Close() {
	k.words.Close()
	k.numbers.Close()
	k.marks.Close()
}

// Now lends the index as of the last change.
func (k *Keeper) Now() *Index { return k.now }

// Forget frees every slot. It returns how many rows lost theirs. The Index from before is changed.
func (k *Keeper) Forget() (evicted int) {
	if evicted = k.now.n; evicted > 0 {
		k.now.rows.Clear()
		clear(k.now.ranks)
		k.now.settle()
		k.now.n = 0
		k.reset()
	}
	return evicted
}

// reset frees the slots, and forgets the order of rows.
func (k *Keeper) reset() {
	for _, f := range k.free {
		f.Clear()
	}
	for s := range k.Slots / 64 {
		k.free[0][s] = ^uint64(0)
	}
	if n := k.Slots % 64; n > 0 {
		k.free[0][k.Slots/64] = 1<<n - 1
	}
	k.queue.reset()
	k.marked = false
}

// freeAll takes note that the window is over whose parts slots were waiting for.
func (k *Keeper) freeAll() {
	for _, f := range k.free[1:] {
		for i, w := range f {
			k.free[0][i] |= w
			f[i] = 0
		}
	}
}

// Marks says whether the keeper wants to be told when rows are used: after a Window, and before the next change, BeginMarks
// and then Mark. It makes no difference to which rows are kept, but to when the slots of the others can be had: the next
// Window gives out first what the rows of the one before do not have, then what they have in the order of their last use.
// So that one can be loaded bit by bit while the other is in use. See [Index.End].
func (k *Keeper) Marks() bool { return k.classes() > 1 }

// BeginMarks takes note that no row is used.
func (k *Keeper) BeginMarks() {
	clear(k.last[:k.now.n])
	k.marked = true
}

// Mark takes note that row v is used in this part of its window, from 1 to Parts. The last call for a row counts. Several
// goroutines may mark different rows.
func (k *Keeper) Mark(v uint32, part int) {
	if r, ok := k.now.rank(v); ok {
		k.last[r] = byte(part)
	}
}

// Fill puts the lowest of rows into the slots, as many as there are, and nothing else; under None it only frees them. The
// rows are new in the Index. The Index from before is changed.
func (k *Keeper) Fill(rows Set) *Index {
	k.clock++
	k.Forget()
	if k.Kind == None {
		return k.now
	}
	k.gone.Clear()
	excess := rows.Len() - k.Slots
	for w := len(rows) - 1; w >= 0 && excess > 0; w-- {
		k.gone[w] = highest(rows[w], &excess)
	}
	if k.Kind == Sieve {
		for w, r := range rows {
			each(w, r&^k.gone[w], k.queue.push)
		}
	}
	k.merge(rows, true)
	return k.now
}

// Window makes room for all of need, of which there may be as many as slots. future is what is foreseen of later windows,
// the nearest first. The misses are new in the Index, and their slots are free to be written to, unless rows were evicted
// while their window is in use.
func (k *Keeper) Window(need Set, future []Set) (*Index, Change) {
	k.clock++
	c := k.count(need)
	if c.Hits+c.Misses > k.Slots {
		panic("policy: Window: more rows than fit")
	}
	if k.Kind == None {
		return k.replace(need)
	}
	k.gone.Clear()
	k.choose(demand{need: need, future: future, excess: k.now.n + c.Misses - k.Slots})
	c.Admitted, c.Evicted = k.merge(need, true)
	return k.now, c
}

// Step is a window of one step, which can do without slots: its misses are read to where they are used, and those that
// deserve a slot are copied there afterwards. So it may need any number of rows, and those that are not worth it pass by.
// No row is new in the Index, Now, from which the caller sees which misses to copy.
func (k *Keeper) Step(need Set, future []Set) Change {
	k.clock++
	k.marked = false
	c := k.count(need)
	if k.Kind == None {
		c.Evicted = k.Forget()
		return c
	}
	k.gone.Clear()
	k.choose(demand{need: need, future: future, excess: k.now.n + c.Misses - k.Slots, step: true})
	if k.same(need) {
		k.Settle()
		k.touch(need)
		return c
	}
	c.Admitted, c.Evicted = k.merge(need, false)
	return c
}

// count says how many of need have slots.
func (k *Keeper) count(need Set) (c Change) {
	for w, n := range need {
		c.Hits += bits.OnesCount64(n & k.now.rows[w])
		c.Misses += bits.OnesCount64(n &^ k.now.rows[w])
	}
	return c
}

// demand is what a change is decided by.
type demand struct {
	need   Set
	future []Set
	excess int // rows that must give up a slot, or in a step be refused one; not positive: none
	step   bool
}

// choose puts excess rows in k.gone, which is empty.
func (k *Keeper) choose(d demand) {
	switch k.Kind {
	case Sieve:
		k.queue.choose(k.now.rows, k.gone, k.Slots, d)
		return
	case Static:
		d.future = nil
	}
	if d.excess <= 0 {
		return
	}
	for w, rows := range k.now.rows { // who may be chosen
		if d.step && k.Kind != LRU {
			rows |= d.need[w]
		} else {
			rows &^= d.need[w]
		}
		k.gone[w] = rows
	}
	if k.Kind == LRU {
		k.now.leastRecent(k.gone, k.clock, d)
	} else {
		farthest(k.gone, d.future, d.excess)
	}
}

// same says that with need in and k.gone out the rows are those of now.
func (k *Keeper) same(need Set) bool {
	for w, old := range k.now.rows {
		if (old|need[w])&^k.gone[w] != old {
			return false
		}
	}
	return true
}

// merge makes the next index: with need in and k.gone out. Rows keep their slots; those that come get free ones, class after
// class and in ascending order both, so that what is read in file order is written in about that order.
func (k *Keeper) merge(need Set, window bool) (admitted, evicted int) {
	old, x := k.now, k.next
	k.freeAll()
	rank := 0
	for w, rows := range old.rows {
		for g := rows & k.gone[w]; g != 0; g &= g - 1 {
			r, class := rank+bits.OnesCount64(rows&(g&-g-1)), 0
			if k.marked {
				class = int(k.last[r])
			}
			k.free[class].Add(old.slots[r])
			evicted++
		}
		rank += bits.OnesCount64(rows)
	}
	k.marked = false
	x.settle()
	x.endAll()
	from, to := 0, 0                      // ranks in old and in x
	runFrom, runTo := 0, 0                // since when nothing changed
	class, free, left := 0, -1, uint64(0) // class and word of k.free, and what of it is not given out
	for w, rows := range old.rows {
		if w%lineWords == 0 {
			x.ranks[w/lineWords] = uint32(to)
		}
		stay := (rows | need[w]) &^ k.gone[w]
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
					if free++; free == len(k.free[class]) {
						x.ends[class] = w<<6 + bits.TrailingZeros64(bit)
						class, free = class+1, 0
					}
					left, k.free[class][free] = k.free[class][free], 0
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
		k.free[class][free] = left
	}
	x.n = to
	k.now, k.next = x, old
	k.touch(need)
	return admitted, evicted
}

// copyRun copies what is known of rows that keep their slots: of ranks [lo, hi), in old from rank at on.
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

// replace makes the next index of need alone, under None.
func (k *Keeper) replace(need Set) (*Index, Change) {
	old, x := k.now, k.next
	x.n = 0
	for w, rows := range need {
		if w%lineWords == 0 {
			x.ranks[w/lineWords] = uint32(x.n)
		}
		x.rows[w] = rows
		x.n += bits.OnesCount64(rows)
	}
	x.settle()
	x.endAll()
	for r := range x.n {
		x.slots[r] = uint32(r)
		x.fresh.Add(uint32(r))
	}
	k.now, k.next = x, old
	return x, Change{Misses: x.n, Admitted: x.n, Evicted: old.n}
}

// DropNew frees the slots of the rows that are new: their bytes will not come. The Index of the last change is changed.
func (k *Keeper) DropNew() {
	x := k.now
	from, to := 0, 0
	for w, rows := range x.rows {
		if w%lineWords == 0 {
			x.ranks[w/lineWords] = uint32(to)
		}
		lost := x.freshRows(w, from)
		for m := rows; m != 0; m &= m - 1 {
			if lost&m&-m != 0 {
				k.free[0].Add(x.slots[from])
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
	k.marked = false
	if k.Kind == Sieve {
		k.queue.keep(x.rows)
	}
}

// Settle takes note that no row is new: their bytes came for no window.
func (k *Keeper) Settle() { k.now.settle() }
