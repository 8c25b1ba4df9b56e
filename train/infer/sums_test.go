package infer

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
)

// TestRowsOrSums: sums are held where neighbours are anywhere and few rows fit, rows where they are close together, or fit.
func TestRowsOrSums(t *testing.T) {
	const nodes, degree = 20_000, 20
	rng := rand.New(rand.NewPCG(1, 1))
	evaluator := func(kind model.Kind, neighbor func(v, i int) int) *Evaluator {
		s := storetest.Communities(nodes, 2, 0, 4, 1)
		s.Neighbors = make([][]store.NodeID, nodes)
		for v := range s.Neighbors {
			for i := range degree {
				s.Neighbors[v] = append(s.Neighbors[v], store.NodeID(neighbor(v, i)))
			}
		}
		return network(t, storetest.Build(t, s), model.Config{Kind: kind, Layers: 2, Hidden: 64, Norm: "none", Heads: 1}, Options{})
	}
	holdsSums := func(e *Evaluator, bytes int64) bool {
		e.most.edges = 1000
		all := newNodeSet(nodes)
		for v := range uint32(nodes) {
			all.add(v)
		}
		_, hold := e.decide(&pass{need: [][]nodeSet{{all}, {all}}, toDisk: true, memory: bytes}, 1, 0, all)
		return hold == HoldSums
	}
	anywhere := evaluator(model.SAGE, func(int, int) int { return rng.IntN(nodes) })
	require.True(t, holdsSums(anywhere, 500_000))
	require.False(t, holdsSums(anywhere, 100_000_000), "all rows fit")
	near := evaluator(model.SAGE, func(v, i int) int { return (v + i + nodes - degree/2) % nodes })
	require.False(t, holdsSums(near, 500_000))
	require.False(t, holdsSums(evaluator(model.GAT, func(int, int) int { return rng.IntN(nodes) }), 500_000), "attention has no sums")
}

// TestSortEdges sorts lists on both sides of what is sorted in buckets: of many sources, of few, and of one that most edges have.
func TestSortEdges(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	for _, n := range []int{0, 1, 5000, 100_000} {
		for _, sources := range []uint64{1, 3, 1000, 1 << 32} {
			var edges []uint64
			for i := range n {
				u := rng.Uint64N(sources)
				if i%3 > 0 {
					u = sources / 2
				}
				edges = append(edges, u<<32|uint64(rng.Uint32()))
			}
			want := slices.Sorted(slices.Values(edges))
			sortEdges(edges)
			require.True(t, slices.Equal(want, edges), "%d edges from %d sources", n, sources)
		}
	}
}

// TestLayerNames: what others have put beside layers is not removed with them.
func TestLayerNames(t *testing.T) {
	for name, ours := range map[string]bool{"layer-0": true, "layer-12.partial": true, "layer-2024-backup.txt": false, "layer-": false, "my-layer-1": false} {
		require.Equal(t, ours, layerNames.MatchString(name), name)
	}
}

// TestEdgesOfPartsFit: the lists of a part are as long as was reserved, wherever it begins, so that none is copied to grow.
func TestEdgesOfPartsFit(t *testing.T) {
	const nodes = 4000
	rng := rand.New(rand.NewPCG(4, 5))
	s := storetest.Communities(nodes, 2, 0, 4, 1)
	s.Neighbors = make([][]store.NodeID, nodes)
	for v := range s.Neighbors {
		for range 1 + 4000/(v+1) + rng.IntN(20) {
			s.Neighbors[v] = append(s.Neighbors[v], store.NodeID(rng.IntN(nodes)))
		}
		slices.Sort(s.Neighbors[v])
		s.Neighbors[v] = slices.Compact(s.Neighbors[v])
	}
	e := network(t, storetest.Build(t, s), model.Config{Kind: model.SAGE, Layers: 2, Hidden: 16, Norm: "none", Heads: 1}, Options{})
	e.most.bytes, e.most.edges = 8000, 3000
	all := newNodeSet(nodes)
	for v := range uint32(nodes) {
		all.add(v)
	}
	for _, memory := range []int64{1, 20_000, 100_000, 1 << 20} {
		p, parts, room := &part{e: e, layer: 1, lists: make([]partLists, 1)}, 0, 0
		require.NoError(t, e.chunks(all, 0, 1, func(chunk []uint32) error {
			if len(p.nodes) == 0 {
				p.reserve(all, chunk[0], memory)
				room = cap(p.lists[0].edges)
			}
			require.NoError(t, p.add(t.Context(), chunk))
			require.Equal(t, room, cap(p.lists[0].edges), "part %d of %d bytes", parts, memory)
			if p.bytes >= memory {
				parts++
				*p = part{e: e, layer: 1, lists: make([]partLists, 1), finished: parts}
			}
			return nil
		}))
	}
}
