package sample

import "math"

// draws has what determines the draws of a relation at a hop of a batch, beside the nodes.
type draws struct {
	relation   int
	fanout     int
	first      uint64 // key of the layer under BatchSeed.First
	next       uint64 // under BatchSeed.Next
	mixed      bool   // the numbers are mixtures of both
	stay, move float64
}

// draws returns the draws of relation r, which comes from type src, at a hop under z. LABOR's
// numbers belong to vertices, so relations from one type agree on them. Other kinds' numbers belong
// to places in lists, which have nothing in common.
func (c *Config) draws(batchSeed BatchSeed, hop, r, src int) draws {
	layer := uint64(len(c.Fanouts) - hop)
	if c.LayerDependency {
		layer = 0
	}
	number := r
	if c.how().vertices {
		number = src
	}
	d := draws{relation: r, fanout: c.FanoutOf(hop, r), first: Key(Hash(batchSeed.First, layer), number)}
	if c.Smoothed && batchSeed.Drift != 0 {
		d.next, d.mixed = Key(Hash(batchSeed.Next, layer), number), true
		d.move, d.stay = math.Sincos(batchSeed.Drift * math.Pi / 2)
	}
	return d
}

// numbers gives each candidate a number of its own, uniform over all integers. If mixed, the number
// is a mixture of two: a standard normal float, as an integer of the same order. The lowest are
// drawn.
type numbers struct {
	first, next uint64
	mixed       bool
	stay, move  float64
}

// ofLayer returns the numbers that all destinations of a hop share: LABOR's r_t, one for each
// vertex.
func (d *draws) ofLayer() numbers { return numbers{d.first, d.next, d.mixed, d.stay, d.move} }

// ofList returns the numbers for draws from v's list, one for each place in it.
func (d *draws) ofList(v uint32) numbers {
	n := d.ofLayer()
	n.first = listKey(n.first, v)
	if n.mixed {
		n.next = listKey(n.next, v)
	}
	return n
}

// listKey returns the key of the draws from v's list.
func listKey(layerKey uint64, v uint32) uint64 { return mix(layerKey ^ mix(uint64(v)+golden)) }

// floor returns a float that is no higher than the mixture of a and b, from their first bits.
func (n *numbers) floor(a, b uint64) float64 {
	return n.stay*floors[a>>(64-floorBits)] + n.move*floors[b>>(64-floorBits)]
}

// mixture returns the mixture of two numbers, as an integer of the same order.
func (n *numbers) mixture(a, b uint64) uint64 {
	return ordered(n.stay*quantile(a) + n.move*quantile(b))
}

// uniform returns x's number as a float from 0 to 1, both excluded.
func (n *numbers) uniform(x uint32) float64 {
	at := (uint64(x) + 1) * golden
	a := mix(n.first + at)
	if !n.mixed {
		return (float64(a>>12) + 0.5) * 0x1p-52 // with one bit more the half would not fit, and round up to 1
	}
	z := n.stay*quantile(a) + n.move*quantile(mix(n.next+at))
	if z < 0 {
		return normalTail(-z)
	}
	return min(1-normalTail(z), 1-0x1p-53)
}

// below returns the number that a share p of all numbers lie below.
func (n *numbers) below(p float64) uint64 {
	switch {
	case p >= 1:
		return math.MaxUint64
	case n.mixed:
		return ordered(quantile(uint64(p * 0x1p64)))
	}
	return uint64(p * 0x1p64)
}
