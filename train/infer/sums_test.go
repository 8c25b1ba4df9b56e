package infer

import (
	"math/rand/v2"
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
