package tape

import "github.com/gnnstore/gnnstore/kernels"

// WeightedCrossEntropy is CrossEntropy with a weight for each row (N×1): rows' losses and gradients are multiplied by it.
// Given each row its class's weight, and 1/Σ weights as scale, the loss is PyTorch's weighted mean.
func (t *Tape) WeightedCrossEntropy(logits *Var, labels, weights kernels.Tensor, scale float32) kernels.Tensor {
	loss := t.arena.alloc(logits.Value.Rows, 1)
	d := t.arena.alloc(logits.Value.Rows, logits.Value.Cols)
	t.be.SoftmaxCrossEntropy(loss, d, logits.Value, labels, scale)
	t.be.ScaleRows(loss, weights)
	if logits.needsGrad {
		t.be.ScaleRows(d, weights)
		t.be.Add(t.grad(logits), d)
	}
	return loss
}

// productElements bounds the logits that SoftmaxProduct has at a time, in elements: 32 MiB, and as much for their gradients.
var productElements = 1 << 23

// SoftmaxProduct is CrossEntropy of the logits q·zᵀ (Q×C and N×C), without having all of them at a time: it returns the loss of
// each row (Q×1), and adds to the gradients of q and z at once.
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

// SigmoidCrossEntropy is the multi-label loss: it returns the sum over each row (N×1) and starts the backward pass with
// scale times the gradient. targets is N×C zeros and ones, NaN where not known; with scale 1/known targets, the loss is
// their mean.
func (t *Tape) SigmoidCrossEntropy(logits *Var, targets kernels.Tensor, scale float32) kernels.Tensor {
	loss := t.arena.alloc(logits.Value.Rows, 1)
	d := t.arena.alloc(logits.Value.Rows, logits.Value.Cols)
	t.be.SigmoidCrossEntropy(loss, d, logits.Value, targets, scale)
	if logits.needsGrad {
		t.be.Add(t.grad(logits), d)
	}
	return loss
}

// SquaredError is the loss of regression: it returns each row's sum of squares (N×1) and starts the backward pass with scale times the
// gradient. targets is N×C, NaN where not known; with scale 1/known targets, the loss is their mean.
func (t *Tape) SquaredError(predictions *Var, targets kernels.Tensor, scale float32) kernels.Tensor {
	loss := t.arena.alloc(predictions.Value.Rows, 1)
	d := t.arena.alloc(predictions.Value.Rows, predictions.Value.Cols)
	t.be.SquaredError(loss, d, predictions.Value, targets, scale)
	if predictions.needsGrad {
		t.be.Add(t.grad(predictions), d)
	}
	return loss
}
