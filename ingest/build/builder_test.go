package build

import (
	"cmp"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// build builds, verifies and opens; the dataset is closed with the test.
func build(t testing.TB, src ingest.Source, o Options) (*store.Dataset, *Report) {
	t.Helper()
	path := t.TempDir() + "/x.gnn"
	if o.FS == nil {
		o.FS = storetest.NoSync
	}
	o.test.block = cmp.Or(o.test.block, minPartBlock) // larger blocks spend the test's time on page faults
	rep, err := Build(context.Background(), src, path, o)
	require.NoError(t, err)
	d, err := store.Open(path)
	require.NoError(t, err)
	problems, err := d.Verify(context.Background(), nil)
	require.NoError(t, err)
	require.Empty(t, problems)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d, rep
}

func TestBuildDirected(t *testing.T) {
	d, rep := build(t, small(), Options{Order: OrderOriginal})
	g := d.Graph(0)
	require.Equal(t, "paper__cites__paper", g.Relation.Key())
	require.False(t, g.Relation.Symmetric)
	require.Equal(t, []store.NodeID{3}, g.Neighbors(0))
	require.Equal(t, []store.NodeID{0, 0, 3}, g.Neighbors(1))
	require.Equal(t, []store.NodeID{2}, g.Neighbors(2))
	require.Equal(t, []store.NodeID{1, 3}, g.Neighbors(4))
	require.Empty(t, g.Neighbors(5))
	require.Equal(t, RelationReport{Key: "paper__cites__paper", EdgesRead: 8, SelfLoops: 1, Duplicates: 1, Edges: 8,
		PairsCompared: 5, PairsBothWays: 1, EdgesAscending: 4, Columns: []string{}, Left: []string{}}, rep.Relations[0])
	require.Equal(t, []LabelReport{{"topic", "paper", 3, false, false, 1, []string{"a", "b", "c"}}}, rep.Labels)
	require.Equal(t, []SplitReport{{"given", "paper", 2, 1, 2, 1}}, rep.Splits)
	require.Equal(t, d.Manifest().Seal, rep.Seal)
	require.Equal(t, d.Manifest().Bytes(), rep.Bytes)
	require.Equal(t, []string{"years: not read"}, rep.Dropped)
}

func TestBuildUndirected(t *testing.T) {
	d, rep := build(t, small(), Options{Order: OrderOriginal, Undirected: true})
	g := d.Graph(0)
	require.True(t, g.Relation.Symmetric)
	for v, want := range [][]store.NodeID{{1, 3}, {0, 3, 4}, {2}, {0, 1, 4}, {1, 3}, {}} {
		require.Equal(t, want, append([]store.NodeID{}, g.Neighbors(store.NodeID(v))...), v)
	}
	require.Equal(t, RelationReport{Key: "paper__cites__paper", EdgesRead: 8, SelfLoops: 1, Duplicates: 1, DuplicatesMerged: 1,
		ReverseAdded: 4, Edges: 11, PairsCompared: 5, PairsBothWays: 1, EdgesAscending: 4, Columns: []string{}, Left: []string{}}, rep.Relations[0])
}
