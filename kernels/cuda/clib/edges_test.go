//go:build cuda && linux

package clib

import "github.com/gnnstore/gnnstore/kernels"

func (d *device) WeightedSum(dst, src, w kernels.Tensor, g kernels.Adjacency) {
	d.Backend.WeightedSum(onCPU(dst), onCPU(src), onCPU(w), graphOnCPU(g))
	defer d.begin()()
	if dst.Rows == 0 {
		return
	}
	name, n := half("weighted_sum", src)
	width := dst.Cols / w.Cols
	d.lib.run(d.wide(name, width%n == 0, dst, src), flat(dst.Rows), at(dst), at(src), at(w), at(g.Start), at(g.End),
		at(g.Nbr),
		dst.Rows, src.Rows, g.Nbr.Rows, width, w.Cols, shift(dst.Cols, n), d.word)
}

func (d *device) WeightedSumGrad(dsrc, ddst, w kernels.Tensor, g kernels.Adjacency) {
	d.Backend.WeightedSumGrad(onCPU(dsrc), onCPU(ddst), onCPU(w), graphOnCPU(g))
	defer d.begin()()
	if dsrc.Rows == 0 {
		return
	}
	width := dsrc.Cols / w.Cols
	d.lib.run(d.wide("weighted_sum_grad", width%4 == 0, dsrc, ddst), flat(dsrc.Rows), at(dsrc), at(ddst), at(w),
		at(g.RevStart),
		at(g.RevDst), at(g.RevEdge), ddst.Rows, dsrc.Rows, w.Rows, width, w.Cols, shift(dsrc.Cols, 4), d.word)
}

func (d *device) WeightedSumWeightGrad(dw, ddst, src kernels.Tensor, g kernels.Adjacency) {
	d.Backend.WeightedSumWeightGrad(onCPU(dw), onCPU(ddst), onCPU(src), graphOnCPU(g))
	defer d.begin()()
	if ddst.Rows == 0 {
		return
	}
	width := src.Cols / dw.Cols
	d.lib.run(d.wide("weighted_sum_weight_grad", width%4 == 0, ddst, src), flat(32*ddst.Rows), at(dw), at(ddst),
		at(src), at(g.Start),
		at(g.End), at(g.Nbr), ddst.Rows, src.Rows, g.Nbr.Rows, width, dw.Cols, d.word)
}

func (d *device) HeadDot(dst, src, a kernels.Tensor) {
	d.Backend.HeadDot(onCPU(dst), onCPU(src), onCPU(a))
	defer d.begin()()
	if src.Rows > 0 {
		d.lib.run(d.wide("head_dot", a.Cols%4 == 0, src, a), flat(dst.Len()), at(dst), at(src), at(a), src.Rows, a.Cols,
			a.Rows)
	}
}

func (d *device) HeadDotGrad(dsrc, da, ddst, src, a kernels.Tensor) {
	d.Backend.HeadDotGrad(onCPU(dsrc), onCPU(da), onCPU(ddst), onCPU(src), onCPU(a))
	defer d.begin()()
	if src.Len() == 0 {
		return
	}
	d.lib.run(d.wide("head_dot_grad", a.Cols%4 == 0, dsrc, a), flat(src.Rows), at(dsrc), at(ddst), at(a), src.Rows,
		a.Cols, a.Rows,
		shift(src.Cols, 4))
	d.columnSums(d.wide("head_dot_parts", a.Cols%4 == 0, src), src.Rows, src.Cols, []kernels.Tensor{da}, at(ddst),
		at(src), src.Rows,
		a.Cols, a.Rows)
}

func (d *device) EdgeSoftmax(dst, srcScore, dstScore, w kernels.Tensor, g kernels.Adjacency, slope float32) {
	d.Backend.EdgeSoftmax(onCPU(dst), onCPU(srcScore), onCPU(dstScore), onCPU(w), graphOnCPU(g), slope)
	defer d.begin()()
	if dstScore.Rows == 0 {
		return
	}
	weights := at(w)
	if w.Rows == 0 {
		weights = 0
	}
	d.lib.run("edge_softmax", flat(dstScore.Len()), at(dst), at(srcScore), at(dstScore), weights, at(g.Start),
		at(g.End), at(g.Nbr),
		dstScore.Rows, srcScore.Rows, g.Nbr.Rows, dst.Cols, slope, d.word)
}

func (d *device) EdgeSoftmaxGrad(dsrcScore, ddstScore, dedge, dalpha, alpha, srcScore, dstScore kernels.Tensor,
	g kernels.Adjacency, slope float32) {
	d.Backend.EdgeSoftmaxGrad(onCPU(dsrcScore), onCPU(ddstScore), onCPU(dedge), onCPU(dalpha), onCPU(alpha),
		onCPU(srcScore),
		onCPU(dstScore), graphOnCPU(g), slope)
	defer d.begin()()
	if dstScore.Rows > 0 {
		d.lib.run("edge_softmax_grad", flat(dstScore.Len()), at(dedge), at(ddstScore), at(dalpha), at(alpha),
			at(srcScore), at(dstScore),
			at(g.Start), at(g.End), at(g.Nbr), dstScore.Rows, srcScore.Rows, g.Nbr.Rows, alpha.Cols, slope, d.word)
	}
	if srcScore.Rows > 0 {
		d.lib.run("edge_sum_grad", flat(srcScore.Len()), at(dsrcScore), at(dedge), at(g.RevStart), at(g.RevEdge),
			srcScore.Rows,
			dedge.Rows, alpha.Cols, d.word)
	}
}

