package graph

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/run"
)

// auto is small with some tens of steps an epoch and no number of epochs.
func auto() run.Options {
	o := small()
	o.Batch, o.Epochs, o.LR = 16, run.Auto, 0.002
	return o
}

// TestAutoEpochs: at least 500 updates, then until 20 epochs are no better, or the most; the
// decision is on record.
func TestAutoEpochs(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	disk := vfs.NewMem()
	var record *run.Record
	r, err := runOn(context.Background(), disk, ds, auto(), run.Hooks{Start: func(rec *run.Record) { record = rec }})
	require.NoError(t, err)
	require.Equal(t, run.Done, r.Status)
	require.Equal(t, &run.AutoEpochs{Updates: 500, Steps: 30, Least: 17, Most: 167, Patience: 20, Reason: record.AutoEpochs.Reason}, record.AutoEpochs)
	n := len(r.Epochs)
	require.Equal(t, max(17, r.Best.Epoch+20), n)
	require.Contains(t, r.AutoEpochs.Ended, " without a better valid accuracy than that of epoch ")
	text, err := readFile(disk, "/run/run.json")
	require.NoError(t, err)
	again, err := run.DecodeRecord(text)
	require.NoError(t, err)
	require.Equal(t, record.AutoEpochs, again.AutoEpochs)
	d, _, err := run.OpenOn(disk, "/run")
	require.NoError(t, err)
	finished, ok, err := d.Finished()
	require.NoError(t, err)
	require.True(t, ok && finished.Covers(auto()))
	require.NoError(t, d.Close())

	o := auto()
	o.Epochs = n + 1
	require.False(t, finished.Covers(o), "it may be made longer")
	o.Epochs = n
	require.True(t, finished.Covers(o))
	finished.Options.Epochs = 3
	require.False(t, finished.Covers(auto()))

	o = auto()
	o.Patience = 2
	r = trained(t, ds, o)
	require.Equal(t, run.StoppedEarly, r.Status)
	require.Len(t, r.Epochs, r.Best.Epoch+2)

	spec := storetest.Communities(600, 4, 8, 16, 2)
	spec.Valid = nil
	said := func(text string) string { return "said: " + text }
	r, err = runOn(context.Background(), vfs.NewMem(), open(t, spec), auto(), run.Hooks{Text: said})
	require.NoError(t, err)
	require.Equal(t, run.Done, r.Status)
	require.Len(t, r.Epochs, 17)
	require.Equal(t, "said: epochs auto: 500 updates are 17 epochs of 30 steps; without validation nodes it ends there", r.AutoEpochs.Reason)
	require.Equal(t, "said: epochs auto: ended after 17 epochs, 510 updates: which is what 500 updates take; {epochs} N makes more", r.AutoEpochs.Ended)

	// No validation that has a value.
	spec = storetest.Communities(400, 2, 8, 16, 1)
	spec.Valid, spec.Test, spec.Train = spec.Train[:1], spec.Train[60:120], spec.Train[120:]
	o = auto()
	o.Metric = metric.ROCAUC
	r = trained(t, open(t, spec), o)
	require.Len(t, r.Epochs, r.AutoEpochs.Least)
	require.Contains(t, r.AutoEpochs.Ended, "valid roc-auc has no value to wait for")
}

// TestAutoEpochsResume cuts a run at the end of epochs, and within some: it ends where it would
// have.
func TestAutoEpochsResume(t *testing.T) {
	storetest.Long(t)
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	o := auto()
	o.CheckpointEvery = 7
	want := trained(t, ds, o)
	disk := vfs.NewMem()
	for cuts := 0; ; cuts++ {
		ctx, cancel := context.WithCancel(context.Background())
		got, err := runOn(ctx, disk, ds, o, run.Hooks{
			Epoch: func(e run.Epoch) {
				if e.Epoch%5 == 0 || e.Epoch == len(want.Epochs)-1 {
					cancel()
				}
			},
			Step: func(epoch, step, _ int, _ float64) {
				if epoch%7 == 0 && step == 9 {
					cancel()
				}
			},
		})
		cancel()
		require.NoError(t, err)
		if got.Status != run.Interrupted {
			require.Greater(t, cuts, 8)
			sameRun(t, want, got)
			require.Equal(t, want.AutoEpochs, got.AutoEpochs)
			return
		}
	}
}
