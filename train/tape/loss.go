package tape

import (
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
)

// WeightedCrossEntropy is CrossEntropy with a weight for each row (N×1): rows' losses and gradients
// are multiplied by it. Given each row its class's weight, and 1/Σ weights as scale, the loss is
// PyTorch's weighted mean.
func (t *Tape) WeightedCrossEntropy(logits *Var, labels, weights kernels.Tensor, scale float32) kernels.Tensor {
	return t.loss(logits, func(loss, d kernels.Tensor) {
		t.be.SoftmaxCrossEntropy(loss, d, logits.Value, labels, scale)
		t.be.ScaleRows(loss, weights)
		if logits.needsGrad {
			t.be.ScaleRows(d, weights)
		}
	})
}

// loss returns the losses of x's rows (N×1), and adds their gradient d to the gradient of x.
// compute sets loss and d.
func (t *Tape) loss(x *Var, compute func(loss, d kernels.Tensor)) kernels.Tensor {
	loss, d := t.arena.alloc(x.Value.Rows, 1), t.arena.alloc(x.Value.Rows, x.Value.Cols)
	compute(loss, d)
	if x.needsGrad {
		t.be.Add(t.grad(x), d)
	}
	return loss
}

// productElements bounds the logits that SoftmaxProduct has at a time, in elements: 32 MiB, and as
// much for their gradients.
var productElements = 1 << 23

// SoftmaxProduct is CrossEntropy of the logits q·zᵀ (Q×C and N×C), without having all of them at a
// time: it returns the loss of each row (Q×1), and adds to the gradients of q and z at once.
func (t *Tape) SoftmaxProduct(q, z *Var, labels kernels.Tensor, scale float32) kernels.Tensor {
	rows, n := q.Value.Rows, z.Value.Rows
	chunk := min(rows, max(1, productElements/max(1, n)))
	loss, logits, d := t.arena.alloc(rows, 1), t.arena.alloc(chunk, n), t.arena.alloc(chunk, n)
	for lo := 0; lo < rows; lo += chunk {
		hi := min(lo+chunk, rows)
		s, ds, part := logits.Slice(0, hi-lo), d.Slice(0, hi-lo), q.Value.Slice(lo, hi)
		t.be.MatMul(s, part, z.Value, false, true, false)
		t.be.SoftmaxCrossEntropy(loss.Slice(lo, hi), ds, s, labels.Slice(lo, hi), scale)
		if q.needsGrad && !t.off {
			t.be.MatMul(t.grad(q).Slice(lo, hi), ds, z.Value, false, false, true)
		}
		if z.needsGrad && !t.off {
			t.be.MatMul(t.grad(z), ds, part, true, false, true)
		}
	}
	return loss
}

// SigmoidCrossEntropy is the multi-label loss: it returns the sum over each row (N×1) and starts
// the backward pass with scale times the gradient. targets is N×C zeros and ones, NaN where not
// known; with scale 1/known targets, the loss is their mean.
func (t *Tape) SigmoidCrossEntropy(logits *Var, targets kernels.Tensor, scale float32) kernels.Tensor {
	return t.loss(logits, func(loss, d kernels.Tensor) {
		t.be.SigmoidCrossEntropy(loss, d, logits.Value, targets, scale)
	})
}

// SquaredError is the loss of regression: it returns each row's sum of squares (N×1) and starts the
// backward pass with scale times the gradient. targets is N×C, NaN where not known; with scale
// 1/known targets, the loss is their mean.
func (t *Tape) SquaredError(predictions *Var, targets kernels.Tensor, scale float32) kernels.Tensor {
	return t.loss(predictions, func(loss, d kernels.Tensor) {
		t.be.SquaredError(loss, d, predictions.Value, targets, scale)
	})
}

// Shared selects the rows of X that the rows of q are scored with. Each Chunk consecutive rows of q
// form a chunk. All rows of chunk n are scored with the same rows of X: IDs[n*Each:(n+1)*Each]
// (U32) names them. The rows of one chunk are gathered at a time. A score is the product of two
// rows, or depends on their distance.
type Shared struct {
	X           *Var
	IDs         kernels.Tensor
	Chunk, Each int
	// Distance, if it is not nil, scores rows by their distance in place of their product.
	Distance *Distance
	// Temperature, if it is not 0, weighs the losses of SigmoidShared: see [Tape.AdversarialLoss].
	Temperature float32
	// Lists returns lists for so many rows of q. Each list names all Each rows of a chunk, in their
	// order. It is called only with numbers that Sizes returns, and only if there is a Distance or
	// a Temperature.
	Lists func(rows int) kernels.Adjacency
	// Seen is lent the scores of some rows of q at a time, the first being row lo, or is nil.
	Seen func(lo int, scores kernels.Tensor)
}

// most returns the largest number of rows of q that are scored at a time, if q has so many rows.
func (s *Shared) most(rows int) int {
	return min(s.Chunk, rows, max(1, productElements/max(1, s.Each)))
}

// Sizes returns the numbers of rows that are scored at a time, if q has so many rows. It returns
// each number once.
func (s *Shared) Sizes(rows int) (sizes []int) {
	s.parts(rows, func(_, lo, hi int) {
		if !slices.Contains(sizes, hi-lo) {
			sizes = append(sizes, hi-lo)
		}
	})
	return sizes
}

