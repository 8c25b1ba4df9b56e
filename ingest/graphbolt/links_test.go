package graphbolt

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/store"
)

// links is a dataset of 5 nodes with a task of link prediction.
func links(t testing.TB) string {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "metadata.yaml"), []byte(`dataset_name: links
graph:
  nodes: [{num: 5}]
  edges: [{format: numpy, path: edges.npy}]
tasks:
  - name: link_prediction
    train_set:
      - data: [{name: seeds, format: numpy, path: test.npy}]
    validation_set:
      - data:
          - {name: seeds, format: numpy, path: valid.npy}
          - {name: labels, format: numpy, path: valid-labels.npy}
          - {name: indexes, format: numpy, path: valid-indexes.npy}
    test_set:
      - data:
          - {name: node_pairs, format: numpy, path: test.npy}
          - {name: labels, format: numpy, path: test-labels.npy}
`), 0o666))
	int64s(t, filepath.Join(dir, "edges.npy"), []int64{2, 3}, 0, 1, 2, 1, 2, 3)
	int64s(t, filepath.Join(dir, "valid.npy"), []int64{6, 2}, 3, 4, 0, 1, 3, 0, 3, 1, 0, 2, 0, 3)
	int64s(t, filepath.Join(dir, "valid-labels.npy"), []int64{6}, 1, 1, 0, 0, 0, 0)
	int64s(t, filepath.Join(dir, "valid-indexes.npy"), []int64{6}, 0, 1, 0, 0, 1, 1)
	int64s(t, filepath.Join(dir, "test.npy"), []int64{3, 2}, 4, 0, 2, 2, 3, 3)
	int64s(t, filepath.Join(dir, "test-labels.npy"), []int64{3}, 1, 0, 0)
	return dir
}

func buildLinks(t *testing.T, dir string) (*store.Dataset, *build.Report, error) {
	src, err := Open(dir, 0)
	if err != nil {
		return nil, nil, err
	}
	defer src.Close()
	out := filepath.Join(t.TempDir(), "x.gnn")
	rep, err := build.Build(context.Background(), src, out, build.Options{Order: build.OrderOriginal, Features: "none"})
	if err != nil {
		return nil, nil, err
	}
	d, err := store.Open(out)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	problems, err := d.Verify(context.Background(), nil)
	require.NoError(t, err)
	require.Empty(t, problems)
	return d, rep, nil
}

func TestLinks(t *testing.T) {
	d, rep, err := buildLinks(t, links(t))
	require.NoError(t, err)
	require.Equal(t, []build.EdgeSplitReport{{Name: "given", Relation: "node__to__node", Train: 3, Valid: 2, Test: 1}}, rep.EdgeSplits)
	require.Contains(t, rep.Notes, "1 held-out edges of relation node__to__node are among its training edges as well, as the source has them")
	valid, _ := d.HeldEdges(0, store.HeldValid)
	src, dst := valid.Ends()
	require.Equal(t, [][]store.NodeID{{3, 0}, {4, 1}}, [][]store.NodeID{src, dst})
	require.Equal(t, [][]store.NodeID{{0, 1}, {2, 3}}, [][]store.NodeID{valid.DstNegatives(0), valid.DstNegatives(1)})
	test, _ := d.HeldEdges(0, store.HeldTest)
	src, dst = test.Ends()
	require.Equal(t, [][]store.NodeID{{4}, {0}}, [][]store.NodeID{src, dst})
	src, dst = test.Pool()
	require.Equal(t, [][]store.NodeID{{2, 3}, {2, 3}}, [][]store.NodeID{src, dst})
}

func TestLinksRefused(t *testing.T) {
	for _, c := range []struct {
		file   string
		shape  []int64
		values []int64
		want   string
	}{
		{"valid.npy", []int64{6, 2}, []int64{3, 4, 0, 9, 3, 0, 3, 1, 0, 2, 0, 3}, "valid.npy: row 1 (counting from 0): destination 9 is not one of the 5 nodes"},
		{"valid.npy", []int64{6, 2}, []int64{3, 4, 0, 1, 3, 0, 3, 8, 0, 2, 0, 3}, "valid.npy: row 0 (counting from 0): negative destination 8 is not one of the 5 nodes"},
		{"valid.npy", []int64{6, 2}, []int64{3, 4, 0, 1, 3, 0, 3, 1, 1, 2, 0, 3}, "valid.npy: row 4 (counting from 0): the pair is from node 1, and its edge from 0"},
		{"valid.npy", []int64{6, 3}, make([]int64, 18), "valid.npy: it is (6, 3)"},
		{"valid-indexes.npy", []int64{6}, []int64{0, 1, 0, 1, 0, 1}, "valid-indexes.npy: row 3 (counting from 0) is 1, and edge 0 is next"},
		{"valid-labels.npy", []int64{6}, []int64{1, 1, 1, 1, 0, 0}, "valid.npy: 2 negatives of 4 edges; each has as many"},
		{"valid-labels.npy", []int64{5}, []int64{1, 1, 0, 0, 0}, "valid-labels.npy: it is (5,)"},
		{"test.npy", []int64{3, 2}, []int64{4, 0, 2, 7, 3, 3}, "test.npy: pairs behind the edges: row 0 (counting from 0): pair that is no edge: destination 7 is not"},
	} {
		dir := links(t)
		int64s(t, filepath.Join(dir, c.file), c.shape, c.values...)
		_, _, err := buildLinks(t, dir)
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "\n")
	}
	dir := links(t)
	int64s(t, filepath.Join(dir, "test-labels.npy"), []int64{3}, 2, 0, 1)
	_, rep, err := buildLinks(t, dir)
	require.NoError(t, err)
	require.Contains(t, rep.Dropped[0], "test-labels.npy: row 0 (counting from 0) is 2")
}
