package kernels

// LeakyReLU computes dst = src above 0 and slope·src elsewhere.
func LeakyReLU(dst, src []float32, slope float32) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = leaky(v, slope)
	}
}

// LeakyReLUGrad adds dy to dx where x > 0, and slope·dy elsewhere.
func LeakyReLUGrad(dx, dy, x []float32, slope float32) {
	dy, x = dy[:len(dx)], x[:len(dx)]
	for i, g := range dy {
		if !(x[i] > 0) {
			g *= slope
		}
		dx[i] += g
	}
}

// LeakyReLU implements [Backend].
func (c *CPU) LeakyReLU(dst, src Tensor, slope float32) {
	c.each("LeakyReLU", dst, src, func(dst, src []float32) { LeakyReLU(dst, src, slope) })
}

// LeakyReLUGrad implements [Backend].
func (c *CPU) LeakyReLUGrad(dx, dy, x Tensor, slope float32) {
	c.eachGrad("LeakyReLUGrad", dx, dy, "x", x, func(dx, dy, x []float32) { LeakyReLUGrad(dx, dy, x, slope) })
}

// LeakyReLU implements [Backend].
func (r *Reference) LeakyReLU(dst, src Tensor, slope float32) {
	r.each("LeakyReLU", dst, src, func(dst, src []float64) { leakyReLURef(dst, src, float64(slope)) })
}

// LeakyReLUGrad implements [Backend].
func (r *Reference) LeakyReLUGrad(dx, dy, x Tensor, slope float32) {
	r.eachGrad("LeakyReLUGrad", dx, dy, "x", x, func(dx, dy, x []float64) { leakyReLUGradRef(dx, dy, x, float64(slope)) })
}
