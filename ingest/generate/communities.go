package generate

import (
	"math"
	"math/bits"
	"slices"
)

// communities cut the ranks of a node type.
type communities struct {
	first []uint32 // rank that each begins at; one more at the end: the number of nodes
	guide []uint16 // for each block of ranks, a community that begins at its first rank or before
	shift uint     // ranks a block, as a power of two
}

const guideBlocks = 4096

// newCommunities cuts n ranks into classes, each of one node or more where there are enough.
func newCommunities(n uint32, classes int) communities {
	offset := float64(max(1, classes/8))
	sums := make([]float64, classes+1)
	for c := range classes {
		sums[c+1] = sums[c] + 1/(float64(c)+offset)
	}
	one := uint32(0) // for each
	if n >= uint32(classes) {
		one = 1
	}
	cs := communities{first: make([]uint32, classes+1)}
	free := float64(n - one*uint32(classes))
	for c := range classes {
		cs.first[c] = min(n, uint32(c)*one+uint32(free*(sums[c]/sums[classes])))
	}
	cs.first[classes] = n
	for n>>cs.shift >= guideBlocks {
		cs.shift++
	}
	for block := uint64(0); block<<cs.shift < uint64(n); block++ {
		c, found := slices.BinarySearch(cs.first, uint32(block<<cs.shift))
		if !found {
			c--
		}
		cs.guide = append(cs.guide, uint16(c))
	}
	return cs
}

func (cs *communities) count() int { return len(cs.first) - 1 }

// of is the community of a rank.
func (cs *communities) of(rank uint32) int {
	c := int(cs.guide[rank>>cs.shift])
	for rank >= cs.first[c+1] {
		c++
	}
	return c
}

func (cs *communities) size(c int) uint32 { return cs.first[c+1] - cs.first[c] }

// cut parts total things among the communities in proportion to their sizes: community c has those
// from parts[c] on.
func (cs *communities) cut(total int64) (parts []int64) {
	n := uint64(cs.first[cs.count()])
	for _, f := range cs.first {
		parts = append(parts, scaled(total, uint64(f), n))
	}
	return parts
}

// scaled is ⌊x·a/b⌋ for a ≤ b.
func scaled(x int64, a, b uint64) int64 {
	hi, lo := bits.Mul64(uint64(x), a)
	q, _ := bits.Div64(hi, lo, b)
	return int64(q)
}

// quantile maps y of [0, 1) to the place in a community of an end of an edge: at(y), as a share of
// the community's nodes. Its density is a power law of exponent 2.5.
type quantile struct{ t, rest, cube, scale float64 }

// newQuantile bounds the largest degree to hubs times the mean: hubs is the density at 0, (1 + t +
// t²)/3t².
func newQuantile(hubs float64) quantile {
	k := 3*hubs - 1
	t := (1 + math.Sqrt(1+float64(4*k))) / (2 * k)
	cube := float64(t*t) * t
	return quantile{t: t, rest: 1 - t, cube: cube, scale: 1 / (1 - cube)}
}

// at is written so that no multiplication and addition are fused, which would round differently on
// other processors.
func (q *quantile) at(y float64) float64 {
	x := q.t + float64(y*q.rest)
	return (float64(float64(x*x)*x) - q.cube) * q.scale
}
