package kernels

import "math"

// Gate computes dst = share·a + rest·x.
func Gate(dst, a, x []float32, share, rest float32) {
	a, x = a[:len(dst)], x[:len(dst)]
	for i := range dst {
		dst[i] = share*a[i] + rest*x[i]
	}
}

// GateGrad adds share·dy to da and rest·dy to dx, and returns the sum of dy·(a-x), added up in
// float64.
func GateGrad(da, dx, dy, a, x []float32, share, rest float32) (slope float64) {
	da, dx, a, x = da[:len(dy)], dx[:len(dy)], a[:len(dy)], x[:len(dy)]
	for i, g := range dy {
		da[i] += share * g
		dx[i] += rest * g
		slope += float64(g) * (float64(a[i]) - float64(x[i]))
	}
	return slope
}

// gateShares returns σ(s) and 1-σ(s). Neither loses digits where it is near 0.
func gateShares(s float64) (share, rest float64) {
	return 1 / (1 + math.Exp(-s)), 1 / (1 + math.Exp(s))
}

func checkGate(dst, a, x, s Tensor) {
	if !sameShape(a, dst) || !sameShape(x, dst) || s.Rows != 1 || s.Cols != 1 {
		refuse("Gate", "dst", dst, "a", a, "x", x, "s", s)
	}
}

func checkGateGrad(da, dx, ds, dy, a, x, s Tensor) {
	if !sameShape(da, dy) || !sameShape(dx, dy) || !sameShape(a, dy) || !sameShape(x, dy) ||
		s.Rows != 1 || s.Cols != 1 || !sameShape(ds, s) {
		refuse("GateGrad", "da", da, "dx", dx, "ds", ds, "dy", dy, "a", a, "x", x, "s", s)
	}
}

// Gate implements [Backend].
func (c *CPU) Gate(dst, a, x, s Tensor) {
	checkGate(dst, a, x, s)
	d, av, xv := c.floats("Gate", "dst", dst), c.floats("Gate", "a", a), c.floats("Gate", "x", x)
	share, rest := gateShares(float64(c.floats("Gate", "s", s)[0]))
	c.elements(len(d), func(lo, hi int) { Gate(d[lo:hi], av[lo:hi], xv[lo:hi], float32(share), float32(rest)) })
}

// GateGrad implements [Backend].
func (c *CPU) GateGrad(da, dx, ds, dy, a, x, s Tensor) {
	const op = "GateGrad"
	checkGateGrad(da, dx, ds, dy, a, x, s)
	d, e, g := c.floats(op, "da", da), c.floats(op, "dx", dx), c.floats(op, "dy", dy)
	av, xv, gate := c.floats(op, "a", a), c.floats(op, "x", x), c.floats(op, "ds", ds)
	share, rest := gateShares(float64(c.floats(op, "s", s)[0]))
	slope := c.sumChunks(len(g), func(lo, hi int) float64 {
		return GateGrad(d[lo:hi], e[lo:hi], g[lo:hi], av[lo:hi], xv[lo:hi], float32(share), float32(rest))
	})
	gate[0] += float32(share * rest * slope)
}

// Gate implements [Backend].
func (r *Reference) Gate(dst, a, x, s Tensor) {
	checkGate(dst, a, x, s)
	gateRef(r.floats("Gate", "dst", dst), r.floats("Gate", "a", a), r.floats("Gate", "x", x), r.floats("Gate", "s", s)[0])
}

// GateGrad implements [Backend].
func (r *Reference) GateGrad(da, dx, ds, dy, a, x, s Tensor) {
	const op = "GateGrad"
	checkGateGrad(da, dx, ds, dy, a, x, s)
	gateGradRef(r.floats(op, "da", da), r.floats(op, "dx", dx), r.floats(op, "ds", ds), r.floats(op, "dy", dy),
		r.floats(op, "a", a), r.floats(op, "x", x), r.floats(op, "s", s)[0])
}
