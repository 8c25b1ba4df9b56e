package sample

import (
	"context"
	"math"
)

// wholeLists draws from all lists of a batch together.
var wholeLists = &ownDraws{
	together: true, whole: true,
	draw: (*Sampler).drawStar,
	serve: func(j *job, n, _, from int, part []uint32) {
		copy(j.whole[n].ids[from:], part)
	},
	bytes: func(_ *Sampler, r *relation, dst []uint32) (n int64) {
		for _, v := range dst {
			if v >= r.resident {
				n += 4 * int64(r.topo.Degree(v))
			}
		}
		return n
	},
	scratch: func(_ *Sampler, r *relation, dst []uint32, together int) (batch, lists, joined int64) {
		for _, v := range dst {
			lists += int64(r.topo.Degree(v))
		}
		n := int64(len(dst))
		if together > 1 {
			joined = n * listBytes
		}
		return n * (pairBytes + listBytes), lists, joined
	},
}

// drawStar takes the lists of jobs, n of each relation, and draws from all of them. It copies lists
// that are not resident.
func (s *Sampler) drawStar(ctx context.Context, jobs []job, n int) error {
	for at := 0; at < len(jobs); at += n {
		if err := s.takeLists(ctx, jobs[at:at+n]); err != nil {
			return err
		}
	}
	return s.each(ctx, n, func(d *drawer, i int) error { return d.fillStar(ctx, jobs, i, n) })
}

// laborStar finds the probabilities of LABOR-*, and draws by them: Balin and Çatalyürek 2023,
// section 3.2 and appendix A.2.
//
// Destination s keeps t with probability min(1, c_s·π_t). For any π there is a c_s at which the
// estimate of s has the variance of k out of its d neighbours, Σ 1/min(1, c_s·π_t) = d²/k over its
// neighbours t (equation 14), and π_t ← π_t·max_s c_s lowers the expected number of different t
// that are kept (equations 15, 16). From π = 1, which is LABOR-0, the step is repeated until this
// number falls by less than starTolerance of it.
type laborStar struct {
	joined  []list // of all destinations, where there are several relations
	index   index
	edges   []uint32  // neighbours of all destinations, list after list, by position among the different ones
	begins  []int     // of the lists in edges
	inverse []float32 // 1/π_t
	top     []float32 // max_s c_s
	scale   []float64 // c_s
	near    []float32 // of a destination's edges: inverse
	id      []uint32  // by position
	number  []float64 // r_t
}

const (
	starTolerance = 1e-4
	starRounds    = 100 // more than it takes: some five, and twenty on dense graphs
	// starRoom bounds the neighbours that a node keeps, in fanouts. If more of its neighbours are
	// in the batch anyway, at the cost of no row, the ones with the lowest r_t/p stay. Every choice
	// of them is equally likely, and their weights grow to make up for the rest.
	starRoom = 16
)

// fillStar fills the blocks of batch i of jobs, n of each relation, from their whole lists.
func (d *drawer) fillStar(ctx context.Context, jobs []job, i, n int) error {
	s := &d.laborStar
	some := false // some list does not keep every neighbour
	for at := i; at < len(jobs); at += n {
		some = some || jobs[at].draws.fanout != All
	}
	if some {
		lists := jobs[i].whole
		if len(jobs) > n {
			s.joined = s.joined[:0]
			for at := i; at < len(jobs); at += n {
				s.joined = append(s.joined, jobs[at].whole...)
			}
			lists = s.joined
		}
		fanout := func(list int) int {
			at := i
			for ; list >= len(jobs[at].whole); at += n {
				list -= len(jobs[at].whole)
			}
			return jobs[at].draws.fanout
		}
		if err := s.solve(ctx, lists, fanout); err != nil {
			return err
		}
		numbers := jobs[i].draws.ofLayer() // shared by all relations from a type
		s.number = resize(s.number, len(s.id))
		for t, u := range s.id {
			s.number[t] = numbers.uniform(u)
		}
	}
	first := 0 // of the lists
	for at := i; at < len(jobs); at += n {
		d.keepStar(&jobs[at], first)
		first += len(jobs[at].whole)
	}
	return nil
}

