package kernels

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGELUKeepsItsTail compares with values of Φ far below 0, to seven digits: by erf, 1 + erf
// would be 0 there.
func TestGELUKeepsItsTail(t *testing.T) {
	src := []float32{-6, -9, -12, 0, 9, 40, float32(math.Inf(1)), float32(math.Inf(-1))}
	for _, set := range Sets() {
		r, dst := routinesOf(set), make([]float32, len(src))
		r.gelu(dst, src)
		for i, want := range []float64{-6 * 9.865876e-10, -9 * 1.128588e-19, -12 * 1.776482e-33, 0, 9, 40, math.Inf(1), 0} {
			if got := float64(dst[i]); got != want {
				require.InEpsilon(t, want, got, 1e-6, "%s, at %v", set, src[i])
			}
		}
	}
}

// TestGELUOverItsRange holds values to the reference in float64 in parts of themselves, slopes,
// which are 0 near -0.75, in parts of 1.
func TestGELUOverItsRange(t *testing.T) {
	var src []float32
	for x := -12.8; x < 14; x += 0.00073 { // below, values are subnormal and have fewer digits
		src = append(src, float32(x))
	}
	want, slopes, ones := make([]float64, len(src)), make([]float64, len(src)), make([]float32, len(src))
	geluRef(want, doubles(src))
	Fill(ones, 1)
	geluGradRef(slopes, doubles(ones), doubles(src))
	for _, set := range Sets() {
		r, got, slope := routinesOf(set), make([]float32, len(src)), make([]float32, len(src))
		r.gelu(got, src)
		r.geluGrad(slope, ones, src)
		worst := 0.0
		for i, w := range want {
			worst = max(worst, math.Abs(float64(got[i])/w-1))
			require.InDelta(t, slopes[i], slope[i], 2e-7, "%s, slope at %v", set, src[i])
		}
		require.Less(t, worst, 5e-7, "%s", set)
		t.Logf("%s: a relative error of %.2g at most", set, worst)
	}
}

func TestGELUSetsAgree(t *testing.T) {
	var f fence
	for _, n := range rowSizes() {
		x := withSpecials(floatsFrom(1, n), math.MaxFloat32, -math.MaxFloat32)
		agree(t, &f, 1e-6, fmt.Sprintf("%d elements", n), func(r *routines, f *fence) [][]float32 {
			dst, src, dx, dy := lay(f, floatsFrom(2, n)), lay(f, x), lay(f, floatsFrom(3, n)), lay(f, floatsFrom(4, n))
			r.gelu(dst, src)
			r.geluGrad(dx, dy, src)
			return [][]float32{dst, src, dx, dy}
		})
	}
}
