//go:build gnncheck && !race

package kernels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClosedMemoryIsPoisoned(t *testing.T) {
	h := newHostBuf(t, 100_000)
	floats, halves := h.Float32s(), h.Uint16s()
	h.Close() // recycled, so what was lent can still be read here
	require.True(t, math.IsNaN(float64(floats[24_999])))
	wide := make([]float32, 1)
	HalfToFloat32(wide, halves[49_999:])
	require.True(t, math.IsNaN(float64(wide[0])))
}

func TestCloseWhileLentPanics(t *testing.T) {
	for _, bytes := range []int{10, 100_000} {
		h := newHostBuf(t, bytes)
		h.Lend()
		h.Lend()
		h.Return()
		require.PanicsWithValue(t, "kernels: HostBuf closed while 1 borrowers have it", h.Close)
		h.Return()
		require.PanicsWithValue(t, "kernels: HostBuf: Return without a Lend", h.Return)
		h.lent.add(1)
		h.Close()
	}
}
