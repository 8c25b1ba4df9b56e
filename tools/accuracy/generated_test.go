package main

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/generate"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
	"github.com/gnnstore/gnnstore/store"
)

// path is a graph of three nodes and the edges 0 → 1, 0 → 1, 1 → 2, with a row of two columns a
// node.
type path struct{ ingest.Source }

func (path) Schema(context.Context) (*ingest.Schema, error) {
	return &ingest.Schema{
		NodeTypes: []ingest.NodeType{{Name: "node", Count: 3}}, Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: 3}},
		Tables: []ingest.Table{{Name: "feat", NodeType: "node", Dim: 2}},
	}, nil
}

func (path) Edges(_ context.Context, _ int, emit func(ingest.EdgeChunk) error) error {
	return emit(ingest.EdgeChunk{Src: []int64{0, 0, 1}, Dst: []int64{1, 1, 2}})
}

func (path) Rows(_ context.Context, _ int, emit func(ingest.RowChunk) error) error {
	return emit(ingest.RowChunk{Values: []float32{9, 0, 0, 1, 0, 8}})
}

func TestHopRows(t *testing.T) {
	h, err := newHopRows(context.Background(), path{}, 0, 2)
	require.NoError(t, err)
	// After one hop: 9 0, 6 1/3, 0 4.5; after two: 9 0, 8 1/9, 3 29/12.
	require.InDeltaSlice(t, []float32{9, 0, 9, 0, 0, 1, 8, 1. / 9, 0, 8, 3, 29. / 12}, h.values, 1e-6)
	schema, err := h.Schema(context.Background())
	require.NoError(t, err)
	require.Equal(t, 4, schema.Tables[0].Dim)
}

func TestHopRowsConform(t *testing.T) {
	sourcetest.Conform(t, func() (ingest.Source, error) {
		s, err := generate.Open("citations", generate.Options{Nodes: 20_000, Edges: 40_000, Dim: 8, Classes: 5})
		if err != nil {
			return nil, err
		}
		return newHopRows(context.Background(), s, 0, 1)
	})
}

// TestHopDataset: what is made of a generated graph is that graph with other rows.
func TestHopDataset(t *testing.T) {
	b := &bench{tmp: t.TempDir()}
	out, err := b.generate(context.Background(), "citations", 0.0001, []int{3})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(b.tmp, "citations3.gnn"), out)
	d, err := store.Open(out)
	require.NoError(t, err)
	defer d.Close()
	require.EqualValues(t, 1000, d.Features(0).Rows())
	require.EqualValues(t, 128, d.Features(0).Dim())
	again, err := b.generate(context.Background(), "citations", 0.0001, []int{3})
	require.NoError(t, err)
	require.Equal(t, out, again)
}

func TestGaps(t *testing.T) {
	results := make([]result, len(contenders))
	for i, c := range contenders {
		results[i] = result{task: task{name: c.name}, test: []float64{0.6}, valid: []float64{0.6}, seconds: []float64{1}}
	}
	at := slices.IndexFunc(contenders, func(c contender) bool { return slices.Equal(c.hops, []int{3}) })
	require.EqualError(t, gaps(results), "MLP, mean of 3 hops: test accuracy 60.00 %, and GraphSAGE, 3 layers has 60.00 %: want 10 points between them")
	results[at].test[0], results[at+1].test[0] = 0.4, 0.49
	require.NoError(t, gaps(results))
	text := generatedMarkdown("at commit abc1234", options{generated: "citations", scale: 0.012}, results)
	require.Contains(t, text, "`gnnstore generate citations --scale 0.012`")
	require.Contains(t, text, "| MLP, mean of 3 hops | 1 | 40.00 ± 0.00 | 20.0 | 60.00 | 1.0 | `--model mlp --layers 2")
}