// parts divides rows of q into parts that are scored at a time. It calls f for each part, which is
// rows lo to hi-1 and lies in one chunk.
func (s *Shared) parts(rows int, f func(chunk, lo, hi int)) {
	most := s.most(rows)
	for chunk := 0; chunk*s.Chunk < rows; chunk++ {
		end := min((chunk+1)*s.Chunk, rows)
		for lo := chunk * s.Chunk; lo < end; lo += most {
			f(chunk, lo, min(lo+most, end))
		}
	}
}

// blocks computes the scores of q and s, some rows of q at a time. It calls loss with the scores of
// the rows from lo on. loss sets d, which has the same shape, to the gradients of these scores.
// From d, blocks then adds to the gradients of q and s.X, before it computes the next scores.
func (t *Tape) blocks(q *Var, s Shared, loss func(lo int, scores, d kernels.Tensor)) {
	rows, cols := q.Value.Rows, q.Value.Cols
	most := s.most(rows)
	z, dz := t.arena.alloc(s.Each, cols), t.arena.alloc(s.Each, cols)
	scores, d := t.arena.alloc(most, s.Each), t.arena.alloc(most, s.Each)
	var unused kernels.Tensor // gradients of q where it needs none
	if s.Distance != nil && !q.needsGrad {
		unused = t.arena.alloc(most, cols)
	}
	s.parts(rows, func(chunk, lo, hi int) {
		ids := s.IDs.Slice(chunk*s.Each, (chunk+1)*s.Each)
		first, last := lo == chunk*s.Chunk, hi == min((chunk+1)*s.Chunk, rows)
		if first {
			t.be.GatherRows(z, s.X.Value, ids)
		}
		x, dx, part := scores.Slice(0, hi-lo), d.Slice(0, hi-lo), q.Value.Slice(lo, hi)
		if s.Distance != nil {
			t.distances(flat(x), part, z, *s.Distance, s.Lists(hi-lo))
		} else {
			t.be.MatMul(x, part, z, false, true, false)
		}
		loss(lo, x, dx)
		if t.off || !q.needsGrad && !s.X.needsGrad {
			return
		}
		if s.Distance != nil {
			if first {
				t.be.Fill(dz, 0)
			}
			dq := unused.Slice(0, min(unused.Rows, hi-lo))
			if q.needsGrad {
				dq = t.grad(q).Slice(lo, hi)
			}
			t.be.EdgeDistanceGrad(dq, dz, flat(dx), part, z, s.Lists(hi-lo), s.Distance.Complex, -1)
		} else {
			if q.needsGrad {
				t.be.MatMul(t.grad(q).Slice(lo, hi), dx, z, false, false, true)
			}
			if s.X.needsGrad {
				t.be.MatMul(dz, dx, part, true, false, !first)
			}
		}
		if s.X.needsGrad && last {
			t.be.GatherRowsGrad(t.grad(s.X), dz, ids)
		}
	})
}

// flat is the elements of x as one column.
func flat(x kernels.Tensor) kernels.Tensor { return shaped(x, x.Len(), 1) }

// SigmoidShared computes SigmoidCrossEntropy of the scores of q and s, with targets of 0, or with a
// Temperature AdversarialLoss. It returns the sum over each row of q (Q×1).
func (t *Tape) SigmoidShared(q *Var, s Shared, scale float32) kernels.Tensor {
	loss := t.arena.alloc(q.Value.Rows, 1)
	zeros, ones := t.arena.alloc(s.most(q.Value.Rows), s.Each), t.arena.alloc(1, s.Each)
	t.be.Fill(zeros, 0)
	t.be.Fill(ones, 1)
	t.blocks(q, s, func(lo int, scores, d kernels.Tensor) {
		rows, at := loss.Slice(lo, lo+scores.Rows), zeros.Slice(0, scores.Rows)
		if s.Temperature == 0 {
			t.be.SigmoidCrossEntropy(rows, d, scores, at, scale)
		} else {
			t.adversarial(flat(at), flat(d), flat(scores), s.Lists(scores.Rows), s.Temperature, scale)
			t.be.HeadDot(rows, at, ones)
		}
		if s.Seen != nil {
			s.Seen(lo, scores)
		}
	})
	return loss
}

// SoftmaxShared computes CrossEntropy of own (Q×1) among the scores of q and s. It returns the loss
// of each row of q (Q×1). The first row of X in each chunk is a placeholder: own replaces its
// scores. zeros (U32, Q×1) is all 0. first (U32) is 0, Each, 2·Each and so on, one for each row of
// a chunk.
func (t *Tape) SoftmaxShared(own, q *Var, s Shared, zeros, first kernels.Tensor, scale float32) kernels.Tensor {
	loss := t.arena.alloc(q.Value.Rows, 1)
	column := t.arena.alloc(min(s.Chunk, q.Value.Rows), 1)
	t.blocks(q, s, func(lo int, scores, d kernels.Tensor) {
		n := scores.Rows
		flat, at, part := scores, first.Slice(0, n), column.Slice(0, n)
		flat.Rows, flat.Cols = scores.Len(), 1
		t.be.ScatterRows(flat, own.Value.Slice(lo, lo+n), at)
		t.be.SoftmaxCrossEntropy(loss.Slice(lo, lo+n), d, scores, zeros.Slice(lo, lo+n), scale)
		if s.Seen != nil {
			s.Seen(lo, scores)
		}
		flat.Buf, flat.Off = d.Buf, d.Off
		if own.needsGrad && !t.off {
			t.be.GatherRows(part, flat, at)
			t.be.Add(t.grad(own).Slice(lo, lo+n), part)
		}
		t.be.Fill(part, 0) // nothing for the row that holds the place
		t.be.ScatterRows(flat, part, at)
	})
	return loss
}
