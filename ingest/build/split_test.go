package build

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// TestClasses: labels whose number of classes the source does not declare become classes 0…C-1 and
// keep their numbers as names.
func TestClasses(t *testing.T) {
	for _, c := range []struct {
		name    string
		labels  []int32 // repeated over the nodes
		classes int
		names   []string
		want    []int32
	}{
		{"from 0", []int32{2, 0, 1, -1}, 3, nil, []int32{2, 0, 1, -1}},
		{"from 1", []int32{1, 3, 2}, 3, []string{"1", "2", "3"}, []int32{0, 2, 1}},
		{"far apart", []int32{2000, 99999, 10, -1}, 3, []string{"10", "2000", "99999"}, []int32{1, 2, 0, -1}},
		{"gap", []int32{0, 2}, 2, []string{"0", "2"}, []int32{0, 1}},
		{"word border", []int32{63, 64, 128}, 3, []string{"63", "64", "128"}, []int32{0, 1, 2}},
		{"one", []int32{7}, 1, []string{"7"}, []int32{0}},
		{"none", []int32{-1}, 0, nil, []int32{-1}},
	} {
		f := classed(120)
		for i := range f.labels[0] {
			f.labels[0][i] = c.labels[i%len(c.labels)]
		}
		for _, o := range []Options{{}, {test: tiny}} {
			o.Features = "degree"
			if o.Split = "per-class:5/5"; c.classes == 0 {
				o.Split = "random:0.5/0.2/0.3"
			}
			d, rep := build(t, f, o)
			require.Equal(t, c.classes, rep.Labels[0].Classes, c.name)
			require.Equal(t, c.names, rep.Labels[0].ClassNames, c.name)
			require.Equal(t, c.names, d.Manifest().Labels[0].ClassNames, c.name)
			for v := range store.NodeID(120) {
				require.Equal(t, c.want[int(d.IDs(0).Original(v))%len(c.want)], d.Labels(0).Class(v), c.name)
			}
		}
	}
	f := classed(120)
	f.schema.Labels[0].Classes = 7
	_, rep := build(t, f, Options{Features: "degree"})
	require.Equal(t, 7, rep.Labels[0].Classes, "declared")
	require.NotContains(t, strings.Join(rep.Notes, "\n"), "has one class")
	f = classed(120)
	for i := range f.labels[0] {
		f.labels[0][i] = 1 - 2*int32(i%2)
	}
	_, rep = build(t, f, Options{Features: "degree"})
	require.Contains(t, rep.Notes, "label class has one class, and 60 nodes have none: a negative label is missing, so number classes from 0 where -1 is one")
	f = classed(120)
	for i := range f.labels[0] {
		f.labels[0][i] = 10 * int32(i%3)
	}
	_, err := Build(context.Background(), f, filepath.Join(t.TempDir(), "x.gnn"), Options{Features: "degree", Split: "per-class:50/50"})
	require.ErrorContains(t, err, "class 0 (0) of label class has 40 nodes, and 100 are needed")
}

// TestIDsForLabels: a column of ids taken for the labels would train a class a node.
func TestIDsForLabels(t *testing.T) {
	for _, o := range []Options{{Split: "random:0.5/0.2/0.3"}, {Split: "per-class:1/1"}} {
		o.Features = "degree"
		for n, label := range map[int]func(i int) int32{
			12:  func(i int) int32 { return int32(i) },
			300: func(i int) int32 { return 1000 + int32(i)/2*2 + int32(i)%2*int32(i)%3 }, // most of them once
		} {
			f := classed(n)
			for i := range f.labels[0] {
				f.labels[0][i] = label(i)
			}
			_, err := Build(context.Background(), f, filepath.Join(t.TempDir(), "x.gnn"), o)
			require.ErrorContains(t, err, "nodes look like ids, not classes; name the column or array that has the classes")
		}
	}
	f := classed(100) // a node of each class
	for i := range f.labels[0] {
		f.labels[0][i] = -1
		if i < 40 {
			f.labels[0][i] = int32(i)
		}
	}
	_, rep := build(t, f, Options{Features: "degree"})
	require.Equal(t, 40, rep.Labels[0].Classes)
}

// classed is n nodes without edges, with class v mod 3 and every tenth without one.
func classed(n int) *fake {
	f := &fake{schema: ingest.Schema{
		Name:      "classed",
		NodeTypes: []ingest.NodeType{{Name: "node", Count: int64(n)}},
		Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: -1}},
		Labels:    []ingest.Label{{Name: "class", NodeType: "node"}},
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
	require.Equal(t, []SplitReport{{"random", "node", 450, 225, 113, 0}}, rep.Splits)
	require.Equal(t, []LabelReport{{"class", "node", 3, false, false, 100, nil}}, rep.Labels)
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
	require.Equal(t, []SplitReport{{"random", "node", 540, 180, 180, 0}}, rep.Splits)
	require.Contains(t, rep.Notes, "the source has no split: made random:0.6/0.2/0.2 with seed 1")

	f.schema.Labels = nil
	_, rep = build(t, f, Options{Features: "degree"})
	require.Equal(t, []SplitReport{{"random", "node", 600, 200, 200, 0}}, rep.Splits)

	// Thirds sum to a little less than 1 in binary; no node may be lost.
	_, rep = build(t, f, Options{Features: "degree", Split: "random:0.3333333333333333/0.3333333333333333/0.3333333333333333"})
	require.Equal(t, []SplitReport{{"random", "node", 333, 334, 333, 0}}, rep.Splits)
}

