package task

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
)

// TestPermutation: every number once, in an order for each key.
func TestPermutation(t *testing.T) {
	for n := uint64(1); n < 300; n += 1 + n/7 {
		p, q := newPermutation(n, 1), newPermutation(n, 2)
		seen, same := make([]bool, n), 0
		for i := range n {
			at := p.at(i)
			require.False(t, seen[at], "%d of %d", i, n)
			seen[at] = true
			if at == q.at(i) {
				same++
			}
		}
		if n > 50 {
			require.Less(t, same, int(n)/4)
		}
	}
	// Far places of many: each in the middle of its range as often as it should be.
	p, upper := newPermutation(1<<40+12345, 9), 0
	for i := range uint64(2000) {
		if p.at(i) > p.n/2 {
			upper++
		}
	}
	require.InDelta(t, 1000, upper, 120)
}

// pairs is a bipartite graph with the reverse of its relation, and one more relation that links are nothing of. Some edges are
// parallel.
func pairs(t *testing.T) *data.Data {
	const users, items = 30, 20
	spec := storetest.TypedSpec{
		Types: []storetest.TypedNodes{
			{Name: "item", Nodes: items, Dim: 2, Row: func(int) []float32 { return []float32{1, 2} }},
			{Name: "user", Nodes: users, Dim: 2, Row: func(int) []float32 { return []float32{1, 2} }},
		},
		Target: "item", Classes: 1, Class: func(int) int32 { return 0 },
	}
	buys, back := make([][]store.NodeID, items), make([][]store.NodeID, users)
	for u := range users {
		for j := range 1 + u%4 {
			v := (u*7 + j/2*3) % items // every other one twice
			buys[v], back[u] = append(buys[v], store.NodeID(u)), append(back[u], store.NodeID(v))
		}
	}
	for _, lists := range [][][]store.NodeID{buys, back} {
		for _, l := range lists {
			slices.Sort(l)
		}
	}
	other := make([][]store.NodeID, items)
	for v := range other {
		other[v] = []store.NodeID{store.NodeID(v % users)}
	}
	spec.Relations = []storetest.TypedRelation{
		{Src: "item", Name: "rev_buys", Dst: "user", Neighbors: back, ReverseOf: "user__buys__item"},
		{Src: "user", Name: "buys", Dst: "item", Neighbors: buys, EdgeSplit: &storetest.EdgeSplit{
			Valid: storetest.HeldEdges{Src: []store.NodeID{0, 1}, Dst: []store.NodeID{19, 18}},
			Test:  storetest.HeldEdges{Src: []store.NodeID{2}, Dst: []store.NodeID{3}},
		}},
		{Src: "user", Name: "sees", Dst: "item", Neighbors: other},
	}
	ds, err := store.Open(storetest.BuildTyped(t, spec))
	require.NoError(t, err)
	t.Cleanup(func() { ds.Close() })
	d, err := data.Open(ds, data.Options{Links: true})
	require.NoError(t, err)
	return d
}

