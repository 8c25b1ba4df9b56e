package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestCorruptNeighbor makes a neighbour a node that does not exist: Neighbors lends it, and who indexes by it reports
// it.
func TestCorruptNeighbor(t *testing.T) {
	dir := storetest.Build(t, small())
	const section = "topo/node__to__node/neighbors.u32"
	f, err := os.OpenFile(filepath.Join(dir, section), os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{200}, store.PageSize+4*8) // the last neighbour of node 4, 5 before
	require.NoError(t, err)
	require.NoError(t, f.Close())

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
