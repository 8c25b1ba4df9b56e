package table

import (
	"cmp"
	"slices"

	"github.com/gnnstore/gnnstore/store"
)

const (
	// levelSize bounds the numbers of one level of a sketch, 16 KiB.
	levelSize = 2 << 10
	// mostKnots bounds the knots of a learnt distribution, as many as scikit-learn has quantiles.
	mostKnots = 1000
)

// sketch learns the distribution of a column in bounded memory: 16 KiB for each doubling of the
// rows beyond levelSize, so 256 KiB for 10^8 rows. It is exact up to mostKnots different numbers,
// and up to levelSize-1 rows. Beyond, it merges buffers of one size, as in Manku, Rajagopalan and
// Lindsay, "Approximate Medians and other Quantiles in One Pass and with Limited Memory". A merge
// keeps every other number of a sorted buffer, at odd and at even places in turn, so that
// errors cancel. The result depends on the order of the rows alone.
type sketch struct {
	counts      map[float64]int64 // of different numbers; nil: there were more than mostKnots
	levels      [][]float64       // a number of level k stands for 2^k of them
	odd         []bool            // of each level: the next merge keeps the odd places
	least, most float64
}

// add learns one number.
func (s *sketch) add(x float64) {
	if x == 0 {
		x = 0 // -0 is the same number
	}
	if s.levels == nil {
		s.counts, s.levels, s.odd = map[float64]int64{}, [][]float64{nil}, []bool{false}
		s.least, s.most = x, x
	}
	s.least, s.most = min(s.least, x), max(s.most, x)
	if s.counts != nil {
		if s.counts[x]++; len(s.counts) > mostKnots {
			s.counts = nil
		}
	}
	s.levels[0] = append(s.levels[0], x)
	for k := 0; len(s.levels[k]) == levelSize; k++ {
		if k+1 == len(s.levels) {
			s.levels, s.odd = append(s.levels, nil), append(s.odd, false)
		}
		s.merge(k)
	}
}

// merge moves every other number of a full level to the next one.
func (s *sketch) merge(k int) {
	full := s.levels[k]
	slices.Sort(full)
	first := 0
	if s.odd[k] {
		first = 1
	}
	for i := first; i < len(full); i += 2 {
		s.levels[k+1] = append(s.levels[k+1], full[i])
	}
	s.levels[k], s.odd[k] = full[:0], !s.odd[k]
}

// weighted is a number that stands for some equal or near ones.
type weighted struct {
	x     float64
	count int64
}

// distinct returns the different numbers in ascending order.
func (s *sketch) distinct() (all []weighted) {
	for x, n := range s.counts {
		all = append(all, weighted{x, n})
	}
	for level, numbers := range s.levels {
		for _, x := range numbers {
			if s.counts == nil {
				all = append(all, weighted{x, 1 << level})
			}
		}
	}
	slices.SortFunc(all, func(a, b weighted) int { return cmp.Compare(a.x, b.x) })
	list := all[:0]
	for _, w := range all {
		if n := len(list); n > 0 && list[n-1].x == w.x {
			list[n-1].count += w.count
		} else {
			list = append(list, w)
		}
	}
	return list
}

// scaling returns the distribution: the numbers at mostKnots quantiles, with the shares of the
// learnt numbers below each, and below or equal.
func (s *sketch) scaling() (of store.Scaling) {
	all := s.distinct()
	total, last := int64(0), len(all)-1
	for _, w := range all {
		total += w.count
	}
	add := func(x, below, through float64) {
		of.Knots = append(of.Knots, x)
		of.Below, of.Through = append(of.Below, below/float64(total)), append(of.Through, through/float64(total))
	}
	below, next := int64(0), int64(0) // next is the quantile that the next knot reaches
	for i, w := range all {
		through := below + w.count
		reached := int64(float64(through) / float64(total) * (mostKnots - 1))
		if i == 0 && s.least < w.x { // merges dropped the least
			add(s.least, 0, 1)
			below = 1
		}
		if reached >= next || i == last || len(all) <= mostKnots {
			add(w.x, float64(below), float64(through))
			next = reached + 1
		}
		below = through
	}
	if end := len(of.Knots) - 1; s.most > all[last].x {
		of.Through[end] = float64(total-1) / float64(total)
		add(s.most, float64(total-1), float64(total))
	}
	return of
}
