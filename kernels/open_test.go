package kernels

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpen(t *testing.T) {
	for _, device := range []string{"", "cpu", "auto"} {
		be, err := Open(Options{Device: device, Set: "portable", Threads: 1})
		require.NoError(t, err)
		require.Equal(t, "portable", be.Name())
		before := be.Bytes()
		b := be.Alloc(F32, 1<<20)
		require.Equal(t, before.Host+4<<20, be.Bytes().Host)
		require.Zero(t, be.Bytes().Device)
		be.Free(b)
		require.Equal(t, before, be.Bytes())
	}
	_, err := Open(Options{Set: "sse2"})
	require.ErrorContains(t, err, "sse2")
	_, err = Open(Options{Products: TF32})
	require.ErrorIs(t, err, ErrNoTF32)
	_, err = Open(Options{Products: "f8"})
	require.EqualError(t, err, "products in f8: there are f32, bf16 and tf32")
	be, err := Open(Options{Set: "portable", Products: BF16})
	require.NoError(t, err)
	require.Equal(t, "portable", be.Name())
	_, err = Open(Options{Device: "abacus"})
	require.EqualError(t, err, "abacus: there are auto, cpu, cuda, and this build has "+strings.Join(Devices(), ", "))

	Register("abacus", func(o Options) (Backend, error) { return NewReference(), nil })
	defer func() { delete(devices.open, "abacus") }()
	require.Equal(t, "cpu", Devices()[0])
	require.Contains(t, Devices(), "abacus")
	device, err := ParseDevice("abacus")
	require.NoError(t, err)
	require.Equal(t, "abacus", device)
	_, err = Open(Options{Device: "abacus", Products: BF16})
	require.EqualError(t, err, "only the CPU has products in bf16: the device is abacus")
	be, err = Open(Options{Device: "abacus"})
	require.NoError(t, err)
	require.Equal(t, "reference", be.Name())
	require.Panics(t, func() { Register("abacus", nil) })
	require.Panics(t, func() { Register("cpu", nil) })
	require.Panics(t, func() { Register("auto", nil) })
}

// TestLacksCUDA: a build that has no GPU's backend names the archive that has one.
func TestLacksCUDA(t *testing.T) {
	if slices.Contains(Devices(), CUDADevice) {
		t.Skip("this build has the device cuda")
	}
	_, err := Open(Options{Device: CUDADevice})
	require.EqualError(t, err, "cuda: this build of gnnstore computes on the CPU alone; "+
		"take the one of the archive gnnstore-cuda, or compute on the CPU")
}
