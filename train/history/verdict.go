package history

import (
	"fmt"
	"math"
)

// Measured has a step's measurements of the live nodes of one layer and type.
type Measured struct {
	// Nodes are the nodes of sample.Batch.Live, and Norms the norm of the gradient of each.
	Nodes []uint32
	Norms []float32
	// Limit is set by Limits, where workers share a verdict: gradients below it are accepted. Nil:
	// the verdict is by this worker's nodes alone.
	Limit *uint64
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
	limit, infinite := uint64(0), 0
	if m.Limit == nil {
		limit, infinite = lowest(m.Nodes, m.Norms, int(j.pGrad*float64(p.Live)))
	} else {
		limit = *m.Limit
		for i, v := range m.Nodes {
			if gradient(m.Norms[i], v) >= notFinite {
				infinite++
			}
		}
	}
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

// search finds the limit below which the lowest n finite gradients lie, a digit at a time. For each
// digit it counts the gradients that have the limit's earlier digits. So it stores no gradients,
// and looks at each six times at most.
type search struct {
	limit    uint64
	left     int64 // how many of the n have the limit's digits so far
	infinite int64 // gradients that are not finite
	found    bool
}

// count counts the gradients that have the limit's digits before digit d, by their digit d.
func (s *search) count(counts []int64, d int, nodes []uint32, norms []float32) {
	shift, width := digits[d].shift, digits[d].width
	above, mask := shift+width, uint64(1)<<width-1
	for i, v := range nodes {
		if g := gradient(norms[i], v); g>>above == s.limit>>above {
			counts[g>>shift&mask]++
		}
	}
}

// narrow finds digit d of the limit from counts. At the first digit it calls n, which returns how
// many of all gradients to accept.
func (s *search) narrow(counts []int64, d int, n func(all int64) int64) {
	if d == 0 {
		all := int64(0)
		for _, k := range counts {
			all += k
		}
		for _, k := range counts[notFinite>>digits[0].shift:] {
			s.infinite += k
		}
		if s.left = min(n(all), all-s.infinite); s.left == 0 {
			s.found = true
			return
		}
	}
	digit := 0
	for ; counts[digit] < s.left; digit++ {
		s.left -= counts[digit]
	}
	s.limit |= uint64(digit) << digits[d].shift
	if s.found = counts[digit] == s.left; s.found {
		s.limit += 1 << digits[d].shift
	}
}

// digitCounts is the largest number of values of a digit.
const digitCounts = 1 << 11

// lowest finds the limit below which the lowest n finite gradients lie, and counts those that are
// not finite.
func lowest(nodes []uint32, norms []float32, n int) (limit uint64, infinite int) {
	var s search
	var counts [digitCounts]int64
	for d := range digits {
		clear(counts[:])
		s.count(counts[:], d, nodes, norms)
		if s.narrow(counts[:], d, func(int64) int64 { return int64(n) }); s.found {
			return s.limit, int(s.infinite)
		}
	}
	panic("history: WriteBack: a node comes twice")
}

// Limits sets the Limit of each of measured, where several workers share a verdict. Each worker
// measures its own nodes, and the share PGrad of all workers' nodes is accepted. measured has an
// element for each of Options.Kept, also where this worker has no node. All workers call Limits
// together. sum replaces counts by the sums over all workers. The error is sum's.
func (c *Cache) Limits(measured []Measured, sum func(counts []int64) error) error {
	searches, counts := make([]search, len(measured)), make([]int64, digitCounts*len(measured))
	of := func(k int) []int64 { return counts[k*digitCounts : (k+1)*digitCounts] }
	share := func(all int64) int64 { return int64(c.o.PGrad * float64(all)) }
	for d := range digits {
		clear(counts)
		open := 0
		for k := range searches {
			if m := &measured[k]; !searches[k].found {
				searches[k].count(of(k), d, m.Nodes, m.Norms)
				open++
			}
		}
		if open == 0 {
			break
		}
		if err := sum(counts); err != nil {
			return err
		}
		for k := range searches {
			if !searches[k].found {
				searches[k].narrow(of(k), d, share)
			}
		}
	}
	for k := range searches {
		if !searches[k].found {
			panic("history: Limits: a node comes twice")
		}
		measured[k].Limit = &searches[k].limit
	}
	return nil
}
