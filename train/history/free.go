package history

import "math/bits"

// freeSlots finds the lowest free slot. It looks at a few words of level 0 first, and then at one
// word of each level. Level 0 has a bit for
// each slot, set if the slot is free. Each higher level has a bit for each word of the level below,
// set if that word is not 0.
type freeSlots struct {
	words  []uint64   // level 0
	higher [][]uint64 // the levels above
	low    int        // all words before it are 0
}

// newFreeSlots returns a set of slots, all free.
func newFreeSlots(slots int) freeSlots {
	f := freeSlots{words: ones(slots)}
	for below := f.words; len(below) > 1; {
		below = ones(len(below))
		f.higher = append(f.higher, below)
	}
	return f
}

// ones returns words whose first n bits are set.
func ones(n int) []uint64 {
	words := make([]uint64, (n+63)/64)
	for i := range words {
		words[i] = lowBits(n - 64*i)
	}
	return words
}

// lowBits returns a word whose lowest n bits are set, at most all 64.
func lowBits(n int) uint64 {
	if n >= 64 {
		return ^uint64(0)
	}
	return 1<<n - 1
}

func (f *freeSlots) has(s uint32) bool { return f.words[s/64]>>(s%64)&1 == 1 }

// add makes a slot free.
func (f *freeSlots) add(s uint32) {
	w := int(s / 64)
	f.low = min(f.low, w)
	was := f.words[w]
	if f.words[w] = was | 1<<(s%64); was == 0 {
		f.filled(w)
	}
}

// filled marks a word that was 0 and is not any more.
func (f *freeSlots) filled(s int) {
	for _, level := range f.higher {
		was := level[s/64]
		level[s/64] = was | 1<<(s%64)
		if was != 0 {
			return
		}
		s /= 64
	}
}

// remove marks a free slot as in use.
func (f *freeSlots) remove(s uint32) {
	w := int(s / 64)
	if f.words[w] &^= 1 << (s % 64); f.words[w] == 0 {
		f.emptied(w)
	}
}

// emptied marks a word that is 0 now.
func (f *freeSlots) emptied(s int) {
	for _, level := range f.higher {
		level[s/64] &^= 1 << (s % 64)
		if level[s/64] != 0 {
			return
		}
		s /= 64
	}
}

// take removes the lowest free slot and returns it.
func (f *freeSlots) take() (s uint32, ok bool) {
	if f.low >= len(f.words) || f.words[f.low] == 0 {
		if !f.seek() {
			return 0, false
		}
	}
	w := f.low
	word := f.words[w]
	if f.words[w] = word & (word - 1); f.words[w] == 0 {
		f.emptied(w)
	}
	return uint32(64*w + bits.TrailingZeros64(word)), true
}

// seek moves low to the first word that is not 0. It returns false if there is none.
func (f *freeSlots) seek() bool {
	for w := f.low + 1; w < min(f.low+5, len(f.words)); w++ { // mostly it is near
		if f.words[w] != 0 {
			f.low = w
			return true
		}
	}
	w := 0
	for l := len(f.higher) - 1; l >= 0; l-- {
		if f.higher[l][w] == 0 {
			return false
		}
		w = 64*w + bits.TrailingZeros64(f.higher[l][w])
	}
	f.low = w
	return len(f.words) > 0 && f.words[w] != 0
}
