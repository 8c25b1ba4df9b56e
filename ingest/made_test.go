package ingest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

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
	require.Contains(t, rep.Dropped, "features feat of node type paper: --features random:5 takes their place")

	f.schema.NodeTypes = append(f.schema.NodeTypes, NodeType{Name: "author", Count: 2})
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

func TestEmptyAndEdgeless(t *testing.T) {
	f := &fake{schema: Schema{Name: "none", NodeTypes: []NodeType{{Name: "a"}, {Name: "b", Count: 3}}}}
	for _, features := range []string{"degree", "random:3", "fastrp:3"} {
		d, rep := build(t, f, Options{Features: features})
		require.Len(t, rep.Tables, 2)
		require.Zero(t, d.Features(0).Rows())
		require.Equal(t, 3, d.Features(1).Rows())
	}
}
