package build

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// weighed is a graph of edges with a weight and a number of times each.
func weighed(nodes int64, edges [][2]int64, weights []float32, times []int32) *fake {
	f := &fake{
		schema: ingest.Schema{
			NodeTypes: []ingest.NodeType{{Name: "node", Count: nodes}}, Identity: "same",
			Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: -1, Columns: []ingest.EdgeColumn{{Name: "weight", Elem: store.F32}}}},
		},
		edges: map[int][][2]int64{0: edges}, values: map[int][][]uint64{0: {nil}}, rows: map[int][]float32{},
	}
	for _, w := range weights {
		f.values[0][0] = append(f.values[0][0], uint64(math.Float32bits(w)))
	}
	if times != nil {
		f.schema.Relations[0].Columns = append(f.schema.Relations[0].Columns, ingest.EdgeColumn{Name: "times", Elem: store.I32})
		f.values[0] = append(f.values[0], nil)
		for _, n := range times {
			f.values[0][1] = append(f.values[0][1], uint64(uint32(n)))
		}
	}
	return f
}

// storedWeights maps each stored edge to its weight.
func storedWeights(d *store.Dataset) map[[2]int64]float32 {
	all := map[[2]int64]float32{}
	g, ids := d.Graph(0), d.IDs(0)
	for v := range g.Nodes() {
		w := g.Column("weight").Bytes(store.NodeID(v))
		for k, u := range g.Neighbors(store.NodeID(v)) {
			all[[2]int64{ids.Original(u), ids.Original(store.NodeID(v))}] = math.Float32frombits(binary.LittleEndian.Uint32(w[4*k:]))
		}
	}
	return all
}

// TestJoinedValues: each rule makes its value, and both directions of an undirected edge agree.
func TestJoinedValues(t *testing.T) {
	edges := [][2]int64{{0, 1}, {1, 0}, {0, 1}, {2, 1}, {3, 3}, {3, 3}, {2, 0}}
	weights := []float32{3, 8, 4, 0.5, -1, -2, 7}
	type kept map[[2]int64]float32
	for _, c := range []struct {
		rule     Duplicates
		directed kept // of 0→1 and 3→3
		both     float32
	}{
		{DuplicatesFirst, kept{{0, 1}: 3, {3, 3}: -1}, 3},
		{DuplicatesSum, kept{{0, 1}: 7, {3, 3}: -3}, 15},
		{DuplicatesMax, kept{{0, 1}: 4, {3, 3}: -1}, 8},
		{DuplicatesMean, kept{{0, 1}: 3.5, {3, 3}: -1.5}, 5},
	} {
		for _, o := range []Options{{}, {Order: OrderOriginal}, {test: tiny}} {
			o.Duplicates, o.Features = c.rule, "degree"
			d, rep := build(t, weighed(4, edges, weights, nil), o)
			want := kept{{0, 1}: c.directed[[2]int64{0, 1}], {1, 0}: 8, {2, 1}: 0.5, {3, 3}: c.directed[[2]int64{3, 3}], {2, 0}: 7}
			require.EqualValues(t, want, storedWeights(d), c.rule)
			require.EqualValues(t, 2, rep.Relations[0].DuplicatesMerged)
			require.Equal(t, string(c.rule), encodings(t, d).Relations[0].Duplicates)

			o.Undirected = true
			d, _ = build(t, weighed(4, edges, weights, nil), o)
			want[[2]int64{0, 1}], want[[2]int64{1, 0}] = c.both, c.both
			want[[2]int64{1, 2}], want[[2]int64{0, 2}] = 0.5, 7
			require.EqualValues(t, want, storedWeights(d), c.rule)
		}
	}
}

func encodings(t *testing.T, d *store.Dataset) *store.Encodings {
	e, err := d.Encodings()
	require.NoError(t, err)
	return e
}

// TestJoinedManyTimes: a pair with more edges than fit in memory at once has the same sum in both
// directions, and whatever the memory.
func TestJoinedManyTimes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var edges [][2]int64
	var weights []float32
	for range 500 {
		u := random.Int64N(2)
		edges, weights = append(edges, [2]int64{u, 1 - u}), append(weights, float32(math.Exp(20*random.NormFloat64())))
	}
	seal := ""
	for _, test := range []hooks{{}, tiny, {records: 40, lists: 2, buckets: 2, parts: 2}} {
		d, rep := build(t, weighed(2, edges, weights, nil), Options{Undirected: true, Duplicates: DuplicatesSum, Features: "degree", test: test})
		sums := storedWeights(d)
		require.Len(t, sums, 2)
		require.Equal(t, sums[[2]int64{0, 1}], sums[[2]int64{1, 0}])
		if seal == "" {
			seal = rep.Seal
		}
		require.Equal(t, seal, rep.Seal)
	}
}

