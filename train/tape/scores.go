package tape

import "github.com/gnnstore/gnnstore/kernels"

// Shapes: D destinations, S sources, E edges of a relation, H heads of C columns each.

// EdgeDot is a score for each edge: the product of each head of its destination's row of q (D×H·C)
// and its source's row of k (S×H·C), times scale: E×H. Both need gradients. A position in no list
// has a score of 0, so that HeadDot, which takes all rows, may multiply each head's scores by a
// parameter.
func (t *Tape) EdgeDot(q, k *Var, heads int, g kernels.Adjacency, scale float32) *Var {
	y := t.result(g.Nbr.Rows, heads, q, k)
	t.be.Fill(y.Value, 0)
	t.be.EdgeDot(y.Value, q.Value, k.Value, g, scale)
	t.record(y, func() { t.be.EdgeDotGrad(t.grad(q), t.grad(k), t.grad(y), q.Value, k.Value, g, scale) })
	return y
}

// EdgeSoftmaxOf is the softmax of scores (E×H a relation) over each destination's edges in all
// relations together: E×H a relation. Exponentials of relation r are multiplied by w[r] (E×1, a
// constant), unless that has no rows. All scores need gradients.
func (t *Tape) EdgeSoftmaxOf(scores []*Var, w []kernels.Tensor, g []kernels.Adjacency) []*Var {
	alpha := make([]*Var, len(scores))
	for r, s := range scores {
		alpha[r] = t.result(s.Value.Rows, s.Value.Cols, scores...)
		alpha[r].fixed = true
	}
	t.be.EdgeSoftmaxOf(values(alpha), values(scores), w, g)
	if len(alpha) > 0 {
		t.record(alpha[0], func() { t.be.EdgeSoftmaxOfGrad(t.grads(scores), t.grads(alpha), values(alpha), g) })
	}
	return alpha
}

func values(vars []*Var) []kernels.Tensor {
	all := make([]kernels.Tensor, len(vars))
	for i, v := range vars {
		all[i] = v.Value
	}
	return all
}

// grads is grad of each.
func (t *Tape) grads(vars []*Var) []kernels.Tensor {
	all := make([]kernels.Tensor, len(vars))
	for i, v := range vars {
		all[i] = t.grad(v)
	}
	return all
}

// GELU is x·Φ(x), with Φ the standard normal distribution function: PyTorch's default, without its
// approximation.
func (t *Tape) GELU(x *Var) *Var {
	y := t.result(x.Value.Rows, x.Value.Cols, x)
	t.be.GELU(y.Value, x.Value)
	t.record(y, func() { t.be.GELUGrad(t.grad(x), t.grad(y), x.Value) })
	return y
}

// Gate is σ(s)·a + (1-σ(s))·x: how much of a row is new, by a parameter s (1×1). All three need
// gradients.
func (t *Tape) Gate(a, x, s *Var) *Var {
	y := t.result(a.Value.Rows, a.Value.Cols, a, x, s)
	t.be.Gate(y.Value, a.Value, x.Value, s.Value)
	t.record(y, func() {
		t.be.GateGrad(t.grad(a), t.grad(x), t.grad(s), t.grad(y), a.Value, x.Value, s.Value)
	})
	return y
}
