package history

import "math/bits"

// freeSlots are the slots that a plan may give out. A bit of level 0 is a slot, set where it is free; a bit of each level above is a
// word of the level below, set where that word has a bit set. So the lowest free slot is found with a look at a word of each level.
type freeSlots struct {
	levels [][]uint64
	low    int // all words of level 0 before it are 0
}

// newFreeSlots has all of slots free.
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

// lowBits has the lowest n bits set, all 64 at most.
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

// remove makes a free slot one that is not.
func (f *freeSlots) remove(s uint32) {
	for _, level := range f.levels {
		level[s/64] &^= 1 << (s % 64)
		if level[s/64] != 0 {
			return
		}
		s /= 64
	}
}

// take gives out the lowest free slot.
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
