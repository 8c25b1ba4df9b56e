package kernels

import "math"

// ReLU computes dst = max(0, src); NaN stays NaN.
func ReLU(dst, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = max(src[i], 0)
	}
}

// ReLUGrad adds dy to dx where y > 0.
func ReLUGrad(dx, dy, y []float32) {
	dy, y = dy[:len(dx)], y[:len(dx)]
	for i := range dx {
		// A branch here would be a coin toss. The bits of a positive float are 1 … Inf's as an integer, so all of y > 0
		// comes down to one unsigned comparison, as a mask.
		const infinity = 0x7f80_0000
		keep := uint32((int64(math.Float32bits(y[i])-1) - infinity) >> 63)
		dx[i] += math.Float32frombits(math.Float32bits(dy[i]) & keep)
	}
}
