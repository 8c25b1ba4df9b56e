package kerneltest

import (
	"math"

	"github.com/gnnstore/gnnstore/kernels"
)

func testReLU(r *rig) {
	for _, s := range shapes {
		r.at("%d×%d", s[0], s[1])
		dst, src := r.normal(s[0], s[1]), r.floats(s[0], s[1], r.spread(s[0]*s[1]))
		r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.ReLU(on(dst), on(src)) })
		r.close(0, dst)
		r.unchanged(src)
		r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.ReLU(on(src), on(src)) })
		r.close(0, src)
	}
}

func testReLUGrad(r *rig) {
	for _, s := range shapes {
		r.at("%d×%d", s[0], s[1])
		n := s[0] * s[1]
		dx, dy, y := r.normal(s[0], s[1]), r.floats(s[0], s[1], r.spread(n)), r.floats(s[0], s[1], r.spread(n))
		// The specials of dy and y fall on the same places; from the middle on, dy's are moved
		// against y's.
		shifted := r.floats(s[0], s[1], append(r.normals(n-n/2), r.spread(n/2)...))
		for _, grad := range []operand{dy, shifted} {
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.ReLUGrad(on(dx), on(grad), on(y)) })
			r.close(1e-6, dx)
			r.unchanged(grad, y)
		}
	}
}

func testReLUMask(r *rig) {
	for _, s := range shapes {
		r.at("%d×%d", s[0], s[1])
		n := s[0] * s[1]
		y := r.floats(s[0], s[1], r.spread(n))
		for _, d := range []operand{r.floats(s[0], s[1], r.spread(n)), r.normal(s[0], s[1])} {
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.ReLUMask(on(d), on(y)) })
			r.close(0, d)
			r.unchanged(y)
		}
	}
}

// testGELU has rows far below 0, and gradients that are not finite where the slope is not 0.
func testGELU(r *rig) {
	for _, s := range shapes {
		r.at("%d×%d", s[0], s[1])
		n := s[0] * s[1]
		wide := r.normals(n)
		kernels.Scale(wide, 10)
		for _, values := range [][2][]float32{{r.normals(n), r.sparseSpecials(n)}, {wide, r.normals(n)}, {r.spread(n), r.normals(n)}} {
			dst, x, dx := r.normal(s[0], s[1]), r.floats(s[0], s[1], values[0]), r.normal(s[0], s[1])
			dy := r.floats(s[0], s[1], values[1])
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.GELU(on(dst), on(x))
				b.GELUGrad(on(dx), on(dy), on(x))
			})
			r.close(1e-6, dst, dx)
			r.unchanged(x, dy)
		}
	}
}

func testGate(r *rig) {
	for _, shape := range append(shapes, [2]int{257, 263}) {
		for i, by := range []float32{-3.5, 0, 1, 17, -40, float32(math.NaN())} {
			if shape[0] > 256 && i > 0 {
				break // it is there for its several chunks
			}
			r.at("%d×%d by %v", shape[0], shape[1], by)
			n := shape[0] * shape[1]
			for _, draw := range []func(int) []float32{r.normals, r.sparseSpecials} {
				f := func(values []float32) operand { return r.floats(shape[0], shape[1], values) }
				dst, a, x, s := f(r.normals(n)), f(draw(n)), f(draw(n)), r.floats(1, 1, []float32{by})
				da, dx, ds, dy := f(r.normals(n)), f(r.normals(n)), r.normal(1, 1), f(draw(n))
				r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
					b.Gate(on(dst), on(a), on(x), on(s))
					b.GateGrad(on(da), on(dx), on(ds), on(dy), on(a), on(x), on(s))
				})
				r.close(1e-6, dst, da, dx, ds)
				r.unchanged(a, x, s, dy)
			}
		}
	}
}

// rates are dropout's p: none, usual, one that is no multiple of 1/65536, and the largest below 1.
var rates = []float32{0, 0.1, 0.5, 1.0 / 3, 0.99999994}

func testDropout(r *rig) {
	for _, s := range shapes {
		for _, p := range rates {
			r.at("%d×%d p=%v", s[0], s[1], p)
			n, key := s[0]*s[1], r.rng.Uint64()
			ids := r.ids(s[0])
			for _, src := range []operand{r.floats(s[0], s[1], r.spread(n)), r.halves(s[0], s[1], r.spread(n))} {
				dst := r.normal(s[0], s[1])
				r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.Dropout(on(dst), on(src), on(ids), key, p) })
				r.close(1e-7, dst)
				r.unchanged(src, ids)
			}
			place := r.floats(s[0], s[1], r.spread(n))
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.Dropout(on(place), on(place), on(ids), key, p)
			})
			r.close(1e-7, place)
		}
	}
}

func testDropoutGrad(r *rig) {
	for _, s := range shapes {
		for _, p := range rates {
			r.at("%d×%d p=%v", s[0], s[1], p)
			key := r.rng.Uint64()
			dx, dy, ids := r.normal(s[0], s[1]), r.floats(s[0], s[1], r.spread(s[0]*s[1])), r.ids(s[0])
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.DropoutGrad(on(dx), on(dy), on(ids), key, p)
			})
			r.close(1e-6, dx)
			r.unchanged(dy, ids)
		}
	}
}
