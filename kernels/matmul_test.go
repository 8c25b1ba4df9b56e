package kernels

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMatMulFunction compares the plain function, and the CPU of every set, with the reference
// loop, beyond one packed piece of the inner dimension, with a ReLU's zeros in a and Inf or NaN in
// b: their product is NaN, and must not be skipped. Products in BF16 are compared with the
// reference loop of factors that are rounded.
func TestMatMulFunction(t *testing.T) {
	const m, n, k = 5, 19, 2*packDeep + 1
	check := func(name string, bf16 bool, multiply func(dst, a, b []float32, transA, transB bool)) {
		a, b := floatsFrom(1, m*k), floatsFrom(2, k*n)
		for i := range a {
			a[i] = max(a[i], 0)
		}
		for _, special := range []float64{1, math.NaN(), math.Inf(1)} {
			b[0] = float32(special)
			left, right := slices.Clone(a), slices.Clone(b)
			if bf16 {
				roundBF16(left, a)
				roundBF16(right, b)
			}
			for kind := range 4 {
				want, got := make([]float32, m*n), make([]float32, m*n)
				matMulRef(want, left, right, m, n, k, kind&1 != 0, kind&2 != 0, false)
				multiply(got, a, b, kind&1 != 0, kind&2 != 0)
				for i := range want {
					if want[i] != want[i] {
						require.True(t, got[i] != got[i], "%s: transposes %d, element %d: %v, want NaN", name, kind, i, got[i])
					} else if got[i] != want[i] {
						require.InDelta(t, want[i], got[i], 1e-3, "%s: transposes %d, element %d", name, kind, i)
					}
				}
			}
		}
	}
	check("function", false, func(dst, a, b []float32, transA, transB bool) {
		matMul(dst, a, b, m, n, k, transA, transB, false, nil, 1)
	})
	for _, c := range allCPUs(2) {
		check(called(c), c.bf16, func(dst, a, b []float32, transA, transB bool) {
			c.product(dst, a, b, m, n, k, transA, transB, false)
		})
	}
}

// TestMatMulAnywhere multiplies operands that begin at different addresses: the product has the
// same bits.
func TestMatMulAnywhere(t *testing.T) {
	at := func(values []float32, skip int) []float32 { // a copy, skip elements after the start of a cache line
		s := cast[float32](alignedHeap(4 * (skip + len(values))))[skip:]
		copy(s, values)
		return s
	}
	for _, c := range allCPUs(2) {
		for _, shape := range [][3]int{{20, 1, 6}, {3, 5, 7}, {17, 9, 33}, {6, 66, packDeep + 3}} {
			m, n, k := shape[0], shape[1], shape[2]
			a, b := floatsFrom(1, m*k), floatsFrom(2, k*n)
			for kind := range 4 {
				var want []float32
				for skip := range 4 * 4 * 4 {
					got := at(make([]float32, m*n), skip/16)
					c.product(got, at(a, skip%4), at(b, skip/4%4), m, n, k, kind&1 != 0, kind&2 != 0, false)
					if skip == 0 {
						want = got
					}
					require.Equal(t, want, got, "%s: %v, transposes %d, addresses %d", called(c), shape, kind, skip)
				}
			}
		}
	}
}

// TestMatMulStartsNoGoroutines holds gonum to what tileRows and tileCols count on, that it computes
// one tile serially: it would allocate for every goroutine, and so more for more tiles.
func TestMatMulStartsNoGoroutines(t *testing.T) {
	const n, k = 200, 300
	b, scratch := floatsFrom(2, k*n), make([]float32, k*n)
	allocations := func(m int) float64 {
		a, dst := make([]float32, m*k), make([]float32, m*n)
		return testing.AllocsPerRun(3, func() { matMul(dst, a, b, m, n, k, false, false, false, scratch, 1) })
	}
	require.Equal(t, allocations(100), allocations(1000))
}

// TestOperationsAllocateLittle: at steady state nothing that grows with the data.
func TestOperationsAllocateLittle(t *testing.T) {
	for _, c := range allCPUs(2) {
		x, w, y := tensorOf(c, 2000, 64, floatsFrom(1, 2000*64)), tensorOf(c, 64, 64, floatsFrom(2, 64*64)), tensorOf(c, 2000, 64, floatsFrom(3, 2000*64))
		sum := tensorOf(c, 1, 64, make([]float32, 64))
		step := func() {
			c.MatMul(y, x, w, false, false, false)
			c.Add(y, x)
			c.ColumnSumGrad(sum, y)
		}
		step()
		require.Less(t, testing.AllocsPerRun(5, step), 40.0, called(c))
	}
}
