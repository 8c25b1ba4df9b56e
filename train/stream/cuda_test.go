//go:build cuda && linux

package stream

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels/cuda"
	"github.com/gnnstore/gnnstore/kernels/cuda/drivertest"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestCUDA: streams train on the CUDA backend to the losses of the CPU, with the kernels compiled
// for the host, and for a few steps with the PTX that ships.
func TestCUDA(t *testing.T) {
	host := drivertest.HostKernels(t)
	ds := drifting(t, 500)
	for _, kind := range model.TemporalKinds {
		for name, change := range map[string]func(o *run.Options){
			"plain": func(*run.Options) {},
			"mixed": func(o *run.Options) { o.Staleness, o.Mitigate, o.Optim.ClipNorm = 3, 0.5, 0.1 },
		} {
			o := options(kind)
			o.Epochs = 1
			change(&o)
			sameLosses(t, ds, o, host, string(kind)+", "+name)
		}
	}
	o := options(model.TGN)
	o.Epochs, o.Batch = 1, 16
	sameLosses(t, drifting(t, 80), o, drivertest.NewInterpreter(t), "PTX")
}

// sameLosses trains on the CPU and on a device with these kernels. The device reads rows that never
// change itself.
func sameLosses(t *testing.T, ds *store.Dataset, o run.Options, kernels drivertest.Runner, name string) {
	want := run1(t, ds, o, run.Hooks{})
	d := drivertest.New(drivertest.Options{Runner: kernels})
	be, err := cuda.Open(cuda.Options{Calls: d.Calls(), Gather: cuda.Reads})
	require.NoError(t, err)
	got := run1(t, ds, o, run.Hooks{Backend: be})
	require.Len(t, got.Losses, len(want.Losses))
	require.InEpsilonSlice(t, want.Losses, got.Losses, 1e-4, name)
	require.Positive(t, got.Locked.Rows.Of, name)
	require.Equal(t, got.Locked.Rows.Of, got.Locked.Rows.Bytes, name)
	require.NoError(t, be.Close())
	_, held := d.Held()
	require.Zero(t, held, name)
}
