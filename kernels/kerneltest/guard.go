package kerneltest

import (
	"math"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// testFetch has what a Mark waits for be as it was at the time of the fetch.
func testFetch(r *rig) {
	ids, values := []uint32{7, 1 << 31, 0}, r.normals(35)
	x, u := r.floats(5, 7, values), r.uints(ids)
	floats, uints, later := make([]float32, 35), make([]uint32, 3), make([]float32, 35)
	r.b.FetchF32(floats, x.tensor)
	r.b.FetchU32(uints, u.tensor)
	first := r.b.Mark()
	r.b.Fill(x.tensor, 2)
	r.b.FetchF32(later, x.tensor)
	second := r.b.Mark()
	r.b.Fill(x.tensor, 3)
	second()
	first()
	require.Equal(r.t, values, floats)
	require.Equal(r.t, ids, uints)
	for _, v := range later {
		require.Equal(r.t, float32(2), v)
	}
	r.b.FetchF32(nil, x.tensor.Slice(2, 2))
	r.b.Mark()()
}

func testCheckFinite(r *rig) {
	inf := math.Inf(1)
	for _, n := range []int{0, 1, 17, 70_001} {
		for _, odd := range []float64{0, math.MaxFloat32, math.NaN(), inf, -inf} {
			for _, before := range []uint32{0, 1} {
				r.at("%v among %d, flag %d", odd, n, before)
				values := r.normals(n)
				if n > 0 {
					values[n*2/3] = float32(odd)
				}
				void, src := r.uints([]uint32{before}), r.floats(n, 1, values)
				r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.CheckFinite(on(void), on(src)) })
				r.closeUints(void)
				r.unchanged(src)
			}
		}
	}
}

func testClipFactor(r *rig) {
	for _, s := range append(shapes, [2]int{1, 100_003}, [2]int{1021, 1031}) {
		n := s[0] * s[1]
		large, overflow, odd := r.normals(n), r.normals(n), r.spread(n)
		if n > 0 {
			large[n/2] = 1e10    // beside which float32 would lose all others' squares
			overflow[n-1] = 1e20 // its square is beyond float32, but not beyond float64
		}
		for _, values := range [][]float32{r.normals(n), large, overflow, odd} {
			for _, most := range []float64{1e-3, 1, 1e6} {
				r.at("%d×%d, at most %v", s[0], s[1], most)
				factor, squares := r.normal(1, 1), r.normal(3, 1)
				grads := []operand{r.floats(s[0], s[1], values), r.normal(2, 3), r.normal(0, 3)}
				r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
					all := []kernels.Tensor{on(grads[0]), on(grads[1]), on(grads[2])}
					b.ClipFactor(on(factor), on(squares), all, most)
				})
				r.close(1e-7, factor, squares)
				r.unchanged(grads...)
			}
		}
	}
	r.at("by hand")
	factor, squares := r.normal(1, 1), r.normal(2, 1)
	grads := []kernels.Tensor{r.floats(1, 2, []float32{3, 0}).tensor, r.floats(1, 1, []float32{4}).tensor}
	got := make([]float32, 3)
	r.b.ClipFactor(factor.tensor, squares.tensor, grads, 2)
	r.b.DownloadF32(got[:1], factor.tensor)
	r.b.DownloadF32(got[1:], squares.tensor)
	require.Equal(r.t, []float32{float32(2 / (5 + 1e-6)), 9, 16}, got)
}

// testGuard has updates with a factor, and with a flag that is set and that is not.
func testGuard(r *rig) {
	for _, s := range shapes {
		for _, flag := range []uint32{0, 1, 1 << 31} {
			for _, factor := range []float32{1, 0.37} {
				rows, cols := s[0], s[1]
				void, scale := r.uints([]uint32{flag}), r.floats(1, 1, []float32{factor})
				guard := func(on func(operand) kernels.Tensor) kernels.Guard {
					return kernels.Guard{Void: on(void), Scale: on(scale)}
				}
				adam := kernels.AdamStep{LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Correct1: 0.1, Correct2: 0.001}

				r.at("Adam of %d×%d, flag %d, factor %v", rows, cols, flag, factor)
				zeros := make([]float32, rows*cols)
				value, grad := r.normal(rows, cols), r.normal(rows, cols)
				m, v := r.floats(rows, cols, zeros), r.floats(rows, cols, zeros)
				r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
					param := kernels.AdamParam{Value: on(value), Grad: on(grad), M: on(m), V: on(v)}
					b.Adam([]kernels.AdamParam{param}, 0.875, adam, guard(on))
				})
				r.close(2e-6, value, grad, m, v)
				if flag != 0 {
					r.unchanged(value, m, v)
				}

				if cols > 0 {
					r.at("UpdateRecords of %d×%d, flag %d, factor %v", rows, cols, flag, factor)
					rec, of := r.floats(rows, 3*cols, make([]float32, 3*rows*cols)), r.normal(rows, cols)
					r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
						b.UpdateRecords(on(rec), on(of), kernels.RowStep{AdamStep: adam}, guard(on))
					})
					r.close(2e-6, rec)
					if flag != 0 {
						r.unchanged(rec)
					}
				}

				r.at("StoreRows of %d×%d, flag %d", rows, cols, flag)
				order := make([]uint32, rows)
				for i := range order {
					order[i] = uint32(i)
				}
				slots, lost := r.halves(rows, cols, r.normals(rows*cols)), r.ids(max(rows, 2))
				x, ids := r.normal(rows, cols), r.uints(order)
				lost.tensor, lost.oracle = lost.tensor.Slice(0, rows), lost.oracle.Slice(0, rows)
				r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
					b.StoreRows(on(slots), on(lost), on(x), on(ids), on(ids), on(void))
				})
				r.closeHalves(slots)
				r.closeUints(lost)
				if flag != 0 {
					r.unchanged(slots, lost)
				}
				r.unchanged(void, scale)
			}
		}
	}
}
