package kerneltest

import (
	"math"

	"github.com/gnnstore/gnnstore/kernels"
)

// testMatMul covers the four combinations of transposes, with and without accumulate.
func testMatMul(r *rig) {
	for _, s := range []struct{ m, n, k int }{
		{0, 0, 0}, {0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {1, 1, 1}, {1, 7, 3}, {5, 1, 9}, {2, 3, 1}, {7, 5, 4}, {17, 33, 65},
		{6, 16, 8}, {14, 32, 31}, {64, 64, 64}, {65, 131, 129}, {300, 20, 33}, {17, 9, 2100}, {132, 68, 72}, {68, 132, 516},
	} {
		r.products(s.m, s.n, s.k, r.normals)
	}
}

// testMatMulNonFinite has the zeros of a ReLU beside Inf and NaN: 0·Inf must come out as NaN, not
// be skipped.
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
		a, b := r.factor(aRows, aCols, draw(m*k)), r.factor(bRows, bCols, draw(k*n))
		r.both(func(be kernels.Backend, on func(operand) kernels.Tensor) {
			be.MatMul(on(dst), on(a), on(b), transA, transB, accumulate)
		})
		r.close(1e-6+4e-7*float64(k), dst)
		r.unchanged(a, b)
	}
}

// termFactor makes the X of the nth term: in F16 for the second one, where the backend takes that.
func (r *rig) termFactor(nth, rows, cols int, values []float32) operand {
	if nth == 1 && r.b.TakesHalf() {
		return r.halfFactor(rows, cols, values)
	}
	return r.factor(rows, cols, values)
}

// testAffine has no, one and two terms, with and without bias and ReLU, some of them with Inf and
// NaN.
func testAffine(r *rig) {
	for _, s := range []struct{ n, o, i int }{
		{0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {1, 1, 1}, {5, 7, 3}, {17, 33, 65}, {64, 31, 40}, {65, 131, 129}, {300, 20, 33}, {1600, 40, 24}, {9, 17, 2100},
	} {
		for kind := range 12 {
			count, biased, relu := kind/4, kind&1 != 0, kind&2 != 0
			r.at("n=%d o=%d i=%d terms=%d bias=%v relu=%v", s.n, s.o, s.i, count, biased, relu)
			dst, bias := r.normal(s.n, s.o), r.normal(1, s.o)
			var inputs []operand
			for t := range count {
				x, w := r.normals(s.n*(s.i+t)), r.normals(s.o*(s.i+t))
				if kind == 7 && len(x) > 2 {
					x[len(x)/2], x[len(x)/3] = float32(math.NaN()), float32(math.Inf(1))
				}
				inputs = append(inputs, r.termFactor(t, s.n, s.i+t, x), r.factor(s.o, s.i+t, w))
			}
			r.both(func(be kernels.Backend, on func(operand) kernels.Tensor) {
				var terms []kernels.Term
				for t := range count {
					terms = append(terms, kernels.Term{X: on(inputs[2*t]), W: on(inputs[2*t+1])})
				}
				var row kernels.Tensor
				if biased {
					row = on(bias)
				}
				be.Affine(on(dst), row, relu, terms...)
			})
			r.close(1e-6+8e-7*float64(s.i), dst)
			r.unchanged(append(inputs, bias)...)
		}
	}
}

// testAffineGrad has no, one and two terms, with and without a bias and ReLU, and gradients that
// are set, added to, left out, and one window in another.
func testAffineGrad(r *rig) {
	for _, s := range []struct{ n, o, i int }{
		{0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {1, 1, 1}, {5, 7, 3}, {17, 33, 65}, {64, 31, 40}, {300, 20, 33},
		{1030, 40, 17}, {4100, 17, 33},
	} {
		for kind := range 24 {
			count, biased, relu, across := kind/8, kind&1 != 0, kind&2 != 0, kind&4 != 0
			r.at("n=%d o=%d i=%d terms=%d bias=%v relu=%v across=%v", s.n, s.o, s.i, count, biased, relu, across)
			values := r.normals(s.n * s.o)
			dy, y, dbias := r.factor(s.n, s.o, values), r.normal(s.n, s.o), r.normal(1, s.o)
			exact := r.floats(s.n, s.o, values) // the bias's gradient is no product
			var x, w, dx, dw []operand
			for t := range count {
				in := s.i + t
				rows, cols := s.o, in
				if across {
					rows, cols = cols, rows
				}
				x = append(x, r.termFactor(t, s.n, in, r.normals(s.n*in)))
				w = append(w, r.factor(rows, cols, r.normals(rows*cols)))
				dx, dw = append(dx, r.normal(s.n+t, in)), append(dw, r.normal(rows, cols))
			}
			r.both(func(be kernels.Backend, on func(operand) kernels.Tensor) {
				var terms []kernels.TermGrad
				for t := range count {
					g := kernels.TermGrad{Term: kernels.Term{X: on(x[t]), W: on(w[t])}, Add: t > 0, Across: across}
					if kind%5 != 0 {
						g.DX = on(dx[t]).Slice(0, s.n)
					}
					if kind%7 != 0 {
						g.DW = on(dw[t])
					}
					terms = append(terms, g)
				}
				var of, sum kernels.Tensor
				if relu {
					of = on(y)
				}
				if biased {
					sum = on(dbias)
				}
				if be == kernels.Backend(r.ref) && r.round != nil {
					be.AffineGrad(on(exact), of, sum)
					sum = kernels.Tensor{}
				}
				be.AffineGrad(on(dy), of, sum, terms...)
			})
			r.close(1e-6+8e-7*float64(s.o), dx...)
			r.close(1e-6+8e-7*float64(s.n), append(dw, dbias)...)
			r.unchanged(append(append(x, w...), y)...)
			if !relu {
				r.unchanged(dy)
			}
		}
	}
}
