package policy

import (
	"math"
	"math/bits"
	"sync/atomic"
)

// Index finds the slots of rows. It has a bitmap of the rows that have a slot, and their slots in
// order of rows. A row's rank is its position among these rows: the number of bits set below its
// own. A directory has that number for each word of the bitmap.
//
// A row that is new has a slot, but its bytes are missing until whoever loads the window has
// brought them; it counts as new until its first use.
type Index struct {
	rows  Set
	ranks []uint32 // rows before each word of the bitmap
	slots []uint32 // by rank
	fresh Set      // by rank: new and not used yet
	seen  []uint32 // by rank: the change of the last use, under LRU
	n     int
	ends  [1 + Parts]int // see End
}

// End bounds the new rows whose slots are free once this part of the previous window is over: they
// are below the row that End returns, and the others wait longer. Part 0 is over before that window
// begins. If no row was marked, all slots are free then.
func (x *Index) End(part int) int { return x.ends[part] }

func (x *Index) endAll() {
	for part := range x.ends {
		x.ends[part] = math.MaxInt
	}
}

// Len returns the number of rows that have a slot.
func (x *Index) Len() int { return x.n }

// Rows lends the set of rows that have a slot.
func (x *Index) Rows() Set { return x.rows }

// rank returns the rank of row v; ok is false if v has no slot.
func (x *Index) rank(v uint32) (rank uint32, ok bool) {
	w := v >> 6
	word, bit := x.rows[w], uint64(1)<<(v&63)
	if word&bit == 0 {
		return 0, false
	}
	return x.ranks[w] + uint32(bits.OnesCount64(word&(bit-1))), true
}

// Slot returns the slot of row v; ok is false if it has none.
func (x *Index) Slot(v uint32) (slot uint32, ok bool) {
	r, ok := x.rank(v)
	if !ok {
		return 0, false
	}
	return x.slots[r], true
}

// Use puts the slots of rows into slots and records the use. first counts the new rows that had not
// been used before. ok is false if a row has no slot; slots is then undefined, and some uses may be
// recorded.
func (x *Index) Use(rows, slots []uint32) (first int, ok bool) {
	var room [lookUps]uint32
	for lo := 0; lo < len(rows); lo += lookUps {
		hi := min(lo+lookUps, len(rows))
		ranks := room[:hi-lo]
		if !x.ranksOf(rows[lo:hi], ranks) {
			return first, false
		}
		for i, r := range ranks {
			slots[lo+i] = x.slots[r]
		}
		for _, r := range ranks {
			word, bit := &x.fresh[r>>6], uint64(1)<<(r&63)
			if atomic.LoadUint64(word)&bit != 0 && atomic.AndUint64(word, ^bit)&bit != 0 {
				first++
			}
		}
	}
	return first, true
}

// lookUps is the number of rows that are looked up at a time: first all ranks, then all slots.
// These two loops have no branch that waits for memory, so the processor has many look-ups in
// flight.
const lookUps = 256

// ranksOf puts the ranks of rows into ranks. ok is false if a row has no slot; ranks is then
// undefined.
func (x *Index) ranksOf(rows, ranks []uint32) (ok bool) {
	has := ^uint64(0)
	ranks = ranks[:len(rows)]
	for i, v := range rows {
		word := x.rows[v>>6]
		has &= word >> (v & 63)
		ranks[i] = x.ranks[v>>6] + uint32(bits.OnesCount64(word&(1<<(v&63)-1)))
	}
	return has&1 != 0
}

// settle marks every row as not new.
func (x *Index) settle() { clear(x.fresh) }

// freshAt returns which of the n rows from rank r on are new: bit i stands for rank r+i. n is at
// most 64.
func (x *Index) freshAt(r, n int) uint64 {
	if n == 0 {
		return 0
	}
	w, shift := r>>6, r&63
	f := x.fresh[w] >> shift
	if shift+n > 64 {
		f |= x.fresh[w+1] << (64 - shift)
	}
	return f & (^uint64(0) >> (64 - n))
}

// Walk lists the new rows of an Index in ascending order, a portion at a time. The zero Walk is at
// the start.
type Walk struct {
	word, rank int    // the next word of the bitmap, and the number of rows before it
	left       uint64 // rows of the word before it that are not listed yet
}

// Next fills rows with the next new rows, as many as fit, and returns their number: 0 at the end.
func (w *Walk) Next(x *Index, rows []uint32) int {
	n := 0
	for n < len(rows) {
		for w.left == 0 {
			if w.word == len(x.rows) {
				return n
			}
			w.left = x.freshRows(w.word, w.rank)
			w.rank += bits.OnesCount64(x.rows[w.word])
			w.word++
		}
		for ; w.left != 0 && n < len(rows); w.left &= w.left - 1 {
			rows[n] = uint32((w.word-1)<<6 + bits.TrailingZeros64(w.left))
			n++
		}
	}
	return n
}

// freshRows returns the new rows of word w of the bitmap; rank is the number of rows before that
// word.
func (x *Index) freshRows(w, rank int) uint64 {
	word := x.rows[w]
	var fresh uint64
	for f := x.freshAt(rank, bits.OnesCount64(word)); f != 0; f >>= 1 {
		if f&1 != 0 {
			fresh |= word & -word
		}
		word &= word - 1
	}
	return fresh
}

// EachNew calls do with each new row from first to last, both included, and its slot, in ascending
// order. Several calls may run at once, but not beside Use.
func (x *Index) EachNew(first, last uint32, do func(v, slot uint32)) {
	rank := int(x.ranks[first>>6])
	for w := int(first >> 6); w <= int(last>>6); w++ {
		word := x.rows[w]
		r := rank
		rank += bits.OnesCount64(word)
		for f := x.freshAt(r, rank-r); f != 0; f >>= 1 {
			if v := uint32(w<<6 + bits.TrailingZeros64(word)); f&1 != 0 && v >= first && v <= last {
				do(v, x.slots[r])
			}
			word &= word - 1
			r++
		}
	}
}
