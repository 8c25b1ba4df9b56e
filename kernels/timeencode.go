package kernels

import "math"

// How long ago something was, as numbers that a network can read (Xu et al. 2020): cosines of rates
// from fast to slow. A time in seconds has more digits than a float32, and so has its product with
// a rate of 1. So times are pairs of float32, whose sum they are, and phases are float64 until they
// are less than a turn. Shapes: N times, T rates.

// SplitTime is t as the pair of float32 that TimeEncode reads: their sum is t to 48 bits.
func SplitTime(t float64) (high, low float32) {
	high = float32(t)
	if math.IsInf(float64(high), 0) {
		return high, 0
	}
	return high, float32(t - float64(high))
}

// phase returns the phase of a time at a rate, rounded once, as fused multiplication rounds it: the
// same in every set.
func phase(times []float32, i int, w, b float32) float64 {
	return math.FMA(float64(times[2*i])+float64(times[2*i+1]), float64(w), float64(b))
}

// TimeEncode sets row i of dst to the cosines of the i-th time, times w and plus b.
func TimeEncode(dst, times, w, b []float32) {
	cols := len(w)
	for i := range len(times) / 2 {
		row := dst[i*cols:][:cols]
		for c := range row {
			row[c] = float32(math.Cos(phase(times, i, w[c], b[c])))
		}
	}
}

// TimeEncodeGrad adds to dw and db what the gradient dy of TimeEncode's result makes of them, time
// after time.
func TimeEncodeGrad(dw, db, dy, times, w, b []float32) {
	cols := len(w)
	for i := range len(times) / 2 {
		at, up := times[2*i]+times[2*i+1], dy[i*cols:][:cols]
		for c, g := range up {
			g *= -float32(math.Sin(phase(times, i, w[c], b[c])))
			dw[c] += g * at
			db[c] += g
		}
	}
}

func checkTimeEncode(dst, times, w, b Tensor) {
	if dst.Rows != times.Rows || times.Cols != 2 && times.Rows > 0 || !isRow(w, dst.Cols) || !isRow(b, dst.Cols) {
		refuse("TimeEncode", "dst", dst, "times", times, "w", w, "b", b)
	}
}

func checkTimeEncodeGrad(dw, db, dy, times, w, b Tensor) {
	if dy.Rows != times.Rows || times.Cols != 2 && times.Rows > 0 || !isRow(w, dy.Cols) || !isRow(b, dy.Cols) ||
		!isRow(dw, dy.Cols) || !isRow(db, dy.Cols) {
		refuse("TimeEncodeGrad", "dw", dw, "db", db, "dy", dy, "times", times, "w", w, "b", b)
	}
}

// TimeEncode implements [Backend].
func (c *CPU) TimeEncode(dst, times, w, b Tensor) {
	const op = "TimeEncode"
	checkTimeEncode(dst, times, w, b)
	d, at, n := c.floats(op, "dst", dst), c.floats(op, "times", times), dst.Cols
	rates, shifts := c.floats(op, "w", w), c.floats(op, "b", b)
	if n == 0 {
		return
	}
	c.rows(dst.Rows, expCost*n, func(lo, hi int) { c.timeEncode(d[lo*n:hi*n], at[2*lo:2*hi], rates, shifts) })
}

// TimeEncodeGrad implements [Backend].
func (c *CPU) TimeEncodeGrad(dw, db, dy, times, w, b Tensor) {
	const op = "TimeEncodeGrad"
	checkTimeEncodeGrad(dw, db, dy, times, w, b)
	rates, shifts, up, at, n := c.floats(op, "w", w), c.floats(op, "b", b), c.floats(op, "dy", dy), c.floats(op, "times", times), dy.Cols
	dRates, dShifts := c.floats(op, "dw", dw), c.floats(op, "db", db)
	c.sumRows(dy.Rows, 2*n, func(partial []float32, lo, hi int) {
		c.timeEncodeGrad(partial[:n], partial[n:], up[lo*n:hi*n], at[2*lo:2*hi], rates, shifts)
	}, func(partial []float32) {
		c.add(dRates, partial[:n])
		c.add(dShifts, partial[n:])
	})
}

// TimeEncode implements [Backend].
func (r *Reference) TimeEncode(dst, times, w, b Tensor) {
	const op = "TimeEncode"
	checkTimeEncode(dst, times, w, b)
	timeEncodeRef(r.floats(op, "dst", dst), r.floats(op, "times", times), r.floats(op, "w", w), r.floats(op, "b", b), dst.Rows, dst.Cols)
}

// TimeEncodeGrad implements [Backend].
func (r *Reference) TimeEncodeGrad(dw, db, dy, times, w, b Tensor) {
	const op = "TimeEncodeGrad"
	checkTimeEncodeGrad(dw, db, dy, times, w, b)
	timeEncodeGradRef(r.floats(op, "dw", dw), r.floats(op, "db", db), r.floats(op, "dy", dy), r.floats(op, "times", times),
		r.floats(op, "w", w), r.floats(op, "b", b), dy.Rows, dy.Cols)
}
