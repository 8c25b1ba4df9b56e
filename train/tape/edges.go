package tape

import "github.com/gnnstore/gnnstore/kernels"

// Shapes: D destinations, S sources, E edges (rows of an edge value, one a position of Nbr), H
// heads of C columns each.

// WeightedSum is, for each destination and head, the sum of its neighbours' rows of x (S×H·C) times
// the edges' weights w (E×H), plus bias (1×H·C, or nil): D×H·C. x may be a leaf in float16 when w
// needs no gradient.
func (t *Tape) WeightedSum(x, w, bias *Var, g kernels.Adjacency) *Var {
	inputs := []*Var{x, w}
	if bias != nil {
		inputs = append(inputs, bias)
	}
	y := t.result(g.Start.Rows, x.Value.Cols, inputs...)
	t.be.WeightedSum(y.Value, x.Value, w.Value, g)
	if bias != nil {
		t.be.AddRow(y.Value, bias.Value)
	}
	t.record(y, func() {
		dy := t.grad(y)
		if bias != nil && bias.needsGrad {
			t.be.ColumnSumGrad(t.grad(bias), dy)
		}
		if x.needsGrad {
			t.be.WeightedSumGrad(t.grad(x), dy, w.Value, g)
		}
		if w.needsGrad {
			t.be.WeightedSumWeightGrad(t.grad(w), dy, x.Value, g)
		}
	})
	return y
}

// HeadDot is the product of each head of each row of x (N×H·C) with the head's row of a (H×C): N×H.
// Both need gradients.
func (t *Tape) HeadDot(x, a *Var) *Var {
	y := t.result(x.Value.Rows, a.Value.Rows, x, a)
	t.be.HeadDot(y.Value, x.Value, a.Value)
	t.record(y, func() { t.be.HeadDotGrad(t.grad(x), t.grad(a), t.grad(y), x.Value, a.Value) })
	return y
}

// EdgeSoftmax is GAT's attention: LeakyReLU of the sum of the source's (S×H) and the destination's
// score (D×H), softmax over each destination's edges: E×H. Exponentials are multiplied by w (E×1, a
// constant), unless that has no rows.
func (t *Tape) EdgeSoftmax(src, dst *Var, w kernels.Tensor, g kernels.Adjacency, slope float32) *Var {
	alpha := t.result(g.Nbr.Rows, src.Value.Cols, src, dst)
	alpha.fixed = true
	t.be.EdgeSoftmax(alpha.Value, src.Value, dst.Value, w, g, slope)
	t.record(alpha, func() {
		dedge := t.arena.alloc(alpha.Value.Rows, alpha.Value.Cols)
		t.be.EdgeSoftmaxGrad(t.grad(src), t.grad(dst), dedge, t.grad(alpha), alpha.Value, src.Value, dst.Value, g,
			slope)
	})
	return alpha
}

// EdgeSoftmaxWith is EdgeSoftmax where each edge also has a score of its own (E×H), which is added
// to its source's score. own has the lists of g over the edges themselves: Nbr and RevEdge are 0,
// 1, 2 and so on, and RevStart too, to E.
func (t *Tape) EdgeSoftmaxWith(src, dst, edge *Var, w kernels.Tensor, g, own kernels.Adjacency, slope float32) *Var {
	edges, heads := edge.Value.Rows, edge.Value.Cols
	sum := t.arena.alloc(edges, heads)
	t.be.GatherRows(sum, src.Value, g.Nbr)
	t.be.Add(sum, edge.Value)
	alpha := t.result(edges, heads, src, dst, edge)
	alpha.fixed = true
	t.be.EdgeSoftmax(alpha.Value, sum, dst.Value, w, own, slope)
	t.record(alpha, func() {
		dedge, unused := t.arena.alloc(edges, heads), t.arena.alloc(edges, heads)
		t.be.Fill(dedge, 0) // positions in no list are not written
		t.be.EdgeSoftmaxGrad(unused, t.grad(dst), dedge, t.grad(alpha), alpha.Value, sum, dst.Value, own, slope)
		t.be.GatherRowsGrad(t.grad(src), dedge, g.Nbr)
		t.addGrad(edge, dedge)
	})
	return alpha
}

// EdgeDropout zeroes values of edges (E×H) at rate p and scales the rest, by a hash of (key,
// destination's id, source's id, head). p = 0 is x itself.
func (t *Tape) EdgeDropout(x *Var, srcIDs, dstIDs kernels.Tensor, g kernels.Adjacency, key uint64, p float32) *Var {
	if p == 0 {
		return x
	}
	y := t.result(x.Value.Rows, x.Value.Cols, x)
	t.be.EdgeDropout(y.Value, x.Value, srcIDs, dstIDs, g, key, p)
	t.record(y, func() { t.be.EdgeDropoutGrad(t.grad(x), t.grad(y), srcIDs, dstIDs, g, key, p) })
	return y
}

// ELU is x above 0 and exp(x)-1 elsewhere.
func (t *Tape) ELU(x *Var) *Var {
	y := t.result(x.Value.Rows, x.Value.Cols, x)
	y.fixed = true
	t.be.ELU(y.Value, x.Value)
	t.record(y, func() { t.be.ELUGrad(t.grad(x), t.grad(y), y.Value) })
	return y
}
