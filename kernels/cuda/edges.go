//go:build cuda && linux

package cuda

import "github.com/gnnstore/gnnstore/kernels"

// lists returns the lists of destinations, and reversed the lists of sources.
func (b *Backend) lists(op string, g kernels.Adjacency) (start, end, nbr operand) {
	return b.u32(op, "Start", g.Start), b.u32(op, "End", g.End), b.u32(op, "Nbr", g.Nbr)
}

func (b *Backend) reversed(op string, g kernels.Adjacency) (start, dst, edge operand) {
	return b.u32(op, "RevStart", g.RevStart), b.u32(op, "RevDst", g.RevDst), b.u32(op, "RevEdge", g.RevEdge)
}

// NeighborMean implements [kernels.Backend].
func (b *Backend) NeighborMean(dst, src kernels.Tensor, g kernels.Adjacency) {
	const op = "NeighborMean"
	b.shapes.NeighborMean(dst, src, g)
	d, s := b.f32(op, "dst", dst), b.f32OrHalf(op, "src", src)
	start, end, nbr := b.lists(op, g)
	if dst.Rows == 0 {
		return
	}
	name, per := ofType("neighbor_mean", src)
	grid, shift := b.lanes(dst.Rows, dst.Cols, per)
	b.run(b.wide(name, dst.Cols%per == 0, d, s), grid,
		d, s, start, end, nbr, dst.Rows, src.Rows, g.Nbr.Rows, dst.Cols, shift, b.failures)
}

// NeighborMeanGrad implements [kernels.Backend].
func (b *Backend) NeighborMeanGrad(dsrc, ddst kernels.Tensor, g kernels.Adjacency, fresh int) {
	const op = "NeighborMeanGrad"
	b.shapes.NeighborMeanGrad(dsrc, ddst, g, fresh)
	ds, dd := b.f32(op, "dsrc", dsrc), b.f32(op, "ddst", ddst)
	start, end := b.u32(op, "Start", g.Start), b.u32(op, "End", g.End)
	revStart, revDst := b.u32(op, "RevStart", g.RevStart), b.u32(op, "RevDst", g.RevDst)
	if dsrc.Rows == 0 {
		return
	}
	m := meanGrad{
		dsrc: ds, ddst: dd, start: start, end: end, revStart: revStart, revDst: revDst,
		dsts: ddst.Rows, srcs: dsrc.Rows, edges: g.RevDst.Rows, cols: dsrc.Cols,
	}
	m.fresh = min(fresh, b.takesZeroRows(ds, dsrc.Rows, dsrc.Cols))
	b.deferMeanGrad(m)
}

// WeightedSum implements [kernels.Backend].
func (b *Backend) WeightedSum(dst, src, w kernels.Tensor, g kernels.Adjacency) {
	const op = "WeightedSum"
	b.shapes.WeightedSum(dst, src, w, g)
	d, s, by := b.f32(op, "dst", dst), b.f32OrHalf(op, "src", src), b.f32(op, "w", w)
	start, end, nbr := b.lists(op, g)
	if dst.Rows == 0 {
		return
	}
	name, per := ofType("weighted_sum", src)
	width := dst.Cols / w.Cols
	grid, shift := b.lanes(dst.Rows, dst.Cols, per)
	b.run(b.wide(name, width%per == 0, d, s), grid,
		d, s, by, start, end, nbr, dst.Rows, src.Rows, g.Nbr.Rows, width, w.Cols, shift, b.failures)
}

// WeightedSumGrad implements [kernels.Backend].
func (b *Backend) WeightedSumGrad(dsrc, ddst, w kernels.Tensor, g kernels.Adjacency) {
	const op = "WeightedSumGrad"
	b.shapes.WeightedSumGrad(dsrc, ddst, w, g)
	ds, dd, by := b.f32(op, "dsrc", dsrc), b.f32(op, "ddst", ddst), b.f32(op, "w", w)
	revStart, revDst, revEdge := b.reversed(op, g)
	if dsrc.Rows == 0 {
		return
	}
	width := dsrc.Cols / w.Cols
	grid, shift := b.lanes(dsrc.Rows, dsrc.Cols, 4)
	b.run(b.wide("weighted_sum_grad", width%4 == 0, ds, dd), grid,
		ds, dd, by, revStart, revDst, revEdge, ddst.Rows, dsrc.Rows, w.Rows, width, w.Cols, shift, b.failures)
}

