package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestExportSaysWhatTheRunMeasured: the exported logits of the best weights give the run's test
// accuracy, which was measured layer by layer, and the arrays have the shapes that roundtrip.py
// expects.
func TestExportSaysWhatTheRunMeasured(t *testing.T) {
	const nodes, classes = 400, 4
	path := storetest.Build(t, storetest.Communities(nodes, classes, 6, 8, 3))
	ds, err := store.Open(path)
	require.NoError(t, err)
	defer ds.Close()
	for _, kind := range model.Kinds {
		o := run.DefaultOptions()
		o.Kind, o.Hidden, o.Fanouts, o.Epochs, o.Batch, o.LR = kind, 16, []int{4, 4}, 3, 64, 0.01
		dir := t.TempDir()
		path, out := filepath.Join(dir, "run"), filepath.Join(dir, "out")
		r, err := train.Run(context.Background(), ds, func() (*run.Dir, error) { return run.Create(path) }, o, "test", run.Hooks{})
		require.NoError(t, err)
		require.NoError(t, export(context.Background(), path, "best", "", "auto", nodes, out))

		logits := floats(t, filepath.Join(out, "logits.npy"), nodes, classes)
		test, right := ds.Split(0).Test, 0
		for _, v := range test {
			row, best := logits[int(v)*classes:][:classes], 0
			for c := range row {
				if row[c] > row[best] {
					best = c
				}
			}
			if int32(best) == ds.Labels(0).Class(v) {
				right++
			}
		}
		require.InDelta(t, *r.Best.TestAcc, float64(right)/float64(len(test)), 1e-9, kind)

		require.Equal(t, []int64{nodes}, header(t, filepath.Join(out, "nodes.npy")).Shape)
		require.Equal(t, []int64{2, ds.Graph(0).Edges()}, header(t, filepath.Join(out, "edges.npy")).Shape)
		require.Equal(t, []int64{nodes, 8}, header(t, filepath.Join(out, "features.npy")).Shape)
		require.ErrorContains(t, export(context.Background(), path, "worst", "", "auto", nodes, out), "worst.safetensors")
	}
}

func header(t *testing.T, path string) npy.Header {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	h, err := npy.ReadHeader(f)
	require.NoError(t, err)
	return h
}

func floats(t *testing.T, path string, rows, cols int64) []float32 {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	r, err := npy.NewReader(f)
	require.NoError(t, err)
	require.Equal(t, []int64{rows, cols}, r.Header().Shape)
	values := make([]float32, rows*cols)
	n, err := r.ReadFloat32s(values)
	require.NoError(t, err)
	require.Len(t, values, n)
	return values
}
