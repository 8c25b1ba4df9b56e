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
		dx[i] += whereAbove(y[i], dy[i])
	}
}

// ReLUMask sets d to 0 where y is not above 0.
func ReLUMask(d, y []float32) {
	y = y[:len(d)]
	for i := range d {
		d[i] = whereAbove(y[i], d[i])
	}
}

// whereAbove is v where y > 0, else 0. A branch here would be a coin toss. The bits of a positive
// float are 1 … Inf's as an integer, so all of y > 0 comes down to one unsigned comparison, as a
// mask.
func whereAbove(y, v float32) float32 {
	const infinity = 0x7f80_0000
	keep := uint32((int64(math.Float32bits(y)-1) - infinity) >> 63)
	return math.Float32frombits(math.Float32bits(v) & keep)
}
