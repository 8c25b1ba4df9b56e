package build

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// rows are a table's values by original id.
func rows(d *store.Dataset, table int) map[int64][]float32 {
	out := map[int64][]float32{}
	f, ids := d.Features(table), d.IDs(0)
	for v := range f.Rows() {
		out[ids.Original(store.NodeID(v))] = half(f.Row(store.NodeID(v)))
	}
	return out
}

func TestDegreeFeatures(t *testing.T) {
	f := small()
	f.schema.Tables = nil
	d, rep := build(t, f, Options{Features: "degree"})
	require.Equal(t, []TableReport{{Name: "feat", NodeType: "paper", Dim: 3, DType: F16, Made: true}}, rep.Tables)
	in, out := []int{1, 3, 1, 1, 2, 0}, []int{2, 1, 1, 3, 1, 0}
	for id, row := range rows(d, 0) {
		require.EqualValues(t, 1, row[0])
		require.InDelta(t, math.Log(1+float64(in[id])), row[1], 1e-3)
		require.InDelta(t, math.Log(1+float64(out[id])), row[2], 1e-3)
	}
}

func TestRandomFeatures(t *testing.T) {
	f := classed(2000)
	d, _ := build(t, f, Options{Features: "random:7"})
	got := rows(d, 0)
	var sum, squares, neighbours float64
	for id, row := range got {
		for c, x := range row {
			sum += float64(x)
			squares += float64(x) * float64(x)
			neighbours += float64(x) * float64(row[(c+1)%7])
		}
		require.NotEqual(t, row, got[(id+1)%2000])
	}
	require.InDelta(t, 0, sum/14000, 0.03)
	require.InDelta(t, 1, squares/14000, 0.05)
	require.InDelta(t, 0, neighbours/14000, 0.03)

	same, _ := build(t, f, Options{Features: "random:7", Order: OrderOriginal})
	require.Equal(t, got, rows(same, 0), "a node's row must not depend on its number")
}

func TestMadeBesideGiven(t *testing.T) {
	f := small()
	d, rep := build(t, f, Options{Features: "random:5"})
	require.Len(t, rep.Tables, 1)
	require.Equal(t, 5, d.Features(0).Dim())
	require.Contains(t, rep.Dropped, "features feat of node type paper: {features} random:5 takes their place")

	f.schema.NodeTypes = append(f.schema.NodeTypes, ingest.NodeType{Name: "author", Count: 2})
	_, rep = build(t, f, Options{Features: "random:5"})
	require.Equal(t, []TableReport{{Name: "feat", NodeType: "paper", Dim: 2, DType: F16}, {Name: "feat", NodeType: "author", Dim: 5, DType: F16, Made: true}}, rep.Tables)
	_, rep = build(t, f, Options{})
	require.Contains(t, rep.Notes, "node type author has no features")
}

func TestClamp(t *testing.T) {
	f := small()
	f.rows[0][4], f.rows[0][7] = 1e9, -65520
	d, rep := build(t, f, Options{Clamp: true})
	require.EqualValues(t, 2, rep.Tables[0].Overflowed)
	require.EqualValues(t, 2, d.Manifest().Provenance.Counts["values_clamped"])
	got := rows(d, 0)
	require.Equal(t, []float32{65504, 2.5}, got[2])
	require.Equal(t, []float32{3, -65504}, got[3])
	d, rep = build(t, f, Options{DType: F32})
	require.Zero(t, rep.Tables[0].Overflowed)
	require.Equal(t, store.F32, d.Features(0).Elem())
}