func (d *device) EdgeDot(dst, q, k kernels.Tensor, g kernels.Adjacency, scale float32) {
	d.Backend.EdgeDot(onCPU(dst), onCPU(q), onCPU(k), graphOnCPU(g), scale)
	defer d.begin()()
	if q.Rows == 0 {
		return
	}
	width := q.Cols / dst.Cols
	d.lib.run(d.wide("edge_dot", width%4 == 0, q, k), flat(32*q.Rows), at(dst), at(q), at(k), at(g.Start), at(g.End),
		at(g.Nbr), q.Rows,
		k.Rows, g.Nbr.Rows, width, dst.Cols, scale, d.word)
}

func (d *device) EdgeDotGrad(dq, dk, ddst, q, k kernels.Tensor, g kernels.Adjacency, scale float32) {
	d.Backend.EdgeDotGrad(onCPU(dq), onCPU(dk), onCPU(ddst), onCPU(q), onCPU(k), graphOnCPU(g), scale)
	defer d.begin()()
	heads := ddst.Cols
	width := q.Cols / heads
	if q.Rows > 0 {
		d.lib.run(d.wide("edge_dot_grad_q", width%4 == 0, dq, k), flat(q.Rows), at(dq), at(ddst), at(k), at(g.Start),
			at(g.End), at(g.Nbr),
			q.Rows, k.Rows, g.Nbr.Rows, width, heads, shift(q.Cols, 4), scale, d.word)
	}
	if k.Rows > 0 {
		d.lib.run(d.wide("edge_dot_grad_k", width%4 == 0, dk, q), flat(k.Rows), at(dk), at(ddst), at(q), at(g.RevStart),
			at(g.RevDst),
			at(g.RevEdge), q.Rows, k.Rows, ddst.Rows, width, heads, shift(q.Cols, 4), scale, d.word)
	}
}

// relations writes the table of a kernel over relations: the addresses of the three tensors of
// each, and its lists.
func (d *device) relations(g []kernels.Adjacency, first, second, third []kernels.Tensor) address {
	var words []uint64
	for i, of := range g {
		more := at(third[i])
		if third[i].Rows == 0 {
			more = 0
		}
		for _, a := range []address{at(first[i]), at(second[i]), more, at(of.Start), at(of.End), address(of.Nbr.Rows)} {
			words = append(words, uint64(a))
		}
	}
	return d.table(words)
}

func (d *device) EdgeSoftmaxOf(alpha, scores, w []kernels.Tensor, g []kernels.Adjacency) {
	d.Backend.EdgeSoftmaxOf(onCPUs(alpha), onCPUs(scores), onCPUs(w), graphsOnCPU(g))
	defer d.begin()()
	if len(g) > 0 && g[0].Start.Rows > 0 {
		dsts, heads := g[0].Start.Rows, alpha[0].Cols
		d.lib.run("edge_softmax_of", flat(dsts*heads), d.relations(g, alpha, scores, w), len(g), dsts, heads, d.word)
	}
}

func (d *device) EdgeSoftmaxOfGrad(dscores, dalpha, alpha []kernels.Tensor, g []kernels.Adjacency) {
	d.Backend.EdgeSoftmaxOfGrad(onCPUs(dscores), onCPUs(dalpha), onCPUs(alpha), graphsOnCPU(g))
	defer d.begin()()
	if len(g) > 0 && g[0].Start.Rows > 0 {
		dsts, heads := g[0].Start.Rows, alpha[0].Cols
		d.lib.run("edge_softmax_of_grad", flat(dsts*heads), d.relations(g, dscores, dalpha, alpha), len(g), dsts, heads,
			d.word)
	}
}

// dropping returns the threshold and the factor of a rate: see dropout.go of package kernels.
func dropping(p float32) (threshold uint32, factor float32) {
	threshold = min(uint32(float64(p)*65536+0.5), 65535)
	return threshold, float32(65536 / float64(65536-threshold))
}

func (d *device) edgeDropout(name string, dst, src, srcIDs, dstIDs kernels.Tensor, g kernels.Adjacency, key uint64,
	p float32) {
	if dstIDs.Rows == 0 {
		return
	}
	threshold, factor := dropping(p)
	d.lib.run(name, flat(32*dstIDs.Rows), at(dst), at(src), at(srcIDs), at(dstIDs), at(g.Start), at(g.End), at(g.Nbr),
		dstIDs.Rows,
		srcIDs.Rows, g.Nbr.Rows, dst.Cols, key, threshold, factor, d.word)
}

func (d *device) EdgeDropout(dst, src, srcIDs, dstIDs kernels.Tensor, g kernels.Adjacency, key uint64, p float32) {
	d.Backend.EdgeDropout(onCPU(dst), onCPU(src), onCPU(srcIDs), onCPU(dstIDs), graphOnCPU(g), key, p)
	defer d.begin()()
	d.edgeDropout("edge_dropout", dst, src, srcIDs, dstIDs, g, key, p)
}

func (d *device) EdgeDropoutGrad(dx, dy, srcIDs, dstIDs kernels.Tensor, g kernels.Adjacency, key uint64, p float32) {
	d.Backend.EdgeDropoutGrad(onCPU(dx), onCPU(dy), onCPU(srcIDs), onCPU(dstIDs), graphOnCPU(g), key, p)
	defer d.begin()()
	d.edgeDropout("edge_dropout_grad", dx, dy, srcIDs, dstIDs, g, key, p)
}
