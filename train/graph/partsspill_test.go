package graph

import (
	"errors"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/run"
)

// spills gives w a spill and a cache: worker 0 gets one of cache bytes, and each next worker a
// quarter of that more.
func (w *worker) spills(ds *store.Dataset, cache int64) {
	w.tight(ds)
	workers := int64(w.hooks.Group.Size())
	w.o.Window, w.o.SpillBytes = 0, 8<<20*workers
	w.o.Cache.HostBytes = workers * cache * int64(4+w.rank) / 4
}

// TestPartsBySpill: by horizons, workers by parts or together get the same bits as by windows, on
// the whole dataset and on parts, in each task.
func TestPartsBySpill(t *testing.T) {
	storetest.Long(t)
	many := func(o run.Options, batch int) run.Options {
		o = byParts(o)
		o.Epochs, o.EpochSteps, o.Batch, o.Fanouts, o.Eval = 1, 80, batch, []int{3, 2}, "sampled"
		return o
	}
	links := many(linkOptions(), 6)
	links.Negatives, links.EvalEdges = "filtered:2", 50
	edges := many(edgeOptions(), 12)
	edges.EvalEdges = 50
	gcn := many(small(), 8)
	gcn.Kind, gcn.Fanouts, gcn.EpochSteps = "gcn", []int{5, 3}, 0
	trust := storetest.Trust(900, true, false)
	ends := &trust.Types[0]
	row := ends.Row
	ends.Dim, ends.Row = 16, func(v int) []float32 { return append(slices.Clip(row(v)), make([]float32, 12)...) }
	for name, c := range map[string]struct {
		ds    *store.Dataset
		o     run.Options
		cache int64
	}{
		"nodes": {open(t, storetest.Communities(2000, 4, 8, 24, 2)), gcn, 14 << 10},
		"links": {open(t, linked(1500)), links, 9 << 10},
		"edges": {openTyped(t, trust), edges, 7 << 10},

		"nodes, together": {open(t, storetest.Communities(2000, 4, 8, 24, 2)), cooperative(gcn), 14 << 10},
		"links, together": {open(t, linked(1500)), cooperative(links), 9 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			want := sameBy(t, c.ds, 3, c.o)
			whole := func(int) (*store.Dataset, error) { return store.Open(c.ds.Path()) }
			opens := []func(int) (*store.Dataset, error){whole, inParts(t, c.ds, 3)}
			switch name {
			case "nodes", "links, together":
				opens = opens[:1]
			case "links", "nodes, together":
				opens = opens[1:]
			}
			for _, open := range opens {
				all, err := byWorkersOf(t, open, 3, c.o, scratch(t), func(w *worker) { w.spills(c.ds, c.cache) })
				require.Equal(t, want.ParamsXXH3, same(t, all, err).ParamsXXH3)
				require.Positive(t, all[0].Join.Spilled)
				for _, r := range all { // batches wait in the spill even if all rows are in memory
					require.Positive(t, r.Spill.PeakBytes)
					require.Zero(t, r.Spill.UsedBytes)
				}
				// Some step has no room in such a cache, and is drawn again for windows.
				all, err = byWorkersOf(t, open, 3, c.o, scratch(t), func(w *worker) { w.spills(c.ds, c.cache*3/4) })
				require.Equal(t, want.ParamsXXH3, same(t, all, err).ParamsXXH3)
			}
		})
	}
}

// TestPartsWithoutASpill: if one worker has no spill, all workers go by windows, and say so.
func TestPartsWithoutASpill(t *testing.T) {
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	o := byParts(small())
	o.Epochs, o.Batch = 1, 8
	want := sameBy(t, ds, 3, o)
	notes := make([][]string, 3)
	all, err := byWorkers(t, ds, 3, o, scratch(t), func(w *worker) {
		if w.spills(ds, 12<<10); w.rank == 1 {
			w.o.Tmp = filepath.Join(t.TempDir(), "none")
		}
		w.hooks.Note = func(text string) { notes[w.rank] = append(notes[w.rank], text) }
	})
	require.Equal(t, want.ParamsXXH3, same(t, all, err).ParamsXXH3)
	for rank, r := range all {
		require.Nil(t, r.Join)
		require.Nil(t, r.Spill)
		if rank != 1 {
			require.Contains(t, notes[rank], "worker 1 has no spill: rows are read by windows")
		}
	}
	require.Contains(t, notes[1][len(notes[1])-1], "no such file or directory")
}

// TestPartsLoseASpill: if a worker's spill loses a batch, all workers end, and the error has a
// remedy. Resumed without a spill, the run ends with the same bits.
func TestPartsLoseASpill(t *testing.T) {
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	o := byParts(small())
	o.Epochs, o.Batch = 1, 8
	o.Epochs = 2
	want := sameBy(t, ds, 3, o)
	path := filepath.Join(t.TempDir(), "run")
	var lost atomic.Int64
	_, err := byWorkers(t, ds, 3, o, func() (*run.Dir, error) { return run.Create(path) }, func(w *worker) {
		if w.spills(ds, 12<<10); w.rank != 1 {
			return
		}
		var at atomic.Int64
		w.hooks.Step = func(epoch, _, _ int, _ float64) { at.Store(int64(epoch)) }
		w.spillFaults = func(bool, int64, int) error {
			if at.Load() < 2 {
				return nil
			}
			lost.Add(1)
			return errors.New("the disk is gone")
		}
	})
	require.ErrorContains(t, err, "worker 1 of 3")
	require.ErrorContains(t, err, "the disk is gone")
	require.ErrorContains(t, err, "{spill_bytes} 0 goes by windows, {tmp} names another directory")
	require.Positive(t, lost.Load())
	resumed, err := byWorkers(t, ds, 3, o, again(path), nil)
	require.Equal(t, want.ParamsXXH3, same(t, resumed, err).ParamsXXH3)
}
