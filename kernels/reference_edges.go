package kernels

// WeightedSum implements [Backend].
func (r *Reference) WeightedSum(dst, src, w Tensor, g Adjacency) {
	const op = "WeightedSum"
	checkWeightedSum(dst, src, w, g)
	start, end, nbr := r.adjacency(op, g)
	weightedSumRef(r.floats(op, "dst", dst), r.input(op, "src", src), r.floats(op, "w", w), dst.Cols, w.Cols,
		start, end, nbr)
}

// WeightedSumGrad implements [Backend].
func (r *Reference) WeightedSumGrad(dsrc, ddst, w Tensor, g Adjacency) {
	const op = "WeightedSumGrad"
	checkWeightedSumGrad(dsrc, ddst, w, g)
	if dsrc.Rows == 0 {
		return
	}
	weightedSumGradRef(r.floats(op, "dsrc", dsrc), r.floats(op, "ddst", ddst), r.floats(op, "w", w), dsrc.Cols, w.Cols,
		r.uints(op, "RevStart", g.RevStart), r.uints(op, "RevDst", g.RevDst), r.uints(op, "RevEdge", g.RevEdge))
}

// WeightedSumWeightGrad implements [Backend].
func (r *Reference) WeightedSumWeightGrad(dw, ddst, src Tensor, g Adjacency) {
	const op = "WeightedSumWeightGrad"
	checkWeightedSumWeightGrad(dw, ddst, src, g)
	start, end, nbr := r.adjacency(op, g)
	weightedSumWeightGradRef(r.floats(op, "dw", dw), r.floats(op, "ddst", ddst), r.floats(op, "src", src),
		src.Cols, dw.Cols, start, end, nbr)
}

// HeadDot implements [Backend].
func (r *Reference) HeadDot(dst, src, a Tensor) {
	const op = "HeadDot"
	checkHeadDot(dst, src, a)
	headDotRef(r.floats(op, "dst", dst), r.floats(op, "src", src), r.floats(op, "a", a), src.Rows, src.Cols, a.Rows)
}

// HeadDotGrad implements [Backend].
func (r *Reference) HeadDotGrad(dsrc, da, ddst, src, a Tensor) {
	const op = "HeadDotGrad"
	checkHeadDotGrad(dsrc, da, ddst, src, a)
	headDotGradRef(r.floats(op, "dsrc", dsrc), r.floats(op, "da", da), r.floats(op, "ddst", ddst),
		r.floats(op, "src", src), r.floats(op, "a", a), src.Rows, src.Cols, a.Rows)
}

// EdgeSoftmax implements [Backend].
func (r *Reference) EdgeSoftmax(dst, srcScore, dstScore, w Tensor, g Adjacency, slope float32) {
	const op = "EdgeSoftmax"
	checkEdgeSoftmax(dst, srcScore, dstScore, w, g)
	start, end, nbr := r.adjacency(op, g)
	edgeSoftmaxRef(r.floats(op, "dst", dst), r.floats(op, "srcScore", srcScore), r.floats(op, "dstScore", dstScore),
		r.floats(op, "w", w), dst.Cols, start, end, nbr, float64(slope))
}

// EdgeSoftmaxGrad implements [Backend].
func (r *Reference) EdgeSoftmaxGrad(dsrcScore, ddstScore, dedge, dalpha, alpha, srcScore, dstScore Tensor, g Adjacency,
	slope float32) {
	const op = "EdgeSoftmaxGrad"
	checkEdgeSoftmaxGrad(dsrcScore, ddstScore, dedge, dalpha, alpha, srcScore, dstScore, g)
	start, end, nbr := r.adjacency(op, g)
	de, heads := r.floats(op, "dedge", dedge), alpha.Cols
	edgeSoftmaxGradRef(de, r.floats(op, "ddstScore", ddstScore), r.floats(op, "dalpha", dalpha),
		r.floats(op, "alpha", alpha), r.floats(op, "srcScore", srcScore), r.floats(op, "dstScore", dstScore), heads,
		start, end, nbr, float64(slope))
	if srcScore.Rows == 0 {
		return
	}
	edgeSumGradRef(r.floats(op, "dsrcScore", dsrcScore), de, heads,
		r.uints(op, "RevStart", g.RevStart), r.uints(op, "RevEdge", g.RevEdge))
}

// EdgeDropout implements [Backend].
func (r *Reference) EdgeDropout(dst, src, srcIDs, dstIDs Tensor, g Adjacency, key uint64, p float32) {
	const op = "EdgeDropout"
	checkEdgeDropout(op, dst, src, srcIDs, dstIDs, g, p)
	d, s, scale := r.floats(op, "dst", dst), r.floats(op, "src", src), dropoutScale(dropoutThreshold(p))
	start, end, nbr := r.adjacency(op, g)
	edgeDropoutRef(func(at int, keep bool) {
		if d[at] = s[at] * scale; !keep {
			d[at] = 0
		}
	}, r.uints(op, "srcIDs", srcIDs), r.uints(op, "dstIDs", dstIDs), dst.Cols, start, end, nbr, key, p)
}

// EdgeDropoutGrad implements [Backend].
func (r *Reference) EdgeDropoutGrad(dx, dy, srcIDs, dstIDs Tensor, g Adjacency, key uint64, p float32) {
	const op = "EdgeDropoutGrad"
	checkEdgeDropout(op, dx, dy, srcIDs, dstIDs, g, p)
	d, s, scale := r.floats(op, "dx", dx), r.floats(op, "dy", dy), dropoutScale(dropoutThreshold(p))
	start, end, nbr := r.adjacency(op, g)
	edgeDropoutRef(func(at int, keep bool) {
		if keep {
			d[at] += s[at] * scale
		}
	}, r.uints(op, "srcIDs", srcIDs), r.uints(op, "dstIDs", dstIDs), dx.Cols, start, end, nbr, key, p)
}

// ELU implements [Backend].
func (r *Reference) ELU(dst, src Tensor) { r.each("ELU", dst, src, eluRef[float64]) }

// ELUGrad implements [Backend].
func (r *Reference) ELUGrad(dx, dy, y Tensor) {
	r.eachGrad("ELUGrad", dx, dy, "y", y, eluGradRef[float64])
}