// TestStepsOfLinks: an epoch has every edge once, a step's seeds are the ends of its positives and negatives in the order in which they
// first come, and its draws are without every edge between the ends of a positive, in both relations, and with all others. All of
// it is the same whoever asks, in any order.
func TestStepsOfLinks(t *testing.T) {
	d := pairs(t)
	buys, back := d.Relations[1], d.Relations[0]
	for _, o := range []LinkOptions{
		{}, {Negatives: "uniform:3", Corrupt: "both"}, {Negatives: "shared:4", Chunk: 5, Corrupt: "src"}, {Negatives: "in-batch", Chunk: 4},
	} {
		k, err := NewLinks(d, Options{Batch: 7, Seed: 3}, o, model.Dot)
		require.NoError(t, err)
		require.EqualValues(t, (buys.Edges()+6)/7, k.Steps())
		var orders []string
		for epoch := 1; epoch <= 2; epoch++ {
			k.Begin(epoch)
			found := map[[2]uint32]int{}
			for i := range k.Steps() {
				var x examples
				k.of(&x, i)
				orders = append(orders, fmt.Sprint(x.links))
				seeds := k.Seeds(i)
				require.Equal(t, x.seeds, seeds)

				want, named := make([][]uint32, 2), func(list []uint32, v uint32) []uint32 {
					if slices.Contains(list, v) {
						return list
					}
					return append(list, v)
				}
				linked := map[[2]uint32]bool{}
				for n, l := range x.links {
					found[l]++
					linked[l] = true
					want[1], want[0] = named(want[1], l[0]), named(want[0], l[1])
					require.Equal(t, l, [2]uint32{seeds[1][x.src[n]], seeds[0][x.dst[n]]})
				}
				require.Len(t, x.sides, len(corrupted(k.links.Corrupt)))
				for _, s := range x.sides {
					require.Len(t, s.start, len(x.links)+1)
					from := 1
					if s.dst {
						from = 0
					}
					for n := range x.links {
						own := s.nodes[s.start[n]:s.start[n+1]]
						lo := n / k.links.Chunk * k.links.Chunk
						switch k.negatives.Way {
						case Uniform:
							require.Len(t, own, k.negatives.Of)
						case Shared:
							require.Len(t, own, k.negatives.Of)
							require.Equal(t, s.nodes[s.start[lo]:s.start[lo+1]], own)
						case InBatch:
							chunk := x.dst[lo:min(lo+k.links.Chunk, len(x.dst))]
							require.Equal(t, slices.Delete(slices.Clone(chunk), n-lo, n-lo+1), own)
						}
						for _, row := range own {
							want[from] = named(want[from], seeds[from][row])
						}
					}
				}
				require.Equal(t, want, seeds)

				without := k.Without(i)
				for _, v := range seeds[0] {
					row := slices.Index(seeds[0], v)
					for _, u := range buys.Neighbors(v) {
						require.Equal(t, linked[[2]uint32{u, v}], slices.Contains(without[1].Of(row), u))
					}
				}
				for _, u := range seeds[1] {
					row := slices.Index(seeds[1], u)
					for _, v := range back.Neighbors(u) {
						require.Equal(t, linked[[2]uint32{u, v}], slices.Contains(without[0].Of(row), v))
					}
				}
				require.Empty(t, without[2].Start)
			}
			total := 0
			for v := range uint32(d.Types[0].Nodes) {
				for _, u := range buys.Neighbors(v) {
					total++
					require.Positive(t, found[[2]uint32{u, v}])
				}
			}
			all := 0
			for _, n := range found {
				all += n
			}
			require.Equal(t, total, all)
		}
		require.NotEqual(t, orders[:k.Steps()], orders[k.Steps():])
		k.links.KeepTargets = true
		require.Nil(t, k.Without(0))
	}
}

// TestSymmetricLinks: in a symmetric relation a step is without both directions of its positives, and no other edge.
func TestSymmetricLinks(t *testing.T) {
	ds, err := store.Open(storetest.Build(t, storetest.Communities(60, 2, 3, 4, 1).Linked()))
	require.NoError(t, err)
	defer ds.Close()
	d, err := data.Open(ds, data.Options{Links: true})
	require.NoError(t, err)
	k, err := NewLinks(d, Options{Batch: 10, Seed: 3}, LinkOptions{}, model.Dot)
	require.NoError(t, err)
	k.Begin(1)
	both := 0
	for i := range k.Steps() {
		seeds, without := k.Seeds(i)[0], k.Without(i)[0]
		linked := map[[2]uint32]bool{}
		for _, l := range k.ahead.links {
			linked[l], linked[[2]uint32{l[1], l[0]}] = true, true
		}
		for row, v := range seeds {
			for _, u := range ds.Graph(0).Neighbors(v) {
				require.Equal(t, linked[[2]uint32{u, v}], slices.Contains(without.Of(row), u))
				if linked[[2]uint32{u, v}] {
					both++
				}
			}
		}
	}
	require.Greater(t, both, int(ds.Graph(0).Edges())*3/2)
}

