//go:build cuda && linux

package stream

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels/cuda"
	"github.com/gnnstore/gnnstore/kernels/cuda/drivertest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestCUDA: streams train on the CUDA backend to the losses of the CPU.
func TestCUDA(t *testing.T) {
	ds := drifting(t, 500)
	for _, kind := range model.TemporalKinds {
		for name, change := range map[string]func(o *run.Options){
			"plain": func(*run.Options) {},
			"mixed": func(o *run.Options) { o.Staleness, o.Mitigate, o.Optim.ClipNorm = 3, 0.5, 0.1 },
		} {
			o := options(kind)
			o.Epochs = 1
			change(&o)
			want := run1(t, ds, o, run.Hooks{})
			d := drivertest.New(drivertest.Options{Runner: drivertest.HostKernels(t)})
			be, err := cuda.Open(cuda.Options{Calls: d.Calls()})
			require.NoError(t, err)
			got := run1(t, ds, o, run.Hooks{Backend: be})
			require.Len(t, got.Losses, len(want.Losses))
			require.InEpsilonSlice(t, want.Losses, got.Losses, 1e-4, "%s, %s", kind, name)
			require.NoError(t, be.Close())
		}
	}
}
