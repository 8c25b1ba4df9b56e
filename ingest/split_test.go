package ingest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
)

// classed is n nodes without edges, with class v mod 3 and every tenth without one.
func classed(n int) *fake {
	f := &fake{schema: Schema{
		Name:      "classed",
		NodeTypes: []NodeType{{Name: "node", Count: int64(n)}},
		Relations: []Relation{{Src: "node", Name: "to", Dst: "node", Edges: -1}},
		Labels:    []Label{{Name: "class", NodeType: "node"}},
	}, edges: map[int][][2]int64{}, labels: map[int][]int32{0: make([]int32, n)}, chunk: 64}
	for v := range n {
		f.labels[0][v] = int32(v % 3)
		if v%10 == 9 {
			f.labels[0][v] = -1
		}
		f.edges[0] = append(f.edges[0], [2]int64{int64(v * v % n), int64(v)})
	}
	return f
}

// parts are the original ids of a split, sorted.
func parts(d *store.Dataset) [3][]int64 {
	var out [3][]int64
	sets, ids := d.Split(0), d.IDs(0)
	for p, part := range [][]store.NodeID{sets.Train, sets.Valid, sets.Test} {
		for _, v := range part {
			out[p] = append(out[p], ids.Original(v))
		}
		slices.Sort(out[p])
	}
	return out
}

func TestRandomSplit(t *testing.T) {
	f := classed(1000)
	d, rep := build(t, f, Options{Features: "degree", Split: "random:0.5/0.25/0.125"})
	require.Equal(t, []SplitReport{{"random", "node", 450, 225, 113}}, rep.Splits)
	require.Equal(t, []LabelReport{{"class", "node", 3, false, 100}}, rep.Labels)
	got := parts(d)
	for _, part := range got {
		for _, id := range part {
			require.NotEqual(t, int64(9), id%10, "unlabelled")
		}
	}

	same, _ := build(t, f, Options{Features: "degree", Split: "random:0.5/0.25/0.125", Order: OrderOriginal})
	require.Equal(t, got, parts(same), "it must not depend on the order")
	other, _ := build(t, f, Options{Features: "degree", Split: "random:0.5/0.25/0.125", Seed: 2})
	require.NotEqual(t, got, parts(other))

	_, rep = build(t, f, Options{Features: "degree"})
	require.Equal(t, []SplitReport{{"random", "node", 540, 180, 180}}, rep.Splits)
	require.Equal(t, []string{"the source has no split: made random:0.6/0.2/0.2 with seed 1"}, rep.Notes)

	f.schema.Labels = nil
	_, rep = build(t, f, Options{Features: "degree"})
	require.Equal(t, []SplitReport{{"random", "node", 600, 200, 200}}, rep.Splits)

	// Thirds sum to a little less than 1 in binary; no node may be lost.
	_, rep = build(t, f, Options{Features: "degree", Split: "random:0.3333333333333333/0.3333333333333333/0.3333333333333333"})
	require.Equal(t, []SplitReport{{"random", "node", 333, 334, 333}}, rep.Splits)
}

func TestPerClassSplit(t *testing.T) {
	f := classed(1000)
	d, rep := build(t, f, Options{Features: "degree", Split: "per-class:20/30"})
	require.Equal(t, []SplitReport{{"per-class", "node", 60, 90, 750}}, rep.Splits)
	got := parts(d)
	for p, want := range []int{20, 30} {
		count := map[int64]int{}
		for _, id := range got[p] {
			count[id%3]++
		}
		require.Equal(t, map[int64]int{0: want, 1: want, 2: want}, count)
	}
	same, _ := build(t, f, Options{Features: "degree", Split: "per-class:20/30", Order: OrderOriginal})
	require.Equal(t, got, parts(same))
}

// TestSplitOfTypes: several labelled types get a split each, under names that tell them apart.
func TestSplitOfTypes(t *testing.T) {
	f := classed(100)
	f.schema.NodeTypes = append(f.schema.NodeTypes, NodeType{Name: "other", Count: 10}, NodeType{Name: "plain", Count: 4})
	f.schema.Labels = append(f.schema.Labels, Label{Name: "bits", NodeType: "other", Classes: 2, Multi: true})
	f.labels[1] = []int32{0, 1, 1, 0, -1, -1, -1, 1, 0, 0, 1, 1, 0, 1, 1, 0, 0, 1, 1, 0}
	_, rep := build(t, f, Options{Features: "degree", Split: "random:0.6/0.2/0.2"})
	require.Equal(t, []SplitReport{{"random-node", "node", 54, 18, 18}, {"random-other", "other", 5, 2, 2}}, rep.Splits)
	require.Equal(t, LabelReport{"bits", "other", 2, true, 1}, rep.Labels[1])
}

func TestGivenSplit(t *testing.T) {
	f := small()
	f.splits[0] = [3][]int64{{0, 4}, {1}, nil}
	d, rep := build(t, f, Options{})
	require.Equal(t, [3][]int64{{0, 4}, {1}, nil}, parts(d))
	require.Equal(t, []string{"split given holds 1 nodes without label topic"}, rep.Notes)
	_, rep = build(t, f, Options{Split: "random:0.6/0.2/0.2"})
	require.Contains(t, rep.Dropped, "split given: --split random:0.6/0.2/0.2 takes its place")
}
