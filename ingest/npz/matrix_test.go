package npz

import (
	"archive/zip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
)

// saved is a matrix of 3 rows and 4 columns as scipy.sparse.save_npz writes it, with an explicit
// zero at (2, 3).
func saved() []entry {
	return []entry{
		{"indices", i32(1, 0, 3, 3)}, {"indptr", i32(0, 1, 3, 4)}, {"format", arr("|S3", false, []int{}, []byte("csr"))},
		{"shape", i64(3, 4)}, {"data", arr("|b1", false, []int{4}, []byte{1, 1, 1, 0})},
	}
}

func openSaved(t *testing.T, entries []entry) (*Matrix, string, error) {
	path := filepath.Join(t.TempDir(), "m.npz")
	require.NoError(t, os.WriteFile(path, pack(t, zip.Deflate, entries), 0o644))
	m, err := OpenMatrix(path)
	return m, path, err
}

func TestMatrix(t *testing.T) {
	for _, c := range []struct {
		change   entry
		edges    int
		weighted bool
	}{{entry{"data", arr("|b1", false, []int{4}, []byte{1, 1, 1, 0})}, 3, false}, {entry{"data", nil}, 4, false}, {entry{"data", f32(1, 0.5, 1, 1)}, 4, true}} {
		m, _, err := openSaved(t, with(saved(), c.change))
		require.NoError(t, err)
		rows, cols := m.Shape()
		require.Equal(t, [2]int64{3, 4}, [2]int64{rows, cols})
		n, weighted, err := m.NonZeros(context.Background())
		require.NoError(t, err)
		require.EqualValues(t, c.edges, n)
		require.Equal(t, c.weighted, weighted)
		var src, dst []int64
		require.NoError(t, m.Edges(context.Background(), func(c ingest.EdgeChunk) error {
			src, dst = append(src, c.Src...), append(dst, c.Dst...)
			return nil
		}))
		require.Equal(t, []int64{0, 1, 1, 2}[:c.edges], src)
		require.Equal(t, []int64{1, 0, 3, 3}[:c.edges], dst)
		stop := errors.New("enough")
		require.Equal(t, stop, m.Edges(context.Background(), func(ingest.EdgeChunk) error { return stop }))
		require.NoError(t, m.Close())
	}
}

func TestMatrixRefuses(t *testing.T) {
	for _, c := range []struct {
		change entry
		want   string
	}{
		{entry{"format", arr("|S3", false, []int{}, []byte("csc"))}, `: format: the matrix is "csc", and csr is expected; save m.tocsr()`},
		{entry{"format", i32(1)}, ": format: it is (1,) of <i4, and a name such as csr is expected"},
		{entry{"indptr", nil}, ": no key indptr (found indices, format, shape, data); a matrix as scipy.sparse.save_npz writes it has data, indices, indptr, shape and format"},
		{entry{"shape", nil}, ": no key shape (found indices, indptr, format, data); a matrix as scipy.sparse.save_npz writes it has data, indices, indptr, shape and format"},
		{entry{"indptr", i32(0, 1)}, ": indptr: it has 2 bounds, 4 are expected for the 3 rows of shape"},
	} {
		_, path, err := openSaved(t, with(saved(), c.change))
		require.EqualError(t, err, path+c.want)
	}
	m, path, err := openSaved(t, with(saved(), entry{"indices", i32(1, 0, 4, 3)}))
	require.NoError(t, err)
	err = m.Edges(context.Background(), func(ingest.EdgeChunk) error { return nil })
	require.EqualError(t, err, path+": indices: row 1: column 4 is outside 0…3")
	_, err = OpenMatrix(filepath.Join(t.TempDir(), "none.npz"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("PK"), 0o644))
	_, err = OpenMatrix(path)
	require.ErrorContains(t, err, path+": not an npz archive")
}