func TestPerClassSplit(t *testing.T) {
	f := classed(1000)
	d, rep := build(t, f, Options{Features: "degree", Split: "per-class:20/30"})
	require.Equal(t, []SplitReport{{"per-class", "node", 60, 90, 750, 0}}, rep.Splits)
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
	f.schema.NodeTypes = append(f.schema.NodeTypes, ingest.NodeType{Name: "other", Count: 10}, ingest.NodeType{Name: "plain", Count: 4})
	f.schema.Labels = append(f.schema.Labels, ingest.Label{Name: "bits", NodeType: "other", Classes: 2, Multi: true})
	f.labels[1] = []int32{0, 1, 1, 0, -1, -1, -1, 1, 0, 0, 1, 1, 0, 1, 1, 0, 0, 1, 1, 0}
	_, rep := build(t, f, Options{Features: "degree", Split: "random:0.6/0.2/0.2"})
	require.Equal(t, []SplitReport{{"random-node", "node", 54, 18, 18, 0}, {"random-other", "other", 5, 2, 2, 9}}, rep.Splits)
	require.Equal(t, LabelReport{Name: "bits", NodeType: "other", Classes: 2, Multi: true, Missing: 1}, rep.Labels[1])
}

// TestNumbersOfNodes: they follow their nodes into stored order, those that are NaN are missing,
// and no split goes by their classes.
func TestNumbersOfNodes(t *testing.T) {
	f := classed(50)
	f.schema.Labels[0] = ingest.Label{Name: "price", NodeType: "node", Numbers: true}
	number := func(id int64) float32 {
		if id%7 == 3 {
			return float32(math.NaN())
		}
		return float32(id)/3 - 5
	}
	f.labels[0] = nil
	for v := range 50 {
		f.labels[0] = append(f.labels[0], int32(math.Float32bits(number(int64(v)))))
	}
	for _, order := range []Order{OrderDegree, OrderOriginal} {
		d, rep := build(t, f, Options{Features: "degree", Order: order})
		require.Equal(t, []LabelReport{{Name: "price", NodeType: "node", Numbers: true, Missing: 7}}, rep.Labels)
		l, missing := d.Labels(0), 0
		for v := range uint32(50) {
			if want := number(d.IDs(0).Original(v)); want == want {
				require.Equal(t, want, l.Number(v))
			} else {
				require.False(t, l.Has(v))
				missing++
			}
		}
		require.Equal(t, 7, missing)
		problems, err := d.Verify(t.Context(), nil)
		require.NoError(t, err)
		require.Empty(t, problems)
	}
	_, err := Build(t.Context(), f, filepath.Join(t.TempDir(), "x"), Options{Features: "degree", Split: "per-class:2/3"})
	require.ErrorContains(t, err, "{split} per-class: label price is a number of each node, and no class; choose random:a/b/c")
	f.labels[0][4] = int32(math.Float32bits(float32(math.Inf(1))))
	_, err = Build(t.Context(), f, filepath.Join(t.TempDir(), "y"), Options{Features: "degree"})
	require.ErrorContains(t, err, "row 4 (counting from 0): the number is +Inf for float32")
}

func TestGivenSplit(t *testing.T) {
	f := small()
	f.splits[0] = [3][]int64{{0, 4}, {1}, nil}
	d, rep := build(t, f, Options{})
	require.Equal(t, [3][]int64{{0, 4}, {1}, nil}, parts(d))
	require.Equal(t, "split given holds 1 nodes without label topic", rep.Notes[0])
	_, rep = build(t, f, Options{Split: "random:0.6/0.2/0.2"})
	require.Contains(t, rep.Dropped, "split given: {split} random:0.6/0.2/0.2 takes its place")
}

// TestSplitsOfNumbers: a split has all nodes with a number, negative ones too, and no others.
func TestSplitsOfNumbers(t *testing.T) {
	f := &fake{
		schema: ingest.Schema{
			Name: "n", NodeTypes: []ingest.NodeType{{Name: "node", Count: 100}}, Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: 1}},
			Labels: []ingest.Label{{Name: "label", NodeType: "node", Numbers: true}},
		},
		edges: map[int][][2]int64{0: {{0, 1}}}, labels: map[int][]int32{},
	}
	for v := range 100 {
		x := float32(v-50) / 3
		if v%10 == 0 {
			x = float32(math.NaN())
		}
		f.labels[0] = append(f.labels[0], int32(math.Float32bits(x)))
	}
	_, r := build(t, f, Options{Features: "degree", Split: "random:0.6/0.2/0.2"})
	require.Equal(t, 90, r.Splits[0].Train+r.Splits[0].Valid+r.Splits[0].Test)
	require.NotContains(t, strings.Join(r.Notes, "\n"), "without label")
}
