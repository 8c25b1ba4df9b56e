package kerneltest

import (
	"math"

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
		wide := r.normals(n)
		kernels.Scale(wide, 10)
		for _, values := range [][]float32{r.normals(n), wide, r.spread(n)} {
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

// testGRUCell has gates that are open, shut and between, and takes them in a place of their own and
// in place of the products.
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

// times makes a row of two columns for each time.
func (r *rig) times(all []float64) operand {
	var pairs []float32
	for _, t := range all {
		high, low := kernels.SplitTime(t)
		pairs = append(pairs, high, low)
	}
	return r.floats(len(all), 2, pairs)
}

// rates returns the rates that a network begins with, from 1 down to 1e-9, and phases, nearly all
// within two turns.
func (r *rig) rates(cols int) (w, b operand) {
	rates, shifts := make([]float32, cols), r.normals(cols)
	for c := range rates {
		rates[c] = float32(math.Pow(10, -9*float64(c)/float64(max(1, cols-1))))
		shifts[c] *= 4
	}
	return r.floats(1, cols, rates), r.floats(1, cols, shifts)
}

// testTimeEncode has times of microseconds and of half a century in seconds with their fractions,
// both signs, and what is no time.
func testTimeEncode(r *rig) {
	for _, s := range shapes {
		r.at("%d×%d", s[0], s[1])
		times := make([]float64, s[0])
		for i := range times {
			times[i] = r.rng.NormFloat64() * math.Pow(10, float64(r.rng.IntN(16)-6))
		}
		for i, v := range []float64{0, 1.7e9 + 0.123456, -1.7e9 - 0.5, 10, math.Inf(1), math.NaN()} {
			if i < len(times) {
				times[len(times)-1-i] = v
			}
		}
		at, dst := r.times(times), r.normal(s[0], s[1])
		w, b := r.rates(s[1])
		r.both(func(be kernels.Backend, on func(operand) kernels.Tensor) {
			be.TimeEncode(on(dst), on(at), on(w), on(b))
		})
		r.close(3e-7, dst)
		r.unchanged(at, w, b)
	}
}

func testTimeEncodeGrad(r *rig) {
	for _, s := range shapes {
		r.at("%d×%d", s[0], s[1])
		times := make([]float64, s[0])
		for i := range times {
			times[i] = 10 * r.rng.NormFloat64()
		}
		at, dy, dw, db := r.times(times), r.normal(s[0], s[1]), r.normal(1, s[1]), r.normal(1, s[1])
		w, b := r.rates(s[1])
		r.both(func(be kernels.Backend, on func(operand) kernels.Tensor) {
			be.TimeEncodeGrad(on(dw), on(db), on(dy), on(at), on(w), on(b))
		})
		r.close(3e-5, dw, db) // of some hundred terms around 10
		r.unchanged(dy, at, w, b)
	}
}

func testStateRefusals(r *rig) {
	f := func(rows, cols int) kernels.Tensor { return r.normal(rows, cols).tensor }
	b := r.b
	r.refuses(map[string]func(){
		"LeakyReLU":            func() { b.LeakyReLU(f(2, 3), f(3, 2), 0.2) },
		"LeakyReLUGrad":        func() { b.LeakyReLUGrad(f(2, 3), f(2, 3), f(2, 2), 0.2) },
		"Tanh":                 func() { b.Tanh(f(2, 3), f(3, 2)) },
		"TanhGrad":             func() { b.TanhGrad(f(2, 3), f(2, 3), f(2, 2)) },
		"GRUCell columns":      func() { b.GRUCell(f(2, 3), f(2, 9), f(2, 6), f(2, 9), f(2, 3)) },
		"GRUCell gates":        func() { b.GRUCell(f(2, 3), f(2, 3), f(2, 9), f(2, 9), f(2, 3)) },
		"GRUCell state":        func() { b.GRUCell(f(2, 3), f(2, 9), f(2, 9), f(2, 9), f(3, 3)) },
		"GRUCellGrad state":    func() { b.GRUCellGrad(f(2, 9), f(2, 9), f(2, 2), f(2, 3), f(2, 9), f(2, 9), f(2, 3)) },
		"GRUCellGrad columns":  func() { b.GRUCellGrad(f(2, 9), f(2, 9), f(2, 3), f(2, 3), f(2, 9), f(2, 3), f(2, 3)) },
		"TimeEncode times":     func() { b.TimeEncode(f(2, 3), f(2, 1), f(1, 3), f(1, 3)) },
		"TimeEncode rates":     func() { b.TimeEncode(f(2, 3), f(2, 2), f(1, 2), f(1, 3)) },
		"TimeEncodeGrad rows":  func() { b.TimeEncodeGrad(f(1, 3), f(1, 3), f(3, 3), f(2, 2), f(1, 3), f(1, 3)) },
		"TimeEncodeGrad rates": func() { b.TimeEncodeGrad(f(1, 3), f(1, 2), f(2, 3), f(2, 2), f(1, 3), f(1, 3)) },
	})
}