// TestUnequalValues: merging edges with different values is refused. The error names both edges,
// both values, and each rule that would settle it.
func TestUnequalValues(t *testing.T) {
	pair, back := [][2]int64{{0, 1}, {2, 1}, {0, 1}}, [][2]int64{{0, 1}, {2, 1}, {1, 0}}
	table := func(f *fake) *fake {
		f.schema.Tables, f.rows[0] = []ingest.Table{{Name: "e", Relation: "node__to__node", Dim: 1}}, []float32{1, 2, 3}
		return f
	}
	texts := weighed(0, back, []float32{1, 2, 3}, nil)
	texts.schema.NodeTypes[0] = ingest.NodeType{Name: "node", IDs: ingest.TextIDs, Gathered: true}
	texts.text = func(id int64) string { return string(rune('a' + id)) }
	merge, both := Options{Duplicates: DuplicatesMerge}, Options{Undirected: true}
	rule := func(d Duplicates) Options { return Options{Duplicates: d} }
	for _, c := range []struct {
		f    *fake
		o    Options
		want string // "" where it is built
	}{
		{weighed(3, pair, []float32{1, 2, 1}, nil), merge, ""},
		{weighed(3, back, []float32{1, 2, 1}, nil), both, ""},
		{weighed(3, back, []float32{1, 2, 9}, nil), merge, ""},
		{weighed(3, pair, []float32{1, 2, 9}, nil), merge, "edge.csv: edge 1 (counting from 1), 0 to 1, and edge 3 (counting from 1), 0 to 1, become one, and differ in weight, 1 and 9: " +
			"say what it becomes, by {duplicates} first, sum, max or mean, and {duplicates} keep keeps both edges"},
		{weighed(3, back, []float32{1, 2, 9}, nil), both, "edge.csv: edge 1 (counting from 1), 0 to 1, and edge 3 (counting from 1), 1 to 0, become one, and differ in weight, 1 and 9: " +
			"say what it becomes, by {duplicates} first, sum, max or mean"},
		{weighed(3, pair, []float32{1, 2, 1}, []int32{1, 2, -3}), merge, "edge.csv: edge 1 (counting from 1), 0 to 1, and edge 3 (counting from 1), 0 to 1, become one, and differ in times, 1 and -3: " +
			"say what it becomes, by {duplicates} first, sum or max, and {duplicates} keep keeps both edges"},
		{texts, both, "edge.csv: edge 1 (counting from 1), \"a\" to \"b\", and edge 3 (counting from 1), \"b\" to \"a\", become one, and differ in weight, 1 and 3: " +
			"say what it becomes, by {duplicates} first, sum, max or mean"},
		{table(weighed(3, pair, []float32{1, 2, 1}, nil)), merge, "edge.csv: edge 1 (counting from 1), 0 to 1, and edge 3 (counting from 1), 0 to 1, become one, and each has its own features: " +
			"{duplicates} first keeps the features of the first, {duplicates} keep keeps all edges"},
		{table(weighed(3, back, []float32{1, 2, 1}, nil)), both, ""}, // each direction keeps its own
		{table(weighed(3, pair, []float32{1, 2, 1}, nil)), rule(DuplicatesFirst), ""},
		{table(weighed(3, pair, []float32{1, 2, 1}, nil)), rule(DuplicatesSum), "{duplicates} sum: edges of relation node__to__node have rows of features, which are not joined; " +
			"choose first, which keeps the row of the first edge, or keep"},
		{weighed(3, pair, []float32{1, 2, 1}, []int32{1, 2, 3}), rule(DuplicatesMean), "{duplicates} mean: column times of relation node__to__node has integers (i32), whose mean may be none; " +
			"keep it as f32, or choose sum, max or first"},
		{weighed(3, pair, []float32{1, 2, 1}, []int32{math.MaxInt32, 2, 3}), rule(DuplicatesSum), "edge.csv: edge 1 (counting from 1), 0 to 1, and edge 3 (counting from 1), 0 to 1, become one, and " +
			"the sum of times is beyond i32; choose another {duplicates}, or keep the column as f32 or i64"},
		{weighed(3, pair, []float32{math.MaxFloat32, 2, math.MaxFloat32}, nil), rule(DuplicatesSum), "edge.csv: edge 1 (counting from 1), 0 to 1, and edge 3 (counting from 1), 0 to 1, become one, and " +
			"the sum of weight is beyond f32; choose another {duplicates}, or keep the column as f32 or i64"},
	} {
		for _, small := range []hooks{{}, tiny} {
			c.o.FS, c.o.Features, c.o.test = vfs.NewMem(), "degree", small
			_, err := Build(context.Background(), c.f, "x.gnn", c.o)
			if c.want == "" {
				require.NoError(t, err)
				continue
			}
			require.EqualError(t, err, c.want)
			left, err := c.o.FS.List("")
			require.NoError(t, err)
			require.Empty(t, left)
		}
	}
	plain := weighed(3, pair, nil, nil)
	plain.schema.Relations[0].Columns, plain.values[0] = nil, nil
	_, err := Build(context.Background(), plain, "x.gnn", Options{FS: vfs.NewMem(), Features: "degree", Duplicates: DuplicatesMax})
	require.EqualError(t, err, "{duplicates} max: edges have no values in this dataset, so there is none to join; choose merge, or keep a column: {weight}, {edge_columns}")
}
