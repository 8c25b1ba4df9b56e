package interp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMatricesOnTensorCores(t *testing.T) {
	k := load(t, "mma").Kernel("mma")
	require.Equal(t, 1, k.Instructions("mma.sync"))
	d := newDevice(t)
	a, b, c := normal(16*8, 1), normal(8*8, 2), normal(16*8, 3)
	at := put(d, c)
	require.NoError(t, d.launch(k, 0, 1, 32, at, put(d, a), put(d, b)))
	coarse := false
	for i, got := range get[float32](d, at, 16*8) {
		sum, exact := float64(c[i]), float64(c[i])
		for j := range 8 {
			p, q := a[i/8*8+j], b[j*8+i%8]
			exact += float64(p) * float64(q)
			sum += float64(float32of(roundTF32(bits32(p)))) * float64(float32of(roundTF32(bits32(q))))
		}
		require.Equal(t, float32(sum), got, i)
		require.InDelta(t, exact, got, 0x1p-9*8)
		coarse = coarse || float32(exact) != got
	}
	require.True(t, coarse, "tf32 has fewer bits")
	require.ErrorIs(t, d.launch(k, 0, 1, 31, at, at, at), ErrDivergent)
}

func TestRoundTF32(t *testing.T) {
	for from, to := range map[uint64]uint64{
		0x3f800fff: 0x3f800000, 0x3f801000: 0x3f802000, 0xbf801000: 0xbf802000, 0x3fffffff: 0x40000000,
		0x7f800000: 0x7f800000, 0x7fc00001: nan32, 0x00001000: 0x00002000,
	} {
		require.Equal(t, to, roundTF32(from), "%#x", from)
	}
}
