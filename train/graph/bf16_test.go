package graph

import (
	"math"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestBF16 trains every network and task for three steps with products in bfloat16, on each kernel
// set that this machine has for them. Losses are nearly as in float32. Workers, budgets, windows
// and threads change no bit, and neither does a run that goes on.
func TestBF16(t *testing.T) {
	storetest.Long(t)
	type job struct {
		name string
		ds   *store.Dataset
		o    run.Options
	}
	plain, types := open(t, storetest.Communities(300, 4, 8, 40, 2)), openTyped(t, storetest.Library(300, 4, 1))
	jobs := []job{
		{"links", open(t, linked(300)), linkOptions()},
		{"edges", openTyped(t, storetest.Trust(200, true, true)), edgeOptionsOf(model.RSAGE)},
	}
	for _, kind := range model.Kinds {
		ds := plain
		switch kind {
		case model.RSAGE, model.RGCN, model.RGAT, model.HGT:
			ds = types
		}
		jobs = append(jobs, job{string(kind), ds, typed(kind)})
	}
	for _, j := range jobs {
		j.o.Epochs, j.o.EpochSteps, j.o.Workers = 1, 3, 2
		j.o.Kernels = string(kernels.Portable)
		exact := trained(t, j.ds, j.o)
		j.o.MatMul = kernels.BF16
		for _, set := range kernels.SetsOf(kernels.BF16) {
			t.Run(j.name+"/kernels="+string(set), func(t *testing.T) {
				o := j.o
				o.Kernels = string(set)
				want := trained(t, j.ds, o)
				require.NotEqual(t, exact.ParamsXXH3, want.ParamsXXH3)
				for i, loss := range exact.Losses {
					require.InDelta(t, loss, want.Losses[i], 0.03*math.Abs(loss))
				}
				for _, threads := range []int{1, 3} {
					o := o
					o.Workers, o.Window, o.Cache.HostBytes = 2*threads-1, threads, int64(4000*(threads-1))
					before := runtime.GOMAXPROCS(threads)
					got := trained(t, j.ds, o)
					runtime.GOMAXPROCS(before)
					sameNetwork(t, want, got, "%d threads", threads)
				}

				longer, disk := o, vfs.NewMem()
				longer.Epochs = 2
				want = trained(t, j.ds, longer)
				_, err := runOn(t.Context(), disk, j.ds, o, run.Hooks{})
				require.NoError(t, err)
				got, err := runOn(t.Context(), disk, j.ds, longer, run.Hooks{})
				require.NoError(t, err)
				sameRun(t, want, got)
			})
		}
	}
}
