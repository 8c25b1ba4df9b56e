package run

import (
	"testing"

	"github.com/stretchr/testify/require"

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
			"then until 20 epochs without a better valid accuracy, 500 epochs at most", "", 0}, "50+"},
		{1, "roc-auc", func(o *Options) { o.EvalEvery = 3 }, AutoEpochs{500, 1, 500, 5000, 7, "epochs auto: 500 updates are 500 epochs " +
			"of 1 step; then until 21 epochs without a better valid roc-auc, 5000 epochs at most", "", 0}, "500+"},
		{1200, "accuracy", func(*Options) {}, AutoEpochs{500, 1200, 1, 50, 20, "epochs auto: 500 updates are 1 epoch of 1200 steps; " +
			"then until 20 epochs without a better valid accuracy, 50 epochs at most", "", 0}, "1+"},
		{10, "", func(*Options) {}, AutoEpochs{500, 10, 0, 50, 0, "epochs auto: 500 updates are 50 epochs of 10 steps; " +
			"without validation nodes it ends there", "", 0}, "50"},
		{91, "", func(o *Options) { o.Patience = 3 }, AutoEpochs{500, 91, 0, 10, 0, "epochs auto: 500 updates are 6 epochs of 91 steps, " +
			"and 10 epochs are the least; without validation nodes it ends there", "", 0}, "10"},
		{10, "accuracy", func(o *Options) { o.Patience = 0 }, AutoEpochs{500, 10, 0, 50, 0, "epochs auto: 500 updates are 50 epochs " +
			"of 10 steps; with {patience} 0 it ends there", "", 0}, "50"},
		{10, "accuracy", func(o *Options) { o.Schedule.Kind, o.Patience = optim.Cosine, 4 }, AutoEpochs{500, 10, 0, 50, 4,
			"epochs auto: 500 updates are 50 epochs of 10 steps; {schedule} cosine ends there", "", 0}, "50"},
		{10, "accuracy", func(o *Options) { o.Patience = 4 }, AutoEpochs{500, 10, 0, 500, 4, "epochs auto: until 4 evaluations without " +
			"a better valid accuracy, as {patience} says, 500 epochs at most", "", 0}, "500"},
	} {
		o := DefaultOptions()
		c.change(&o)
		got := o.DecideEpochs(c.steps, c.steps, c.validated)
		require.Equal(t, &c.want, got)
		require.Equal(t, c.text, EpochsText(o, got))
	}
	o := DefaultOptions()
	o.Epochs = 7
	require.Nil(t, o.DecideEpochs(10, 10, "accuracy"))
	require.Equal(t, "7", EpochsText(o, nil))
}

// TestLongEpochsAreValidatedByUpdates: an epoch of more than autoLong steps is cut, unless the user
// counts in epochs.
func TestLongEpochsAreValidatedByUpdates(t *testing.T) {
	left := func(o *Options) { o.Left = map[string]bool{"epoch_steps": true, "eval_every": true} }
	for _, c := range []struct {
		steps, want int
		validated   bool
		change      func(o *Options)
	}{
		{91, 91, true, left}, {1208, 1208, true, left}, {2000, 2000, true, left}, // ogbn-arxiv, papers100M
		{2136, 500, true, left}, {10_000, 500, true, left}, {100_001, 5001, true, left},
		{2136, 2136, false, left},
		{2136, 2136, true, func(*Options) {}},
		{2136, 2136, true, func(o *Options) { left(o); o.Epochs = 3 }},
		{2136, 2136, true, func(o *Options) { left(o); o.Patience = 3 }},
		{2136, 2136, true, func(o *Options) { left(o); o.Schedule.Kind = optim.Cosine }},
		{2136, 2136, true, func(o *Options) { left(o); o.EvalEvery, o.Left["eval_every"] = 2, false }},
	} {
		o := DefaultOptions()
		c.change(&o)
		require.Equal(t, c.want, o.Round(c.steps, c.validated), "%+v", c)
	}
	got := DefaultOptions().DecideEpochs(500, 2136, "hits@20")
	require.Equal(t, &AutoEpochs{500, 500, 1, 214, 20, "epochs auto: all examples are 2136 steps, so an epoch ends, and is validated, after 500; " +
		"then until 20 epochs without a better valid hits@20, 214 epochs at most", "", 2136}, got)
}
