package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestListsOfSharedSections: a script that maps the exported lists of a graph reads the graph's own
// lists, also where graphs share sections.
func TestListsOfSharedSections(t *testing.T) {
	const nodes = 1 << 16 // offsets are written in more than one piece
	spec := storetest.TypedSpec{Types: []storetest.TypedNodes{{Name: "node", Nodes: nodes}}, Shared: true}
	for i, name := range []string{"a", "b"} {
		lists := make([][]store.NodeID, nodes)
		for v := uint32(i); v < nodes; v += 997 {
			lists[v] = []store.NodeID{v / 2, v/2 + 7 + uint32(i)}
		}
		spec.Relations = append(spec.Relations, storetest.TypedRelation{Src: "node", Name: name, Dst: "node", Neighbors: lists})
	}
	ds, err := store.Open(storetest.BuildTyped(t, spec))
	require.NoError(t, err)
	defer ds.Close()
	for i := range 2 {
		g := ds.Graph(i)
		require.True(t, g.Shares())
		offsets, neighbors, err := listsOf(g, t.TempDir())
		require.NoError(t, err)
		starts, lists := make([]uint64, nodes+1), make([]uint32, g.Edges())
		for _, read := range []struct {
			from section
			to   any
		}{{offsets, starts}, {neighbors, lists}} {
			f, err := os.Open(read.from.Path)
			require.NoError(t, err)
			_, err = f.Seek(read.from.Offset, 0)
			require.NoError(t, err)
			require.NoError(t, binary.Read(f, binary.LittleEndian, read.to))
			require.NoError(t, f.Close())
		}
		require.EqualValues(t, g.Edges(), starts[nodes])
		for v := range uint32(nodes) {
			require.Equal(t, len(g.Neighbors(v)), int(starts[v+1]-starts[v]))
			for j, u := range g.Neighbors(v) {
				require.Equal(t, u, lists[starts[v]+uint64(j)])
			}
		}
	}
	_, _, err = listsOf(ds.Graph(0), filepath.Join(t.TempDir(), "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
