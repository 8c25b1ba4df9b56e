package sample

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNormalQuantile: values from tables, and the inverse of the distribution far into both tails.
func TestNormalQuantile(t *testing.T) {
	require.InDelta(t, -1.959963984540054, normalQuantile(0.025), 1e-14) // NIST/SEMATECH e-Handbook, section 1.3.6.7.1
	require.InDelta(t, 1.2815515655446004, normalQuantile(0.9), 1e-14)
	require.InDelta(t, -4.753424308822899, normalQuantile(1e-6), 1e-13)
	require.Zero(t, normalQuantile(0.5))
	require.Equal(t, math.Inf(-1), normalQuantile(0))
	require.Equal(t, math.Inf(1), normalQuantile(1))
	for p := 0.4999; p > 1e-300; p *= 0.9 {
		require.InEpsilon(t, p, normalTail(-normalQuantile(p)), 1e-12, "p = %g", p)
	}
}

// TestQuantile: what is interpolated is the exact one to 10⁻⁵ of the probability of its tail,
// symmetric, and never falls.
func TestQuantile(t *testing.T) {
	makeKnots()
	rng := rand.New(rand.NewPCG(1, 2))
	check := func(x uint64) {
		q := quantile(x)
		require.Equal(t, -q, quantile(^x))
		tail := x
		if int64(x) < 0 {
			tail = ^x
		}
		require.InEpsilon(t, (float64(tail)+0.5)*0x1p-64, normalTail(math.Abs(q)), 2e-5, "x = %d", x)
		if x > 0 {
			require.GreaterOrEqual(t, q, quantile(x-1))
		}
	}
	for _, x := range []uint64{0, 1, 2, 3, 127, 128, 1<<63 - 1, 1 << 63, 1<<63 + 1, math.MaxUint64} {
		check(x)
	}
	for range 20_000 {
		check(rng.Uint64() >> rng.IntN(64))
	}
}

// TestOrdered: numbers compare as the floats they come of.
func TestOrdered(t *testing.T) {
	floats := []float64{math.Inf(-1), -2, -1e-300, 0, 1e-300, 1, math.Inf(1)}
	for i, x := range floats {
		for j, y := range floats {
			require.Equal(t, i < j, ordered(x) < ordered(y))
		}
	}
}
