package kerneltest

import (
	"math"

	"github.com/gnnstore/gnnstore/kernels"
)

func testScale(r *rig) {
	for _, s := range shapes {
		for _, factor := range []float32{0, 1, -1.5, 1e-30, float32(math.NaN()), float32(math.Inf(1))} {
			r.at("%d×%d by %v", s[0], s[1], factor)
			dst := r.floats(s[0], s[1], r.spread(s[0]*s[1]))
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.Scale(on(dst), factor) })
			r.close(1e-7, dst)
		}
	}
}

func testScaleRows(r *rig) {
	for _, s := range shapes {
		r.at("%d×%d", s[0], s[1])
		dst, factors := r.floats(s[0], s[1], r.spread(s[0]*s[1])), r.floats(s[0], 1, r.spread(s[0]))
		r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.ScaleRows(on(dst), on(factors)) })
		r.close(1e-7, dst)
		r.unchanged(factors)
	}
}

// targets draws zeros, ones and some between; every fifth is not known, and so is all of every
// seventh row.
func (r *rig) targets(rows, cols int) operand {
	s := make([]float32, rows*cols)
	for i := range s {
		switch {
		case i%5 == 3 || i/cols%7 == 4:
			s[i] = float32(math.NaN())
		case i%11 == 0:
			s[i] = r.rng.Float32()
		default:
			s[i] = float32(r.rng.IntN(2))
		}
	}
	return r.floats(rows, cols, s)
}

func (r *rig) sigmoid(rows, cols int, tolerance float64, values []float32) {
	loss, dlogits, logits, targets := r.normal(rows, 1), r.normal(rows, cols), r.floats(rows, cols, values), r.targets(rows, cols)
	r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
		b.SigmoidCrossEntropy(on(loss), on(dlogits), on(logits), on(targets), 0.125)
	})
	r.close(tolerance, loss, dlogits)
	r.unchanged(logits, targets)
}

func testSigmoidCrossEntropy(r *rig) {
	for _, s := range append(shapes, [2]int{3, 1500}) {
		r.at("%d×%d", s[0], s[1])
		r.sigmoid(s[0], s[1], 1e-6, r.rowsFor(s[0], s[1]))
	}
}

// testSigmoidCrossEntropyExtremes has logits whose exponentials overflow or vanish.
func testSigmoidCrossEntropyExtremes(r *rig) {
	for _, size := range []float32{0, 1e-30, 20, 80, 1e3, 1e6, 1e30} {
		r.at("logits of size %v", size)
		values := r.normals(40 * 9)
		kernels.Scale(values, size)
		r.sigmoid(40, 9, 1e-6, values)
	}
	r.at("NaN and Inf")
	r.sigmoid(40, 9, 1e-6, r.spread(40*9))
}

// testSquaredError has targets that are not known, and predictions of every size, none of them
// finite where spread has it so.
func testSquaredError(r *rig) {
	for _, s := range append(shapes, [2]int{1500, 1}) {
		for _, values := range [][]float32{r.rowsFor(s[0], s[1]), r.spread(s[0] * s[1])} {
			r.at("%d×%d", s[0], s[1])
			loss, d, x, y := r.normal(s[0], 1), r.normal(s[0], s[1]), r.floats(s[0], s[1], values), r.targets(s[0], s[1])
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.SquaredError(on(loss), on(d), on(x), on(y), 0.125)
			})
			r.close(1e-6, loss, d)
			r.unchanged(x, y)
		}
	}
}
