package kernels

import "math"

func softmaxCrossEntropyRef[T float](loss, dlogits, logits []T, labels []uint32, rows, cols int, scale T) {
	for r := range rows {
		x := logits[r*cols : (r+1)*cols]
		top, total := math.Inf(-1), 0.0
		for _, v := range x {
			top = max(top, float64(v))
		}
		for _, v := range x {
			total += math.Exp(float64(v) - top)
		}
		loss[r] = 0
		for c, v := range x {
			softmax := T(math.Exp(float64(v)-top) / total)
			switch labels[r] {
			case NoLabel:
				dlogits[r*cols+c] = 0
			case uint32(c):
				loss[r] = T(math.Log(total) - (float64(v) - top))
				dlogits[r*cols+c] = (softmax - 1) * scale
			default:
				dlogits[r*cols+c] = softmax * scale
			}
		}
	}
}

func argMaxRef[T float](dst []uint32, src []T, rows, cols int) {
	for r := range rows {
		x := src[r*cols : (r+1)*cols]
		best := 0
		for c, v := range x {
			if math.IsNaN(float64(v)) {
				best = c
				break
			}
			if v > x[best] {
				best = c
			}
		}
		dst[r] = uint32(best)
	}
}
