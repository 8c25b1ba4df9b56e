package arrays

import (
	"archive/zip"
	"path/filepath"
	"testing"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

func TestConform(t *testing.T) {
	const n = ingest.ChunkRows + 9 // nodes, and edges
	var ends, weight, bounds []int64
	var parts [3][]bool
	x, y, multi := make([]float32, 8*n), make([]int64, n), make([]uint8, 3*n)
	for i := range int64(n) {
		ends, bounds, weight = append(ends, i*7%n), append(bounds, i), append(weight, -i)
		for p := range parts {
			parts[p] = append(parts[p], i%4 == int64(p))
		}
		x[8*i], y[i], multi[3*i], multi[3*i+1] = float32(i), i%5-1, uint8(i%2), uint8(i/2%2)
	}
	mask := func(p int) []byte { return arr("|b1", false, []int{n}, parts[p]) }
	f := files{
		"row": i64(ends...), "col": i64(bounds...), "edge_attr": i64(weight...), "x": arr("<f4", false, []int{n, 8}, x), "y": i64(y...),
		"train_mask": mask(0), "val_mask": mask(1), "test_mask": mask(2),
	}
	names := make([]string, n)
	for i := range names {
		names[i] = []string{"cat", "dog", ""}[i%3]
	}
	csr := files{"indptr": i64(append(bounds, n)...), "indices": i64(ends...), "x": arr("<f4", true, []int{n, 8}, x), "y": texts(names...)}
	several := f.with("y", arr("|u1", false, []int{n, 3}, multi)).with("num_nodes", i64(n))
	input := func(path string) func() (ingest.Source, error) {
		return func() (ingest.Source, error) { return Open(path, Options{}) }
	}
	sourcetest.Conform(t, input(pack(t, f, zip.Deflate)), input(folder(t, csr)), input(pack(t, several, zip.Store)),
		input(filepath.Join(fixtures, "data.pt")), input(filepath.Join(fixtures, "hetero.pt")), input(filepath.Join(fixtures, "data.legacy.pt")))
}
