package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestTestedLater: a run without a test, made longer and then tested, has the weights and figures
// of a run that was trained and tested at once.
func TestTestedLater(t *testing.T) {
	ds := open(t, storetest.Communities(400, 4, 8, 16, 1))
	for _, patience := range []int{run.Auto, 1} {
		o := small()
		o.Epochs, o.Patience = 30, patience
		_, want := runIn(t, ds, o)

		o.Epochs, o.EvalTest = 2, run.TestNone
		dir, r := runIn(t, ds, o)
		require.Nil(t, r.Best.TestAcc)
		require.Nil(t, r.Baseline)
		require.True(t, r.Covers(o))
		goOn := func() *run.Result {
			d, _, err := run.Open(dir)
			require.NoError(t, err)
			require.False(t, r.Covers(o))
			r, err := Run(t.Context(), ds, func() (*run.Dir, error) { return d, nil }, o, "test", run.Hooks{})
			require.NoError(t, err)
			require.True(t, r.Covers(o))
			return r
		}
		if o.Epochs = 30; len(want.Epochs) > 2 {
			r = goOn()
		}
		require.Nil(t, r.Best.TestAcc)
		o.EvalTest = run.TestBest
		r = goOn()
		require.Equal(t, want.Best, r.Best)
		require.Equal(t, want.Losses, r.Losses)
		require.Equal(t, want.ParamsXXH3, r.ParamsXXH3)
		require.Equal(t, want.Status, r.Status)
		require.Equal(t, want.Baseline, r.Baseline)
	}
}
