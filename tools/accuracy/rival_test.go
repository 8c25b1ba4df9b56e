package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestMeanSigns: test edges between raters and rated of whom shares are known, and of some that are
// not, by hand.
func TestMeanSigns(t *testing.T) {
	ratings := map[[2]int]float64{{0, 2}: 4, {1, 2}: 2, {0, 3}: -3, {1, 3}: 1}
	lists := [][]store.NodeID{2: {0, 1}, 3: {0, 1}, 4: {}}
	test := storetest.HeldEdges{Src: []store.NodeID{0, 1, 0, 4}, Dst: []store.NodeID{2, 3, 4, 3}, Values: [][]float64{{1, -1, -1, 1}}}
	path := storetest.BuildTyped(t, storetest.TypedSpec{
		Types: []storetest.TypedNodes{{Name: "node", Nodes: 5}},
		Relations: []storetest.TypedRelation{{
			Src: "node", Name: "to", Dst: "node", Neighbors: lists,
			Columns:   []storetest.Column{{Name: "rating", Elem: store.I32, Value: func(v, i int) float64 { return ratings[[2]int{int(lists[v][i]), v}] }}},
			EdgeSplit: &storetest.EdgeSplit{Test: test, Valid: storetest.HeldEdges{Values: [][]float64{{}}}},
		}},
		Target: "node", Classes: 1, Class: func(int) int32 { return 0 },
	})
	// A quarter of all is negative. Given by 0: 1.25/3; by 1: 0.25/3; by 4: 0.25. Got by 2: 0.25/3;
	// by 3: 1.25/3; by 4: 0.25. Sums of the positives: 0.5 and 0.667; of the negatives: 0.5 and
	// 0.667. Of four pairs one is in order, and two tie.
	auc, _, err := meanSigns(path, 1)
	require.NoError(t, err)
	require.InDelta(t, 0.5, auc, 1e-12)
}
