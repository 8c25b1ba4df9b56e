package kernels

import "math"

// SoftmaxCrossEntropy writes each row's loss -log softmax(logits)[label] to loss, and its gradient
// times scale to dlogits. A row labelled NoLabel has loss 0 and gradient 0. There is a row for
// every label.
func SoftmaxCrossEntropy(loss, dlogits, logits []float32, labels []uint32, cols int, scale float32) {
	for r, label := range labels {
		x, d := logits[r*cols:][:cols], dlogits[r*cols:][:cols]
		if label == NoLabel {
			loss[r] = 0
			clear(d)
			continue
		}
		top := x[0]
		for _, v := range x {
			top = max(top, v) // the built-in max keeps a NaN
		}
		// The exponentials are taken in float64, where package math has them; so is their sum, at
		// no further cost.
		var total float64
		for c, v := range x {
			e := math.Exp(float64(v - top))
			d[c] = float32(e)
			total += e
		}
		loss[r] = float32(math.Log(total) - float64(x[label]-top))
		factor := float32(float64(scale) / total)
		for c := range d {
			d[c] *= factor
		}
		d[label] -= scale
	}
}

// exp computes dst = e^src; dst may be src itself. The assembly sets are within one unit in the
// last place of the exact value, subnormal ones included. NaN stays NaN.
func exp(dst, src []float32) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = float32(math.Exp(float64(v)))
	}
}

// ArgMax writes to dst the column of each row's largest value: the first of equals. NaN counts as
// larger than any number.
func ArgMax(dst []uint32, src []float32, cols int) {
	for r := range dst {
		x := src[r*cols:][:cols]
		best := 0
		for c, v := range x {
			// !(v <= top) rather than v > top lets a NaN in; x[best] == x[best] keeps it there.
			if top := x[best]; !(v <= top) && top == top {
				best = c
			}
		}
		dst[r] = uint32(best)
	}
}
