//go:build cuda && linux

package graph

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/kernels/cuda"
	"github.com/gnnstore/gnnstore/kernels/cuda/drivertest"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/run"
)

// cudaHooks computes with the CUDA backend, on a device in Go. The host gathers rows for a copy.
func cudaHooks(t *testing.T, o drivertest.Options) (run.Hooks, *drivertest.Device) {
	return cudaHooksBy(t, o, cuda.Staged)
}

// cudaHooksBy is cudaHooks with rows of the host that get to the device that way.
func cudaHooksBy(t *testing.T, o drivertest.Options, way cuda.GatherWay) (run.Hooks, *drivertest.Device) {
	if o.Runner == nil {
		o.Runner = drivertest.HostKernels(t)
	}
	d := drivertest.New(o)
	be, err := cuda.Open(cuda.Options{Calls: d.Calls(), Gather: way})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, be.Close()) })
	return run.Hooks{Backend: be}, d
}

// lossesIn trains for at most so many steps, and returns the loss of each.
func lossesIn(t *testing.T, steps int, ds *store.Dataset, o run.Options, h run.Hooks) []run.StepMetric {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	step := h.Step
	h.Step = func(epoch, n, of int, loss float64) {
		if step != nil {
			step(epoch, n, of, loss)
		}
		if n >= steps {
			cancel()
		}
	}
	disk := vfs.NewMem()
	_, err := runOn(ctx, disk, ds, o, h)
	require.NoError(t, err)
	text, err := readFile(disk, "/run/metrics.jsonl")
	require.NoError(t, err)
	return lossesOf(t, text)
}

// closeLosses checks that the losses of a device are within 1e-4 of the CPU's.
func closeLosses(t *testing.T, want, got []run.StepMetric, name string) {
	require.GreaterOrEqual(t, len(got), 3, name)
	for i := range min(len(want), len(got)) {
		require.InEpsilon(t, want[i].Loss, got[i].Loss, 1e-4, "%s, step %d", name, i+1)
	}
}

// TestCUDA: every task trains on the CUDA backend to the losses of the CPU, on devices that run
// what is queued late or out of turn.
func TestCUDA(t *testing.T) {
	runs := aheadRuns(t)
	for i, name := range slices.Sorted(maps.Keys(runs)) {
		c := runs[name]
		c.o.LogEvery, c.o.Batch = 1, 40
		want := lossesIn(t, 100, c.ds, c.o, run.Hooks{})
		way := []cuda.GatherWay{cuda.Staged, cuda.Reads}[i/2%2]
		h, _ := cudaHooksBy(t, drivertest.Options{Mode: []drivertest.Mode{drivertest.Lazy, drivertest.Ahead}[i%2]}, way)
		closeLosses(t, want, lossesIn(t, 100, c.ds, c.o, h), name)
	}
}

// TestCUDABuffer: rows on the device, slots that displace them and rows that stay change no loss,
// on devices that run what is queued late or out of turn.
func TestCUDABuffer(t *testing.T) {
	c := aheadRuns(t)["history"]
	c.o.LogEvery, c.o.Batch, c.o.Cache.HostBytes = 1, 40, 1<<20
	for i, mode := range []drivertest.Mode{drivertest.Lazy, drivertest.Ahead} {
		o := c.o
		h, _ := cudaHooks(t, drivertest.Options{Mode: mode})
		want := lossesIn(t, 100, c.ds, o, h)
		o.Cache.DeviceBytes = int64(200 * c.ds.Features(0).RowBytes())
		o.Cache.DevicePolicy = []policy.Kind{policy.LRU, policy.Belady}[i]
		h, d := cudaHooks(t, drivertest.Options{Mode: mode})
		got := lossesIn(t, 100, c.ds, o, h)
		require.GreaterOrEqual(t, len(got), 3)
		for i := range got {
			require.Equal(t, want[i].Loss, got[i].Loss, "step %d", i+1)
		}
		for _, name := range []string{"rows_of", "keep_rows"} {
			require.Positive(t, d.Launched()[name]+d.Launched()[name+"_wide"], name)
		}
	}
}

