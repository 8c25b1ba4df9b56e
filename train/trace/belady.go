package trace

import "math/bits"

// belady is one cache under Belady's MIN, with rows that may pass by: of the rows that it holds and
// the one that was just asked for, it gives up the one whose next request is the farthest (Belady
// 1966; Mattson et al. 1970 prove that nothing misses less). It is asked by places: the place of
// the next request for the same row, or never.
//
// A row that it holds stands for one future request, its next, and no two for the same. So the
// cache is a set of these places: a request is a hit if its own place is in the set, and the
// largest place is given up.
type belady struct {
	size uint32
	now  uint32
	kept places
}

// never stands for no next request. Such a row need not be kept.
const never = 1<<32 - 1

func newBelady(requests int64, size uint32) *belady {
	return &belady{size: size, kept: newPlaces(requests)}
}

func (b *belady) close() { b.kept = places{} }

func (b *belady) ask(next []uint32, misses []int64) {
	missed := int64(0)
	for _, n := range next {
		if !b.kept.remove(b.now) {
			missed++
		}
		b.now++
		if n == never {
			continue
		}
		if b.kept.n < b.size {
			b.kept.add(n)
		} else if last := b.kept.last(); n < last {
			b.kept.remove(last)
			b.kept.add(n)
		}
	}
	misses[0] += missed
}

// places is a set of numbers: a bitmap, above it one with a bit for each of its words that is not
// empty, and so on up to a single word.
type places struct {
	levels [][]uint64
	n      uint32
}

// newPlaces returns an empty set with room for the numbers below n.
func newPlaces(n int64) (p places) {
	for {
		n = max(n+63, 64) / 64
		p.levels = append(p.levels, make([]uint64, n))
		if n == 1 {
			return p
		}
	}
}

func (p *places) add(x uint32) {
	p.n++
	for _, level := range p.levels {
		old := level[x>>6]
		level[x>>6] = old | 1<<(x&63)
		if old != 0 {
			return
		}
		x >>= 6
	}
}

// remove reports whether x was there.
func (p *places) remove(x uint32) bool {
	if p.levels[0][x>>6]&(1<<(x&63)) == 0 {
		return false
	}
	p.n--
	for _, level := range p.levels {
		level[x>>6] &^= 1 << (x & 63)
		if level[x>>6] != 0 {
			break
		}
		x >>= 6
	}
	return true
}

// last returns the largest number of a set that is not empty.
func (p *places) last() uint32 {
	x := uint32(0)
	for i := len(p.levels) - 1; i >= 0; i-- {
		x = x<<6 + uint32(63-bits.LeadingZeros64(p.levels[i][x]))
	}
	return x
}
