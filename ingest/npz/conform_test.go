package npz

import (
	"archive/zip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

func TestConform(t *testing.T) {
	const n, dim = ingest.ChunkRows + 9, 5 // nodes and edges
	var bounds, ends, classes []int64
	names := make([]string, n)
	values, ones := make([]float32, n), make([]float32, n)
	for i := range int64(n) {
		bounds, ends, classes = append(bounds, i), append(ends, i*7%n), append(classes, i%4-1)
		names[i], ones[i], values[i] = []string{"cat", "dog", ""}[i%3], float32(i%9), float32(i)
	}
	bounds = append(bounds, n)
	square, columns := i64(n, n), make([]int64, n)
	all := []entry{
		{"adj_data", f32(ones...)}, {"adj_indices", i64(ends...)}, {"adj_indptr", i64(bounds...)}, {"adj_shape", square},
		{"attr_data", f32(values...)}, {"attr_indices", i64(columns...)}, {"attr_indptr", i64(bounds...)}, {"attr_shape", i64(n, dim)},
		{"labels", i64(classes...)},
	}
	dense := with(all, entry{"attr_data", nil}, entry{"attr_indices", nil}, entry{"attr_indptr", nil}, entry{"attr_shape", nil},
		entry{"attr_matrix", arr("<f4", true, []int{n, dim}, make([]float32, dim*n))}, entry{"labels", texts(names...)})
	input := func(method uint16, entries []entry) func() (ingest.Source, error) {
		path := filepath.Join(t.TempDir(), "graph.npz")
		require.NoError(t, os.WriteFile(path, pack(t, method, entries), 0o600))
		return func() (ingest.Source, error) { return Open(path) }
	}
	sourcetest.Conform(t, input(zip.Deflate, all), input(zip.Store, dense), input(zip.Store, small()))
}
