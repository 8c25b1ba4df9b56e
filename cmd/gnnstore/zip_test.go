package main

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestZipNames: every format that is read out of a zip refuses one whose members go by two names.
func TestZipNames(t *testing.T) {
	work := t.TempDir()
	for _, c := range []struct{ format, file, member string }{
		{"npz", "a.npz", "adj_indices.npy"}, {"npz", "b.npz", "edge_index.npy"}, {"pt", "a.pt", "a/data.pkl"}, {"hgb", "a.zip", "tiny/node.dat"},
		{"ogb", "arxiv.zip", "arxiv/raw/edge.csv.gz"}, {"auto", "c.npz", "x.npy"},
	} {
		var packed bytes.Buffer
		z := zip.NewWriter(&packed)
		for _, name := range []string{"other", c.member} {
			w, err := z.Create(name)
			require.NoError(t, err)
			_, err = w.Write([]byte("text"))
			require.NoError(t, err)
		}
		require.NoError(t, z.Close())
		b := packed.Bytes()
		b[bytes.Index(b, []byte(c.member))] ^= 0x20 // in the header where it lies
		path := filepath.Join(work, c.file)
		require.NoError(t, os.WriteFile(path, b, 0o666))
		code, _, stderr := gnnstore(t, "ingest", c.format, path, filepath.Join(work, "out.gnn"))
		require.Equal(t, 1, code)
		require.Contains(t, stderr, "gnnstore: "+path+`: damaged or truncated download (member "`+c.member+`" of the directory is called "`)
		require.Contains(t, stderr, `" where it lies); fetch it again`)
	}
}
