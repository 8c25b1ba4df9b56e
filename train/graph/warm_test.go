package graph

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestWarmCache: a run whose windows leave room in the cache begins with the hottest rows, and goes
// on with those that it had. A list of them that is missing or damaged is a note, and no weight
// depends on any of it.
func TestWarmCache(t *testing.T) {
	ds := open(t, storetest.Communities(4000, 4, 8, 16, 2))
	o := small()
	o.Epochs, o.Batch, o.Fanouts, o.Layers, o.Window = 2, 20, []int{2}, 1, 1
	rowBytes := int64(ds.Features(0).RowBytes())
	o.Cache.HostBytes = 2000 * rowBytes
	ctx := context.Background()
	cold := o
	cold.Cache.Policy = cachetier.None
	want, err := runOn(ctx, vfs.NewMem(), ds, cold, run.Hooks{})
	require.NoError(t, err)
	require.Zero(t, want.Stats.Warmup.Rows)

	for what, change := range map[string]func(fs vfs.FS){
		"as it was": func(vfs.FS) {},
		"missing":   func(fs vfs.FS) { require.NoError(t, fs.Remove("/run/"+run.ResidentFile)) },
		"damaged":   func(fs vfs.FS) { edit(t, fs, run.ResidentFile, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }) },
	} {
		fs := vfs.NewMem()
		until, cancel := context.WithCancel(ctx)
		first, err := runOn(until, fs, ds, o, run.Hooks{Epoch: func(run.Epoch) { cancel() }})
		require.NoError(t, err)
		require.Equal(t, run.Interrupted, first.Status)
		require.Positive(t, first.Stats.Warmup.Rows)
		change(fs)
		var notes []string
		got, err := runOn(ctx, fs, ds, o, run.Hooks{Note: func(s string) { notes = append(notes, s) }})
		require.NoError(t, err)
		require.Equal(t, run.Done, got.Status)
		require.Equal(t, want.ParamsXXH3, got.ParamsXXH3, what)
		require.Greater(t, got.Stats.Warmup.Rows, first.Stats.Warmup.Rows, what)
		about := 0
		for _, n := range notes {
			if strings.Contains(n, "host cache") {
				about++
			}
		}
		if what == "as it was" {
			require.Zero(t, about, notes)
		} else {
			require.Equal(t, 1, about, "%s: %q", what, notes)
		}
	}
}

// TestInterruptedWhileWarming: a run may be stopped before its first step, and the rows that it had
// are not forgotten then.
func TestInterruptedWhileWarming(t *testing.T) {
	ds := open(t, storetest.Communities(4000, 4, 8, 16, 2))
	o := small()
	o.Epochs, o.Batch, o.Fanouts, o.Layers, o.Window = 2, 20, []int{2}, 1, 1
	o.Cache.HostBytes = 2000 * int64(ds.Features(0).RowBytes())
	want := trained(t, ds, o)
	fs := vfs.NewMem()
	stopped := func(hooks func(cancel func()) run.Hooks) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, err := runOn(ctx, fs, ds, o, hooks(cancel))
		require.NoError(t, err)
		require.Equal(t, run.Interrupted, r.Status)
	}
	atOnce := func(cancel func()) run.Hooks { return run.Hooks{Start: func(*run.Record) { cancel() }} }
	stopped(atOnce)
	stopped(func(cancel func()) run.Hooks { return run.Hooks{Epoch: func(run.Epoch) { cancel() }} })
	kept, err := readFile(fs, "/run/"+run.ResidentFile)
	require.NoError(t, err)
	stopped(atOnce)
	still, err := readFile(fs, "/run/"+run.ResidentFile)
	require.NoError(t, err)
	require.Equal(t, kept, still)
	got, err := runOn(t.Context(), fs, ds, o, run.Hooks{})
	require.NoError(t, err)
	require.Equal(t, run.Done, got.Status)
	require.Equal(t, want.ParamsXXH3, got.ParamsXXH3)
}

// TestCostsOnRecord: a run goes on with the recorded costs of reading.
func TestCostsOnRecord(t *testing.T) {
	ds := open(t, storetest.Communities(300, 3, 6, 8, 3))
	o := small()
	fs := half(t, ds, o)
	d, record, err := run.OpenOn(fs, "/run")
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.Positive(t, record.Costs.BytesPerSecond)
	record.Costs = disk.Costs{SecondsPerRead: 1e-3, BytesPerSecond: 5e8}
	b, err := record.Encode()
	require.NoError(t, err)
	edit(t, fs, run.RecordFile, func([]byte) []byte { return b })

	d, record, err = run.OpenOn(fs, "/run")
	require.NoError(t, err)
	require.NoError(t, d.Close())
	made, err := newTrainer(t.Context(), ds, record.Options, run.Hooks{}, internal{})
	require.NoError(t, err)
	require.Equal(t, record.Costs, made.tiers.Topology[0].Costs())
	require.Equal(t, record.Costs, made.tiers.Disk.Costs)
	made.Close()

	edit(t, fs, run.RecordFile, func(b []byte) []byte {
		return bytes.Replace(b, []byte(`"seconds_per_read": 0.001`), []byte(`"seconds_per_read": -1`), 1)
	})
	_, _, err = run.OpenOn(fs, "/run")
	require.ErrorContains(t, err, "run.json is damaged: costs of -1 seconds a read")
}
