package kernels

// WeightedSum implements [Backend].
func (c *CPU) WeightedSum(dst, src, w Tensor, g Adjacency) {
	const op = "WeightedSum"
	checkWeightedSum(dst, src, w, g)
	d, by, n, heads := c.floats(op, "dst", dst), c.floats(op, "w", w), dst.Cols, w.Cols
	start, end, nbr := c.adjacency(op, g)
	if src.Type == F16 {
		s := c.halves(op, "src", src)
		c.lists(dst.Rows, n, func(lo, hi int) {
			c.weightedHeadsHalf(d[lo*n:hi*n], s, by, n, heads, start[lo:hi], end[lo:hi], nbr)
		})
		return
	}
	s := c.floats(op, "src", src)
	c.lists(dst.Rows, n, func(lo, hi int) {
		c.weightedHeads(d[lo*n:hi*n], s, by, n, heads, start[lo:hi], end[lo:hi], nbr)
	})
}

// WeightedSumGrad implements [Backend].
func (c *CPU) WeightedSumGrad(dsrc, ddst, w Tensor, g Adjacency) {
	const op = "WeightedSumGrad"
	checkWeightedSumGrad(dsrc, ddst, w, g)
	ds, dd, n := c.floats(op, "dsrc", dsrc), c.floats(op, "ddst", ddst), dsrc.Cols
	by, heads := c.floats(op, "w", w), w.Cols
	revStart := c.uints(op, "RevStart", g.RevStart)
	revDst, revEdge := c.uints(op, "RevDst", g.RevDst), c.uints(op, "RevEdge", g.RevEdge)
	c.weights = grow(c.weights, len(revEdge)*heads)
	byEdge := c.weights[:len(revEdge)*heads]
	c.rows(len(revEdge), heads, func(lo, hi int) { GatherRows(byEdge[lo*heads:hi*heads], by, heads, revEdge[lo:hi]) })
	c.lists(dsrc.Rows, n, func(lo, hi int) {
		c.addWeightedHeads(ds[lo*n:hi*n], dd, byEdge, n, heads, revStart[lo:hi], revStart[lo+1:hi+1], revDst)
	})
}

// WeightedSumWeightGrad implements [Backend].
func (c *CPU) WeightedSumWeightGrad(dw, ddst, src Tensor, g Adjacency) {
	const op = "WeightedSumWeightGrad"
	checkWeightedSumWeightGrad(dw, ddst, src, g)
	d, up, s := c.floats(op, "dw", dw), c.floats(op, "ddst", ddst), c.floats(op, "src", src)
	start, end, nbr := c.adjacency(op, g)
	n, heads := src.Cols, dw.Cols
	c.lists(ddst.Rows, n, func(lo, hi int) {
		WeightedSumWeightGrad(d, up[lo*n:hi*n], s, n, heads, start[lo:hi], end[lo:hi], nbr)
	})
}

// HeadDot implements [Backend].
func (c *CPU) HeadDot(dst, src, a Tensor) {
	const op = "HeadDot"
	checkHeadDot(dst, src, a)
	d, s, by, n, heads := c.floats(op, "dst", dst), c.floats(op, "src", src), c.floats(op, "a", a), src.Cols, a.Rows
	c.rows(src.Rows, n, func(lo, hi int) { HeadDot(d[lo*heads:hi*heads], s[lo*n:hi*n], by, heads) })
}

// HeadDotGrad implements [Backend].
func (c *CPU) HeadDotGrad(dsrc, da, ddst, src, a Tensor) {
	const op = "HeadDotGrad"
	checkHeadDotGrad(dsrc, da, ddst, src, a)
	ds, dby, up := c.floats(op, "dsrc", dsrc), c.floats(op, "da", da), c.floats(op, "ddst", ddst)
	s, by, n, heads := c.floats(op, "src", src), c.floats(op, "a", a), src.Cols, a.Rows
	c.sumRows(src.Rows, n, func(partial []float32, lo, hi int) {
		HeadDotGrad(ds[lo*n:hi*n], partial, up[lo*heads:hi*heads], s[lo*n:hi*n], by, heads)
	}, func(partial []float32) { Add(dby, partial) })
}

// edgeCost is the cost of an edge's exponentials, in elements of other operations, to size chunks.
const edgeCost = 8

