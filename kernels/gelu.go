package kernels

import "math"

// GELU is x·Φ(x), Φ being the standard normal distribution function (Hendrycks and Gimpel 2016, the
// exact form and not the approximation by tanh). With a = |x| and φ = Φ', Φ(-a) is e^(-a²/2) times
// a ratio that falls slowly from 1/2. So one exponential serves Φ and φ, and results have all their
// digits far below 0 too, where 1 + erf has none.

// normalRatio is Φ(-a)·e^(a²/2) for 0 ≤ a ≤ 14.5, where e^(-a²/2) is a float32 above 0. It is
// t·p(t), t = 1/(1 + 0.34375·a), p the polynomial of degree 8 whose largest relative error is
// smallest, by Remez's exchange: 2.5e-8, less than half a float32's last place. Other slopes of t
// than 0.34375 make it worse.
func normalRatio(a float64) float64 {
	t := 1 / (1 + 0.34375*a)
	p := -0.027582220320610695
	p = p*t + 0.1428039903298205
	p = p*t - 0.2696805019502913
	p = p*t + 0.18874313801388573
	p = p*t - 0.03790764719431593
	p = p*t + 0.11210726743247729
	p = p*t + 0.11686963239022899
	p = p*t + 0.1375258096531078
	p = p*t + 0.1371205439100659
	return t * p
}

// normalLimit is where Φ is 0 or 1 for long: products with Inf would be NaN.
const normalLimit = 64

// GELU computes dst = src·Φ(src), which is 0 at -Inf.
func GELU(dst, src []float32) {
	src = src[:len(dst)]
	for i, v := range src {
		x := float64(v)
		a := min(math.Abs(x), normalLimit) // the built-in min keeps a NaN
		dst[i] = float32(max(x, 0) - a*normalRatio(a)*math.Exp(a*a*-0.5))
	}
}

// GELUGrad adds dy times the slope of GELU at x, Φ(x) + x·φ(x), to dx. The slope is 0 at -Inf and 1
// at Inf.
func GELUGrad(dx, dy, x []float32) {
	const density = 1 / (math.Sqrt2 * math.SqrtPi) // φ(0)
	dy, x = dy[:len(dx)], x[:len(dx)]
	for i, g := range dy {
		v := float64(x[i])
		a := min(math.Abs(v), normalLimit)
		below := (normalRatio(a) - a*density) * math.Exp(a*a*-0.5) // the slope at -a, and 1 - below at a
		dx[i] += float32(float64(g) * (0.5 + math.Copysign(0.5-below, v)))
	}
}

// GELU implements [Backend].
func (c *CPU) GELU(dst, src Tensor) { c.each("GELU", dst, src, c.gelu) }

// GELUGrad implements [Backend].
func (c *CPU) GELUGrad(dx, dy, x Tensor) {
	c.eachGrad("GELUGrad", dx, dy, "x", x, c.geluGrad)
}

// GELU implements [Backend].
func (r *Reference) GELU(dst, src Tensor) { r.each("GELU", dst, src, geluRef) }

// GELUGrad implements [Backend].
func (r *Reference) GELUGrad(dx, dy, x Tensor) {
	r.eachGrad("GELUGrad", dx, dy, "x", x, geluGradRef)
}
