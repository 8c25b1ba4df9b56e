package history

import (
	"fmt"
	"math"
)

// Measured has a step's measurements of the live nodes of one layer and type.
type Measured struct {
	// Nodes are the sources of the layer, and Norms the norm of the gradient of each.
	Nodes []uint32
	Norms []float32
	// Overflow has an element for each of Part.Rows, not 0 where float16 could not hold the row. If
	// it is empty, float16 could hold all.
	Overflow []uint32
}

// verdict lists, by pool, the versions that a step rejects: computed by the step or used by it.
type verdict [][]Version

// judge decides about the embeddings that a step computed and used, for one layer and type. It
// accepts a share of the nodes with the smallest gradients (FreshGNN, algorithm 1). Among equal
// ones the lowest nodes win.
type judge struct{ pGrad float64 }

// judge appends the versions of p that are rejected to rejected[:0]. It counts gradients that are
// not finite and rows that float16 could not hold. It marks in r the rejected slots that the step
// wrote.
func (j *judge) judge(step int, r *pool, p *Part, m *Measured, rejected []Version, c *Counts) []Version {
	rejected = rejected[:0]
	if p.Idle() {
		return rejected
	}
	if len(m.Nodes) != p.Live || len(m.Norms) != p.Live || len(m.Overflow) != 0 && len(m.Overflow) != len(p.Rows) {
		panic(fmt.Sprintf("history: WriteBack: layer %d, type %d: %d nodes, %d norms and %d overflows, where %d nodes are live and %d rows kept",
			p.Layer, p.Type, len(m.Nodes), len(m.Norms), len(m.Overflow), p.Live, len(p.Rows)))
	}
	limit, infinite := lowest(m.Nodes, m.Norms, int(j.pGrad*float64(p.Live)))
	c.NaN += int64(infinite)
	row, kept, use := uint32(0), 0, 0
	for at, v := range m.Nodes {
		bad := gradient(m.Norms[at], v) >= limit
		if use < len(p.Used) && int(p.Used[use].At) == at {
			if bad {
				rejected = append(rejected, p.Used[use].Version)
			}
			use++
			continue
		}
		if kept < len(p.Rows) && p.Rows[kept] == row {
			if len(m.Overflow) > 0 && m.Overflow[kept] != 0 {
				c.Overflow++
				bad = true
			}
			s := p.Slots[kept]
			r.rejected[s/64] &^= 1 << (s % 64)
			if bad {
				r.rejected[s/64] |= 1 << (s % 64)
				rejected = append(rejected, Version{s, uint32(step)})
			}
			kept++
		}
		row++
	}
	return rejected
}

// gradient returns a number to compare the gradients of nodes: by norm, then by node. Norms have no
// sign.
func gradient(norm float32, node uint32) uint64 {
	return uint64(math.Float32bits(norm)&math.MaxInt32)<<32 | uint64(node)
}

// notFinite is the least gradient that is not finite.
const notFinite = 0x7f80_0000 << 32

// digits are the parts of a gradient, the uppermost first: the first bit of each, and the number of
// its bits. The topmost bit of every gradient is 0.
var digits = [...]struct{ shift, width uint }{{52, 11}, {42, 10}, {32, 10}, {21, 11}, {10, 11}, {0, 10}}

// lowest finds the limit below which the lowest n finite gradients lie, and counts those that are
// not finite. It finds the limit a digit at a time, and counts at each the gradients that match all
// digits before it. So it needs no memory and no more than six looks at each.
func lowest(nodes []uint32, norms []float32, n int) (limit uint64, infinite int) {
	var counts [1 << 11]int
	for _, d := range digits {
		clear(counts[:])
		above, mask := d.shift+d.width, uint64(1)<<d.width-1
		for i, v := range nodes {
			if g := gradient(norms[i], v); g>>above == limit>>above {
				counts[g>>d.shift&mask]++
			}
		}
		if d == digits[0] {
			for _, k := range counts[notFinite>>52:] {
				infinite += k
			}
			if n = min(n, len(nodes)-infinite); n == 0 {
				return 0, infinite
			}
		}
		digit := 0
		for ; counts[digit] < n; digit++ {
			n -= counts[digit]
		}
		limit |= uint64(digit) << d.shift
		if counts[digit] == n {
			return limit + 1<<d.shift, infinite
		}
	}
	panic("history: WriteBack: a node comes twice")
}