// TestCUDAInterpreter: the PTX that ships trains to the losses of the CPU.
func TestCUDAInterpreter(t *testing.T) {
	runs := aheadRuns(t)
	for _, name := range []string{"sage", "gcn", "gat", "hgt", "links", "history"} {
		c := runs[name]
		c.o.LogEvery, c.o.Batch = 1, 16
		if name == "sage" {
			c.o.Cache.DeviceBytes = run.NoDevice // the device reads rows of the host
		}
		want := lossesIn(t, 3, c.ds, c.o, run.Hooks{})
		h, _ := cudaHooksBy(t, drivertest.Options{Runner: drivertest.NewInterpreter(t)}, cuda.Reads)
		closeLosses(t, want, lossesIn(t, 3, c.ds, c.o, h), name)
	}
}

// TestCUDACounts: the host waits once for a step of GraphSAGE with three layers. The step copies up
// three pieces at most, and launches at most 31 kernels.
func TestCUDACounts(t *testing.T) {
	ds, o := open(t, storetest.Communities(6000, 4, 8, 64, 2)), small()
	o.Layers, o.Fanouts, o.Hidden, o.Batch, o.Epochs = 3, []int{5, 4, 3}, 64, 100, 1
	h, d := cudaHooks(t, drivertest.Options{Mode: drivertest.Eager})
	var all []map[string]int
	h.Step = func(int, int, int, float64) { all = append(all, d.Counts()) }
	lossesIn(t, 10, ds, o, h)
	first, last := all[2], all[len(all)-2] // beside the last, no next step is launched
	each := func(call string) float64 { return float64(last[call]-first[call]) / float64(len(all)-4) }
	require.LessOrEqual(t, each("EventSynchronize"), 1.0)
	require.LessOrEqual(t, each("MemcpyHtoDAsync"), 3.0)
	// An upload that waits for the step under way records one event more.
	require.LessOrEqual(t, each("EventRecord"), 8.0)
	require.LessOrEqual(t, each("LaunchKernel")+each("MemsetD8Async"), 31.0, d.Launched())
	require.Less(t, each("MemAlloc"), 0.5) // a larger batch than all before
	for _, call := range []string{"MemFree", "MemHostRegister", "ModuleGetFunction", "CtxSynchronize"} {
		require.Zero(t, each(call), call)
	}
}

// TestCUDAMemory: rows take what a device has beside a step, and the weights are the same wherever
// rows lie. What does not fit is refused, with what would.
func TestCUDAMemory(t *testing.T) {
	ds, o := open(t, storetest.Communities(6000, 4, 8, 64, 2)), small()
	o.Epochs = 1
	all := int64(6000 * 2 * 64)
	params := map[string]bool{}
	for name, c := range map[string]struct {
		memory uint64
		given  int64
		least  int64 // rows that lie on the device, in bytes
		most   int64
	}{
		"room for all":  {1 << 30, 0, all, all},
		"room for some": {2 << 20, 0, 1, all - 1},
		"none":          {1 << 30, run.NoDevice, 0, 0},
		"given":         {1 << 30, all / 2, all/2 - 128, all / 2},
	} {
		o.Cache.DeviceBytes = c.given
		h, _ := cudaHooks(t, drivertest.Options{Memory: c.memory})
		got, err := Run(t.Context(), ds, scratch(t), o, "test", h)
		require.NoError(t, err, name)
		require.GreaterOrEqual(t, got.Tiers.Device.CapacityBytes, c.least, name)
		require.LessOrEqual(t, got.Tiers.Device.CapacityBytes, c.most, name)
		params[got.ParamsXXH3] = true
	}
	require.Len(t, params, 1)

	o.Cache.DeviceBytes = all
	h, _ := cudaHooks(t, drivertest.Options{Memory: 2 << 20})
	_, err := Run(t.Context(), ds, scratch(t), o, "test", h)
	require.ErrorContains(t, err, "{device_bytes} 750 KiB is too much: the device has ")
	o.Cache.DeviceBytes, o.Hidden = 0, 64
	h, _ = cudaHooks(t, drivertest.Options{Memory: 3 << 19})
	_, err = Run(t.Context(), ds, scratch(t), o, "test", h)
	require.ErrorContains(t, err, "take a smaller {batch}, {fanout} or {hidden}")
}