// WeightedSumWeightGrad implements [kernels.Backend].
func (b *Backend) WeightedSumWeightGrad(dw, ddst, src kernels.Tensor, g kernels.Adjacency) {
	const op = "WeightedSumWeightGrad"
	b.shapes.WeightedSumWeightGrad(dw, ddst, src, g)
	d, dd, s := b.f32(op, "dw", dw), b.f32(op, "ddst", ddst), b.f32(op, "src", src)
	start, end, nbr := b.lists(op, g)
	if ddst.Rows == 0 {
		return
	}
	width := src.Cols / dw.Cols
	b.run(b.wide("weighted_sum_weight_grad", width%4 == 0, dd, s), b.warps(ddst.Rows),
		d, dd, s, start, end, nbr, ddst.Rows, src.Rows, g.Nbr.Rows, width, dw.Cols, b.failures)
}

// HeadDot implements [kernels.Backend].
func (b *Backend) HeadDot(dst, src, a kernels.Tensor) {
	const op = "HeadDot"
	b.shapes.HeadDot(dst, src, a)
	d, s, by := b.f32(op, "dst", dst), b.f32(op, "src", src), b.f32(op, "a", a)
	if src.Rows > 0 {
		b.run(b.wide("head_dot", a.Cols%4 == 0, s, by), b.flat(dst.Len()), d, s, by, src.Rows, a.Cols, a.Rows)
	}
}

// HeadDotGrad implements [kernels.Backend].
func (b *Backend) HeadDotGrad(dsrc, da, ddst, src, a kernels.Tensor) {
	const op = "HeadDotGrad"
	b.shapes.HeadDotGrad(dsrc, da, ddst, src, a)
	ds, ga, dd := b.f32(op, "dsrc", dsrc), b.f32(op, "da", da), b.f32(op, "ddst", ddst)
	s, by := b.f32(op, "src", src), b.f32(op, "a", a)
	if src.Len() == 0 {
		return
	}
	fits := a.Cols%4 == 0
	grid, shift := b.lanes(src.Rows, src.Cols, 4)
	b.run(b.wide("head_dot_grad", fits, ds, by), grid, ds, dd, by, src.Rows, a.Cols, a.Rows, shift)
	name := b.wide("head_dot_parts", fits, s)
	b.columnSums(name, src.Rows, src.Cols, []operand{ga}, dd, s, src.Rows, a.Cols, a.Rows)
}

// EdgeSoftmax implements [kernels.Backend].
func (b *Backend) EdgeSoftmax(dst, srcScore, dstScore, w kernels.Tensor, g kernels.Adjacency, slope float32) {
	const op = "EdgeSoftmax"
	b.shapes.EdgeSoftmax(dst, srcScore, dstScore, w, g, slope)
	d, ss, ds := b.f32(op, "dst", dst), b.f32(op, "srcScore", srcScore), b.f32(op, "dstScore", dstScore)
	start, end, nbr := b.lists(op, g)
	var by operand
	if w.Rows > 0 {
		by = b.f32(op, "w", w)
	}
	if dstScore.Rows > 0 {
		b.run("edge_softmax", b.flat(dstScore.Len()),
			d, ss, ds, by, start, end, nbr, dstScore.Rows, srcScore.Rows, g.Nbr.Rows, dst.Cols, slope, b.failures)
	}
}

// EdgeSoftmaxGrad implements [kernels.Backend].
func (b *Backend) EdgeSoftmaxGrad(
	dsrcScore, ddstScore, dedge, dalpha, alpha, srcScore, dstScore kernels.Tensor, g kernels.Adjacency, slope float32,
) {
	const op = "EdgeSoftmaxGrad"
	b.shapes.EdgeSoftmaxGrad(dsrcScore, ddstScore, dedge, dalpha, alpha, srcScore, dstScore, g, slope)
	gs, gd, ge := b.f32(op, "dsrcScore", dsrcScore), b.f32(op, "ddstScore", ddstScore), b.f32(op, "dedge", dedge)
	da, a := b.f32(op, "dalpha", dalpha), b.f32(op, "alpha", alpha)
	ss, ds := b.f32(op, "srcScore", srcScore), b.f32(op, "dstScore", dstScore)
	start, end, nbr := b.lists(op, g)
	revStart, revEdge := b.u32(op, "RevStart", g.RevStart), b.u32(op, "RevEdge", g.RevEdge)
	if dstScore.Rows > 0 {
		b.run("edge_softmax_grad", b.flat(dstScore.Len()), ge, gd, da, a, ss, ds, start, end, nbr,
			dstScore.Rows, srcScore.Rows, g.Nbr.Rows, alpha.Cols, slope, b.failures)
	}
	if srcScore.Rows > 0 {
		b.run("edge_sum_grad", b.flat(srcScore.Len()), gs, ge, revStart, revEdge,
			srcScore.Rows, dedge.Rows, alpha.Cols, b.failures)
	}
}

