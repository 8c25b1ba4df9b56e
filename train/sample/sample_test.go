package sample

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// lists is a topology in memory.
type lists [][]uint32

func (l lists) Nodes() int                  { return len(l) }
func (l lists) Neighbors(v uint32) []uint32 { return l[v] }

// Weights gives every edge one, 0 to some.
func (l lists) Weights(v uint32) []float32 {
	w := make([]float32, len(l[v]))
	for i := range w {
		w[i] = float32(Hash(uint64(v), uint64(i))%8) / 2
	}
	return w
}

// single draws one batch at a time, on one goroutine, from lists that are at hand.
type single struct{ *Sampler }

func newSingle(topo Lists, c Config) single { return single{NewSampler(AtHand(topo), c, 1)} }

func (s single) Sample(b *Batch, z BatchSeed, seeds []uint32) error {
	return s.SampleOne(context.Background(), b, z, seeds)
}

// flat is a layer of one type and one relation.
type flat struct {
	*Frontier
	*Block
}

func (b *Batch) flat(l int) flat { return flat{&b.Layers[l].Nodes[0], &b.Layers[l].Blocks[0]} }

// ofOneType is seeds of one type for each batch.
func ofOneType(seeds [][]uint32) (all [][][]uint32) {
	for _, ids := range seeds {
		all = append(all, [][]uint32{ids})
	}
	return all
}

// config is any way to draw.
func config(t *rapid.T) Config {
	c := Config{
		Kind: rapid.SampledFrom(Kinds).Draw(t, "kind"), LayerDependency: rapid.Bool().Draw(t, "layer dependency"),
		Fanouts: rapid.SliceOfN(rapid.SampledFrom([]int{All, 0, 1, 2, 5, 33, 50}), 1, 3).Draw(t, "fanouts"),
		Options: Options{SelfLoops: rapid.Bool().Draw(t, "self loops"), RevEdges: rapid.Bool().Draw(t, "edges"), RevInput: rapid.Bool().Draw(t, "input")},
	}
	c.Poisson = c.Kind == Labor0 && rapid.Bool().Draw(t, "poisson")
	c.Weighted = c.Kind == NS && rapid.Bool().Draw(t, "weighted")
	c.Smoothed = c.Kind != RW && rapid.Bool().Draw(t, "smoothed")
	c.GCN = c.SelfLoops && c.Kind != RW && !c.Weighted && rapid.Bool().Draw(t, "GCN")
	if c.Kind == RW {
		c.Walk = Walk{Length: rapid.IntRange(1, 4).Draw(t, "length"), Walks: rapid.IntRange(1, 5).Draw(t, "walks"), Restart: rapid.Float64Range(0, 0.9).Draw(t, "restart")}
		for i, k := range c.Fanouts {
			c.Fanouts[i] = max(k, 0)
		}
	}
	return c
}

func anyZ(t *rapid.T) BatchSeed {
	return BatchSeed{rapid.Uint64().Draw(t, "z"), rapid.Uint64().Draw(t, "next"), rapid.SampledFrom([]float64{0, 0.25, 0.9}).Draw(t, "drift")}
}

// hub joins nodes 1…d to node 0.
func hub(d int) lists {
	l := make(lists, d+1)
	for u := 1; u <= d; u++ {
		l[0] = append(l[0], uint32(u))
	}
	return l
}

// graph is any, with parallel edges and self loops.
func graph(t *rapid.T) lists {
	n := rapid.IntRange(1, 40).Draw(t, "nodes")
	l := make(lists, n)
	dense := rapid.Bool().Draw(t, "dense") // which slices rarely are
	for v := range l {
		if dense {
			for j := range draw(uint64(v), 0, 60) {
				l[v] = append(l[v], uint32(draw(uint64(v), j+1, n)))
			}
			slices.Sort(l[v])
			continue
		}
		l[v] = rapid.SliceOfN(rapid.Uint32Range(0, uint32(n-1)), 0, 60).Draw(t, fmt.Sprint("list", v))
		slices.Sort(l[v])
	}
	return l
}

// TestNeighborThatIsNot: a damaged topology is an error that names the place.
func TestNeighborThatIsNot(t *testing.T) {
	topo := lists{{1}, {0, 7}, {}}
	err := newSingle(topo, Config{Fanouts: []int{All}}).Sample(new(Batch), BatchSeed{First: 1}, []uint32{2, 0, 1})
	require.EqualError(t, err, "node 1 has neighbour 7, and there are 3 nodes")
}

// TestInclusionIsUniform: every neighbour is drawn with probability k/d, and every pair with
// k(k-1)/d(d-1). χ² over 40,000 draws, bounds at about p = 1e-6.
func TestInclusionIsUniform(t *testing.T) {
	const trials = 40000
	for _, c := range []struct{ k, d int }{{1, 7}, {3, 10}, {10, 11}, {40, 60}} {
		s := newSingle(hub(c.d), Config{Fanouts: []int{c.k}})
		single := make([]float64, c.d+1)
		pairs := map[[2]uint32]float64{}
		var b Batch
		for z := range trials {
			require.NoError(t, s.Sample(&b, Alone(7, z, 0), []uint32{0}))
			got := slices.Sorted(slices.Values(b.flat(0).Src[1:]))
			require.Len(t, got, c.k)
			for i, u := range got {
				single[u]++
				for _, w := range got[i+1:] {
					if c.d < 20 {
						pairs[[2]uint32{u, w}]++
					}
				}
			}
		}
		p := float64(c.k) / float64(c.d)
		for u := 1; u <= c.d; u++ {
			require.InDelta(t, 0, (single[u]-trials*p)/math.Sqrt(trials*p*(1-p)+1e-9), 5, "k=%d d=%d u=%d", c.k, c.d, u)
		}
		pp := p * float64(c.k-1) / float64(c.d-1)
		for pair, n := range pairs {
			require.InDelta(t, 0, (n-trials*pp)/math.Sqrt(trials*pp*(1-pp)+1e-9), 5.5, "k=%d d=%d %v", c.k, c.d, pair)
		}
	}
}

