package kerneltest

import (
	"math"

	"github.com/gnnstore/gnnstore/kernels"
)

// rowsFor draws rows that layer norm and softmax find hard: ordinary ones, a constant one, one far
// from 0, and where there is room one with NaN and one with Inf.
func (r *rig) rowsFor(rows, cols int) []float32 {
	s := r.normals(rows * cols)
	for i := range rows {
		row := s[i*cols : (i+1)*cols]
		for c := range row {
			switch i % 16 {
			case 3:
				row[c] = 2.5
			case 4:
				row[c] += 50
			}
		}
		if cols > 2 && i%16 == 5 {
			row[cols-1] = float32(math.NaN())
		}
		if cols > 2 && i%16 == 6 {
			row[1] = float32(math.Inf(1))
		}
	}
	return s
}

func testLayerNorm(r *rig) {
	for _, s := range shapes {
		r.at("%d×%d", s[0], s[1])
		dst, stats, x := r.normal(s[0], s[1]), r.normal(s[0], 2), r.floats(s[0], s[1], r.rowsFor(s[0], s[1]))
		gain, bias := r.normal(1, s[1]), r.normal(1, s[1])
		r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
			b.LayerNorm(on(dst), on(stats), on(x), on(gain), on(bias), 1e-5)
		})
		r.close(5e-5, dst, stats)
		r.unchanged(x, gain, bias)
	}
}

func testLayerNormGrad(r *rig) {
	for i, s := range shapes {
		for _, draw := range []func(rows, cols int) []float32{
			func(rows, cols int) []float32 { return r.normals(rows * cols) }, r.rowsFor,
		} {
			fresh := i%2 == 1
			r.at("%d×%d, fresh %v", s[0], s[1], fresh)
			x, gain, bias := r.floats(s[0], s[1], draw(s[0], s[1])), r.normal(1, s[1]), r.normal(1, s[1])
			y, statistics := r.normal(s[0], s[1]), r.normal(s[0], 2)
			r.ref.LayerNorm(y.oracle, statistics.oracle, x.oracle, gain.oracle, bias.oracle, 1e-2)
			given := make([]float32, 2*s[0])
			r.ref.DownloadF32(given, statistics.oracle)
			// Both sides start from the same, rounded, statistics.
			stats := r.floats(s[0], 2, given)
			dx, dgain, dbias, dy := r.normal(s[0], s[1]), r.normal(1, s[1]), r.normal(1, s[1]), r.normal(s[0], s[1])
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.LayerNormGrad(on(dx), on(dgain), on(dbias), on(dy), on(x), on(stats), on(gain), fresh)
			})
			r.close(1e-4, dx)
			r.close(1e-5+1e-6*float64(s[0]), dgain, dbias)
			r.unchanged(dy, x, stats, gain)
		}
	}
}

// labels draws labels, every fourth row having none.
func (r *rig) labels(rows, classes int) operand {
	s := make([]uint32, rows)
	for i := range s {
		if classes == 0 || i%4 == 2 {
			s[i] = kernels.NoLabel
			continue
		}
		s[i] = r.rng.Uint32N(uint32(classes))
	}
	return r.uints(s)
}

func (r *rig) crossEntropy(rows, cols int, values []float32) {
	loss, dlogits, logits, labels := r.normal(rows, 1), r.normal(rows, cols), r.floats(rows, cols, values), r.labels(rows, cols)
	r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
		b.SoftmaxCrossEntropy(on(loss), on(dlogits), on(logits), on(labels), 0.125)
	})
	r.close(1e-5, loss, dlogits)
	r.unchanged(logits, labels)
}

func testSoftmaxCrossEntropy(r *rig) {
	for _, s := range shapes {
		r.at("%d×%d", s[0], s[1])
		r.crossEntropy(s[0], s[1], r.rowsFor(s[0], s[1]))
	}
}

// testSoftmaxCrossEntropyExtremes has logits whose exponentials overflow or vanish unless the
// largest is taken off first.
func testSoftmaxCrossEntropyExtremes(r *rig) {
	for _, size := range []float32{80, 1e3, 1e6, 1e30} {
		r.at("logits of size %v", size)
		values := r.normals(40 * 9)
		kernels.Scale(values, size)
		r.crossEntropy(40, 9, values)
	}
	r.at("classes ruled out by -Inf")
	values := r.normals(40 * 9)
	for i := range values {
		if i%9 != 4 && r.rng.IntN(2) == 0 {
			values[i] = float32(math.Inf(-1))
		}
	}
	r.crossEntropy(40, 9, values)
}

func testArgMax(r *rig) {
	for _, s := range shapes {
		r.at("%d×%d", s[0], s[1])
		n := s[0] * s[1]
		ties := r.normals(n)
		for i := range ties {
			ties[i] = float32(math.Round(float64(ties[i])))
		}
		ruledOut := r.normals(n)
		for i := range ruledOut {
			ruledOut[i] = float32(math.Inf(-1))
		}
		for _, values := range [][]float32{r.normals(n), ties, ruledOut, r.spread(n)} {
			dst, src := r.ids(s[0]), r.floats(s[0], s[1], values)
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.ArgMax(on(dst), on(src)) })
			r.closeUints(dst)
			r.unchanged(src)
		}
	}
}

// testAdam takes several steps with two parameters, so that m and v are read back as they were
// written.
func testAdam(r *rig) {
	for _, s := range shapes {
		for _, of := range []struct{ decay, keep float32 }{{0, 1}, {0.01, 1}, {0, 0.875}} {
			zeros := func() operand { return r.floats(s[0], s[1], make([]float32, s[0]*s[1])) }
			first, second := r.normal(s[0], s[1]), r.normal(s[0], s[1])
			params := [2][4]operand{{first, zeros(), zeros(), zeros()}, {second, zeros(), zeros(), zeros()}}
			for step := range 3 {
				r.at("%d×%d weight decay %v, keep %v, step %d", s[0], s[1], of.decay, of.keep, step+1)
				for i := range params {
					params[i][1] = r.floats(s[0], s[1], r.gradients(s[0]*s[1], step == 2 && i == 0))
				}
				t := float64(step + 1)
				adam := kernels.AdamStep{
					LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: of.decay,
					Correct1: float32(1 - math.Pow(0.9, t)), Correct2: float32(1 - math.Pow(0.999, t)),
				}
				r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
					var all []kernels.AdamParam
					for _, p := range params {
						all = append(all, kernels.AdamParam{Value: on(p[0]), Grad: on(p[1]), M: on(p[2]), V: on(p[3])})
					}
					b.Adam(all, of.keep, adam, kernels.Guard{})
				})
				for _, p := range params {
					r.close(2e-6, p[0], p[1], p[2], p[3])
				}
			}
		}
	}
}

// gradients draws n gradients, every fifth of them 0, which leaves sqrt(v) at 0. If odd is set,
// some are not finite.
func (r *rig) gradients(n int, odd bool) []float32 {
	values := r.normals(n)
	for i := 0; i < n; i += 5 {
		values[i] = 0
	}
	if odd && n > 10 {
		values[3], values[7] = float32(math.NaN()), float32(math.Inf(1))
	}
	return values
}
