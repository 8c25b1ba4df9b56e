package sample

import (
	"cmp"
	"math"
	"slices"
)

// selection keeps the lowest of the numbers that it is shown; of equal numbers the lower places
// win. It may be shown the parts of a list in any order. However long the list, it holds a few
// times as many candidates as it keeps.
type selection struct {
	keep  int
	limit uint64 // numbers above it are not among the lowest
	// limitFloat is the float that limit is ordered by, where numbers are mixtures.
	limitFloat float64
	kept       []candidate
	// ordered says that kept is in the order of places.
	ordered bool
	numbers []uint64 // scratch
}

type candidate struct {
	number    uint64
	place, id uint32
	weight    float32 // of the edge, where edges have one
}

// reset makes a selection of keep candidates, none of them above limit.
func (s *selection) reset(keep int, limit uint64) {
	s.keep, s.kept, s.ordered = keep, s.kept[:0], true
	s.lower(limit)
}

func (s *selection) lower(limit uint64) {
	if s.limit, s.limitFloat = limit, unordered(limit); limit == math.MaxUint64 { // it stands for NaN
		s.limitFloat = math.Inf(1)
	}
}

// room returns the most candidates at a time.
func (s *selection) room() int { return 2*s.keep + 64 }

// offerIDs shows the neighbours of a list from place from on. Their numbers come from their ids.
func (s *selection) offerIDs(n *numbers, from int, ids []uint32) {
	for i, id := range ids {
		s.offer(n, id, uint32(from+i), id)
	}
}

// offerPlaces shows neighbours as offerIDs does. Their numbers come from their places.
func (s *selection) offerPlaces(n *numbers, from int, ids []uint32) {
	for i, id := range ids {
		s.offer(n, uint32(from+i), uint32(from+i), id)
	}
}

// offer shows one neighbour, with the number of x.
func (s *selection) offer(n *numbers, x, place, id uint32) {
	at := (uint64(x) + 1) * golden
	number := mix(n.first + at)
	if n.mixed { // most are too high, and their first bits show it
		other := mix(n.next + at)
		if n.floor(number, other) > s.limitFloat {
			return
		}
		number = n.mixture(number, other)
	}
	if number <= s.limit {
		s.take(candidate{number: number, place: place, id: id})
	}
}

// offerWeights shows the weights of a list's edges from place from on: numbers are -ln(u)/w,
// exponential with rate w, so that the lowest are a draw in proportion to weights without
// replacement (Efraimidis and Spirakis 2006). It returns the place of the first weight that is
// invalid, or -1. Edges of weight 0 are not drawn.
func (s *selection) offerWeights(n *numbers, from int, weights []float32) (bad int) {
	for i, w := range weights {
		if !(w >= 0) || math.IsInf(float64(w), 1) {
			return from + i
		}
		if w == 0 {
			continue
		}
		if number := ordered(-math.Log(n.uniform(uint32(from+i))) / float64(w)); number <= s.limit {
			s.take(candidate{number: number, place: uint32(from + i), weight: w})
		}
	}
	return -1
}

// take adds a candidate. It compares the place of every candidate with the last one: a shrink in
// the middle of a part may put earlier candidates with higher places between that part's
// candidates.
func (s *selection) take(c candidate) {
	if n := len(s.kept); n > 0 && s.kept[n-1].place > c.place {
		s.ordered = false
	}
	s.kept = append(s.kept, c)
	if len(s.kept) >= s.room() {
		s.shrink()
	}
}

// shrink forgets all candidates but those to keep, and lowers the limit to the highest of them.
func (s *selection) shrink() {
	if len(s.kept) <= s.keep {
		return
	}
	if s.keep == 0 {
		s.kept = s.kept[:0]
		s.lower(0)
		return
	}
	s.sort()
	s.numbers = s.numbers[:0]
	for _, c := range s.kept {
		s.numbers = append(s.numbers, c.number)
	}
	s.lower(nth(s.numbers, s.keep-1))
	equal := s.keep // number of candidates at the limit that stay
	for _, c := range s.kept {
		if c.number < s.limit {
			equal--
		}
	}
	n := 0
	for _, c := range s.kept {
		if c.number == s.limit {
			if equal == 0 {
				continue
			}
			equal--
		}
		if c.number <= s.limit {
			s.kept[n] = c
			n++
		}
	}
	s.kept = s.kept[:n]
}

// sort puts candidates in the order of places.
func (s *selection) sort() {
	if !s.ordered {
		slices.SortFunc(s.kept, func(a, b candidate) int { return cmp.Compare(a.place, b.place) })
		s.ordered = true
	}
}

// chosen returns the kept candidates in the order of places, valid until the next reset.
func (s *selection) chosen() []candidate {
	s.shrink()
	s.sort()
	return s.kept
}

// nth returns the n-th smallest of x, counted from 0 (Hoare's FIND). It reorders x.
func nth(x []uint64, n int) uint64 {
	for lo, hi := 0, len(x)-1; lo < hi; {
		pivot := x[lo+(hi-lo)/2]
		i, j := lo, hi
		for i <= j {
			for x[i] < pivot {
				i++
			}
			for pivot < x[j] {
				j--
			}
			if i <= j {
				x[i], x[j] = x[j], x[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			hi = j
		case n >= i:
			lo = i
		default:
			return x[n]
		}
	}
	return x[n]
}
