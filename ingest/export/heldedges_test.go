package export

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/graphbolt"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// linked is a dataset whose ids are not its rows, with all that held-out edges may have.
func linked(t *testing.T) *store.Dataset {
	d, err := store.Open(storetest.Build(t, storetest.Spec{
		Nodes: 6, Neighbors: [][]store.NodeID{{1, 2}, {0}, nil, {4}}, Original: func(v int) int64 { return int64(5 - v) },
		EdgeSplit: &storetest.EdgeSplit{
			Valid: storetest.HeldEdges{
				Src: []store.NodeID{3, 0, 5}, Dst: []store.NodeID{0, 2, 1}, DstNegatives: [][]store.NodeID{{1, 2}, {3, 4}, {5, 0}},
			},
			Test: storetest.HeldEdges{Src: []store.NodeID{4}, Dst: []store.NodeID{4}, PoolSrc: []store.NodeID{0, 1}, PoolDst: []store.NodeID{2, 5}},
		},
	}))
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

// ids are nodes by their original ids.
func ids(d *store.Dataset, nodes ...store.NodeID) []int64 {
	all := []int64{}
	for _, v := range nodes {
		all = append(all, d.IDs(0).Original(v))
	}
	return all
}

// TestHeldRoundTrip: what GraphBolt gets is read back as it was.
func TestHeldRoundTrip(t *testing.T) {
	d, out := linked(t), filepath.Join(t.TempDir(), "bolt")
	rep, err := Export(context.Background(), d, out, Options{Format: GraphBolt})
	require.NoError(t, err)
	require.Empty(t, rep.Skipped)
	src, err := graphbolt.Open(out, 0)
	require.NoError(t, err)
	defer src.Close()
	again := filepath.Join(t.TempDir(), "again.gnn")
	_, err = build.Build(context.Background(), src, again, build.Options{})
	require.NoError(t, err)
	b, err := store.Open(again)
	require.NoError(t, err)
	defer b.Close()
	require.Equal(t, d.Graph(0).Edges(), b.Graph(0).Edges())
	for p := range store.HeldTest + 1 {
		x, _ := d.HeldEdges(0, p)
		y, ok := b.HeldEdges(0, p)
		require.True(t, ok)
		require.Equal(t, x.Len(), y.Len())
		xs, xd := x.Ends()
		ys, yd := y.Ends()
		require.Equal(t, [][]int64{ids(d, xs...), ids(d, xd...)}, [][]int64{ids(b, ys...), ids(b, yd...)})
		for i := range xs {
			require.Equal(t, ids(d, x.DstNegatives(i)...), ids(b, y.DstNegatives(i)...))
		}
		xs, xd = x.Pool()
		ys, yd = y.Pool()
		require.Equal(t, [][]int64{ids(d, xs...), ids(d, xd...)}, [][]int64{ids(b, ys...), ids(b, yd...)})
	}
}

func TestHeldArrays(t *testing.T) {
	d, out := linked(t), filepath.Join(t.TempDir(), "npy")
	_, err := Export(context.Background(), d, out, Options{})
	require.NoError(t, err)
	read := func(name string, shape ...int64) []int64 {
		f, err := os.Open(filepath.Join(out, "node__to__node", name))
		require.NoError(t, err)
		defer f.Close()
		h, err := npy.ReadHeader(f)
		require.NoError(t, err)
		require.Equal(t, shape, h.Shape)
		values := make([]int64, h.Len())
		_, err = npy.NewDataReader(h, f).ReadInt64s(values)
		require.NoError(t, err)
		return values
	}
	require.Equal(t, []int64{2, 5, 5, 3, 0, 4}, read("valid/edges.npy", 3, 2))
	require.Equal(t, []int64{4, 3, 2, 1, 0, 5}, read("valid/dst-negatives.npy", 3, 2))
	require.Equal(t, []int64{1, 1}, read("test/edges.npy", 1, 2))
	require.Equal(t, []int64{5, 3, 4, 0}, read("test/pool.npy", 2, 2))
	manifest, err := os.ReadFile(filepath.Join(out, "manifest.json"))
	require.NoError(t, err)
	require.Contains(t, string(manifest), `"dst_negatives": "node__to__node/valid/dst-negatives.npy"`)

	rep, err := Export(context.Background(), d, filepath.Join(t.TempDir(), "p"), Options{Format: Parquet})
	require.NoError(t, err)
	require.Equal(t, []string{"node__to__node: held-out edges are not written as parquet; {format} npy and graphbolt write them"}, rep.Skipped)
	for _, f := range []Format{NPY, GraphBolt} {
		rep, err = Export(context.Background(), d, filepath.Join(t.TempDir(), "s"), Options{Format: f, Sample: 4})
		require.NoError(t, err)
		require.Equal(t, []string{
			"node__to__node, valid: what the held-out edges are ranked among is of all nodes, and not of a sample",
			"node__to__node, test: what the held-out edges are ranked among is of all nodes, and not of a sample",
		}, rep.Skipped)
	}
}
