package kernels

// Scale multiplies every element of dst by factor.
func Scale(dst []float32, factor float32) {
	for i := range dst {
		dst[i] *= factor
	}
}

// ScaleRows multiplies each row of dst by its factor. dst has cols columns and as many rows as
// there are factors.
func ScaleRows(dst, factors []float32, cols int) {
	for r, f := range factors {
		Scale(dst[r*cols:][:cols], f)
	}
}

// SumSquares is the sum of the squares of x. It adds in float64, so that a million small ones are
// not lost beside a large one, and in four lanes like sum.
func SumSquares(x []float32) float64 {
	var s0, s1, s2, s3 float64
	for ; len(x) >= 4; x = x[4:] {
		v0, v1, v2, v3 := float64(x[0]), float64(x[1]), float64(x[2]), float64(x[3])
		s0 += v0 * v0
		s1 += v1 * v1
		s2 += v2 * v2
		s3 += v3 * v3
	}
	for _, v := range x {
		s0 += float64(v) * float64(v)
	}
	return s0 + s1 + (s2 + s3)
}

func checkScaleRows(dst, factors Tensor) {
	if !isColumn(factors, dst.Rows) {
		refuse("ScaleRows", "dst", dst, "factors", factors)
	}
}

// Scale implements [Backend].
func (c *CPU) Scale(dst Tensor, factor float32) {
	d := c.floats("Scale", "dst", dst)
	c.elements(len(d), func(lo, hi int) { Scale(d[lo:hi], factor) })
}

// ScaleRows implements [Backend].
func (c *CPU) ScaleRows(dst, factors Tensor) {
	checkScaleRows(dst, factors)
	d, f, n := c.floats("ScaleRows", "dst", dst), c.floats("ScaleRows", "factors", factors), dst.Cols
	c.rows(dst.Rows, n, func(lo, hi int) { ScaleRows(d[lo*n:hi*n], f[lo:hi], n) })
}

// sumChunks adds up what work returns of the chunks of n elements, in their order. They depend on n
// alone.
func (c *CPU) sumChunks(n int, work func(lo, hi int) float64) (total float64) {
	var partials [maxPartials]float64
	chunk := max(chunkElements, (n+maxPartials-1)/maxPartials)
	parallelFor(c.threads, n, chunk, func(lo, hi int) { partials[lo/chunk] = work(lo, hi) })
	for _, p := range partials {
		total += p
	}
	return total
}

// Scale implements [Backend].
func (r *Reference) Scale(dst Tensor, factor float32) {
	scaleRef(r.floats("Scale", "dst", dst), float64(factor))
}

// ScaleRows implements [Backend].
func (r *Reference) ScaleRows(dst, factors Tensor) {
	checkScaleRows(dst, factors)
	scaleRowsRef(r.floats("ScaleRows", "dst", dst), r.floats("ScaleRows", "factors", factors), dst.Rows, dst.Cols)
}
