package stream

import (
	"math"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestBF16 trains every network for streams with products in bfloat16, on each kernel set that this
// machine has for them. Losses are nearly as in float32. Workers, budgets, windows and threads
// change no bit, and neither does a run that goes on.
func TestBF16(t *testing.T) {
	storetest.Long(t)
	ds := drifting(t, 300)
	for _, kind := range model.TemporalKinds {
		o := options(kind)
		o.Epochs, o.Kernels = 1, string(kernels.Portable)
		exact := run1(t, ds, o, run.Hooks{})
		o.MatMul = kernels.BF16
		for _, set := range kernels.SetsOf(kernels.BF16) {
			t.Run(string(kind)+"/kernels="+string(set), func(t *testing.T) {
				o := o
				o.Kernels = string(set)
				first := run1(t, ds, o, run.Hooks{})
				require.NotEqual(t, exact.ParamsXXH3, first.ParamsXXH3)
				for i, loss := range exact.Losses {
					require.InDelta(t, loss, first.Losses[i], 0.03*math.Abs(loss))
				}
				for _, threads := range []int{1, 3} {
					o := o
					o.Workers, o.Window, o.Cache.HostBytes = threads, threads, int64(3000*(threads-1))
					before := runtime.GOMAXPROCS(threads)
					got := run1(t, ds, o, run.Hooks{})
					runtime.GOMAXPROCS(before)
					require.Equal(t, outcomeOf(first), outcomeOf(got), "%d threads", threads)
				}

				longer, disk := o, vfs.NewMem()
				longer.Epochs = 2
				_, err := runOn(t.Context(), disk, "/run", ds, o, run.Hooks{})
				require.NoError(t, err)
				got, err := runOn(t.Context(), disk, "/run", ds, longer, run.Hooks{})
				require.NoError(t, err)
				require.Equal(t, outcomeOf(run1(t, ds, longer, run.Hooks{})), outcomeOf(got))
			})
		}
	}
}