// keepStar fills j's block with the probabilities from solve. j's lists begin at place first among
// all lists that were solved for.
func (d *drawer) keepStar(j *job, first int) {
	b, k, s := j.block, j.draws.fanout, &d.laborStar
	b.start(len(j.dst))
	for i, l := range j.whole {
		n := d.room(l.degree, k)
		d.make(b, i, n)
		out, values, places := b.drawn(i), b.values(i), b.placesOf(i)
		if k == All {
			copy(out, l.ids)
			count(places, 0)
			if places != nil && i < len(j.lost) {
				restore(places, j.lost[i])
			}
			for e := range values {
				values[e] = 1
			}
			continue
		}
		d.selection.reset(n, math.MaxUint64)
		kept, scale := 0, s.scale[first+i]
		for at, t := range s.edges[s.begins[first+i]:s.begins[first+i+1]] {
			if p := min(1, scale/float64(s.inverse[t])); s.number[t] < p {
				kept++
				d.take(candidate{ordered(s.number[t] / p), uint32(at), s.id[t], float32(1 / p)})
			}
		}
		chosen := d.chosen()
		for e, c := range chosen {
			out[e], values[e] = c.id, float32(float64(c.weight)*float64(kept)/float64(len(chosen)))
			if places != nil {
				places[e] = c.place
			}
		}
		if places != nil && i < len(j.lost) {
			restore(places[:len(chosen)], j.lost[i])
		}
		b.End[i] = b.Start[i] + uint32(len(chosen))
	}
}

// solve sets inverse and scale for the lists, each a set or a multiset of ids with a fanout of its
// own. The error is ctx's.
func (s *laborStar) solve(ctx context.Context, lists []list, fanout func(list int) int) error {
	n := 0
	for _, l := range lists {
		n += len(l.ids)
	}
	s.edges, s.begins, s.id = resize(s.edges, n), resize(s.begins, len(lists)+1), s.id[:0]
	s.index.begin(nil)
	n = 0
	for i, l := range lists {
		s.begins[i] = n
		n += copy(s.edges[n:], l.ids)
	}
	s.id, _ = s.index.number(s.edges, s.id)
	s.begins[len(lists)] = n
	s.inverse, s.top, s.scale = resize(s.inverse, len(s.id)), resize(s.top, len(s.id)), resize(s.scale, len(lists))
	for t := range s.inverse {
		s.inverse[t] = 1
	}
	clear(s.scale)
	last := math.Inf(1)
	for round := 1; ; round++ {
		clear(s.top)
		for i := range s.scale {
			if i%ahead == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			edges := s.edges[s.begins[i]:s.begins[i+1]]
			s.near = s.near[:0]
			for _, t := range edges {
				s.near = append(s.near, s.inverse[t])
			}
			s.scale[i] = balance(s.near, fanout(i), s.scale[i])
			c := float32(s.scale[i])
			for _, t := range edges {
				s.top[t] = max(s.top[t], c)
			}
		}
		expected := 0.0
		for t, x := range s.inverse {
			expected += float64(min(1, s.top[t]/x))
		}
		if expected >= last*(1-starTolerance) || round == starRounds {
			return nil
		}
		last = expected
		for t, c := range s.top {
			s.inverse[t] /= c
		}
	}
}

// balance returns c_s of a destination, from 1/π_t of its neighbours. Σ max(1, x/π_t) is d²/k at x
// = 1/c_s. The sum is convex and piecewise linear, so Newton's method ends there from any c; on
// each piece some neighbours are kept for certain. From the second c on their number only grows,
// except that rounding may make one come and go for ever.
func balance(inverse []float32, k int, c float64) float64 {
	d := len(inverse)
	if k == All || k >= d { // all are kept for certain
		least := float32(0)
		for _, x := range inverse {
			least = max(least, x)
		}
		return float64(least)
	}
	target := float64(d) * float64(d) / float64(k)
	certain := -1
	for round := 0; ; round++ {
		sum, n := 0.0, 0
		for _, x := range inverse {
			if float64(x) <= c {
				n++
			} else {
				sum += float64(x)
			}
		}
		if n == certain || n < certain && round > 1 {
			return c
		}
		if certain = n; n == d {
			c, certain = 0, -1
			continue
		}
		c = sum / (target - float64(n))
	}
}
