package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	tasks "github.com/gnnstore/gnnstore/train/task"
)

// remoteHooks computes as on a GPU.
func remoteHooks() (run.Hooks, *kerneltest.RemoteBackend) {
	be := kerneltest.Remote(kernels.NewCPU(kernels.CPUOptions{}))
	be.Pause = func() { time.Sleep(time.Millisecond) } // the next batch is there after it
	return run.Hooks{Backend: be}, be
}

// aheadRuns are runs of all tasks and losses, with how often a step waits and copies up. Each table
// of learnt rows is read once more.
func aheadRuns(t *testing.T) map[string]struct {
	ds             *store.Dataset
	o              run.Options
	waits, uploads int64
} {
	type aRun = struct {
		ds             *store.Dataset
		o              run.Options
		waits, uploads int64
	}
	nodes, links := open(t, storetest.Communities(600, 4, 8, 16, 2)), open(t, linked(400))
	numbers := storetest.Communities(500, 4, 8, 16, 2)
	numbers.Number = func(v int) float32 { return float32(v%4) + float32(v%7)/10 }
	several := storetest.Communities(500, 4, 8, 16, 2)
	several.Bits = func(v int) []uint8 { return []uint8{uint8(v % 2), uint8(v / 2 % 2), 1, 0} }
	library := openTyped(t, storetest.Library(400, 3, 2))
	all := map[string]aRun{}
	add := func(name string, ds *store.Dataset, o run.Options, waits, uploads int64, change func(o *run.Options)) {
		o.Epochs, o.Batch = 1, 20
		change(&o)
		all[name] = aRun{ds, o, waits, uploads}
	}
	add("sage", nodes, small(), 1, 3, func(o *run.Options) {})
	add("clipped", nodes, small(), 1, 3, func(o *run.Options) { o.Optim.ClipNorm = 0.1 })
	add("gcn", nodes, small(), 1, 4, func(o *run.Options) { o.Kind = model.GCN })
	add("gat", nodes, small(), 1, 3, func(o *run.Options) { o.Kind = model.GAT })
	add("macro-f1", nodes, small(), 1, 3, func(o *run.Options) { o.Metric = metric.MacroF1 })
	add("class weights", nodes, small(), 1, 4, func(o *run.Options) { o.ClassWeights = tasks.BalancedWeights })
	add("several", open(t, several), small(), 1, 3, func(o *run.Options) {})
	add("numbers", open(t, numbers), small(), 1, 3, func(o *run.Options) {})
	add("history", nodes, reusing(), 1, 4, func(o *run.Options) {})
	add("history of lag 1", nodes, reusing(), 1, 4, func(o *run.Options) {
		o.Settings = history.Settings{PGrad: 0.8, TStale: 6, HistoryStart: 4, HistoryLag: 1, HistoryBytes: 1 << 20}
	})
	add("links", links, linkOptions(), 1, 4, func(o *run.Options) {})
	add("links, ce", links, linkOptions(), 1, 3, func(o *run.Options) { o.Loss, o.Negatives = "ce", "uniform:4" })
	add("shared", links, linkOptions(), 1, 4, func(o *run.Options) { o.Negatives, o.Corrupt = "shared:8", "both" })
	add("shared, ce", links, linkOptions(), 1, 3, func(o *run.Options) { o.Negatives, o.Loss = "shared:8", "ce" })
	add("typed", library, learning(), 3, 5, func(o *run.Options) {})
	add("hgt", library, typed(model.HGT), 2, 5, func(o *run.Options) {})
	return all
}

// TestAhead: a backend that goes on after its calls have returned trains to the same bits, and is
// waited for and copied to as rarely as it may.
func TestAhead(t *testing.T) {
	storetest.Long(t)
	ahead := int64(0)
	for name, c := range aheadRuns(t) {
		want := trained(t, c.ds, c.o)
		h, be := remoteHooks()
		var waits, uploads []int64
		h.Step = func(int, int, int, float64) {
			waits, uploads = append(waits, be.Waits.Load()), append(uploads, be.Uploads.Load())
		}
		got, err := Run(t.Context(), c.ds, scratch(t), c.o, "test", h)
		require.NoError(t, err, name)
		sameWork(t, want, got, name)
		require.Equal(t, want.History, got.History, name)
		for i, e := range want.Epochs {
			require.Equal(t, e.TrainAcc, got.Epochs[i].TrainAcc, name)
		}
		require.Greater(t, len(waits), 9, name)
		each := func(counts []int64) int64 { // rows are copied up ahead of their steps
			return int64(math.Round(float64(counts[len(counts)-1]-counts[0]) / float64(len(counts)-1)))
		}
		require.Equal(t, c.waits, each(waits), "%s: waits", name)
		require.Equal(t, c.uploads, each(uploads), "%s: copies up", name)
		ahead += be.Ahead.Load()
	}
	require.Positive(t, ahead)
}

