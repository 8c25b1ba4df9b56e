package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestSealReplacesNothing puts something under the final name while the dataset is written. It
// stays, and the error tells the user what to do.
func TestSealReplacesNothing(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"directory": func(path string) error { return os.Mkdir(path, 0o777) },
		"file":      func(path string) error { return os.WriteFile(path, nil, 0o666) },
	} {
		path := filepath.Join(t.TempDir(), "x.gnn")
		w, err := store.Create(path, store.WriterOptions{})
		require.NoError(t, err)
		require.NoError(t, put(path))
		before, err := os.Lstat(path)
		require.NoError(t, err)
		_, err = storetest.Write(w, small())
		require.ErrorContains(t, err, path+": file already exists; remove it or choose another name", name)
		after, err := os.Lstat(path)
		require.NoError(t, err)
		require.True(t, os.SameFile(before, after), name)
		require.NoDirExists(t, path+".partial")
	}
}
