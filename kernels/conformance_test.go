package kernels_test

import (
	"testing"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
)

func TestCPUConforms(t *testing.T) {
	for _, set := range []kernels.Set{kernels.AVX512, kernels.AVX2, kernels.Portable} {
		t.Run(string(set), func(t *testing.T) {
			if _, err := kernels.ParseSet(string(set), kernels.Float32); err != nil {
				t.Skip("no such CPU feature: ", err)
			}
			kerneltest.Run(t, func() kernels.Backend { return kernels.NewCPU(kernels.CPUOptions{Threads: 2, Set: set}) })
		})
	}
}

// TestReferenceConforms cannot find a wrong formula, but does find a wrong window, shape check or
// overwritten input.
func TestReferenceConforms(t *testing.T) {
	kerneltest.Run(t, func() kernels.Backend { return kernels.NewReference() })
}

// TestRemoteConforms is of the suite, which must not take it for granted that the host can address
// a backend's memory.
func TestRemoteConforms(t *testing.T) {
	kerneltest.Run(t, func() kernels.Backend { return kerneltest.Remote(kernels.NewCPU(kernels.CPUOptions{Threads: 2})) })
}
