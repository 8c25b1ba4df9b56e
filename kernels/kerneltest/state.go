package kerneltest

import (
	"math"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

func testLeakyReLU(r *rig) {
	for _, s := range shapes {
		for _, slope := range []float32{0.2, 0, 1, -0.5} {
			r.at("%d×%d, slope %v", s[0], s[1], slope)
			n := s[0] * s[1]
			dst, x, dx, dy := r.normal(s[0], s[1]), r.floats(s[0], s[1], r.spread(n)), r.normal(s[0], s[1]), r.floats(s[0], s[1], r.sparseSpecials(n))
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.LeakyReLU(on(dst), on(x), slope)
				b.LeakyReLUGrad(on(dx), on(dy), on(x), slope)
			})
			r.close(1e-6, dst, dx)
			r.unchanged(x, dy)
		}
	}
}

func testTanh(r *rig) {
	for _, s := range shapes {
		r.at("%d×%d", s[0], s[1])
		n := s[0] * s[1]
		far := r.normals(n)
		for i := range far {
			far[i] *= 10
		}
		for _, values := range [][]float32{r.normals(n), far, r.spread(n)} {
			dst, x := r.normal(s[0], s[1]), r.floats(s[0], s[1], values)
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.Tanh(on(dst), on(x)) })
			r.close(1e-6, dst)
			r.unchanged(x)
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.Tanh(on(x), on(x)) })
			r.close(1e-6, x)
		}
		dx, dy, y := r.normal(s[0], s[1]), r.floats(s[0], s[1], r.sparseSpecials(n)), r.normal(s[0], s[1])
		r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.TanhGrad(on(dx), on(dy), on(y)) })
		r.close(1e-6, dx)
		r.unchanged(dy, y)
	}
}

// testGRUCell has gates that are open, shut and between, and takes them in a place of their own and in place of the products.
func testGRUCell(r *rig) {
	for _, size := range shapes {
		for i, draw := range []func(int) []float32{r.normals, r.sparseSpecials} {
			r.at("%d×%d, draw %d", size[0], size[1], i)
			rows, d := size[0], size[1]
			dst, gates := r.normal(rows, d), r.normal(rows, 3*d)
			x, h, s := r.floats(rows, 3*d, draw(3*rows*d)), r.floats(rows, 3*d, draw(3*rows*d)), r.floats(rows, d, draw(rows*d))
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.GRUCell(on(dst), on(gates), on(x), on(h), on(s))
			})
			r.close(1e-6, dst, gates)
			r.unchanged(x, h, s)
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.GRUCell(on(dst), on(x), on(x), on(h), on(s))
			})
			r.close(1e-6, dst, x)
			r.unchanged(h, s)

			opened := r.normals(3 * rows * d)
			for i, v := range opened {
				opened[i] = float32(math.Tanh(float64(v)))
				if i%(3*d) < 2*d {
					opened[i] = float32(1 / (1 + math.Exp(3*float64(v))))
				}
			}
			gates = r.floats(rows, 3*d, opened)
			dx, dh, ds, dy := r.normal(rows, 3*d), r.normal(rows, 3*d), r.normal(rows, d), r.floats(rows, d, draw(rows*d))
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.GRUCellGrad(on(dx), on(dh), on(ds), on(dy), on(gates), on(h), on(s))
			})
			r.close(2e-6, dx, dh, ds)
			r.unchanged(dy, gates, h, s)
		}
	}
}

func testStateRefusals(r *rig) {
	f := func(rows, cols int) kernels.Tensor { return r.normal(rows, cols).tensor }
	b := r.b
	for name, op := range map[string]func(){
		"LeakyReLU":           func() { b.LeakyReLU(f(2, 3), f(3, 2), 0.2) },
		"LeakyReLUGrad":       func() { b.LeakyReLUGrad(f(2, 3), f(2, 3), f(2, 2), 0.2) },
		"Tanh":                func() { b.Tanh(f(2, 3), f(3, 2)) },
		"TanhGrad":            func() { b.TanhGrad(f(2, 3), f(2, 3), f(2, 2)) },
		"GRUCell columns":     func() { b.GRUCell(f(2, 3), f(2, 9), f(2, 6), f(2, 9), f(2, 3)) },
		"GRUCell gates":       func() { b.GRUCell(f(2, 3), f(2, 3), f(2, 9), f(2, 9), f(2, 3)) },
		"GRUCell state":       func() { b.GRUCell(f(2, 3), f(2, 9), f(2, 9), f(2, 9), f(3, 3)) },
		"GRUCellGrad state":   func() { b.GRUCellGrad(f(2, 9), f(2, 9), f(2, 2), f(2, 3), f(2, 9), f(2, 9), f(2, 3)) },
		"GRUCellGrad columns": func() { b.GRUCellGrad(f(2, 9), f(2, 9), f(2, 3), f(2, 3), f(2, 9), f(2, 3), f(2, 3)) },
	} {
		require.Panics(r.t, op, name)
	}
}
