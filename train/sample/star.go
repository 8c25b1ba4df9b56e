package sample

import "math"

// star finds the probabilities of LABOR-*, and draws by them: Balin and Çatalyürek 2023, section 3.2 and appendix A.2.
//
// s keeps t with the probability min(1, c_s·π_t). For any π there is a c_s at which the estimate of s has the variance that k
// of its d neighbours would give, Σ 1/min(1, c_s·π_t) = d²/k over its neighbours t (equation 14), and π_t ← π_t·max_s c_s
// lowers the expected number of different t that are kept (equations 15, 16). From π = 1, which is LABOR-0, that is repeated
// until this number falls by less than starTolerance of it.
type star struct {
	lists   []list // of all destinations
	index   index
	edges   []uint32 // neighbours of all destinations, one list behind the other, as positions among the different ones
	begins  []int    // of the lists in edges
	pi, top []float64
	scale   []float64 // c_s
	id      []uint32  // by position
	number  []float64 // r_t
}

const (
	starTolerance = 1e-4
	starRounds    = 100 // more than it takes: some ten
	// starRoom bounds what a node keeps, in fanouts. Where more of its neighbours are in the batch anyway, which cost no row,
	// those of the lowest numbers stay; their weights are as if all did.
	starRoom = 16
)

// fillStar is fill where all lists are at hand, in d.star.lists.
func (d *drawer) fillStar(b *Block, dst []uint32, draws *draws) {
	b.start(dst)
	k, s := draws.fanout, &d.star
	if k > 0 {
		s.solve(k)
		numbers := draws.ofLayer()
		s.number = resize(s.number, len(s.id))
		for t, u := range s.id {
			s.number[t] = numbers.uniform(u)
		}
	}
	for i, l := range s.lists {
		n := d.room(l.degree, k)
		d.make(b, i, n)
		out, values := b.drawn(i), b.values(i)
		switch k {
		case 0:
		case All:
			copy(out, l.ids)
			for e := range values {
				values[e] = 1
			}
		default:
			d.selection.reset(n, math.MaxUint64)
			for at, t := range s.edges[s.begins[i]:s.begins[i+1]] {
				if p := min(1, s.scale[i]*s.pi[t]); s.number[t] < p {
					d.take(candidate{ordered(s.number[t] / p), uint32(at), s.id[t], float32(1 / p)})
				}
			}
			chosen := d.chosen()
			for e, c := range chosen {
				out[e], values[e] = c.id, c.weight
			}
			b.End[i] = b.Start[i] + uint32(len(chosen))
		}
	}
}

// solve sets pi and scale for the lists, each a set or a multiset of ids, and fanout k, not All.
func (s *star) solve(k int) {
	lists, n := s.lists, 0
	for _, l := range lists {
		n += len(l.ids)
	}
	s.edges, s.begins, s.id = resize(s.edges, n), resize(s.begins, len(lists)+1), s.id[:0]
	s.index.reset(n / 2)
	n = 0
	for i, l := range lists {
		s.begins[i] = n
		for at, u := range l.ids {
			if at%ahead == 0 {
				s.index.touch(l.ids[at:min(at+ahead, len(l.ids))])
			}
			pos, isNew := s.index.add(u)
			if isNew {
				s.id = append(s.id, u)
			}
			s.edges[n] = pos
			n++
		}
	}
	s.begins[len(lists)] = n
	s.pi, s.top, s.scale = resize(s.pi, len(s.id)), resize(s.top, len(s.id)), resize(s.scale, len(lists))
	for t := range s.pi {
		s.pi[t] = 1
	}
	last := math.Inf(1)
	for round := 1; ; round++ {
		clear(s.top)
		for i := range s.scale {
			edges := s.edges[s.begins[i]:s.begins[i+1]]
			s.scale[i] = s.balance(edges, k)
			for _, t := range edges {
				s.top[t] = max(s.top[t], s.scale[i])
			}
		}
		expected := 0.0
		for t, p := range s.pi {
			expected += min(1, p*s.top[t])
		}
		if expected >= last*(1-starTolerance) || round == starRounds {
			return
		}
		last = expected
		for t, c := range s.top {
			s.pi[t] *= c
		}
	}
}

// balance is c_s for a destination's edges: they are divided into those that are kept for certain and others, of which c is then
// a fraction. Each division raises c, and with it the first part, until none changes.
func (s *star) balance(edges []uint32, k int) float64 {
	d := len(edges)
	if k >= d {
		least := math.Inf(1)
		for _, t := range edges {
			least = min(least, s.pi[t])
		}
		return 1 / least // all are kept for certain; without any it is 0
	}
	target := float64(d) * float64(d) / float64(k)
	c, certain := 0.0, -1
	for {
		sum, n := 0.0, 0
		for _, t := range edges {
			if p := s.pi[t]; c*p >= 1 {
				n++
			} else {
				sum += 1 / p
			}
		}
		if n == certain || n == d {
			return c
		}
		c, certain = sum/(target-float64(n)), n
	}
}
