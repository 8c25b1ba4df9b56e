package kernels

import "math"

// What recurrent cells do after their products. Shapes: N rows, D columns of state. See
// Backend.GRUCell.

// GRUCell computes the new state dst from x and h, which have the parts of the three gates side by
// side, and the old state s of d columns. It leaves the gates themselves in gates, which may be x.
func GRUCell(dst, gates, x, h, s []float32, d int) {
	for ; len(dst) > 0; dst, gates, x, h, s = dst[d:], gates[3*d:], x[3*d:], h[3*d:], s[d:] {
		for c := range d {
			reset, keep := sigmoid32(x[c]+h[c]), sigmoid32(x[d+c]+h[d+c])
			fresh := tanh32(x[2*d+c] + reset*h[2*d+c])
			gates[c], gates[d+c], gates[2*d+c] = reset, keep, fresh
			dst[c] = fresh + keep*(s[c]-fresh)
		}
	}
}

// GRUCellGrad adds to dx, dh and ds what the gradient dy of GRUCell's result makes of them.
func GRUCellGrad(dx, dh, ds, dy, gates, h, s []float32, d int) {
	for ; len(dy) > 0; dx, dh, ds, dy, gates, h, s = dx[3*d:], dh[3*d:], ds[d:], dy[d:], gates[3*d:], h[3*d:], s[d:] {
		for c := range d {
			g, reset, keep, fresh := dy[c], gates[c], gates[d+c], gates[2*d+c]
			dFresh := g * (1 - keep) * (1 - fresh*fresh)
			dKeep := g * (s[c] - fresh) * keep * (1 - keep)
			dReset := dFresh * h[2*d+c] * reset * (1 - reset)
			dx[c] += dReset
			dx[d+c] += dKeep
			dx[2*d+c] += dFresh
			dh[c] += dReset
			dh[d+c] += dKeep
			dh[2*d+c] += dFresh * reset
			ds[c] += g * keep
		}
	}
}

// Tanh computes dst = tanh(src); dst may be src.
func Tanh(dst, src []float32) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = tanh32(v)
	}
}

// TanhGrad adds dy·(1-y²) to dx.
func TanhGrad(dx, dy, y []float32) {
	dy, y = dy[:len(dx)], y[:len(dx)]
	for i, g := range dy {
		dx[i] += g * (1 - y[i]*y[i])
	}
}

func sigmoid32(v float32) float32 { return float32(1 / (1 + math.Exp(-float64(v)))) }
func tanh32(v float32) float32    { return float32(math.Tanh(float64(v))) }

func checkGRUCell(dst, gates, x, h, s Tensor) {
	if !sameShape(s, dst) || x.Rows != dst.Rows || x.Cols != 3*dst.Cols || !sameShape(h, x) || !sameShape(gates, x) {
		refuse("GRUCell", "dst", dst, "gates", gates, "x", x, "h", h, "s", s)
	}
}

func checkGRUCellGrad(dx, dh, ds, dy, gates, h, s Tensor) {
	if !sameShape(ds, dy) || !sameShape(s, dy) || dx.Rows != dy.Rows || dx.Cols != 3*dy.Cols ||
		!sameShape(dh, dx) || !sameShape(gates, dx) || !sameShape(h, dx) {
		refuse("GRUCellGrad", "dx", dx, "dh", dh, "ds", ds, "dy", dy, "gates", gates, "h", h, "s", s)
	}
}

// expCost is about how many elements of anything else an exponential costs.
const expCost = 8

// GRUCell implements [Backend].
func (c *CPU) GRUCell(dst, gates, x, h, s Tensor) {
	const op = "GRUCell"
	checkGRUCell(dst, gates, x, h, s)
	o, g, n := c.floats(op, "dst", dst), c.floats(op, "gates", gates), dst.Cols
	xv, hv, sv := c.floats(op, "x", x), c.floats(op, "h", h), c.floats(op, "s", s)
	c.rows(dst.Rows, 3*expCost*n, func(lo, hi int) {
		c.gruCell(o[lo*n:hi*n], g[3*lo*n:3*hi*n], xv[3*lo*n:3*hi*n], hv[3*lo*n:3*hi*n], sv[lo*n:hi*n], n)
	})
}

// GRUCellGrad implements [Backend].
func (c *CPU) GRUCellGrad(dx, dh, ds, dy, gates, h, s Tensor) {
	const op = "GRUCellGrad"
	checkGRUCellGrad(dx, dh, ds, dy, gates, h, s)
	dxv, dhv, dsv, up, n := c.floats(op, "dx", dx), c.floats(op, "dh", dh), c.floats(op, "ds", ds), c.floats(op, "dy", dy), dy.Cols
	g, hv, sv := c.floats(op, "gates", gates), c.floats(op, "h", h), c.floats(op, "s", s)
	c.rows(dy.Rows, 9*n, func(lo, hi int) {
		c.gruCellGrad(dxv[3*lo*n:3*hi*n], dhv[3*lo*n:3*hi*n], dsv[lo*n:hi*n], up[lo*n:hi*n],
			g[3*lo*n:3*hi*n], hv[3*lo*n:3*hi*n], sv[lo*n:hi*n], n)
	})
}

// Tanh implements [Backend].
func (c *CPU) Tanh(dst, src Tensor) { c.each("Tanh", dst, src, c.tanh) }

// TanhGrad implements [Backend].
func (c *CPU) TanhGrad(dx, dy, y Tensor) {
	c.eachGrad("TanhGrad", dx, dy, "y", y, c.tanhGrad)
}

// GRUCell implements [Backend].
func (r *Reference) GRUCell(dst, gates, x, h, s Tensor) {
	const op = "GRUCell"
	checkGRUCell(dst, gates, x, h, s)
	gruCellRef(r.floats(op, "dst", dst), r.floats(op, "gates", gates), r.floats(op, "x", x), r.floats(op, "h", h),
		r.floats(op, "s", s), dst.Rows, dst.Cols)
}

// GRUCellGrad implements [Backend].
func (r *Reference) GRUCellGrad(dx, dh, ds, dy, gates, h, s Tensor) {
	const op = "GRUCellGrad"
	checkGRUCellGrad(dx, dh, ds, dy, gates, h, s)
	gruCellGradRef(r.floats(op, "dx", dx), r.floats(op, "dh", dh), r.floats(op, "ds", ds), r.floats(op, "dy", dy),
		r.floats(op, "gates", gates), r.floats(op, "h", h), r.floats(op, "s", s), dy.Rows, dy.Cols)
}

// Tanh implements [Backend].
func (r *Reference) Tanh(dst, src Tensor) { r.each("Tanh", dst, src, tanhRef[float64]) }

// TanhGrad implements [Backend].
func (r *Reference) TanhGrad(dx, dy, y Tensor) {
	r.eachGrad("TanhGrad", dx, dy, "y", y, tanhGradRef[float64])
}
