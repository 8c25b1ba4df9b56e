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
