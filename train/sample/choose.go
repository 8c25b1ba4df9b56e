package sample

import (
	"math"
	"slices"
)

// list is a node's in-neighbours.
type list struct {
	ids     []uint32 // nil where they are not at hand
	weights []float32
	degree  int
}

// drawn returns the number of neighbours that fanout k draws from a list of degree, where that does
// not vary. See room for kinds where it does.
func drawn(degree, k int) int {
	if k == All {
		return degree
	}
	return min(k, degree)
}

// room returns the most places that the neighbours drawn from a list of degree can take. Under
// Poisson their number varies, and exceeds room in one of 10¹² lists or fewer. Then the
// neighbours with the lowest numbers stay.
func (c *Config) room(degree, k int) int {
	switch {
	case k == All || k >= degree || k == 0:
	case c.Poisson:
		return min(degree, k+int(8*math.Sqrt(float64(k)))+16)
	default:
		return min(degree, c.how().most*k)
	}
	return drawn(degree, k)
}

// varies reports whether a node may keep fewer neighbours than there is room for.
func (c *Config) varies() bool { return c.Poisson || c.Weighted || c.how().varies }

// weighs reports whether neighbours have different weights.
func (c *Config) weighs() bool { return c.Weighted || c.how().weighs }

// floyds reports whether neighbours are drawn by Floyd's algorithm, which looks at as many numbers
// as it draws. Others look at one for each neighbour.
func (c *Config) floyds() bool { return !c.how().vertices && !c.Smoothed && !c.Weighted }

// chooser chooses from lists. It is used by one goroutine at a time.
type chooser struct {
	picked index // of Floyd's algorithm, when many are chosen
	places []uint32
	selection
	low  lowest
	left shorter // of a list that loses edges
}

// choose fills out, which has room, with neighbours of v. With Weighted it fills values with their
// weights, and unless places is nil, it fills places with their places in the list. It returns
// their number.
func (c *chooser) choose(cfg *Config, d *draws, v uint32, l *list, out []uint32, values []float32, places []uint32) (n int, err error) {
	k := d.fanout
	switch {
	case k == 0:
		return 0, nil
	case cfg.Weighted:
		n, err = c.weighted(d, v, l.weights, out, values)
		copy(places, out[:n])
		for i, place := range out[:n] {
			out[i] = l.ids[place]
		}
		return n, err
	case k == All || k >= l.degree:
		count(places, 0)
		return copy(out, l.ids), nil
	case cfg.floyds():
		c.pick(d, v, l.degree, out, places)
		for i, place := range out {
			out[i] = l.ids[place]
		}
		return len(out), nil
	}
	numbers := cfg.numbers(d, v)
	limit, least := cfg.limit(&numbers, k, l.degree)
	if l.degree <= lowestList && places == nil && (cfg.how().vertices || numbers.mixed) {
		if numbers.mixed {
			n = c.low.keepMixed(&numbers, l.ids, !cfg.how().vertices, limit)
		} else {
			n = c.low.keep(numbers.first, l.ids, limit)
		}
		if n >= least {
			out = out[:min(n, len(out))]
			c.low.fill(out, n, numbers.below(float64(k)/float64(l.degree)))
			return len(out), nil
		}
	}
	c.reset(len(out), limit)
	c.show(cfg, &numbers, 0, l.ids)
	if len(c.kept) < least { // the limit was a guess, and too low
		c.reset(len(out), math.MaxUint64)
		c.show(cfg, &numbers, 0, l.ids)
	}
	return takeIDs(out, places, c.chosen()), nil
}

// count fills places with from, from+1 and so on.
func count(places []uint32, from int) {
	for i := range places {
		places[i] = uint32(from + i)
	}
}

// takeIDs fills out with the ids of chosen, and places, unless it is nil, with their places. It
// returns their number.
func takeIDs(out, places []uint32, chosen []candidate) int {
	for i, k := range chosen {
		out[i] = k.id
	}
	if places != nil {
		for i, k := range chosen {
			places[i] = k.place
		}
	}
	return len(chosen)
}

// numbers returns the random numbers that choose from v's list.
func (c *Config) numbers(d *draws, v uint32) numbers {
	if !c.how().vertices {
		return d.ofList(v)
	}
	return d.ofLayer()
}