// EdgeDot implements [kernels.Backend].
func (b *Backend) EdgeDot(dst, q, k kernels.Tensor, g kernels.Adjacency, scale float32) {
	const op = "EdgeDot"
	b.shapes.EdgeDot(dst, q, k, g, scale)
	d, x, y := b.f32(op, "dst", dst), b.f32(op, "q", q), b.f32(op, "k", k)
	start, end, nbr := b.lists(op, g)
	if q.Rows == 0 {
		return
	}
	width := q.Cols / dst.Cols
	b.run(b.wide("edge_dot", width%4 == 0, x, y), b.warps(q.Rows),
		d, x, y, start, end, nbr, q.Rows, k.Rows, g.Nbr.Rows, width, dst.Cols, scale, b.failures)
}

// EdgeDotGrad implements [kernels.Backend].
func (b *Backend) EdgeDotGrad(dq, dk, ddst, q, k kernels.Tensor, g kernels.Adjacency, scale float32) {
	const op = "EdgeDotGrad"
	b.shapes.EdgeDotGrad(dq, dk, ddst, q, k, g, scale)
	gq, gk, d := b.f32(op, "dq", dq), b.f32(op, "dk", dk), b.f32(op, "ddst", ddst)
	x, y := b.f32(op, "q", q), b.f32(op, "k", k)
	start, end, nbr := b.lists(op, g)
	revStart, revDst, revEdge := b.reversed(op, g)
	heads := ddst.Cols
	width := q.Cols / heads
	if q.Rows > 0 {
		grid, shift := b.lanes(q.Rows, q.Cols, 4)
		b.run(b.wide("edge_dot_grad_q", width%4 == 0, gq, y), grid,
			gq, d, y, start, end, nbr, q.Rows, k.Rows, g.Nbr.Rows, width, heads, shift, scale, b.failures)
	}
	if k.Rows > 0 {
		grid, shift := b.lanes(k.Rows, k.Cols, 4)
		b.run(b.wide("edge_dot_grad_k", width%4 == 0, gk, x), grid,
			gk, d, x, revStart, revDst, revEdge, q.Rows, k.Rows, ddst.Rows, width, heads, shift, scale, b.failures)
	}
}

// ofComplex returns the name of a kernel of distances, and how many numbers a row of cols columns
// has.
func ofComplex(complex bool, cols int, suffix string) (name string, numbers int) {
	if complex {
		return "edge_modulus" + suffix, cols / 2
	}
	return "edge_distance" + suffix, cols
}

// EdgeDistance implements [kernels.Backend].
func (b *Backend) EdgeDistance(dst, q, k kernels.Tensor, g kernels.Adjacency, complex bool, scale float32) {
	const op = "EdgeDistance"
	b.shapes.EdgeDistance(dst, q, k, g, complex, scale)
	d, x, y := b.f32(op, "dst", dst), b.f32(op, "q", q), b.f32(op, "k", k)
	start, end, nbr := b.lists(op, g)
	if q.Rows == 0 {
		return
	}
	name, numbers := ofComplex(complex, q.Cols, "")
	b.run(name, b.warps(q.Rows), d, x, y, start, end, nbr, q.Rows, k.Rows, g.Nbr.Rows, numbers, scale, b.failures)
}

// EdgeDistanceGrad implements [kernels.Backend].
func (b *Backend) EdgeDistanceGrad(
	dq, dk, ddst, q, k kernels.Tensor, g kernels.Adjacency, complex bool, scale float32,
) {
	const op = "EdgeDistanceGrad"
	b.shapes.EdgeDistanceGrad(dq, dk, ddst, q, k, g, complex, scale)
	gq, gk, d := b.f32(op, "dq", dq), b.f32(op, "dk", dk), b.f32(op, "ddst", ddst)
	x, y := b.f32(op, "q", q), b.f32(op, "k", k)
	start, end, nbr := b.lists(op, g)
	revStart, revDst, revEdge := b.reversed(op, g)
	if q.Rows > 0 {
		name, numbers := ofComplex(complex, q.Cols, "_grad_q")
		grid, shift := b.lanes(q.Rows, numbers, 1)
		b.run(name, grid,
			gq, d, x, y, start, end, nbr, q.Rows, k.Rows, g.Nbr.Rows, numbers, shift, scale, b.failures)
	}
	if k.Rows > 0 {
		name, numbers := ofComplex(complex, k.Cols, "_grad_k")
		grid, shift := b.lanes(k.Rows, numbers, 1)
		b.run(name, grid,
			gk, d, y, x, revStart, revDst, revEdge, k.Rows, q.Rows, ddst.Rows, numbers, shift, scale, b.failures)
	}
}

