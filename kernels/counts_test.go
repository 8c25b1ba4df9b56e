package kernels_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
)

// named is a backend that knows its processor.
type named struct{ kernels.Backend }

func (named) Device() string { return "abacus of ten rows" }

func TestCountsOf(t *testing.T) {
	cpu := kernels.NewCPU(kernels.CPUOptions{Threads: 1})
	_, ok := kernels.CountsOf(cpu)
	require.False(t, ok)
	require.Empty(t, kernels.DeviceName(cpu))
	require.Equal(t, "abacus of ten rows", kernels.DeviceName(kernels.NewSizing(named{cpu})))

	be := kernels.NewSizing(kerneltest.Remote(cpu))
	x := kernels.Tensor{Buf: be.Alloc(kernels.F32, 6), Rows: 2, Cols: 3}
	defer be.Free(x.Buf)
	before, ok := kernels.CountsOf(be)
	require.True(t, ok)
	be.UploadF32(x, make([]float32, 6))
	be.DownloadF32(make([]float32, 6), x)
	after, _ := kernels.CountsOf(be)
	want := kernels.Counts{Waits: 1, Uploads: 1, UploadBytes: 24}
	require.Equal(t, want, after.Sub(before))
	require.Equal(t, after, before.Add(want))
}
