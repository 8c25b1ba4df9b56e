package history

import "math/bits"

// freeSlots finds the lowest free slot with a look at one word of each level. Level 0 has a bit for
// each slot, set if the slot is free. Each higher level has a bit for each word of the level below,
// set if that word is not 0.
type freeSlots struct {
	levels [][]uint64
	low    int // all words of level 0 before it are 0
}

// newFreeSlots returns freeSlots of which all are free.
func newFreeSlots(slots int) freeSlots {
	var f freeSlots
	for n := slots; ; n = (n + 63) / 64 {
		level := make([]uint64, (n+63)/64)
		for i := range level {
			level[i] = lowBits(n - 64*i)
		}
		if f.levels = append(f.levels, level); len(level) <= 1 {
			return f
		}
	}
}

// lowBits returns a word whose lowest n bits are set, at most all 64.
func lowBits(n int) uint64 {
	if n >= 64 {
		return ^uint64(0)
	}
	return 1<<n - 1
}

func (f *freeSlots) has(s uint32) bool { return f.levels[0][s/64]>>(s%64)&1 == 1 }

// add makes a slot free.
func (f *freeSlots) add(s uint32) {
	f.low = min(f.low, int(s/64))
	for _, level := range f.levels {
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
	for _, level := range f.levels {
		level[s/64] &^= 1 << (s % 64)
		if level[s/64] != 0 {
			return
		}
		s /= 64
	}
}

// take removes the lowest free slot and returns it.
func (f *freeSlots) take() (s uint32, ok bool) {
	words := f.levels[0]
	if f.low < len(words) && words[f.low] != 0 {
		s = uint32(64*f.low + bits.TrailingZeros64(words[f.low]))
		f.remove(s)
		return s, true
	}
	top := len(f.levels) - 1
	if len(f.levels[top]) == 0 || f.levels[top][0] == 0 {
		return 0, false
	}
	for l := top; l >= 0; l-- {
		s = 64*s + uint32(bits.TrailingZeros64(f.levels[l][s]))
	}
	f.low = int(s / 64)
	f.remove(s)
	return s, true
}
