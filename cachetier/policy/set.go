package policy

import "math/bits"

// Set is a set of rows, as a bitmap: row v is bit v%64 of word v/64. Whoever makes it owns its
// memory.
type Set []uint64

// lineWords is the number of words in a cache line: a Set is whole cache lines.
const lineWords = 8

// SetWords returns the length of a Set for a table of rows rows.
func SetWords(rows int) int { return (rows + 64*lineWords - 1) / (64 * lineWords) * lineWords }

// Has reports whether v is in the set.
func (s Set) Has(v uint32) bool { return s[v>>6]>>(v&63)&1 != 0 }

// Lacks returns 1 if v is not in the set, else 0, so that a loop can count without a branch.
func (s Set) Lacks(v uint32) int { return int(^s[v>>6] >> (v & 63) & 1) }

// Add puts v into the set, and reports whether it was not there before.
func (s Set) Add(v uint32) bool {
	w, bit := &s[v>>6], uint64(1)<<(v&63)
	added := *w&bit == 0
	*w |= bit
	return added
}

func (s Set) remove(v uint32) { s[v>>6] &^= 1 << (v & 63) }

// Clear empties the set.
func (s Set) Clear() { clear(s) }

// Len counts the rows.
func (s Set) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// each calls do with each row of w, which is word i of a set, in ascending order.
func each(i int, w uint64, do func(v uint32)) {
	for ; w != 0; w &= w - 1 {
		do(uint32(i<<6 + bits.TrailingZeros64(w)))
	}
}

// highest returns the *left highest rows of w, or all of w if it has fewer, and subtracts their
// number from *left.
func highest(w uint64, left *int) uint64 {
	n := bits.OnesCount64(w)
	for ; n > *left; n-- {
		w &= w - 1
	}
	*left -= n
	return w
}