// show shows part of a list, from place from on.
func (s *selection) show(cfg *Config, n *numbers, from int, ids []uint32) {
	if !cfg.how().vertices {
		s.offerPlaces(n, from, ids)
	} else {
		s.offerIDs(n, from, ids)
	}
}

// limit returns a bound: no number above it is chosen from a list of degree. Under Poisson it is r
// = k/d. Else it is a guess that lies above the k lowest numbers, with rare exceptions: then fewer
// than least are found, and the caller tries again without a limit.
func (c *Config) limit(n *numbers, k, degree int) (limit uint64, least int) {
	if c.Poisson {
		return n.below(float64(k) / float64(degree)), 0
	}
	return n.below((float64(k) + 3*math.Sqrt(float64(k)) + 3) / float64(degree)), k
}

// weighted fills out with the places of the edges drawn from v's list, in proportion to their
// weights and without replacement, and values with w/p, p being the probability of an edge given
// the lowest number τ that was not drawn, 1-exp(-w·τ): sums that count so are unbiased (rank
// conditioning, Cohen and Kaplan 2007).
func (c *chooser) weighted(d *draws, v uint32, weights []float32, out []uint32, values []float32) (int, error) {
	numbers := d.ofList(v)
	c.reset(len(out)+1, math.MaxUint64)
	if bad := c.offerWeights(&numbers, 0, weights); bad >= 0 {
		return 0, &WeightError{d.relation, v, bad, weights[bad]}
	}
	return c.takeWeighted(out, values), nil
}

// takeWeighted fills out and values for weighted, from the selected weights.
func (s *selection) takeWeighted(out []uint32, values []float32) int {
	chosen := s.chosen()
	if len(chosen) <= len(out) {
		for i, k := range chosen {
			out[i], values[i] = k.place, k.weight
		}
		return len(chosen)
	}
	last := 0 // the highest, and of equal ones the one of the highest place
	for i, k := range chosen {
		if k.number >= chosen[last].number {
			last = i
		}
	}
	tau := math.Float64frombits(chosen[last].number &^ (1 << 63))
	chosen = append(chosen[:last], chosen[last+1:]...)
	for i, k := range chosen {
		out[i], values[i] = k.place, float32(min(float64(k.weight)/-math.Expm1(-float64(k.weight)*tau), math.MaxFloat32))
	}
	return len(chosen)
}

// floydPart makes floyd's choice from a list of degree neighbours when only part is there, which
// begins at place from. It leaves the other elements of out alone, and of places unless that is
// nil: they are for other parts. Not all of the list is chosen.
func (c *chooser) floydPart(out, places []uint32, degree, from int, part []uint32, key uint64) {
	c.places = resize(c.places, len(out))
	c.floyd(c.places, degree, key)
	for n, place := range c.places {
		if i := int(place) - from; i >= 0 && i < len(part) {
			out[n] = part[i]
			if places != nil {
				places[n] = place
			}
		}
	}
}

// pick fills out, and places unless it is nil, with the places that floyd chooses in v's list.
func (c *chooser) pick(d *draws, v uint32, degree int, out, places []uint32) {
	c.floyd(out, degree, listKey(d.first, v))
	if places != nil {
		copy(places, out)
	}
}

// floyd fills out with different places below d, more than out has, by Floyd's algorithm (Bentley
// and Floyd 1987): as many draws, and every set of places is equally likely.
func (c *chooser) floyd(out []uint32, d int, key uint64) {
	k := len(out)
	switch {
	case d <= 64: // a bit for each place, and no branch that depends on picks
		taken := uint64(0)
		for n := range out {
			j := d - k + n
			t := draw(key, n, j+1)
			if taken>>(t&63)&1 != 0 {
				t = j
			}
			taken |= 1 << (t & 63)
			out[n] = uint32(t)
		}
	case k <= 32: // earlier picks are compared with where the lowest bits have come before
		seen := uint64(0)
		for n := range out {
			j := d - k + n
			t := draw(key, n, j+1)
			if seen>>(t&63)&1 != 0 && slices.Contains(out[:n], uint32(t)) {
				t = j
			}
			seen |= 1 << (t & 63)
			out[n] = uint32(t)
		}
	default:
		c.picked.begin(nil)
		c.picked.fit(nil, k)
		for n := range out {
			j := d - k + n
			t := uint32(draw(key, n, j+1))
			if !c.picked.add(t) {
				t = uint32(j)
				c.picked.add(t)
			}
			out[n] = t
		}
	}
}
