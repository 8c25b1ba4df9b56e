//go:build cuda && linux

package graph

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels/cuda"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
	"github.com/gnnstore/gnnstore/kernels/cuda/drivertest"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/run"
)

// lockedRun trains on a device in Go, and returns its result and the notes about locked memory.
// fail may have calls fail.
func lockedRun(
	t *testing.T, ds *store.Dataset, o run.Options, device drivertest.Options, way cuda.GatherWay, fail func(d *drivertest.Device),
) (r *run.Result, d *drivertest.Device, notes []string) {
	h, d := cudaHooksBy(t, device, way)
	h.Note = func(text string) {
		if strings.HasPrefix(text, "locked memory") {
			notes = append(notes, text)
		}
	}
	if fail != nil {
		fail(d)
	}
	r, err := Run(t.Context(), ds, scratch(t), o, "test", h)
	require.NoError(t, err)
	return r, d, notes
}

// TestCUDALocked: a run locks the host's rows. The bits do not depend on how many are locked, nor
// on whether the device reads them itself. The run notes a refusal once.
func TestCUDALocked(t *testing.T) {
	ds := open(t, storetest.Communities(3000, 4, 8, 64, 2))
	all := small()
	all.Epochs, all.EpochSteps, all.Cache.DeviceBytes = 1, 8, run.NoDevice
	some := all
	some.Cache = cachetier.Options{DeviceBytes: run.NoDevice, HostBytes: 150_000, Policy: cachetier.LRU}
	someOnDevice := some
	someOnDevice.Cache.DeviceBytes = 100_000
	allOnBoth := all
	allOnBoth.Cache.DeviceBytes = 99_840 // whole rows
	for _, c := range []struct {
		name string
		o    run.Options
		read bool // the host has all rows
	}{{"all rows", all, true}, {"a cache", some, false}, {"a device region", someOnDevice, false}, {"all rows and a device region", allOnBoth, true}} {
		staged, d, notes := lockedRun(t, ds, c.o, drivertest.Options{}, cuda.Staged, nil)
		require.Empty(t, notes, c.name)
		l := staged.Locked
		require.NotNil(t, l, c.name)
		require.Greater(t, l.Rows.Of, int64(50_000), c.name)
		require.Equal(t, l.Rows.Of, l.Rows.Bytes, c.name)
		require.Equal(t, l.Slots.Of, l.Slots.Bytes, c.name)
		require.Equal(t, c.read, l.Gather != nil, c.name)
		locks := d.Counts()["MemHostRegister"]

		read, _, notes := lockedRun(t, ds, c.o, drivertest.Options{Mode: drivertest.Ahead}, cuda.Reads, nil)
		require.Empty(t, notes, c.name)
		require.Equal(t, staged.ParamsXXH3, read.ParamsXXH3, c.name)
		require.Equal(t, staged.Tiers, read.Tiers, c.name)
		require.Equal(t, staged.Memory, read.Memory, c.name)
		if c.read {
			require.Less(t, read.Bus.UploadBytes, staged.Bus.UploadBytes, c.name)
			require.Greater(t, read.Bus.Launches, staged.Bus.Launches, c.name)
		} else {
			require.InDelta(t, staged.Bus.Launches, read.Bus.Launches, 5, c.name) // the last step may be counted or not
		}
		require.LessOrEqual(t, read.Bus.Waits, staged.Bus.Waits, c.name)

		for _, limit := range []uint64{1, 200 << 10} {
			few, _, notes := lockedRun(t, ds, c.o, drivertest.Options{Locked: limit}, cuda.Reads, nil)
			require.Equal(t, staged.ParamsXXH3, few.ParamsXXH3, c.name)
			require.Len(t, notes, 1, c.name)
			require.Contains(t, notes[0], "ulimit -l", c.name)
			both := few.Locked.Rows.Add(few.Locked.Slots)
			require.LessOrEqual(t, uint64(both.Bytes), limit, c.name)
			require.Less(t, both.Bytes, both.Of, c.name)
			require.Contains(t, both.Why, "ulimit -l", c.name)
		}
		if c.o.Cache.DeviceBytes > 0 {
			continue // the rows of a region do not go through other calls
		}
		for n := range locks {
			refused, d, notes := lockedRun(t, ds, c.o, drivertest.Options{}, cuda.Reads, func(d *drivertest.Device) {
				d.Fail("MemHostRegister", n+1, driver.ErrOutOfMemory)
			})
			name := fmt.Sprintf("%s, lock %d of %d", c.name, n+1, locks)
			require.Equal(t, staged.ParamsXXH3, refused.ParamsXXH3, name)
			require.LessOrEqual(t, len(notes), 1, name)
			if both := refused.Locked.Rows.Add(refused.Locked.Slots); both.Bytes == both.Of {
				require.Less(t, d.Counts()["MemHostRegister"], n+1, name) // the device reads, and needs fewer slots
			}
		}
	}
}
