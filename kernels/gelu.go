package kernels

import "math"

// GELU computes dst = src·Φ(src), Φ being the standard normal distribution function (Hendrycks and Gimpel 2016, the exact form
// and not the approximation by tanh).
func GELU(dst, src []float32) {
	src = src[:len(dst)]
	for i, v := range src {
		x := float64(v)
		dst[i] = float32(x * normalCDF(x))
	}
}

// GELUGrad adds dy times the slope of GELU at x, Φ(x) + x·Φ'(x), to dx.
func GELUGrad(dx, dy, x []float32) {
	dy, x = dy[:len(dx)], x[:len(dx)]
	for i, g := range dy {
		v := float64(x[i])
		dx[i] += float32(float64(g) * (normalCDF(v) + v*normalDensity(v)))
	}
}

// normalCDF is Φ(x). By erfc and not by erf, it keeps its digits where it is near 0.
func normalCDF(x float64) float64 { return math.Erfc(x*-(1/math.Sqrt2)) / 2 }

// normalDensity is Φ'(x).
func normalDensity(x float64) float64 {
	const atZero = 1 / (math.Sqrt2 * math.SqrtPi)
	return atZero * math.Exp(x*x*-0.5)
}

// geluCost is what an element of GELU costs, in elements of anything else, to size chunks.
const geluCost = 8

// GELU implements [Backend].
func (c *CPU) GELU(dst, src Tensor) {
	checkSame("GELU", "dst", dst, "src", src)
	d, s := c.floats("GELU", "dst", dst), c.floats("GELU", "src", src)
	parallelFor(c.threads, len(d), chunkElements/geluCost, func(lo, hi int) { GELU(d[lo:hi], s[lo:hi]) })
}

// GELUGrad implements [Backend].
func (c *CPU) GELUGrad(dx, dy, x Tensor) {
	checkSame("GELUGrad", "dx", dx, "dy", dy)
	checkSame("GELUGrad", "dx", dx, "x", x)
	d, g, v := c.floats("GELUGrad", "dx", dx), c.floats("GELUGrad", "dy", dy), c.floats("GELUGrad", "x", x)
	parallelFor(c.threads, len(d), chunkElements/geluCost, func(lo, hi int) { GELUGrad(d[lo:hi], g[lo:hi], v[lo:hi]) })
}

// GELU implements [Backend].
func (r *Reference) GELU(dst, src Tensor) {
	checkSame("GELU", "dst", dst, "src", src)
	geluRef(r.floats("GELU", "dst", dst), r.floats("GELU", "src", src))
}

// GELUGrad implements [Backend].
func (r *Reference) GELUGrad(dx, dy, x Tensor) {
	checkSame("GELUGrad", "dx", dx, "dy", dy)
	checkSame("GELUGrad", "dx", dx, "x", x)
	geluGradRef(r.floats("GELUGrad", "dx", dx), r.floats("GELUGrad", "dy", dy), r.floats("GELUGrad", "x", x))
}
