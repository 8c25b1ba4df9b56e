package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/npz"
	"github.com/gnnstore/gnnstore/ingest/sampledata"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/sample"
)

// computers returns the bundled graph, Amazon Computers, undirected, with its nodes by degree.
func computers(t *testing.T) *data.Data {
	raw := sampledata.AmazonComputers()
	src, err := npz.OpenReader("computers.npz", bytes.NewReader(raw), int64(len(raw)))
	require.NoError(t, err)
	defer src.Close()
	path := filepath.Join(t.TempDir(), "computers.gnn")
	_, err = build.Build(t.Context(), src, path, build.Options{Undirected: true, Order: "degree", Split: "random:0.6/0.2/0.2"})
	require.NoError(t, err)
	ds, err := store.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ds.Close()) })
	d, err := data.OpenToDraw(ds, data.Options{})
	require.NoError(t, err)
	sample.Shuffle(d.Train, 1, 1)
	return d
}

// TestCoopCounts holds the counts of workers that draw together to their record, on a real graph.
// The counts follow from the seeds, so they are exact. As owners do not compute a node twice, a
// worker's nodes and rows are a share of the batch of all, and cold rows fall with each worker.
func TestCoopCounts(t *testing.T) {
	d := computers(t)
	got, cold := "", map[sample.Kind][]float64{}
	for _, kind := range coopSamplers {
		for _, workers := range []int{1, 4, 8} {
			config := sample.Config{Kind: kind, Fanouts: []int{5, 5, 5}}
			n, err := countTogether(t.Context(), d, config, dealtByRule(d.Types[0].Nodes, workers), 64, 8)
			require.NoError(t, err)
			cold[kind] = append(cold[kind], n.cold)
			got += fmt.Sprintf("%s %d:", kind, workers)
			for i := range coopColumns {
				require.LessOrEqual(t, n.mean[i], n.largest[i])
				got += fmt.Sprintf(" %.3f", n.largest[i])
			}
			got += fmt.Sprintf(" cold %.3f\n", n.cold)
		}
	}
	require.Equal(t, recordedCoop, got)
	for kind, of := range cold {
		require.Less(t, of[1], of[0], kind)
		require.Less(t, of[2], of[1], kind)
	}
}

// recordedCoop has thousands a step of the worker with most, by coopColumns, and cold rows of all.
const recordedCoop = `ns 1: 4.794 0.000 4.794 7.633 1.541 0.000 1.541 1.694 0.346 0.000 1.951 168.678 cold 4.210
ns 4: 1.223 1.210 1.891 2.017 0.406 0.334 0.525 0.478 0.097 0.067 0.515 46.996 cold 2.999
ns 8: 0.622 0.812 1.100 1.059 0.213 0.219 0.296 0.259 0.052 0.047 0.273 26.213 cold 1.716
labor0 1: 2.544 0.000 2.544 5.287 1.071 0.000 1.071 1.588 0.325 0.000 1.460 113.687 cold 2.253
labor0 4: 0.662 0.656 1.097 1.405 0.284 0.264 0.423 0.443 0.091 0.064 0.390 32.420 cold 1.743
labor0 8: 0.343 0.467 0.662 0.735 0.149 0.185 0.256 0.240 0.049 0.046 0.207 18.656 cold 1.086
`
