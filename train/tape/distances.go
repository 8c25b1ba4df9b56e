package tape

import "github.com/gnnstore/gnnstore/kernels"

// Shapes: Q rows of queries, S rows of others, E edges, C columns.

// Distance describes scores: a margin minus the distance between two rows.
type Distance struct {
	// Complex says that rows hold complex numbers: see [kernels.Backend.EdgeDistance].
	Complex bool
	// Margin is the score of two equal rows.
	Margin float32
}

// EdgeDistance returns a score for each edge (E×1): the margin minus the distance between its
// destination's row of q (Q×C) and its source's row of k (S×C). Both q and k need gradients.
func (t *Tape) EdgeDistance(q, k *Var, d Distance, g kernels.Adjacency) *Var {
	y := t.result(g.Nbr.Rows, 1, q, k)
	t.be.Fill(y.Value, 0)
	t.distances(y.Value, q.Value, k.Value, d, g)
	t.record(y, func() {
		t.be.EdgeDistanceGrad(t.grad(q), t.grad(k), t.grad(y), q.Value, k.Value, g, d.Complex, -1)
	})
	return y
}

// distances sets the scores of edges, for EdgeDistance.
func (t *Tape) distances(scores, q, k kernels.Tensor, d Distance, g kernels.Adjacency) {
	t.be.EdgeDistance(scores, q, k, g, d.Complex, -1)
	if d.Margin != 0 {
		margin := t.arena.alloc(1, 1)
		t.be.Fill(margin, d.Margin)
		t.be.AddRow(scores, margin)
		t.arena.give(margin)
	}
}

// Times returns factor·x.
func (t *Tape) Times(x *Var, factor float32) *Var {
	y := t.result(x.Value.Rows, x.Value.Cols, x)
	t.be.Convert(y.Value, x.Value)
	t.be.Scale(y.Value, factor)
	t.record(y, func() {
		d := t.copy(t.grad(y))
		t.be.Scale(d, factor)
		t.addGrad(x, d)
	})
	return y
}

// Beside returns the columns of a and then the columns of b. Both have the same number of rows.
func (t *Tape) Beside(a, b *Var) *Var {
	y := t.result(a.Value.Rows, a.Value.Cols+b.Value.Cols, a, b)
	t.be.Fill(y.Value, 0)
	from := 0
	for _, x := range []*Var{a, b} {
		t.be.ColumnsGrad(y.Value, x.Value, from)
		from += x.Value.Cols
	}
	t.record(y, func() {
		from := 0
		for _, x := range []*Var{a, b} {
			if x.needsGrad {
				d := t.arena.alloc(x.Value.Rows, x.Value.Cols)
				t.be.Columns(d, t.grad(y), from)
				t.addGrad(x, d)
			}
			from += x.Value.Cols
		}
	})
	return y
}

// AdversarialLoss computes the loss of negatives from their scores (E×1): -log(1-σ(score)), times a
// weight. The weights of a list of g are the softmax of temperature·score over the list (Sun et al.
// 2019, equations 5 and 6), and no gradient flows through them. It returns the weighted losses
// (E×1), and starts the backward pass with scale times the gradient. Each edge must be in a list.
func (t *Tape) AdversarialLoss(scores *Var, g kernels.Adjacency, temperature, scale float32) kernels.Tensor {
	return t.loss(scores, func(loss, d kernels.Tensor) { t.adversarial(loss, d, scores.Value, g, temperature, scale) })
}

// adversarial sets losses and gradients for AdversarialLoss.
func (t *Tape) adversarial(loss, d, scores kernels.Tensor, g kernels.Adjacency, temperature, scale float32) {
	weights, warm := t.arena.alloc(scores.Rows, 1), t.copy(scores)
	t.be.Scale(warm, temperature)
	equal := make([]kernels.Tensor, 1)
	t.be.EdgeSoftmaxOf([]kernels.Tensor{weights}, []kernels.Tensor{warm}, equal, []kernels.Adjacency{g})
	t.be.Fill(warm, 0)
	t.be.SigmoidCrossEntropy(loss, d, scores, warm, scale)
	t.be.ScaleRows(loss, weights)
	t.be.ScaleRows(d, weights)
	t.arena.give(weights)
	t.arena.give(warm)
}