// EdgeSoftmax implements [Backend].
func (c *CPU) EdgeSoftmax(dst, srcScore, dstScore, w Tensor, g Adjacency, slope float32) {
	const op = "EdgeSoftmax"
	checkEdgeSoftmax(dst, srcScore, dstScore, w, g)
	d, by, heads := c.floats(op, "dst", dst), c.floats(op, "w", w), dst.Cols
	src, own := c.floats(op, "srcScore", srcScore), c.floats(op, "dstScore", dstScore)
	start, end, nbr := c.adjacency(op, g)
	c.lists(dstScore.Rows, edgeCost*heads, func(lo, hi int) {
		EdgeSoftmax(d, src, own[lo*heads:hi*heads], by, heads, start[lo:hi], end[lo:hi], nbr, slope)
	})
}

// EdgeSoftmaxGrad implements [Backend].
func (c *CPU) EdgeSoftmaxGrad(dsrcScore, ddstScore, dedge, dalpha, alpha, srcScore, dstScore Tensor, g Adjacency, slope float32) {
	const op = "EdgeSoftmaxGrad"
	checkEdgeSoftmaxGrad(dsrcScore, ddstScore, dedge, dalpha, alpha, srcScore, dstScore, g)
	dsrc, down, de := c.floats(op, "dsrcScore", dsrcScore), c.floats(op, "ddstScore", ddstScore), c.floats(op, "dedge", dedge)
	da, a, heads := c.floats(op, "dalpha", dalpha), c.floats(op, "alpha", alpha), alpha.Cols
	src, own := c.floats(op, "srcScore", srcScore), c.floats(op, "dstScore", dstScore)
	start, end, nbr := c.adjacency(op, g)
	c.lists(dstScore.Rows, heads, func(lo, hi int) {
		EdgeSoftmaxGrad(de, down[lo*heads:hi*heads], da, a, src, own[lo*heads:hi*heads], heads, start[lo:hi], end[lo:hi], nbr, slope)
	})
	revStart, revEdge := c.uints(op, "RevStart", g.RevStart), c.uints(op, "RevEdge", g.RevEdge)
	c.lists(srcScore.Rows, heads, func(lo, hi int) {
		EdgeSumGrad(dsrc[lo*heads:hi*heads], de, heads, revStart[lo:hi+1], revEdge)
	})
}

// EdgeDropout implements [Backend].
func (c *CPU) EdgeDropout(dst, src, srcIDs, dstIDs Tensor, g Adjacency, key uint64, p float32) {
	const op = "EdgeDropout"
	checkEdgeDropout(op, dst, src, srcIDs, dstIDs, g, p)
	d, s, heads := c.floats(op, "dst", dst), c.floats(op, "src", src), dst.Cols
	from, to := c.uints(op, "srcIDs", srcIDs), c.uints(op, "dstIDs", dstIDs)
	start, end, nbr := c.adjacency(op, g)
	c.lists(len(start), heads, func(lo, hi int) {
		EdgeDropout(d, s, from, to[lo:hi], heads, start[lo:hi], end[lo:hi], nbr, key, p)
	})
}

// EdgeDropoutGrad implements [Backend].
func (c *CPU) EdgeDropoutGrad(dx, dy, srcIDs, dstIDs Tensor, g Adjacency, key uint64, p float32) {
	const op = "EdgeDropoutGrad"
	checkEdgeDropout(op, dx, dy, srcIDs, dstIDs, g, p)
	d, s, heads := c.floats(op, "dx", dx), c.floats(op, "dy", dy), dx.Cols
	from, to := c.uints(op, "srcIDs", srcIDs), c.uints(op, "dstIDs", dstIDs)
	start, end, nbr := c.adjacency(op, g)
	c.lists(len(start), heads, func(lo, hi int) {
		EdgeDropoutGrad(d, s, from, to[lo:hi], heads, start[lo:hi], end[lo:hi], nbr, key, p)
	})
}

// ELU implements [Backend].
func (c *CPU) ELU(dst, src Tensor) { c.each("ELU", dst, src, ELU) }

// ELUGrad implements [Backend].
func (c *CPU) ELUGrad(dx, dy, y Tensor) {
	c.eachGrad("ELUGrad", dx, dy, "y", y, ELUGrad)
}
