package store_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestCorruptNeighbor forges a neighbour that is not a node. Neighbors lends it, and
// CorruptNeighbor makes the error for whoever uses it as an index.
func TestCorruptNeighbor(t *testing.T) {
	dir := storetest.Build(t, small())
	const section = "topo/node__to__node/neighbors.u32"
	storetest.Forge(t, dir, section, store.PageSize+4*8, []byte{200}) // the last neighbour of node 4, which was 5

	d, err := store.Open(dir)
	require.NoError(t, err)
	defer d.Close()
	g := d.Graph(0)
	require.Equal(t, []store.NodeID{3, 3, 4, 200}, g.Neighbors(4))
	err = store.Guard(func() error { panic(g.CorruptNeighbor(4, 200)) })
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.EqualError(t, err, dir+": "+section+" at 0x1020: "+
		"node 4 has neighbour 200, and there are 9 nodes; run gnnstore verify")
}

// TestEdge numbers edges in the order of the lists, also where nodes have none.
func TestEdge(t *testing.T) {
	dir := storetest.Build(t, small())
	d, err := store.Open(dir)
	require.NoError(t, err)
	defer d.Close()
	g, e := d.Graph(0), int64(0)
	for v := range g.Nodes() {
		for _, u := range g.Neighbors(store.NodeID(v)) {
			src, dst := g.Edge(e)
			require.Equal(t, [2]store.NodeID{u, store.NodeID(v)}, [2]store.NodeID{src, dst}, "edge %d", e)
			e++
		}
	}
	require.Equal(t, g.Edges(), e)

	storetest.Forge(t, dir, "topo/node__to__node/neighbors.u32", store.PageSize+4*8, []byte{200})
	bad, err := store.Open(dir)
	require.NoError(t, err)
	defer bad.Close()
	err = store.Guard(func() error {
		bad.Graph(0).Edge(8)
		return nil
	})
	require.ErrorContains(t, err, "node 4 has neighbour 200")
}

func TestNodeIDs(t *testing.T) {
	d, err := store.Open(storetest.Build(t, small()))
	require.NoError(t, err)
	defer d.Close()
	g := d.Graph(0)
	require.Equal(t, g.Nodes(), g.Sources())
	_, file := g.Sections()
	b := file.Mapped(store.PageSize, 4*int(g.Edges()))
	ids, ok := store.NodeIDs(b)
	require.True(t, ok)
	var all []store.NodeID
	for v := range g.Nodes() {
		all = append(all, g.Neighbors(store.NodeID(v))...)
	}
	require.Equal(t, all, ids)
	_, ok = store.NodeIDs(b[1:5])
	require.False(t, ok)
	require.Panics(t, func() { store.NodeIDs(b[:3]) })
	ids, ok = store.NodeIDs(nil)
	require.True(t, ok)
	require.Empty(t, ids)
}

// weighted is small with a column of weights.
func weighted() storetest.Spec {
	s := small()
	s.Weight = func(v, i int) float32 { return float32(10*v + i) }
	return s
}

func TestEdgeColumnIsAFile(t *testing.T) {
	d, err := store.Open(storetest.Build(t, weighted()))
	require.NoError(t, err)
	defer d.Close()
	g := d.Graph(0)
	c := g.Column("weight")
	require.Same(t, g, c.Graph())
	file := c.Section()
	require.Equal(t, c.Column.Values.Path, file.Section)
	b := file.Mapped(store.PageSize, 4*int(g.Edges()))
	got, ok := store.Float32s(b)
	require.True(t, ok)
	var all []float32
	for v := range g.Nodes() {
		all = append(all, store.EdgeValues[float32](c, store.NodeID(v))...)
	}
	require.Equal(t, all, got)
	_, ok = store.Float32s(b[1:5])
	require.False(t, ok)
}

// TestCheckWeights finds the first value that is not a weight, and where it lies, also when the
// part begins within a list.
func TestCheckWeights(t *testing.T) {
	dir := storetest.Build(t, weighted())
	d, err := store.Open(dir)
	require.NoError(t, err)
	defer d.Close()
	c := d.Graph(0).Column("weight")
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	require.NoError(t, c.CheckWeights(4, 0, nil))
	require.NoError(t, c.CheckWeights(4, 0, []float32{0, 1, math.MaxFloat32, math.SmallestNonzeroFloat32}))
	const section = "topo/node__to__node/weight.f32"
	for _, w := range []float32{nan, inf, -inf} {
		err := c.CheckWeights(4, 2, []float32{1, w, -1})
		require.ErrorIs(t, err, store.ErrCorrupt)
		require.EqualError(t, err, fmt.Sprintf("%s: %s at 0x1020: edge 8, of node 4, has the weight %v; run gnnstore verify", dir, section, w))
	}
	err = c.CheckWeights(4, 0, []float32{0, -0.5})
	require.NotErrorIs(t, err, store.ErrCorrupt, "a negative value is allowed, for other uses")
	require.EqualError(t, err, dir+": "+section+" at 0x1018: edge 6, of node 4, has the weight -0.5; "+
		"edges are drawn by weights of at least 0: ingest such, or draw without weights")
}
