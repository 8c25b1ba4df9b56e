package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadBackCompares damages a finished section, in several places. Reading it back fails each
// time.
func TestReadBackCompares(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.gnn")
	w, err := Create(path, WriterOptions{})
	require.NoError(t, err)
	defer w.Abort() //nolint:errcheck // the test is over
	require.NoError(t, w.AddNodeType("node", make([]int64, 1)))
	g, err := w.AddRelation("node", "to", "node", false)
	require.NoError(t, err)
	require.NoError(t, g.Append(make([]NodeID, 3000)))
	require.NoError(t, g.Close())
	read := func() ([]NodeID, error) {
		_, list, err := w.ReadRelation("node__to__node")
		return list, err
	}
	list, err := read()
	require.NoError(t, err)
	require.Equal(t, make([]NodeID, 3000), list)

	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*", "topo", "*", "neighbors.u32"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	whole, err := os.ReadFile(files[0])
	require.NoError(t, err)
	for at, want := range map[int]string{
		0x12:                  "header checksum",
		PageSize + 7:          "the checksum of the page at 0x1000 is ",
		PageSize*3 + 4000:     "the checksum of the page at 0x3000 is ",
		len(whole) - PageSize: "its page checksums hash to ",
	} {
		damaged := append([]byte(nil), whole...)
		damaged[at] ^= 4
		require.NoError(t, os.WriteFile(files[0], damaged, 0o666))
		_, err := read()
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "read topo/node__to__node/neighbors.u32 back: ")
	}
	require.NoError(t, os.WriteFile(files[0], whole[:len(whole)-PageSize], 0o666))
	_, err = read()
	require.ErrorContains(t, err, "unexpected EOF")
}

// TestColumnReader reads columns of edges back in parts that have nothing to do with the lists.
func TestColumnReader(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "d.gnn"), WriterOptions{})
	require.NoError(t, err)
	defer w.Abort() //nolint:errcheck // the test is over
	require.NoError(t, w.AddNodeType("node", []int64{0, 1}))
	g, err := w.AddRelation("node", "to", "node", false, ColumnSpec{"weight", F32}, ColumnSpec{"time", I64}, ColumnSpec{"kind", U8})
	require.NoError(t, err)
	weights, times := bytesOf([]float32{0.5, -1.5, 2.5}), bytesOf([]int64{-7, 1 << 40, 3})
	require.NoError(t, g.Append([]NodeID{0, 1, 1}, weights, times, []byte{9, 8, 255}))
	require.NoError(t, g.Append(nil, nil, nil, nil))
	require.NoError(t, g.Close())
	for name, want := range map[string][]float64{"weight": {0.5, -1.5, 2.5}, "time": {-7, 1 << 40, 3}, "kind": {9, 8, 255}} {
		c, err := w.OpenColumn("node__to__node", name)
		require.NoError(t, err)
		got, buf := make([]float64, 3), make([]byte, 24)
		require.NoError(t, c.Numbers(2, got[2:], buf))
		require.NoError(t, c.Numbers(0, got[:2], buf))
		require.Equal(t, want, got, name)
		require.NoError(t, c.Close())
	}
	require.Panics(t, func() { _, _ = w.OpenColumn("node__to__node", "price") })
}
