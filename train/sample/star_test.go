package sample

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestBalance: c_s gives the variance that it is to give, from wherever it is looked for, and also
// where c_s·π_t comes to 1 but for rounding.
func TestBalance(t *testing.T) {
	solves := func(t require.TestingT, inverse []float32, k int, from float64) {
		c, variance := balance(inverse, k, from), 0.0
		for _, x := range inverse {
			variance += 1 / min(1, c/float64(x))
		}
		d := len(inverse)
		require.InEpsilon(t, float64(d)*float64(d)/float64(min(k, d)), variance, 1e-9, "k %d of 1/π %v from %v", k, inverse, from)
	}
	// By turns the neighbour of 2.5 was certain and was not.
	solves(t, []float32{0.5, 0.5, 2.5, 1.25, 5, 2, 3, 0.75, 1, 1, 0.25, 0.25, 5, 2, 0.25, 1}, 10, 0)
	solves(t, []float32{5, 3, 7.6666665, 4, 5.3333335}, 3, 0)
	solves(t, []float32{5.3333335, 6.6666665, 4.6666665, 3, 5.3333335}, 3, 0)
	rapid.Check(t, func(t *rapid.T) {
		inverse := rapid.SliceOfN(rapid.OneOf(
			rapid.Map(rapid.IntRange(1, 20), func(n int) float32 { return float32(n) / 4 }), rapid.Float32Range(0.1, 1e6),
		), 1, 40).Draw(t, "1/π")
		from := rapid.OneOf(rapid.Just(0.), rapid.Float64Range(1e-3, 1e3)).Draw(t, "from")
		solves(t, inverse, rapid.IntRange(1, 2*len(inverse)).Draw(t, "k"), from)
	})
}
