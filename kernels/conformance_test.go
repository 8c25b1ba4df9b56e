package kernels_test

import (
	"testing"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
	"github.com/gnnstore/gnnstore/store/storetest"
)

func TestCPUConforms(t *testing.T) {
	for _, set := range []kernels.Set{kernels.AVX512, kernels.AVX2, kernels.Portable} {
		conforms(t, string(set), kerneltest.Run, kernels.CPUOptions{Threads: 2, Set: set})
	}
	for _, set := range []kernels.Set{kernels.AMX, kernels.AVX512BF16, kernels.Portable} {
		o := kernels.CPUOptions{Threads: 2, Set: set, Products: kernels.BF16}
		conforms(t, string(set)+"/matmul=bf16", kerneltest.RunBF16, o)
	}
}

func conforms(t *testing.T, name string, run func(*testing.T, func() kernels.Backend), o kernels.CPUOptions) {
	t.Run(name, func(t *testing.T) {
		if _, err := kernels.ParseSet(string(o.Set), o.Products); err != nil {
			t.Skip("no such CPU feature: ", err)
		}
		run(t, func() kernels.Backend { return kernels.NewCPU(o) })
	})
}

// TestReferenceConforms cannot find a wrong formula, but does find a wrong window, shape check or
// overwritten input.
func TestReferenceConforms(t *testing.T) {
	kerneltest.Run(t, func() kernels.Backend { return kernels.NewReference() })
}

// TestRemoteConforms is of the suite, which must not take it for granted that the host can address
// a backend's memory.
func TestRemoteConforms(t *testing.T) {
	storetest.Long(t)
	kerneltest.Run(t, func() kernels.Backend { return kerneltest.Remote(kernels.NewCPU(kernels.CPUOptions{Threads: 2})) })
}
