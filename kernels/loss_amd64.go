//go:build amd64 && !purego

package kernels

import "math"

func (r *routines) losses(
	exp func(dst, src *float32, n int), softmax func(dst, x *float32, cols int, scale float32) (top, total float32),
	argMax func(dst *uint32, src *float32, rows, cols int),
) {
	r.exp = func(dst, src []float32) {
		src = src[:len(dst)]
		cutElements(len(dst), func(lo, n int) { exp(&dst[lo], &src[lo], n) })
	}
	r.softmaxCrossEntropy = func(loss, dlogits, logits []float32, labels []uint32, cols int, scale float32) {
		if cols == 0 || cols > callRows {
			SoftmaxCrossEntropy(loss, dlogits, logits, labels, cols, scale)
			return
		}
		loss = loss[:len(labels)]
		for i, label := range labels {
			x, d := logits[i*cols:][:cols], dlogits[i*cols:][:cols]
			if label == NoLabel {
				loss[i] = 0
				clear(d)
				continue
			}
			top, total := softmax(&d[0], &x[0], cols, scale)
			loss[i] = float32(math.Log(float64(total)) - float64(x[label]-top))
			d[label] -= scale
		}
	}
	r.argMax = func(dst []uint32, src []float32, cols int) {
		src = src[:len(dst)*cols]
		if !cutRows(len(dst), cols, func(lo, n int) { argMax(&dst[lo], &src[lo*cols], n, cols) }) {
			ArgMax(dst, src, cols)
		}
	}
}
