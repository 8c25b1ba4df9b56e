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
			"of 10 steps; with {patience} 0 it ends there", ""}, "50"},
		{10, "accuracy", func(o *Options) { o.Schedule.Kind, o.Patience = optim.Cosine, 4 }, AutoEpochs{500, 10, 0, 50, 4,
			"epochs auto: 500 updates are 50 epochs of 10 steps; {schedule} cosine ends there", ""}, "50"},
		{10, "accuracy", func(o *Options) { o.Patience = 4 }, AutoEpochs{500, 10, 0, 500, 4, "epochs auto: until 4 evaluations without " +
			"a better valid accuracy, as {patience} says, 500 epochs at most", ""}, "500"},
	} {
		o := DefaultOptions()
		c.change(&o)
		got := o.DecideEpochs(c.steps, c.validated)
		require.Equal(t, &c.want, got)
		require.Equal(t, c.text, EpochsText(o, got))
	}
	o := DefaultOptions()
	o.Epochs = 7
	require.Nil(t, o.DecideEpochs(10, "accuracy"))
	require.Equal(t, "7", EpochsText(o, nil))
}
