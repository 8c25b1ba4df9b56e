//go:build cuda && linux

package cuda

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/drivertest"
	"github.com/gnnstore/gnnstore/kernels/cuda/ptx"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
)

// Every operation conforms: with the wide kernels wherever columns allow it, without them, and
// where operands happen to lie right; with threads in another order; and whenever the device runs
// what is queued. Together, and with what waits to share a launch, they launch every kernel. This
// test and others that take half a minute run side by side.
func TestConform(t *testing.T) {
	t.Parallel()
	launched, suites := map[string]bool{}, 0
	for _, c := range []struct {
		name   string
		device drivertest.Options
		o      Options
		order  int
		run    func(*testing.T, func() kernels.Backend)
	}{
		{"aligned", drivertest.Options{}, Options{}, 0, kerneltest.RunAligned},
		{"narrow", drivertest.Options{Mode: drivertest.Eager}, Options{Narrow: true}, 0, kerneltest.Run},
		{"natural", drivertest.Options{Mode: drivertest.Ahead}, Options{}, 3, kerneltest.Run},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := drivertest.HostKernels(t)
			l.Order(c.order)
			defer l.Order(0)
			b, d := openDevice(t, c.device, c.o)
			c.run(t, func() kernels.Backend { return b })
			checkFinish(t, b)
			for _, cols := range []int{8, 300} {
				newScene(b, 40, cols).play(rand.New(rand.NewPCG(1, 1)), 500, nil)
			}
			suites++
			for name := range d.Launched() {
				launched[name] = true
			}
		})
	}
	if suites < 3 {
		return
	}
	all, err := ptx.Kernels()
	require.NoError(t, err)
	for name := range all {
		require.True(t, launched[name], name)
	}
}
