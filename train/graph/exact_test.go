package graph

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestSmallBudgetIsExact: a graph whose hidden rows take a few MiB is evaluated over all
// neighbours, with the same figures, even if an eighth of the memory would not hold the rows.
func TestSmallBudgetIsExact(t *testing.T) {
	ds := open(t, storetest.Communities(4090, 4, 8, 4, 2))
	o := small()
	o.Hidden, o.Epochs, o.Fanouts, o.Batch, o.EvalNodes = 512, 1, []int{2, 2}, 16, 10
	o.EpochSteps = 4
	want := trained(t, ds, o)
	require.Equal(t, "full", want.Evaluation.Method)
	o.MemoryBytes = 1
	_, err := Run(context.Background(), ds, in(t.TempDir()+"/least"), o, "test", run.Hooks{})
	require.Error(t, err)
	o.MemoryBytes = leastIn(t, err) + 12<<20
	require.Less(t, o.MemoryBytes/8, int64(4*4090*512), "an eighth would be enough")
	got := trained(t, ds, o)
	require.Equal(t, "full", got.Evaluation.Method)
	require.Equal(t, *want.Best.ValidAcc, *got.Best.ValidAcc)
	require.Equal(t, *want.Best.TestAcc, *got.Best.TestAcc)

	o.Eval = "sampled" // its figures differ
	require.NotEqual(t, *want.Best.TestAcc, *trained(t, ds, o).Best.TestAcc)
}
