package train

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/optim"
)

func TestDecideEpochs(t *testing.T) {
	for _, c := range []struct {
		steps     int
		validated string
		change    func(o *Options)
		want      AutoEpochs
		text      string
	}{
		{10, "accuracy", func(*Options) {}, AutoEpochs{500, 10, 50, 500, 20, "epochs auto: 500 updates are 50 epochs of 10 steps; " +
			"then until 20 epochs without a better valid accuracy, 500 epochs at most", ""}, "50+"},
		{1, "roc-auc", func(o *Options) { o.EvalEvery = 3 }, AutoEpochs{500, 1, 500, 5000, 7, "epochs auto: 500 updates are 500 epochs " +
			"of 1 step; then until 21 epochs without a better valid roc-auc, 5000 epochs at most", ""}, "500+"},
		{1200, "accuracy", func(*Options) {}, AutoEpochs{500, 1200, 1, 50, 20, "epochs auto: 500 updates are 1 epoch of 1200 steps; " +
			"then until 20 epochs without a better valid accuracy, 50 epochs at most", ""}, "1+"},
		{10, "", func(*Options) {}, AutoEpochs{500, 10, 0, 50, 0, "epochs auto: 500 updates are 50 epochs of 10 steps; " +
			"without validation nodes it ends there", ""}, "50"},
		{91, "", func(o *Options) { o.Patience = 3 }, AutoEpochs{500, 91, 0, 10, 0, "epochs auto: 500 updates are 6 epochs of 91 steps, " +
			"and 10 epochs are the least; without validation nodes it ends there", ""}, "10"},
		{10, "accuracy", func(o *Options) { o.Patience = 0 }, AutoEpochs{500, 10, 0, 50, 0, "epochs auto: 500 updates are 50 epochs " +
			"of 10 steps; with --patience 0 it ends there", ""}, "50"},
		{10, "accuracy", func(o *Options) { o.Schedule.Kind, o.Patience = optim.Cosine, 4 }, AutoEpochs{500, 10, 0, 50, 4,
			"epochs auto: 500 updates are 50 epochs of 10 steps; --schedule cosine ends there", ""}, "50"},
		{10, "accuracy", func(o *Options) { o.Patience = 4 }, AutoEpochs{500, 10, 0, 500, 4, "epochs auto: until 4 evaluations without " +
			"a better valid accuracy, as --patience says, 500 epochs at most", ""}, "500"},
	} {
		o := DefaultOptions()
		c.change(&o)
		got := o.decideEpochs(c.steps, c.validated)
		require.Equal(t, &c.want, got)
		require.Equal(t, c.text, EpochsText(o, got))
	}
	o := DefaultOptions()
	o.Epochs = 7
	require.Nil(t, o.decideEpochs(10, "accuracy"))
	require.Equal(t, "7", EpochsText(o, nil))
}

// auto is small with some tens of steps an epoch and no number of epochs.
func auto() Options {
	o := small()
	o.Batch, o.Epochs, o.LR = 16, Auto, 0.002
	return o
}

// TestAutoEpochs: at least 500 updates, then until 20 epochs are no better, or the most; the decision is on record.
func TestAutoEpochs(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	disk := vfs.NewMem()
	var record *RunRecord
	r, err := runOn(context.Background(), disk, ds, auto(), Hooks{Start: func(rec *RunRecord) { record = rec }})
	require.NoError(t, err)
	require.Equal(t, Done, r.Status)
	require.Equal(t, &AutoEpochs{500, 30, 17, 167, 20, record.AutoEpochs.Reason, ""}, record.AutoEpochs)
	n := len(r.Epochs)
	require.Equal(t, max(17, r.Best.Epoch+20), n)
	require.Contains(t, r.AutoEpochs.Ended, " without a better valid accuracy than that of epoch ")
	text, err := readFile(disk, "/run/run.json")
	require.NoError(t, err)
	again, err := decodeRecord(text)
	require.NoError(t, err)
	require.Equal(t, record.AutoEpochs, again.AutoEpochs)
	d, _, err := openRun(disk, "/run")
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
	r = run(t, ds, o)
	require.Equal(t, StoppedEarly, r.Status)
	require.Len(t, r.Epochs, r.Best.Epoch+2)

	spec := storetest.Communities(600, 4, 8, 16, 2)
	spec.Valid = nil
	r = run(t, open(t, spec), auto())
	require.Equal(t, Done, r.Status)
	require.Len(t, r.Epochs, 17)
	require.Equal(t, "epochs auto: ended after 17 epochs, 510 updates: which is what 500 updates take; --epochs N makes more", r.AutoEpochs.Ended)

	// No validation that has a value.
	spec = storetest.Communities(400, 2, 8, 16, 1)
	spec.Valid, spec.Test, spec.Train = spec.Train[:1], spec.Train[60:120], spec.Train[120:]
	o = auto()
	o.Metric = metric.ROCAUC
	r = run(t, open(t, spec), o)
	require.Len(t, r.Epochs, r.AutoEpochs.Least)
	require.Contains(t, r.AutoEpochs.Ended, "valid roc-auc has no value to wait for")
}

// TestAutoEpochsResume cuts a run at the end of epochs, and within some: it ends where it would have.
func TestAutoEpochsResume(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	o := auto()
	o.CheckpointEvery = 7
	want := run(t, ds, o)
	disk := vfs.NewMem()
	for cuts := 0; ; cuts++ {
		ctx, cancel := context.WithCancel(context.Background())
		got, err := runOn(ctx, disk, ds, o, Hooks{
			Epoch: func(e Epoch) {
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
		if got.Status != Interrupted {
			require.Greater(t, cuts, 8)
			sameRun(t, want, got)
			require.Equal(t, want.AutoEpochs, got.AutoEpochs)
			return
		}
	}
}
