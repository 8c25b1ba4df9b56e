package store_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

var update = flag.Bool("update", false, "write testdata/v1.gnn anew; only while version 1 has not been released")

// TestVersion1 reads a dataset that an earlier build sealed. When the format moves on, this test stays, and the golden
// of the new version joins it: that is the promise to read the version before.
func TestVersion1(t *testing.T) {
	const golden = "testdata/v1.gnn"
	if *update {
		require.NoError(t, os.RemoveAll(golden))
		require.NoError(t, os.CopyFS(golden, os.DirFS(storetest.Build(t, small()))))
	}
	require.NoError(t, check(golden))
	d, err := store.Open(golden)
	require.NoError(t, err)
	defer d.Close()
	now, err := store.Open(storetest.Build(t, small()))
	require.NoError(t, err)
	defer now.Close()
	require.Equal(t, []store.NodeID{3, 3, 4, 5}, d.Graph(0).Neighbors(4))
	require.Equal(t, now.Features(0).Row(8), d.Features(0).Row(8))
	if d.Manifest().Version == store.Version {
		require.Equal(t, d.Manifest().Seal, now.Manifest().Seal, "the bytes of a version do not change")
	}
	files, err := filepath.Glob(filepath.Join(golden, "*"))
	require.NoError(t, err)
	require.Len(t, files, 6, "manifest, ids, topo, feat, label, split and nothing else")
}
