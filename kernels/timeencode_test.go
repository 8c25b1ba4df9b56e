package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSplitTime(t *testing.T) {
	for _, v := range []float64{0, 1, -1, 0.1, 1.7e9 + 0.123456, -2678373, 1e-9, 1e300, math.Inf(-1)} {
		high, low := SplitTime(v)
		if math.Abs(v) > math.MaxFloat32 {
			require.Equal(t, math.Inf(int(math.Copysign(1, v))), float64(high)+float64(low))
			continue
		}
		require.InDelta(t, v, float64(high)+float64(low), math.Abs(v)*0x1p-48)
	}
	high, low := SplitTime(math.NaN())
	require.True(t, math.IsNaN(float64(high+low)))
}

// split is the pairs of times.
func split(times []float64) (pairs []float32) {
	for _, t := range times {
		high, low := SplitTime(t)
		pairs = append(pairs, high, low)
	}
	return pairs
}

// logRates are w_c = 10^(-9c/(cols-1)): what networks begin with.
func logRates(cols int) []float32 {
	w := make([]float32, cols)
	for c := range w {
		w[c] = float32(math.Pow(10, -9*float64(c)/float64(max(1, cols-1))))
	}
	return w
}

// TestTimeEncodeByHand: four rates, ten seconds.
func TestTimeEncodeByHand(t *testing.T) {
	for _, set := range Sets() {
		r, dst := routinesOf(set), make([]float32, 4)
		r.timeEncode(dst, split([]float64{10}), logRates(4), make([]float32, 4))
		require.InDeltaSlice(t, []float32{-0.8390715, 0.9999500, 0.99999999995, 1}, dst, 1.5e-7, set)
	}
}

// TestTimeEncodeIsACosine compares with math.Cos over phases from 0 to far beyond half a century in
// seconds, where a float32 has no digit of the angle left.
func TestTimeEncodeIsACosine(t *testing.T) {
	const n, cols = 300, 100
	rng := rand.New(rand.NewPCG(1, 2))
	times := []float64{0, math.Pi, math.Pi / 2, -math.Pi / 2, 1.5 * math.Pi, 1e6 * math.Pi, 1.7e9, 1.7e9 + 0.25, 2678373}
	for len(times) < n {
		times = append(times, rng.NormFloat64()*math.Pow(10, float64(rng.IntN(18)-6)))
	}
	pairs, w, b := split(times), logRates(cols), floatsFrom(3, cols)
	for _, set := range Sets() {
		r, got, ones, worst := routinesOf(set), make([]float32, n*cols), make([]float32, cols), 0.0
		r.timeEncode(got, pairs, w, b)
		Fill(ones, 1)
		for i := range times {
			at := float64(pairs[2*i]) + float64(pairs[2*i+1])
			dw, db := make([]float32, cols), make([]float32, cols)
			r.timeEncodeGrad(dw, db, ones, pairs[2*i:2*i+2], w, b)
			for c := range cols {
				phase := math.FMA(at, float64(w[c]), float64(b[c]))
				worst = max(worst, math.Abs(float64(got[i*cols+c])-math.Cos(phase)))
				worst = max(worst, math.Abs(float64(db[c])+math.Sin(phase)))
				require.InDelta(t, -at*math.Sin(phase), dw[c], 3e-7*(1+math.Abs(at)), "%s: time %v, rate %v", set, at, w[c])
			}
		}
		require.LessOrEqual(t, worst, 3e-7, set)
		t.Logf("%s: %.2g at most", set, worst)
		far := []float64{1e16, -1e22, 3e38, math.Inf(1), math.NaN()}
		r.timeEncode(got, split(far), w[:1], b[:1])
		for i, v := range far {
			require.True(t, math.Abs(float64(got[i])) <= 1 || math.Abs(v) > 1e38 || v != v, "%s: %v of %v", set, got[i], v)
			if math.IsNaN(v) || math.IsInf(v, 0) {
				require.True(t, got[i] != got[i], "%s: %v of %v", set, got[i], v)
			}
		}
	}
}

func TestTimeEncodeSetsAgree(t *testing.T) {
	var f fence
	const rows = rowsPerTrial
	for _, cols := range rowSizes()[1:] {
		agree(t, &f, 1e-6, fmt.Sprintf("%d columns", cols), func(r *routines, f *fence) [][]float32 {
			dst, times := lay(f, floatsFrom(1, rows*cols)), lay(f, split([]float64{-0.75, 12345.678, 3}))
			w, b := lay(f, withSpecials(logRates(cols))), lay(f, floatsFrom(2, cols))
			r.timeEncode(dst, times, w, b)
			return [][]float32{dst, times, w, b}
		})
		agree(t, &f, 2e-6, fmt.Sprintf("gradient, %d columns", cols), func(r *routines, f *fence) [][]float32 {
			dw, db, dy, times := lay(f, floatsFrom(1, cols)), lay(f, floatsFrom(2, cols)), lay(f, floatsFrom(3, rows*cols)), lay(f, split([]float64{-0.75, 2, 3}))
			w, b := lay(f, logRates(cols)), lay(f, floatsFrom(2, cols))
			r.timeEncodeGrad(dw, db, dy, times, w, b)
			return [][]float32{dw, db, dy, times, w, b}
		})
	}
}

// BenchmarkTimeEncode is the cosines of a batch of 600 events with ten neighbours.
func BenchmarkTimeEncode(b *testing.B) {
	const rows, cols = 20000, 100
	for _, set := range Sets() {
		c := NewCPU(CPUOptions{Set: set})
		times := make([]float64, rows)
		for i := range times {
			times[i] = 100 * float64(i)
		}
		at, dst := tensorOf(c, rows, 2, split(times)), tensorOf(c, rows, cols, make([]float32, rows*cols))
		w, shift := tensorOf(c, 1, cols, logRates(cols)), tensorOf(c, 1, cols, make([]float32, cols))
		b.Run("set="+string(set), func(b *testing.B) {
			for b.Loop() {
				c.TimeEncode(dst, at, w, shift)
			}
			b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
