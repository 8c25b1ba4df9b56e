package kernels

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// fillWhole fills s with small whole numbers, so that sums of some thousand products are exact in
// every order.
func fillWhole(s []float32, step int) {
	for i := range s {
		s[i] = float32((i+1)*step%11 - 5)
	}
}

// checkWholeProduct multiplies whole numbers on a CPU, and compares with the reference loop or,
// where that takes too long, with the portable CPU.
func checkWholeProduct(t require.TestingT, c *CPU, m, n, k int, transA, transB, accumulate bool) {
	shape := func(rows, cols int, trans bool, step int) (Tensor, []float32) {
		values := make([]float32, rows*cols)
		fillWhole(values, step)
		if trans {
			rows, cols = cols, rows
		}
		return tensorOf(c, rows, cols, values), values
	}
	dst, want := shape(m, n, false, 3)
	a, left := shape(m, k, transA, 5)
	b, right := shape(k, n, transB, 7)
	c.MatMul(dst, a, b, transA, transB, accumulate)
	if m*n*k < 1<<24 {
		matMulRef(want, left, right, m, n, k, transA, transB, accumulate)
	} else {
		matMul(want, left, right, m, n, k, transA, transB, accumulate, nil, 2)
	}
	if got := valuesOf(c, dst); !slices.Equal(want, got) {
		i := 0
		for want[i] == got[i] {
			i++
		}
		require.Fail(t, "wrong product", "%s m=%d n=%d k=%d transA=%v transB=%v accumulate=%v: row %d column %d is %v, not %v",
			called(c), m, n, k, transA, transB, accumulate, i/n, i%n, got[i], want[i])
	}
}

// TestMatMulOfAnyShape draws shapes of several strips, pieces and chunks.
func TestMatMulOfAnyShape(t *testing.T) {
	for _, c := range allCPUs(2) {
		rapid.Check(t, func(t *rapid.T) {
			size := func(name string, large int) int {
				return rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, large)).Draw(t, name)
			}
			flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
			checkWholeProduct(t, c, size("m", 400), size("n", 150), size("k", 800), flag("transA"), flag("transB"), flag("accumulate"))
		})
	}
}

// TestMatMulOfLargeShapes has shapes that are cut or packed for their size: a long inner dimension
// in chunks side by side, also in blocks with one or both operands packed; a transposed b that is
// packed in parts; a wide b.
func TestMatMulOfLargeShapes(t *testing.T) {
	const packedInParts = maxPacked/16 + 1000
	for _, threads := range []int{1, 3} {
		for _, c := range allCPUs(threads) {
			if c.set == Portable {
				continue
			}
			for _, accumulate := range []bool{false, true} {
				checkWholeProduct(t, c, 15, 41, 5003, true, false, accumulate)
				checkWholeProduct(t, c, 200, 7, 2048, true, false, accumulate)
				checkWholeProduct(t, c, 3, 33, 4099, false, false, accumulate)
				checkWholeProduct(t, c, 2, 1, packedInParts, false, true, accumulate)
				checkWholeProduct(t, c, packRows+1, packFrom+9, 50, false, false, accumulate)
			}
		}
	}
	for _, c := range allCPUs(2) {
		if c.set == Portable {
			continue
		}
		checkWholeProduct(t, c, 680, 1130, longFrom+9, true, false, true)
		checkWholeProduct(t, c, 1500, 70, longFrom+1, true, false, false)
		checkWholeProduct(t, c, 40, 2500, longFrom+1, true, false, false)
		checkWholeProduct(t, c, 400, 300, longFrom, false, false, false)
	}
}