// TestPairsOfEvaluation: they are no links that are known, the same ones each time, and others for each part.
func TestPairsOfEvaluation(t *testing.T) {
	d := pairs(t)
	k, err := NewLinks(d, Options{Batch: 7, Seed: 3}, LinkOptions{EvalNegatives: "pairs:40"}, model.Dot)
	require.NoError(t, err)
	require.Equal(t, metric.ROCAUC, k.Kind())
	var drawn [2][][2]uint32
	for _, part := range []Part{Valid, Test} {
		nodes, err := k.Part(t.Context(), part)
		require.NoError(t, err)
		drawn[part] = slices.Clone(pairsOf(t, k))
		require.Len(t, drawn[part], 40*k.held[part].Len())
		for _, p := range drawn[part] {
			require.NotContains(t, d.Relations[1].Neighbors(p[1]), p[0])
			require.NotContains(t, [][2]uint32{{0, 19}, {1, 18}, {2, 3}}, p)
			require.Contains(t, nodes[1], p[0])
			require.Contains(t, nodes[0], p[1])
		}
		k.drawn[part] = nil
		_, err = k.Part(t.Context(), part)
		require.NoError(t, err)
		require.Equal(t, drawn[part], pairsOf(t, k))
	}
	require.NotEqual(t, drawn[Valid][:40], drawn[Test])
	require.NoError(t, k.Limit(1))
	k.drawn = [3][][2]uint32{}
	_, err = k.Part(t.Context(), Valid)
	require.NoError(t, err)
	require.Len(t, pairsOf(t, k), 40)
	require.Len(t, k.used, 1)
}

// TestScoresAreBudgeted: what Bytes has for scores is what a metric keeps of all links and negatives, twice since lists grow; of MRR, of links.
func TestScoresAreBudgeted(t *testing.T) {
	d := pairs(t)
	bytes := func(kind metric.Kind, negatives, corrupt string) int64 {
		k, err := NewLinks(d, Options{Batch: 7, Metric: kind}, LinkOptions{EvalNegatives: negatives, Corrupt: corrupt}, model.Dot)
		require.NoError(t, err)
		k.model = &model.Model{Shape: model.Shape{Out: 4}}
		return k.Bytes()
	}
	require.EqualValues(t, 2*4*2*100, bytes(metric.AP, "uniform:100", "dst")-bytes(metric.MRR, "uniform:100", "dst"))
	require.EqualValues(t, 2*4*2*100*2, bytes(metric.AP, "uniform:100", "both")-bytes(metric.MRR, "uniform:100", "both"))
	require.EqualValues(t, 2*(2*4+8)*10+8*10, bytes(metric.AP, "pairs:1010", "")-bytes(metric.AP, "pairs:1000", ""))
}

func pairsOf(t *testing.T, k *Links) [][2]uint32 {
	pairs, err := k.pairs(t.Context())
	require.NoError(t, err)
	return pairs
}

// TestNoPairsLeft: a graph in which all nodes are linked leaves no pair for a negative, which is said, and not drawn for ever.
func TestNoPairsLeft(t *testing.T) {
	const nodes = 6
	s := storetest.Spec{Nodes: nodes, Neighbors: make([][]store.NodeID, nodes), EdgeSplit: new(storetest.EdgeSplit), Symmetric: true}
	for v := range store.NodeID(nodes) {
		for u := range store.NodeID(nodes) {
			if u != v && u+v > 1 {
				s.Neighbors[v] = append(s.Neighbors[v], u)
			}
		}
	}
	s.EdgeSplit.Valid = storetest.HeldEdges{Src: []store.NodeID{0}, Dst: []store.NodeID{1}}
	ds, err := store.Open(storetest.Build(t, s))
	require.NoError(t, err)
	t.Cleanup(func() { ds.Close() })
	d, err := data.Open(ds, data.Options{Links: true})
	require.NoError(t, err)
	k, err := NewLinks(d, Options{Batch: 8}, LinkOptions{}, model.Dot)
	require.NoError(t, err)
	_, err = k.Part(t.Context(), Valid)
	require.ErrorContains(t, err, "{eval_negatives} pairs:1: 10001 pairs of nodes that were drawn in a row are links of node__to__node, so nearly all pairs are; take uniform:1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = k.Part(ctx, Valid)
	require.ErrorIs(t, err, context.Canceled)
}

// TestUniformNodes: nodes that negatives have are drawn alike.
func TestUniformNodes(t *testing.T) {
	counts := make([]int, 10)
	for i := range 10_000 {
		counts[below(sample.Hash(7), i, len(counts))]++
	}
	for _, n := range counts {
		require.InDelta(t, 1000, n, 5*math.Sqrt(1000))
	}
}