// relations writes the table of a kernel over relations: the addresses of the three tensors of
// each, and its lists.
func (b *Backend) relations(
	op string, g []kernels.Adjacency, names [3]string, tensors [3][]kernels.Tensor,
) (table operand, all []operand) {
	var words []uint64
	for i, of := range g {
		for n, list := range tensors {
			var o operand
			if list[i].Rows > 0 {
				o = b.f32(op, names[n], list[i])
			}
			all, words = append(all, o), append(words, uint64(o.at))
		}
		start, end := b.u32(op, "Start", of.Start), b.u32(op, "End", of.End)
		all, words = append(all, start, end), append(words, uint64(start.at), uint64(end.at), uint64(of.Nbr.Rows))
	}
	return b.table(op, words), all
}

// EdgeSoftmaxOf implements [kernels.Backend].
func (b *Backend) EdgeSoftmaxOf(alpha, scores, w []kernels.Tensor, g []kernels.Adjacency) {
	b.shapes.EdgeSoftmaxOf(alpha, scores, w, g)
	names := [3]string{"alpha", "scores", "w"}
	b.softmaxOf("EdgeSoftmaxOf", "edge_softmax_of", g, names, [3][]kernels.Tensor{alpha, scores, w})
}

// EdgeSoftmaxOfGrad implements [kernels.Backend].
func (b *Backend) EdgeSoftmaxOfGrad(dscores, dalpha, alpha []kernels.Tensor, g []kernels.Adjacency) {
	b.shapes.EdgeSoftmaxOfGrad(dscores, dalpha, alpha, g)
	names := [3]string{"dscores", "dalpha", "alpha"}
	b.softmaxOf("EdgeSoftmaxOfGrad", "edge_softmax_of_grad", g, names, [3][]kernels.Tensor{dscores, dalpha, alpha})
}

func (b *Backend) softmaxOf(op, name string, g []kernels.Adjacency, names [3]string, tensors [3][]kernels.Tensor) {
	if len(g) == 0 || g[0].Start.Rows == 0 {
		return
	}
	dsts, heads := g[0].Start.Rows, tensors[0][0].Cols
	table, all := b.relations(op, g, names, tensors)
	b.reading(all, func() { b.run(name, b.flat(dsts*heads), table, len(g), dsts, heads, b.failures) })
}

// EdgeDropout implements [kernels.Backend].
func (b *Backend) EdgeDropout(dst, src, srcIDs, dstIDs kernels.Tensor, g kernels.Adjacency, key uint64, p float32) {
	b.shapes.EdgeDropout(dst, src, srcIDs, dstIDs, g, key, p)
	b.edgeDropout("EdgeDropout", "edge_dropout", dst, src, srcIDs, dstIDs, g, key, p)
}

// EdgeDropoutGrad implements [kernels.Backend].
func (b *Backend) EdgeDropoutGrad(dx, dy, srcIDs, dstIDs kernels.Tensor, g kernels.Adjacency, key uint64, p float32) {
	b.shapes.EdgeDropoutGrad(dx, dy, srcIDs, dstIDs, g, key, p)
	b.edgeDropout("EdgeDropoutGrad", "edge_dropout_grad", dx, dy, srcIDs, dstIDs, g, key, p)
}

func (b *Backend) edgeDropout(
	op, name string, dst, src, srcIDs, dstIDs kernels.Tensor, g kernels.Adjacency, key uint64, p float32,
) {
	d, s := b.f32(op, "dst", dst), b.f32(op, "src", src)
	from, to := b.u32(op, "srcIDs", srcIDs), b.u32(op, "dstIDs", dstIDs)
	start, end, nbr := b.lists(op, g)
	if dstIDs.Rows > 0 {
		threshold, factor := kernels.Dropping(p)
		b.run(name, b.warps(dstIDs.Rows),
			d, s, from, to, start, end, nbr, dstIDs.Rows, srcIDs.Rows, g.Nbr.Rows, dst.Cols,
			key, threshold, factor, b.failures)
	}
}