// TestWeightsAreUnbiased: over 40,000 draws, each edge's weight, 0 where it is not drawn, has the
// mean that it has with all neighbours. The topology's own self loop is drawn, dropped, and changes
// no mean, not even with a fanout of one.
func TestWeightsAreUnbiased(t *testing.T) {
	const trials = 40000
	topo := lists{{0, 1, 2, 3, 4, 5}, {0, 1}, {}, {4}, {0, 1, 2}, {}}
	o := Options{SelfLoops: true, GCN: true}
	weights := func(s single, z BatchSeed) []float64 {
		var b Batch
		require.NoError(t, s.Sample(&b, z, []uint32{0}))
		w := make([]float64, len(topo))
		for e, p := range b.flat(0).Nbr {
			w[b.flat(0).Src[p]] += float64(b.flat(0).Weight[e])
		}
		return w
	}
	all := weights(newSingle(topo, Config{Fanouts: []int{All}, Options: o}), BatchSeed{})
	require.InDeltaSlice(t, []float64{1 / 6., 1 / math.Sqrt(12), 1 / math.Sqrt(6), 1 / math.Sqrt(12), 1 / math.Sqrt(24), 1 / math.Sqrt(6)}, all, 1e-7)
	for _, k := range []int{1, 2, 5} {
		s := newSingle(topo, Config{Fanouts: []int{k}, Options: o})
		sum, square := make([]float64, len(topo)), make([]float64, len(topo))
		for z := range trials {
			for u, w := range weights(s, Alone(3, z, 0)) {
				sum[u] += w
				square[u] += w * w
			}
		}
		require.InDelta(t, all[0], sum[0]/trials, 1e-6, "the self loop is exact")
		for u := 1; u < len(topo); u++ {
			mean := sum[u] / trials
			deviation := math.Sqrt((square[u]/trials - mean*mean) / trials)
			require.InDelta(t, 0, (mean-all[u])/deviation, 5, "k=%d u=%d", k, u)
		}
	}
}

func TestWeightsNeedSelfLoops(t *testing.T) {
	require.PanicsWithValue(t, "sample: GCN's weights go with self loops", func() { newSingle(hub(2), Config{Fanouts: []int{1}, Options: Options{GCN: true}}) })
}

// TestDrawsDependOnLayerAndNodeOnly: the same node in another batch of the same step draws the same
// neighbours.
func TestDrawsDependOnLayerAndNodeOnly(t *testing.T) {
	topo := make(lists, 50)
	for v := range topo {
		for u := range 50 {
			topo[v] = append(topo[v], uint32(u))
		}
	}
	s := newSingle(topo, Config{Fanouts: []int{5}})
	neighbours := func(seeds []uint32, v uint32) []uint32 {
		var b Batch
		require.NoError(t, s.Sample(&b, BatchSeed{First: 99}, seeds))
		i := slices.Index(seeds, v)
		var ids []uint32
		for _, p := range b.flat(0).Nbr[b.flat(0).Start[i]:b.flat(0).End[i]] {
			ids = append(ids, b.flat(0).Src[p])
		}
		return ids
	}
	require.Equal(t, neighbours([]uint32{3}, 3), neighbours([]uint32{9, 8, 3, 1}, 3))
	require.NotEqual(t, neighbours([]uint32{3}, 3), neighbours([]uint32{4}, 4))
}

func TestShuffle(t *testing.T) {
	ids := func() []uint32 {
		s := make([]uint32, 1000)
		for i := range s {
			s[i] = uint32(i)
		}
		return s
	}
	a, b, c := ids(), ids(), ids()
	Shuffle(a, 1, 0)
	Shuffle(b, 1, 0)
	Shuffle(c, 1, 1)
	require.Equal(t, a, b)
	require.NotEqual(t, a, c)
	other := ids()
	Shuffle(other, 2, 0)
	require.NotEqual(t, a, other)
	slices.Sort(a)
	require.Equal(t, ids(), a)
	Shuffle(nil, 1, 1)

	// Every order is equally likely: within five standard deviations.
	const epochs = 6000
	seen := map[[3]uint32]int{}
	for epoch := range epochs {
		order := [3]uint32{0, 1, 2}
		Shuffle(order[:], 9, epoch)
		seen[order]++
	}
	require.Len(t, seen, 6)
	for order, n := range seen {
		require.InDelta(t, epochs/6, n, 5*math.Sqrt(epochs*5/36), "%v", order)
	}
}

// TestSeedsOfSteps: what is drawn anew in each step has a seed of its own there, whatever the run,
// epoch and step.
func TestSeedsOfSteps(t *testing.T) {
	steps, batches := map[uint64]bool{}, map[BatchSeed]bool{}
	for seed := range uint64(4) {
		for epoch := range 10 {
			for step := range 10 {
				steps[StepSeed(seed, epoch, step)] = true
				batches[Alone(seed, epoch-1, step)] = true
			}
		}
	}
	require.Len(t, steps, 400)
	require.Len(t, batches, 400)
}
