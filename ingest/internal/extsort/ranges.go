package extsort

import (
	"math/bits"
	"slices"
)

// Ranges part the numbers 0…n-1 into consecutive ranges.
type Ranges struct {
	starts []uint32 // of each range, ascending, the first 0
	n      uint64
	shift  int
	index  []uint16 // the range of the first number with these upper bits
}

// indexBits make an index of 128 KiB, in which a look-up is right or off by few.
const indexBits = 16

// NewRanges takes the starts of ranges over 0…n-1; those that are not above the one before are left
// out.
func NewRanges(starts []uint32, n uint64) *Ranges {
	r := &Ranges{starts: []uint32{0}, n: n}
	for _, s := range starts {
		if s > r.starts[len(r.starts)-1] && uint64(s) < n {
			r.starts = append(r.starts, s)
		}
	}
	if r.shift = max(0, bits.Len64(max(n, 1)-1)-indexBits); len(r.starts) == 1 {
		r.shift = 32 // any number is in it
	}
	r.index = make([]uint16, (max(n, 1)-1)>>r.shift+1)
	at := 0
	for i := range r.index {
		for at+1 < len(r.starts) && uint64(r.starts[at+1]) <= uint64(i)<<r.shift {
			at++
		}
		r.index[i] = uint16(at)
	}
	return r
}

// EvenRanges are k ranges of equal width, or n if there are fewer numbers.
func EvenRanges(n uint64, k int) *Ranges {
	k = int(max(1, min(uint64(k), n)))
	starts := make([]uint32, k)
	for i := range starts {
		hi, lo := bits.Mul64(uint64(i), n)
		q, _ := bits.Div64(hi, lo, uint64(k))
		starts[i] = uint32(q)
	}
	return NewRanges(starts, n)
}

// Quantiles are k ranges that hold about equally many of the sample, and none more than maxWidth
// numbers. It sorts sample.
func Quantiles(sample []uint32, n uint64, k int, maxWidth uint64) *Ranges {
	slices.Sort(sample)
	starts := []uint32{0}
	add := func(s uint64) {
		for last := uint64(starts[len(starts)-1]); s > last; {
			last = min(s, last+maxWidth)
			if last < n {
				starts = append(starts, uint32(last))
			}
		}
	}
	for i := 1; i < k && len(sample) > 0; i++ {
		add(uint64(sample[len(sample)*i/k]))
	}
	add(n)
	return NewRanges(starts, n)
}

// Len is the number of ranges.
func (r *Ranges) Len() int { return len(r.starts) }

// Starts are the ranges' first numbers, borrowed.
func (r *Ranges) Starts() []uint32 { return r.starts }

// Find is the range of v.
func (r *Ranges) Find(v uint32) int {
	i := int(r.index[uint64(v)>>r.shift])
	for i+1 < len(r.starts) && r.starts[i+1] <= v {
		i++
	}
	return i
}

// Bounds are the first number of range i and the first after it.
func (r *Ranges) Bounds(i int) (lo, end uint64) {
	if i+1 < len(r.starts) {
		return uint64(r.starts[i]), uint64(r.starts[i+1])
	}
	return uint64(r.starts[i]), r.n
}
