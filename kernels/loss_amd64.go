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
			for i := range labels {
				wideCrossEntropy(loss[i:i+1], dlogits[i*cols:][:cols], logits[i*cols:][:cols], labels[i:i+1], scale, softmax)
			}
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
	exps := r.exp
	r.sigmoidCrossEntropy = func(loss, dlogits, logits, targets []float32, cols int, scale float32) {
		sigmoidCrossEntropy(loss, dlogits, logits, targets, cols, scale, exps)
	}
	r.argMax = func(dst []uint32, src []float32, cols int) {
		src = src[:len(dst)*cols]
		if !cutRows(len(dst), cols, func(lo, n int) { argMax(&dst[lo], &src[lo*cols], n, cols) }) {
			ArgMax(dst, src, cols)
		}
	}
}

// wideCrossEntropy is a row of SoftmaxCrossEntropy that is longer than a call of the assembly may
// take: softmax of each part of it, which is then scaled to its share of the whole. Where a part
// has no largest number, the loop does it.
func wideCrossEntropy(
	loss, d, x []float32, label []uint32, scale float32, softmax func(dst, x *float32, cols int, scale float32) (top, total float32),
) {
	type part struct{ top, total float64 }
	parts, whole := make([]part, 0, len(x)/callRows+1), part{top: math.Inf(-1)}
	for lo := 0; lo < len(x) && label[0] != NoLabel; lo += callRows {
		top, total := softmax(&d[lo], &x[lo], min(callRows, len(x)-lo), scale)
		if top-top != 0 {
			break
		}
		parts = append(parts, part{float64(top), float64(total)})
		whole.top = max(whole.top, float64(top))
	}
	if len(parts)*callRows < len(x) {
		SoftmaxCrossEntropy(loss, d, x, label, len(x), scale)
		return
	}
	for _, p := range parts {
		whole.total += p.total * math.Exp(p.top-whole.top)
	}
	for i, p := range parts {
		share := float32(p.total * math.Exp(p.top-whole.top) / whole.total)
		lo := i * callRows
		for c, v := range d[lo:min(lo+callRows, len(d))] {
			d[lo+c] = v * share
		}
	}
	loss[0] = float32(math.Log(whole.total) - (float64(x[label[0]]) - whole.top))
	d[label[0]] -= scale
}
