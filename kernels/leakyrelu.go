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
	checkSame("LeakyReLU", "dst", dst, "src", src)
	d, s := c.floats("LeakyReLU", "dst", dst), c.floats("LeakyReLU", "src", src)
	c.elements(len(d), func(lo, hi int) { LeakyReLU(d[lo:hi], s[lo:hi], slope) })
}

// LeakyReLUGrad implements [Backend].
func (c *CPU) LeakyReLUGrad(dx, dy, x Tensor, slope float32) {
	checkSame("LeakyReLUGrad", "dx", dx, "dy", dy)
	checkSame("LeakyReLUGrad", "dx", dx, "x", x)
	d, g, v := c.floats("LeakyReLUGrad", "dx", dx), c.floats("LeakyReLUGrad", "dy", dy), c.floats("LeakyReLUGrad", "x", x)
	c.elements(len(d), func(lo, hi int) { LeakyReLUGrad(d[lo:hi], g[lo:hi], v[lo:hi], slope) })
}

// LeakyReLU implements [Backend].
func (r *Reference) LeakyReLU(dst, src Tensor, slope float32) {
	checkSame("LeakyReLU", "dst", dst, "src", src)
	leakyReLURef(r.floats("LeakyReLU", "dst", dst), r.floats("LeakyReLU", "src", src), float64(slope))
}

// LeakyReLUGrad implements [Backend].
func (r *Reference) LeakyReLUGrad(dx, dy, x Tensor, slope float32) {
	checkSame("LeakyReLUGrad", "dx", dx, "dy", dy)
	checkSame("LeakyReLUGrad", "dx", dx, "x", x)
	leakyReLUGradRef(r.floats("LeakyReLUGrad", "dx", dx), r.floats("LeakyReLUGrad", "dy", dy), r.floats("LeakyReLUGrad", "x", x), float64(slope))
}
