package data

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestNodeDegrees compares the columns with a loop over the edges. A reverse and the second
// direction of a symmetric relation have no column of their own.
func TestNodeDegrees(t *testing.T) {
	spec := storetest.Library(60, 3, 2)
	spec.Relations[2].ReverseOf = "author__writes__paper"
	ds, err := store.Open(storetest.BuildTyped(t, spec))
	require.NoError(t, err)
	defer ds.Close()
	d, err := Open(ds, Options{})
	require.NoError(t, err)
	x, err := d.NodeDegrees(t.Context(), d.Target, func() {})
	require.NoError(t, err)
	require.Equal(t, []string{
		"edges of author__writes__paper to it", "edges of paper__cites__paper to it", "edges of venue__prints__paper to it",
		"edges of reviewer__reviews__paper to it", "edges of paper__cites__paper from it", "edges of paper__sold_by__shop from it",
	}, x.Names)
	require.Equal(t, len(x.Names), d.DegreeColumns(d.Target))
	require.Equal(t, int64(2*4*60), d.DegreesBytes(d.Target))
	for v := range 60 {
		want := make([]int, len(x.Names))
		for i, r := range []int{0, 1, 3, 4} {
			if lists := spec.Relations[r].Neighbors; v < len(lists) {
				want[i] = len(lists[v])
			}
		}
		for i, r := range []int{1, 5} {
			for _, list := range spec.Relations[r].Neighbors {
				for _, u := range list {
					if int(u) == v {
						want[4+i]++
					}
				}
			}
		}
		require.Equal(t, want, x.Append(nil, uint32(v)))
	}

	one := storetest.Communities(50, 2, 3, 4, 1)
	one.Neighbors = [][]store.NodeID{{1}, {0, 2}, {1}}
	one.Symmetric = true
	both, err := store.Open(storetest.Build(t, one))
	require.NoError(t, err)
	defer both.Close()
	d, err = Open(both, Options{})
	require.NoError(t, err)
	x, err = d.NodeDegrees(t.Context(), 0, func() {})
	require.NoError(t, err)
	require.Len(t, x.Names, 1)
	require.Equal(t, []int{2}, x.Append(nil, 1))
}

// TestNodeDegreesOfDamage: a neighbour that is no node is found, and a long count can be stopped.
func TestNodeDegreesOfDamage(t *testing.T) {
	s := storetest.Communities(looksAtLists+10, 2, 1, 4, 1)
	path := storetest.Build(t, s)
	ds, err := store.Open(path)
	require.NoError(t, err)
	d, err := Open(ds, Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = d.NodeDegrees(ctx, 0, cancel)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, ds.Close())

	storetest.Forge(t, path, "topo/node__to__node/neighbors.u32", store.PageSize, []byte{0xff, 0xff, 0xff, 0x7f})
	ds, err = store.Open(path)
	require.NoError(t, err)
	defer ds.Close()
	d, err = Open(ds, Options{})
	require.NoError(t, err)
	err = store.Guard(func() error {
		_, err := d.NodeDegrees(t.Context(), 0, func() {})
		return err
	})
	require.ErrorIs(t, err, store.ErrCorrupt)
}
