package graphbolt

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

// TestConformLinks: sets of edges are sections like others.
func TestConformLinks(t *testing.T) {
	dir := links(t)
	const n = ingest.ChunkRows + 9
	var pairs, labels []int64
	for i := range int64(n) {
		pairs, labels = append(pairs, i%5, i%3), append(labels, 0)
	}
	labels[0] = 1
	int64s(t, filepath.Join(dir, "test.npy"), []int64{n, 2}, pairs...)
	int64s(t, filepath.Join(dir, "test-labels.npy"), []int64{n}, labels...)
	sourcetest.Conform(t, func() (ingest.Source, error) { return Open(dir, 0) })
}

func TestConform(t *testing.T) {
	input := func(dir string) func() (ingest.Source, error) {
		return func() (ingest.Source, error) { return Open(dir, 0) }
	}
	const n, dim = ingest.ChunkRows + 9, 5 // nodes and edges
	dir := t.TempDir()
	var src, dst, seeds, classes []int64
	var lines strings.Builder
	for i := range int64(n) {
		src, dst, seeds, classes = append(src, i), append(dst, i*7%n), append(seeds, n-1-i), append(classes, i%4)
		fmt.Fprintf(&lines, "%d,%d\n", i, i*5%n)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "e.csv"), []byte(lines.String()), 0o600))
	int64s(t, filepath.Join(dir, "e.npy"), []int64{2, n}, append(src, dst...)...)
	int64s(t, filepath.Join(dir, "s.npy"), []int64{n}, seeds...)
	int64s(t, filepath.Join(dir, "y.npy"), []int64{n}, classes...)
	float32s(t, filepath.Join(dir, "x.npy"), []int64{n, dim}, make([]float32, n*dim)...)
	float32s(t, filepath.Join(dir, "w.npy"), []int64{n}, make([]float32, n)...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "metadata.yaml"), []byte(fmt.Sprintf(`
graph:
  nodes: [{type: a, num: %d}]
  edges: [{type: "a:to:a", format: numpy, path: e.npy}, {type: "a:of:a", format: csv, path: e.csv}]
feature_data:
  - {domain: node, type: a, name: feat, format: numpy, path: x.npy}
  - {domain: edge, type: "a:to:a", name: weight, format: numpy, path: w.npy}
tasks:
  - train_set: [{type: a, data: [{name: seeds, format: numpy, path: s.npy}, {name: labels, format: numpy, path: y.npy}]}]
`, n)), 0o600))
	sourcetest.Conform(t, input(dir), input("testdata/homogeneous"), input("testdata/typed"), input("testdata/preprocessed"))
}
