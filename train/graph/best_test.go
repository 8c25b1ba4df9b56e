package graph

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	tasks "github.com/gnnstore/gnnstore/train/task"
)

// TestBestEpoch: the weights kept as the best have the metrics of the best epoch, and a run ends
// with the last weights.
func TestBestEpoch(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 6, 16, 2))
	o := small()
	o.Epochs, o.LR = 6, 0.1 // so high that the last epoch is not the best
	path := t.TempDir()
	r, err := Run(context.Background(), ds, in(path), o, "test", run.Hooks{})
	require.NoError(t, err)
	require.Positive(t, r.Best.Epoch)
	require.Less(t, r.Best.Epoch, o.Epochs)

	// measured returns the metrics of the weights in a file, on the validation and test nodes.
	measured := func(file string) (valid, test float64, hash string) {
		m := opened(t, ds, o)
		weights, err := run.InitialWeights(filepath.Join(path, file), m.model.Find)
		require.NoError(t, err)
		m.model.Upload(weights)
		valid, _, err = m.measure(context.Background(), tasks.Valid)
		require.NoError(t, err)
		test, _, err = m.measure(context.Background(), tasks.Test)
		require.NoError(t, err)
		return valid, test, m.model.Hash()
	}
	valid, test, hash := measured(run.BestFile)
	require.Equal(t, valid, *r.Best.ValidAcc)
	require.Equal(t, valid, *r.Epochs[r.Best.Epoch-1].ValidAcc)
	require.Equal(t, test, *r.Best.TestAcc)
	require.NotEqual(t, valid, test, "or it would not tell which nodes were measured")
	require.NotEqual(t, hash, r.ParamsXXH3)

	lastValid, lastTest, hash := measured(run.LastFile)
	require.Equal(t, lastValid, *r.Epochs[o.Epochs-1].ValidAcc)
	require.NotEqual(t, test, lastTest, "or it would not tell which weights were measured")
	require.Equal(t, hash, r.ParamsXXH3)
}

// TestPatience: where nothing gets better the first epoch is the best, and as many evaluations as
// patience allows come after it.
func TestPatience(t *testing.T) {
	ds := open(t, storetest.Communities(300, 3, 6, 8, 3))
	o := small()
	o.LR, o.Epochs = still, 9
	for _, patience := range []int{1, 2, 5} {
		o.Patience = patience
		r := trained(t, ds, o)
		require.Equal(t, run.StoppedEarly, r.Status)
		require.Len(t, r.Epochs, 1+patience)
		require.Equal(t, 1, r.Best.Epoch)
	}

	m := opened(t, ds, o)
	validate := func(before float64) int { // after an evaluation, where the best so far was before
		m.Result.Best.ValidAcc = &before
		require.NoError(t, m.Validate(context.Background(), &run.Epoch{Epoch: 2}))
		return m.Ends.Worse
	}
	require.Equal(t, 1, validate(1))
	require.Equal(t, 2, validate(1))
	require.Equal(t, 0, validate(-1), "a better one forgives what was worse before")
	require.Equal(t, 1, validate(1))
}

// TestSampledEvaluationIsFixed: of weights that stay, every evaluation gives the same, though it is
// on sampled blocks.
func TestSampledEvaluationIsFixed(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 10, 16, 1))
	o := small()
	o.LR, o.EvalBytes, o.EvalNodes, o.Epochs, o.Fanouts = still, 0, 50, 6, []int{1, 1}
	r := trained(t, ds, o)
	require.Equal(t, "sampled", r.Evaluation.Method)
	for _, e := range r.Epochs {
		require.Equal(t, *r.Epochs[0].ValidAcc, *e.ValidAcc)
	}
	o.Seed = 2
	require.NotEqual(t, *r.Epochs[0].ValidAcc, *trained(t, ds, o).Epochs[0].ValidAcc)
}

// TestSampledEvaluationIsOfAllNodes: on blocks of every neighbour it comes to what layer after
// layer does, though the last batch is not full.
func TestSampledEvaluationIsOfAllNodes(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 10, 16, 1))
	o := small()
	o.LR, o.EvalNodes, o.Epochs, o.Batch, o.EpochSteps, o.Fanouts = still, 1000, 1, 7, 1, []int{sample.All, sample.All}
	require.Positive(t, o.Dropout)
	full := trained(t, ds, o)
	o.EvalBytes = 0
	blocks := trained(t, ds, o)
	require.Equal(t, "sampled", blocks.Evaluation.Method)
	require.Equal(t, full.Best, blocks.Best)
}
