package kernels_test

import (
	"testing"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
)

func TestCPUConforms(t *testing.T) {
	kerneltest.Run(t, func() kernels.Backend { return kernels.NewCPU(2) })
}

// TestReferenceConforms cannot find a wrong formula, but does find a wrong window, shape check or overwritten input.
func TestReferenceConforms(t *testing.T) {
	kerneltest.Run(t, func() kernels.Backend { return kernels.NewReference() })
}
