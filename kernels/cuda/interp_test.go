//go:build cuda && linux

package cuda

import (
	"testing"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/drivertest"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
)

// The PTX that ships conforms.
func TestInterpreter(t *testing.T) {
	t.Parallel()
	b, _ := openDevice(t, drivertest.Options{Runner: drivertest.NewInterpreter(t)}, Options{})
	kerneltest.RunAligned(t, func() kernels.Backend { return b })
	checkFinish(t, b)
}
