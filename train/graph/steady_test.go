package graph

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestSteadyState: once a run is warm, a step allocates nothing on the Go heap that grows with its
// batch. Batches differ in size from step to step, so what grows to the largest one does so in the
// first epoch.
func TestSteadyState(t *testing.T) {
	storetest.Long(t)
	if testing.Short() {
		t.Skip("-short: hundreds of steps")
	}
	ds := open(t, storetest.Communities(10000, 8, 8, 8, 1))
	for _, c := range []struct {
		steps int // by then every batch of the groups in flight has been as large as the largest
		history.Settings
	}{{500, history.Settings{}}, {250, history.Settings{PGrad: 0.8, TStale: 16, HistoryLag: 8, HistoryBytes: 1 << 20}}} {
		small, large := bytesPerStep(t, ds, c.Settings, c.steps, 250), bytesPerStep(t, ds, c.Settings, c.steps, 500)
		t.Logf("%+v: bytes on the Go heap per step: %.0f at batch 250, %.0f at batch 500", c.Settings, small, large)
		require.Less(t, large-small, 4096.0)
	}
}

// bytesPerStep is the mean over some steps that follow as many others.
func bytesPerStep(t *testing.T, ds *store.Dataset, settings history.Settings, steps, batch int) float64 {
	o := run.DefaultOptions()
	o.History, o.Settings = settings.Reuses(), settings
	o.Hidden, o.Fanouts, o.Layers, o.Batch, o.EvalEvery, o.LogEvery = 8, []int{5, 3}, 2, batch, 1000, 0
	o.EpochSteps = 16 // of any batch: the end of an epoch takes memory of its own
	o.Epochs = 1 + 2*steps/o.EpochSteps
	o.Cache = cachetier.Options{DeviceBytes: 30 << 10, HostBytes: 100 << 10}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var before, after runtime.MemStats
	step := 0
	_, err := Run(ctx, ds, scratch(t), o, "test", run.Hooks{Step: func(int, int, int, float64) {
		switch step++; step {
		case steps:
			runtime.ReadMemStats(&before)
		case 2 * steps:
			runtime.ReadMemStats(&after)
			cancel()
		}
	}})
	require.NoError(t, err)
	return float64(after.TotalAlloc-before.TotalAlloc) / float64(steps)
}

func mustData(t *testing.T, ds *store.Dataset) *data.Data {
	d, err := data.Open(ds, data.Options{})
	require.NoError(t, err)
	return d
}
