package kernels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGELUKeepsItsTail compares with what Φ is far below 0, to six digits: by erf, 1+erf would be 0 there.
func TestGELUKeepsItsTail(t *testing.T) {
	src := []float32{-6, -9, -12, 0, 9, 40}
	dst := make([]float32, len(src))
	GELU(dst, src)
	for i, want := range []float64{-6 * 9.865876e-10, -9 * 1.128588e-19, -12 * 1.776482e-33, 0, 9, 40} {
		require.InDelta(t, want, float64(dst[i]), 1e-6*math.Abs(want), "at %v", src[i])
	}
}
