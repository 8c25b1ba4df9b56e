package kernels

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpen(t *testing.T) {
	for _, device := range []string{"", "cpu"} {
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
	_, err = Open(Options{Device: "abacus"})
	require.EqualError(t, err, `device "abacus": this build has cpu`)

	Register("abacus", func(o Options) (Backend, error) { return NewReference(), nil })
	defer func() { delete(devices.open, "abacus") }()
	require.Equal(t, []string{"cpu", "abacus"}, Devices())
	be, err := Open(Options{Device: "abacus"})
	require.NoError(t, err)
	require.Equal(t, "reference", be.Name())
	require.Panics(t, func() { Register("abacus", nil) })
	require.Panics(t, func() { Register("cpu", nil) })
}