// TestAheadResumes: a run whose steps are launched ahead is cut short anywhere, and goes on, there
// or on another backend, to the same end.
func TestAheadResumes(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	for name, o := range map[string]run.Options{"plain": long(), "history": reusing()} {
		o.Epochs, o.CheckpointEvery, o.LogEvery = 3, 4, 1
		want, err := runOn(t.Context(), vfs.NewMem(), ds, o, run.Hooks{})
		require.NoError(t, err)
		disk := vfs.NewMem()
		for cuts := 0; ; cuts++ {
			require.Less(t, cuts, 40)
			h := run.Hooks{}
			if cuts%4 != 3 {
				h, _ = remoteHooks()
			}
			ctx, cancel := context.WithCancel(t.Context())
			steps := 0
			h.Step = func(int, int, int, float64) {
				if steps++; steps == 1+cuts%3 {
					cancel()
				}
			}
			got, err := runOn(ctx, disk, ds, o, h)
			cancel()
			require.NoError(t, err, name)
			if got.Status == run.Interrupted {
				continue
			}
			require.Greater(t, cuts, 6, name)
			require.Equal(t, want.ParamsXXH3, got.ParamsXXH3, name)
			require.Equal(t, want.Losses, got.Losses, name)
			require.Equal(t, want.Best, got.Best, name)
			require.Equal(t, want.InputRows, got.InputRows, name)
			require.Equal(t, want.History, got.History, name)
			break
		}
	}
}

// lossesOf returns the losses that metrics.jsonl has, a line a step.
func lossesOf(t *testing.T, text []byte) (losses []run.StepMetric) {
	for line := range bytes.Lines(text) {
		var l run.Line
		require.NoError(t, json.Unmarshal(line, &l))
		if l.Step != nil {
			l.Step.Seconds = 0
			losses = append(losses, *l.Step)
		}
	}
	return losses
}

// TestAheadNaN: what is found a step late is said as if it had been found at once, and the last
// good state is the same.
func TestAheadNaN(t *testing.T) {
	spec := storetest.Communities(600, 4, 8, 16, 2)
	row := spec.Row
	spec.Elem = store.F32
	spec.Row = func(v int) []float32 {
		r := row(v)
		if v == 77 {
			r[5] = float32(math.NaN())
		}
		return r
	}
	bad := open(t, spec)
	fast := long()
	fast.LR, fast.Norm, fast.Layers, fast.Fanouts = 9e5, "none", 8, []int{3, 2, 2, 2, 2, 2, 2, 2}
	clipped := fast
	clipped.Optim.ClipNorm = 1e30
	one := long()
	one.Batch, one.Fanouts = 4, []int{1, 1}
	kept := reusing()
	kept.Batch, kept.Fanouts, kept.LogEvery = 4, []int{1, 1}, 1
	for name, c := range map[string]struct {
		ds *store.Dataset
		o  run.Options
	}{
		"features": {bad, one}, "history": {bad, kept}, "rate": {open(t, storetest.Communities(600, 4, 8, 16, 2)), fast},
		"clipped": {open(t, storetest.Communities(600, 4, 8, 16, 2)), clipped},
	} {
		var texts []string
		var steps [][]run.StepMetric
		for _, remote := range []bool{false, true} {
			h := run.Hooks{}
			if remote {
				h, _ = remoteHooks()
			}
			disk := vfs.NewMem()
			_, err := runOn(t.Context(), disk, c.ds, c.o, h)
			require.Error(t, err, name)
			require.False(t, errors.Is(err, context.Canceled), name)
			metrics, failed := readFile(disk, "/run/metrics.jsonl")
			require.NoError(t, failed)
			texts, steps = append(texts, err.Error()), append(steps, lossesOf(t, metrics))
		}
		require.Equal(t, texts[0], texts[1], name)
		require.Equal(t, steps[0], steps[1], name)
	}
}
