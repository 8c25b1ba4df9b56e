package stream

import (
	"context"
	"math"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestSteadyState: once a run is warm, a step allocates nothing on the Go heap that grows with its
// batch.
func TestSteadyState(t *testing.T) {
	storetest.Long(t)
	if testing.Short() {
		t.Skip("-short: a thousand steps")
	}
	ds := drifting(t, 12000)
	for _, c := range []struct {
		kind    model.Kind
		lag     int
		publish string
	}{{model.TGN, 1, run.Early}, {model.JODIE, 3, run.Late}, {model.APAN, 3, run.Early}} {
		small, large := bytesPerStep(t, ds, c.kind, c.lag, c.publish, 50), bytesPerStep(t, ds, c.kind, c.lag, c.publish, 150)
		t.Logf("%v: bytes on the Go heap per step: %.0f at batch 50, %.0f at batch 150", c, small, large)
		require.Less(t, large-small, 4096.0, c)
	}
}

// bytesPerStep is the mean of an epoch that follows some others: of five the one with the least,
// since collections and waits take memory, too, and more of it on a loaded machine.
func bytesPerStep(t *testing.T, ds *store.Dataset, kind model.Kind, lag int, publish string, batch int) float64 {
	const steps = 54 // of an epoch: its end takes memory of its own
	o := options(kind)
	o.Hidden, o.Staleness, o.Publish, o.Batch, o.EpochSteps, o.Epochs, o.Eval, o.LogEvery = 8, lag, publish, batch, steps, 1000, run.NoEvaluation, 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var heap runtime.MemStats
	step, before, least := 0, uint64(0), uint64(math.MaxUint64)
	_, err := runOn(ctx, vfs.NewMem(), "/run", ds, o, run.Hooks{Step: func(int, int, int, float64) {
		if step++; step%steps > 0 || step < 3*steps {
			return
		}
		runtime.ReadMemStats(&heap)
		if step > 3*steps {
			least = min(least, heap.TotalAlloc-before)
		}
		if before = heap.TotalAlloc; step == 8*steps {
			cancel()
		}
	}})
	require.NoError(t, err)
	return float64(least) / steps
}
