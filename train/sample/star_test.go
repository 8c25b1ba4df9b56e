package sample

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestBalanceEnds: also where a neighbour's probability comes out at 1 but for rounding; and at the right c, from any other.
func TestBalanceEnds(t *testing.T) {
	require.InEpsilon(t, 3.0, balance([]float32{5, 3, 7.6666665, 4, 5.3333335}, 3, 0), 1e-6)
	require.InEpsilon(t, 3.0, balance([]float32{5.3333335, 6.6666665, 4.6666665, 3, 5.3333335}, 3, 0), 1e-6)
	rapid.Check(t, func(t *rapid.T) {
		inverse := rapid.SliceOfN(rapid.Map(rapid.IntRange(1, 60), func(i int) float32 { return float32(i) / 6 }), 2, 40).Draw(t, "1/pi")
		d := len(inverse)
		k := rapid.IntRange(1, d-1).Draw(t, "k")
		c := balance(inverse, k, rapid.SampledFrom([]float64{0, 0.1, 1, 5, 100}).Draw(t, "c"))
		sum := 0.0
		for _, x := range inverse {
			sum += max(1, float64(x)/c)
		}
		require.InEpsilon(t, float64(d*d)/float64(k), sum, 1e-12)
	})
}
