package kernels

// isList accepts the positions and the lists of g, for dsts destinations, and isReversed its
// reverse, for srcs sources.
func isList(g Adjacency, dsts int) bool {
	return isColumn(g.Start, dsts) && isColumn(g.End, dsts) && isColumn(g.Nbr, g.Nbr.Rows)
}

func isReversed(g Adjacency, srcs int) bool {
	return (srcs == 0 || isColumn(g.RevStart, srcs+1)) && isColumn(g.RevEdge, g.RevEdge.Rows)
}

// isEdges accepts a value a position of Nbr and head.
func isEdges(t Tensor, g Adjacency, heads int) bool { return t.Rows == g.Nbr.Rows && t.Cols == heads }

// headsDivide accepts as many heads as split cols into equal parts.
func headsDivide(heads, cols int) bool { return heads > 0 && cols%heads == 0 }

func checkWeightedSum(dst, src, w Tensor, g Adjacency) {
	if dst.Cols != src.Cols || !headsDivide(w.Cols, dst.Cols) || !isEdges(w, g, w.Cols) || !isList(g, dst.Rows) {
		refuse("WeightedSum", "dst", dst, "src", src, "w", w, "Start", g.Start, "End", g.End, "Nbr", g.Nbr)
	}
}

func checkWeightedSumGrad(dsrc, ddst, w Tensor, g Adjacency) {
	if dsrc.Cols != ddst.Cols || !headsDivide(w.Cols, dsrc.Cols) || !isReversed(g, dsrc.Rows) ||
		!isColumn(g.RevDst, g.RevEdge.Rows) {
		refuse("WeightedSumGrad", "dsrc", dsrc, "ddst", ddst, "w", w,
			"RevStart", g.RevStart, "RevDst", g.RevDst, "RevEdge", g.RevEdge)
	}
}

func checkWeightedSumWeightGrad(dw, ddst, src Tensor, g Adjacency) {
	if ddst.Cols != src.Cols || !headsDivide(dw.Cols, src.Cols) || !isEdges(dw, g, dw.Cols) || !isList(g, ddst.Rows) {
		refuse("WeightedSumWeightGrad", "dw", dw, "ddst", ddst, "src", src, "Start", g.Start, "End", g.End, "Nbr", g.Nbr)
	}
}

func checkHeadDot(dst, src, a Tensor) {
	if dst.Rows != src.Rows || dst.Cols != a.Rows || a.Rows < 1 || src.Cols != a.Len() {
		refuse("HeadDot", "dst", dst, "src", src, "a", a)
	}
}

func checkHeadDotGrad(dsrc, da, ddst, src, a Tensor) {
	if !sameShape(dsrc, src) || !sameShape(da, a) || ddst.Rows != src.Rows || ddst.Cols != a.Rows || a.Rows < 1 ||
		src.Cols != a.Len() {
		refuse("HeadDotGrad", "dsrc", dsrc, "da", da, "ddst", ddst, "src", src, "a", a)
	}
}

func checkEdgeSoftmax(dst, srcScore, dstScore, w Tensor, g Adjacency) {
	heads := dst.Cols
	if heads < 1 || !isEdges(dst, g, heads) || srcScore.Cols != heads || dstScore.Cols != heads ||
		w.Rows != 0 && !isEdges(w, g, 1) || !isList(g, dstScore.Rows) {
		refuse("EdgeSoftmax", "dst", dst, "srcScore", srcScore, "dstScore", dstScore, "w", w,
			"Start", g.Start, "End", g.End, "Nbr", g.Nbr)
	}
}

func checkEdgeSoftmaxGrad(dsrcScore, ddstScore, dedge, dalpha, alpha, srcScore, dstScore Tensor, g Adjacency) {
	heads := alpha.Cols
	if heads < 1 || !isEdges(alpha, g, heads) || !sameShape(dedge, alpha) || !sameShape(dalpha, alpha) ||
		srcScore.Cols != heads || dstScore.Cols != heads ||
		!sameShape(dsrcScore, srcScore) || !sameShape(ddstScore, dstScore) ||
		!isList(g, dstScore.Rows) || !isReversed(g, srcScore.Rows) {
		refuse("EdgeSoftmaxGrad", "dsrcScore", dsrcScore, "ddstScore", ddstScore, "dedge", dedge, "dalpha", dalpha,
			"alpha", alpha, "srcScore", srcScore, "dstScore", dstScore, "Start", g.Start, "End", g.End, "Nbr", g.Nbr,
			"RevStart", g.RevStart, "RevEdge", g.RevEdge)
	}
}

func checkEdgeDropout(op string, dst, src, srcIDs, dstIDs Tensor, g Adjacency, p float32) {
	if dst.Cols < 1 || !sameShape(dst, src) || !isEdges(dst, g, dst.Cols) || !isColumn(srcIDs, srcIDs.Rows) ||
		!isColumn(dstIDs, dstIDs.Rows) || !isList(g, dstIDs.Rows) {
		refuse(op, "dst", dst, "src", src, "srcIDs", srcIDs, "dstIDs", dstIDs, "Start", g.Start, "End", g.End, "Nbr", g.Nbr)
	}
	checkRate(op, p)
}