// TestRounding: what half precision rounds as it rounds everything passes, and what it loses is
// refused, or counted.
func TestRounding(t *testing.T) {
	column := func(values ...float32) *fake { // the second of small's two
		f := small()
		for row := range 6 {
			f.rows[0][2*row+1] = values[row%len(values)]
		}
		return f
	}
	for _, c := range []struct {
		name          string
		values        []float32
		refused       string // "" when it is not
		rounded, tiny int64  // with --clamp
		first         float32
	}{
		{"fractions", []float32{0.1, 1. / 3, 1e-4, 0, 1999.9, 7e-5}, "", 0, 0, 0.099975586},
		{"large fractions", []float32{2049.3, 3001.7, 9999.9, 12345.6, 2048, 2051}, "", 0, 0, 2050},
		{"whole and exact", []float32{2048, 2050, 4100, -60000, 0, 1}, "", 0, 0, 2048},
		{"whole", []float32{2049, 1, 2, 3, 2051, 4096}, "feat.csv: row 0, column 1 (counting from 0) is 2049, and 2 whole numbers in all would change in float16, " +
			"which rounds those beyond 2048; store {dtype} f32, or {clamp} to round them", 2, 0, 2048},
		{"rounds up to the largest", []float32{-65505, 0}, "row 0, column 1 (counting from 0) is -65505, and 3 whole numbers", 3, 0, -65504},
		{"vanishing", []float32{0, 1e-9, -2e-9}, "feat.csv: row 1, column 1 (counting from 0) is 1e-09, and 4 values in all are too small for float16, " +
			"which has all its bits from 6.1e-05 on; scale them, store {dtype} f32, or {clamp} to round them", 0, 4, 0},
		{"subnormal", []float32{1e-6}, "is 1e-06, and 6 values in all are too small", 0, 6, 1.013279e-06},
		{"subnormal and exact", []float32{0x1p-24, 0x1p-20, 0}, "", 0, 0, 0x1p-24},
		{"a few beside large ones", []float32{1, 1e-9, 0.5, 0.25, -1, 2}, "", 0, 1, 1},
		{"most of the rows", []float32{1, 1e-9, 1e-9, 1e-9, 1e-9, 1e-9}, "is 1e-09, and 5 values in all are too small", 0, 5, 1},
	} {
		f := column(c.values...)
		_, err := Build(context.Background(), f, filepath.Join(t.TempDir(), "x.gnn"), Options{})
		if c.refused == "" {
			require.NoError(t, err, c.name)
		} else {
			require.ErrorContains(t, err, c.refused, c.name)
		}
		d, rep := build(t, f, Options{Clamp: true})
		require.Equal(t, []int64{c.rounded, c.tiny}, []int64{rep.Tables[0].Rounded, rep.Tables[0].Tiny}, c.name)
		require.Equal(t, c.rounded, d.Manifest().Provenance.Counts["values_rounded"], c.name)
		require.InEpsilon(t, 1+c.first, 1+rows(d, 0)[0][1], 1e-6, c.name)
		d, rep = build(t, f, Options{DType: F32})
		require.Zero(t, rep.Tables[0].Rounded+rep.Tables[0].Tiny, c.name)
		require.Equal(t, store.F32, d.Features(0).Elem(), c.name)
	}
}

// TestPackHalves: every half but zeros, subnormals and those from 2048 on is plain, wherever it
// lies.
func TestPackHalves(t *testing.T) {
	for h := range 1 << 16 {
		x := math.Abs(float64(float16.Frombits(uint16(h)).Float32()))
		for _, at := range []int{0, 3, 5} {
			halves := []uint16{0x3c00, 0x0400, 0x67ff, 0xbc00, 0x8400, 0xe7ff}
			halves[at] = uint16(h)
			dst := make([]byte, 12)
			require.Equal(t, x >= halfLeast && x < halfWhole, packHalves(dst, halves), "%x", h)
			require.Equal(t, byte(h), dst[2*at])
			require.Equal(t, byte(h>>8), dst[2*at+1])
		}
	}
}

// TestNormalizeRow: before halves are made of them, whatever way the rows take, and only of nodes'
// features that are read.
func TestNormalizeRow(t *testing.T) {
	f := small()
	f.rows[0] = []float32{3e6, -1e6, 0, 0, 2, 2, -5, 0, 1e-7, 3e-7, 1, 2}
	given := slices.Clone(f.rows[0])
	f.schema.Relations[0].Edges = int64(len(f.edges[0]))
	f.schema.Tables = append(f.schema.Tables, ingest.Table{Name: "e", Relation: f.schema.Relations[0].Key(), Dim: 1})
	f.rows[1] = []float32{5, 5, 5, 5, 5, 5, 5, 5}
	want := map[int64][]float32{0: {0.75, -0.25}, 1: {0, 0}, 2: {0.5, 0.5}, 3: {-1, 0}, 4: {0.25, 0.75}, 5: {0.33325195, 0.6665039}}
	seals := map[string]bool{}
	for _, o := range []Options{{}, {test: tiny}} {
		o.Normalize = NormalizeRow
		d, rep := build(t, f, o)
		require.Equal(t, want, rows(d, 0))
		require.Equal(t, []float32{5}, half(d.Features(1).Row(0)))
		require.Equal(t, "row", d.Manifest().Provenance.Options["normalize"])
		seals[rep.Seal] = true
	}
	require.Len(t, seals, 1)
	require.Equal(t, given, f.rows[0], "what the source lends")
	_, err := Build(context.Background(), f, filepath.Join(t.TempDir(), "x.gnn"), Options{Normalize: NormalizeRow, Features: "random:2"})
	require.ErrorContains(t, err, "{normalize} row: it is for features that are read, and {features} random:2 makes all of them")
	f.rows[0][3] = float32(math.NaN())
	_, err = Build(context.Background(), f, filepath.Join(t.TempDir(), "x.gnn"), Options{Normalize: NormalizeRow})
	require.ErrorContains(t, err, "row 1, column 1 (counting from 0) is NaN")
}

func TestEmptyAndEdgeless(t *testing.T) {
	f := &fake{schema: ingest.Schema{Name: "none", NodeTypes: []ingest.NodeType{{Name: "a"}, {Name: "b", Count: 3}}}}
	for _, features := range []string{"degree", "random:3", "fastrp:3"} {
		d, rep := build(t, f, Options{Features: features})
		require.Len(t, rep.Tables, 2)
		require.Zero(t, d.Features(0).Rows())
		require.Equal(t, 3, d.Features(1).Rows())
	}
}
