package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestSimpleCitations: plain loops count the same neighbours in common and compute the same
// products. The better of the two ranks held-out links of communities well above chance.
func TestSimpleCitations(t *testing.T) {
	spec := storetest.Communities(300, 5, 8, 16, 1).Linked()
	path := storetest.Build(t, spec)
	ds, err := store.Open(path)
	require.NoError(t, err)
	defer ds.Close()
	g := ds.Graph(0)
	all := []uint32{3, 299, 7, 0, 3}
	common, product := commonNeighbours(g), productOf(ds.Features(0))
	for _, u := range []uint32{0, 5, 5, 299} {
		counts, products := common(u, all), product(u, all)
		for i, v := range all {
			want := 0
			for _, w := range g.Neighbors(v) {
				if slices.Contains(g.Neighbors(u), w) {
					want++
				}
			}
			require.EqualValues(t, want, counts[i])
			require.Equal(t, product(v, []uint32{u})[0], products[i])
		}
		require.Equal(t, counts[0], counts[4])
	}
	best, note, err := simpleCitations(path, 1)
	require.NoError(t, err)
	require.Greater(t, best, 0.01) // by chance it is about 0.007
	require.Less(t, best, 1.0)
	require.Contains(t, note, "common neighbours 0.")
	again, _, err := simpleCitations(path, 1)
	require.NoError(t, err)
	require.Equal(t, best, again)
	other, _, err := simpleCitations(path, 2)
	require.NoError(t, err)
	require.NotEqual(t, best, other, "candidates are drawn by the seed")
}
