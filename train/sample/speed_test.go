package sample

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// csr is a topology as a dataset has it: one array of neighbours.
type csr struct {
	offsets   []uint64
	neighbors []uint32
}

func (c *csr) Nodes() int { return len(c.offsets) - 1 }
func (c *csr) Neighbors(v uint32) []uint32 {
	lo, hi := c.offsets[v], c.offsets[v+1]
	return c.neighbors[lo:hi:hi]
}

// skewed has degree neighbours a node on average, the low ids the most popular ones: a third of all
// edges come from the first thirtieth of the nodes.
func skewed(nodes, degree int) *csr {
	c := &csr{offsets: make([]uint64, 1, nodes+1), neighbors: make([]uint32, 0, nodes*degree)}
	for v := range nodes {
		for j := range draw(uint64(v), 0, 2*degree+1) {
			x := float64(draw(uint64(v), j+1, 1<<30)) / (1 << 30)
			c.neighbors = append(c.neighbors, uint32(x*x*x*float64(nodes)))
		}
		c.offsets = append(c.offsets, uint64(len(c.neighbors)))
	}
	return c
}

// BenchmarkSample draws batches of 1,000 seeds, in the order of a shuffled epoch.
func BenchmarkSample(b *testing.B) {
	for _, g := range []struct{ nodes, degree int }{{170_000, 14}, {200_000, 14}, {10_000_000, 14}} {
		if testing.Short() && g.nodes > 1<<20 {
			continue // seconds to make
		}
		topo := skewed(g.nodes, g.degree)
		order := make([]uint32, min(g.nodes, 1_000_000))
		for i := range order {
			order[i] = uint32(i * (g.nodes / len(order)))
		}
		Shuffle(order, 1, 1)
		for _, fanouts := range [][]int{{15, 10, 5}, {10, 10, 10}} {
			b.Run(fmt.Sprintf("nodes=%d/degree=%d/fanouts=%v", g.nodes, g.degree, fanouts), func(b *testing.B) {
				s, edges := newSingle(topo, Config{Fanouts: fanouts}), 0
				var batch Batch
				for i := 0; b.Loop(); i++ {
					at := i * 1000 % (len(order) - 1000)
					require.NoError(b, s.Sample(&batch, BatchSeed{First: uint64(i)}, order[at:at+1000]))
					for l := range batch.Layers {
						edges += len(batch.flat(l).Nbr)
					}
				}
				b.ReportMetric(float64(edges)/b.Elapsed().Seconds()/1e6, "Medges/s")
				b.ReportMetric(float64(edges)/float64(b.N), "edges/op")
			})
		}
	}
}

// TestNoSamplerAllocates: nothing is allocated for nodes and edges once slices have grown, whoever
// draws them; and for a hop next to nothing.
func TestNoSamplerAllocates(t *testing.T) {
	topo, seeds := skewed(20_000, 14), make([]uint32, 500)
	for i := range seeds {
		seeds[i] = uint32(i * 7)
	}
	for _, c := range []Config{
		{}, {Smoothed: true}, {Kind: Labor0}, {Kind: Labor0, Smoothed: true}, {Kind: Labor0, Poisson: true}, {Kind: LaborStar},
		{Kind: RW, Walk: DefaultWalk},
	} {
		c.Fanouts = []int{40, 5}
		s, z := newSingle(topo, c), BatchSeed{First: 7, Next: 8, Drift: 0.3}
		var b Batch
		draw := func(seeds []uint32) func() {
			return func() {
				if err := s.Sample(&b, z, seeds); err != nil {
					panic(err)
				}
			}
		}
		draw(seeds)()
		fixed := testing.AllocsPerRun(3, draw(seeds[:1]))
		require.Equal(t, fixed, testing.AllocsPerRun(3, draw(seeds)), "%+v", c)
		require.Less(t, fixed, 120.0, "%+v", c)
	}
}
