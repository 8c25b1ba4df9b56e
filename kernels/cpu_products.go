package kernels

// MatMul implements [Backend].
func (c *CPU) MatMul(dst, a, b Tensor, transA, transB, accumulate bool) {
	m, n, k := checkMatMul(dst, a, b, transA, transB)
	d := c.floats("MatMul", "dst", dst)
	c.countProduct(m, n, k)
	if c.panels != nil {
		right := factor{row: b.Cols}
		if b.Type == F16 && !transB {
			right.f16 = c.halves("MatMul", "b", b)
		} else {
			right.f32 = c.floats("MatMul", "b", b)
		}
		p := panelProduct{
			panels: c.panels, dst: d, m: m, n: n, transA: transA, transB: transB, accumulate: accumulate, threads: c.threads,
			terms: []panelTerm{{c.factor("MatMul", "a", a), right, k}},
		}
		p.compute(&c.rounded)
		return
	}
	c.matMul(d, c.floats("MatMul", "a", a), c.floats("MatMul", "b", b), m, n, k, transA, transB, accumulate)
}

// countProduct counts a product of an m×k and a k×n matrix.
func (c *CPU) countProduct(m, n, k int) { c.flops.Add(2 * int64(m) * int64(n) * int64(k)) }

// TakesHalf implements [Backend]. The routines that round to bfloat16 also read float16.
func (c *CPU) TakesHalf() bool { return c.panels != nil }

// factor lends a factor of a product.
func (c *CPU) factor(op, name string, t Tensor) factor {
	if t.Type == F16 {
		return factor{f16: c.halves(op, name, t), row: t.Cols}
	}
	return factor{f32: c.floats(op, name, t), row: t.Cols}
}

// matMul multiplies with strips or with gonum.
func (c *CPU) matMul(dst, a, b []float32, m, n, k int, transA, transB, accumulate bool) {
	multiply := matMul
	if c.strips != nil {
		multiply = c.strips.matMul
	} else if c.bf16 {
		a, b = c.roundedCopy(&c.rounded.left, a[:m*k]), c.roundedCopy(&c.rounded.right, b[:n*k])
	}
	c.packed = multiply(dst, a, b, m, n, k, transA, transB, accumulate, c.packed, c.threads)
}

// roundedCopy returns a copy of s that is rounded to bfloat16, in the memory of into. The portable
// set multiplies such copies.
func (c *CPU) roundedCopy(into *[]float32, s []float32) []float32 {
	*into = grow(*into, len(s))
	r := (*into)[:len(s)]
	c.elements(len(s), func(lo, hi int) { roundBF16(r[lo:hi], s[lo:hi]) })
	return r
}

// Affine implements [Backend]. Bias and ReLU are taken while the block that was computed last is in
// a cache.
func (c *CPU) Affine(dst, bias Tensor, relu bool, terms ...Term) {
	const op = "Affine"
	checkAffine(dst, bias, terms)
	for _, t := range terms {
		c.countProduct(dst.Rows, dst.Cols, t.X.Cols)
	}
	d, n := c.floats(op, "dst", dst), dst.Cols
	var b []float32
	if bias.Buf != nil {
		b = c.floats(op, "bias", bias)
	}
	finish := func(i0, i1, j0, j1 int) {
		if j0 > 0 || j1 < n {
			for i := i0; i < i1; i++ {
				c.finish(d[i*n+j0:i*n+j1], b[min(j0, len(b)):min(j1, len(b))], relu)
			}
			return
		}
		c.finish(d[i0*n:i1*n], b, relu)
	}
	if c.panels != nil {
		p := panelProduct{panels: c.panels, dst: d, m: dst.Rows, n: n, transB: true, after: finish, threads: c.threads}
		for _, t := range terms {
			p.terms = append(p.terms, panelTerm{c.factor(op, "x", t.X), factor{f32: c.floats(op, "w", t.W), row: t.W.Cols}, t.X.Cols})
		}
		p.compute(&c.rounded)
		return
	}
	fused := false
	for i, t := range terms {
		x, w, k := c.floats(op, "x", t.X), c.floats(op, "w", t.W), t.X.Cols
		if last := i == len(terms)-1; last && c.strips != nil && k > 0 {
			fused = true
			c.packed = c.strips.affine(d, x, w, dst.Rows, n, k, i > 0, finish, c.packed, c.threads)
			continue
		}
		c.matMul(d, x, w, dst.Rows, n, k, false, true, i > 0)
	}
	if len(terms) == 0 {
		c.elements(len(d), func(lo, hi int) { c.fill(d[lo:hi], 0) })
	}
	if !fused {
		c.rows(dst.Rows, n, func(lo, hi int) { finish(lo, hi, 0, n) })
	}
}

// finish adds the row b, unless it is empty, to rows of as many columns, and takes what is above 0.
func (c *CPU) finish(d, b []float32, relu bool) {
	if len(b) > 0 {
		c.addRow(d, b)
	}
	if relu {
		c.relu(d, d)
	}
}

// AffineGrad implements [Backend].
func (c *CPU) AffineGrad(dy, y, dbias Tensor, terms ...TermGrad) {
	const op = "AffineGrad"
	checkAffineGrad(dy, y, dbias, terms)
	if c.panels != nil && c.gradByPanels(dy, y, dbias, terms) {
		return
	}
	if y.Buf != nil && dbias.Buf != nil { // in one pass
		n := dy.Cols
		d, v, sum := c.floats(op, "dy", dy), c.floats(op, "y", y), c.floats(op, "dbias", dbias)
		c.sumRows(dy.Rows, n, func(partial []float32, lo, hi int) {
			c.reluMask(d[lo*n:hi*n], v[lo*n:hi*n])
			c.columnSumGrad(partial, d[lo*n:hi*n])
		}, func(partial []float32) { c.add(sum, partial) })
		y, dbias = Tensor{}, Tensor{}
	}
	AffineGradOf(c, dy, y, dbias, terms...)
}

// AffineGradOf is the AffineGrad of a backend that has it from its other operations.
func AffineGradOf(b Backend, dy, y, dbias Tensor, terms ...TermGrad) {
	if y.Buf != nil {
		b.ReLUMask(dy, y)
	}
	if dbias.Buf != nil {
		b.ColumnSumGrad(dbias, dy)
	}
	for _, t := range terms {
		if t.DW.Buf != nil && t.Across {
			b.MatMul(t.DW, t.X, dy, true, false, true)
		} else if t.DW.Buf != nil {
			b.MatMul(t.DW, dy, t.X, true, false, true)
		}
		if t.DX.Buf != nil {
			b.MatMul(t.DX, dy, t.W, false, t.Across, t.Add)
		}
	}
}
