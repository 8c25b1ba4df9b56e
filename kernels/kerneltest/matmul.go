package kerneltest

import (
	"math"

	"github.com/gnnstore/gnnstore/kernels"
)

// testMatMul covers the four combinations of transposes, with and without accumulate.
func testMatMul(r *rig) {
	for _, s := range []struct{ m, n, k int }{
		{0, 0, 0}, {0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {1, 1, 1}, {1, 7, 3}, {5, 1, 9}, {2, 3, 1}, {7, 5, 4}, {17, 33, 65},
		{6, 16, 8}, {14, 32, 31}, {64, 64, 64}, {65, 131, 129}, {300, 20, 33}, {17, 9, 2100},
	} {
		r.products(s.m, s.n, s.k, r.normals)
	}
}

// testMatMulNonFinite has the zeros of a ReLU beside Inf and NaN: 0·Inf must come out as NaN, not be skipped.
func testMatMulNonFinite(r *rig) {
	draw := func(n int) []float32 {
		s := r.normals(n)
		for i := range s {
			s[i] = max(s[i], 0)
		}
		if n > 20 {
			s[n/2], s[n/3], s[n/5] = float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))
		}
		return s
	}
	r.products(5, 6, 7, draw)
	r.products(65, 67, 70, draw)
}

// products compares every kind of product of an m×k and a k×n matrix.
func (r *rig) products(m, n, k int, draw func(n int) []float32) {
	for kind := range 8 {
		transA, transB, accumulate := kind&1 != 0, kind&2 != 0, kind&4 != 0
		r.at("m=%d n=%d k=%d transA=%v transB=%v accumulate=%v", m, n, k, transA, transB, accumulate)
		aRows, aCols, bRows, bCols := m, k, k, n
		if transA {
			aRows, aCols = aCols, aRows
		}
		if transB {
			bRows, bCols = bCols, bRows
		}
		dst := r.normal(m, n)
		a, b := r.floats(aRows, aCols, draw(m*k)), r.floats(bRows, bCols, draw(k*n))
		r.both(func(be kernels.Backend, on func(operand) kernels.Tensor) {
			be.MatMul(on(dst), on(a), on(b), transA, transB, accumulate)
		})
		r.close(1e-6+4e-7*float64(k), dst)
		r.unchanged(a, b)
	}
}
