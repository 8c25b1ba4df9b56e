package store_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
)

var update = flag.Bool("update", false, "write testdata/v3.gnn anew; only while version 3 has not been released")

// everything seals a dataset with all that a version may hold: names, edge columns, a table of
// edges, held-out edges, streams, order "access".
func everything(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "v2.gnn")
	w, err := store.Create(path, store.WriterOptions{})
	require.NoError(t, err)
	n, err := w.NewNodeType("user", 3)
	require.NoError(t, err)
	require.NoError(t, n.AppendOriginal([]int64{2, 0, 1}))
	require.NoError(t, n.AppendOrder([]store.NodeID{1, 2, 0}))
	for v, name := range []string{"Zoë", "adam", "\xff\x00"} {
		require.NoError(t, n.AppendText([]byte(name)), v)
	}
	for _, of := range []struct {
		name string
		v    store.NodeID
	}{{"Zoë", 0}, {"adam", 1}, {"\xff\x00", 2}} {
		require.NoError(t, n.AppendName([]byte(of.name), of.v))
	}
	require.NoError(t, n.Close())
	g, err := w.AddRelation("user", "likes", "user", false, store.ColumnSpec{Name: "id", Elem: store.U32},
		store.ColumnSpec{Name: "kind", Elem: store.U8}, store.ColumnSpec{Name: "time", Elem: store.I64})
	require.NoError(t, err)
	times := make([]byte, 16)
	times[0], times[15] = 7, 0x80
	require.NoError(t, g.AppendLengths([]uint32{0, 2, 0}))
	require.NoError(t, g.AppendNeighbors([]store.NodeID{0, 2}, u32s(1, 0), []byte{3, 4}, times))
	require.NoError(t, g.Close())
	f, err := w.AddEdgeTable("feat", "user__likes__user", store.F16, 2, 3)
	require.NoError(t, err)
	require.NoError(t, f.PutRows(0, []byte{0, 0x3c, 0, 0, 0, 0x40, 1, 0x3c, 0, 0, 0, 0xc0}))
	require.NoError(t, f.Close())
	held(t, w)
	streams(t, w)
	_, err = w.Seal(store.Manifest{Name: "v2", Order: "access", Provenance: store.Provenance{Tool: "test"}})
	require.NoError(t, err)
	return path
}

// TestVersion3 reads a dataset of version 3 that an earlier build sealed, and seals the same again.
func TestVersion3(t *testing.T) {
	const golden = "testdata/v3.gnn"
	if *update {
		require.NoError(t, os.RemoveAll(golden))
		require.NoError(t, os.CopyFS(golden, os.DirFS(everything(t))))
	}
	d := readEverything(t, golden)
	require.True(t, d.Checked())
	now, err := store.Open(everything(t))
	require.NoError(t, err)
	defer now.Close()
	requireHeld(t, d, 1)
	requireStreams(t, d)
	require.Equal(t, 3, d.Manifest().Version)
	require.Equal(t, d.Manifest().Seal, now.Manifest().Seal, "the bytes of a version do not change")
}

// TestVersion2 reads a dataset of version 2 that an earlier build sealed, since a build promises to
// read the version before its own. Its pages have no checksums, so reading damage succeeds: only
// verify finds it.
func TestVersion2(t *testing.T) {
	d := readEverything(t, "testdata/v2.gnn")
	require.False(t, d.Checked())
	require.Equal(t, 2, d.Manifest().Version)
	_, file := d.Graph(0).Sections()
	require.Zero(t, file.SumBytes())
	require.NoError(t, file.Check(store.PageSize, make([]byte, store.PageSize)))

	dir := filepath.Join(t.TempDir(), "v2.gnn")
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/v2.gnn")))
	patch(t, dir, "topo/user__likes__user/kind.u8", store.PageSize, []byte{9})
	damaged, err := store.Open(dir)
	require.NoError(t, err)
	defer damaged.Close()
	require.Equal(t, []byte{9, 4}, damaged.Graph(0).Column("kind").Bytes(1))
	require.ErrorContains(t, check(dir), "topo/user__likes__user/kind.u8: checksum is ")
}

// readEverything verifies the dataset at path, and compares what it reads with what everything
// wrote.
func readEverything(t *testing.T, path string) *store.Dataset {
	require.NoError(t, check(path))
	d, err := store.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	g := d.Graph(0)
	require.Equal(t, []store.NodeID{0, 2}, g.Neighbors(1))
	require.Equal(t, []int64{7, -1 << 63}, store.EdgeValues[int64](g.Column("time"), 1))
	row := d.Features(0).RowAt(uint64(store.EdgeValues[uint32](g.Column("id"), 1)[0]))
	require.Equal(t, []byte{1, 0x3c, 0, 0, 0, 0xc0}, row)
	var names []string
	require.NoError(t, d.IDs(0).EachName(context.Background(), func(_ store.NodeID, name []byte) error {
		names = append(names, string(name))
		return nil
	}))
	require.Equal(t, []string{"Zoë", "adam", "\xff\x00"}, names)
	v, ok, err := d.IDs(0).Find([]byte("adam"))
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 1, v)
	require.EqualValues(t, 0, d.IDs(0).Original(v))
	return d
}
