package tape

import "github.com/gnnstore/gnnstore/kernels"

// What networks with a state for each node need besides. Shapes: N rows, D columns of state, T
// rates.

// LeakyReLU is x above 0 and slope·x elsewhere.
func (t *Tape) LeakyReLU(x *Var, slope float32) *Var {
	y := t.result(x.Value.Rows, x.Value.Cols, x)
	t.be.LeakyReLU(y.Value, x.Value, slope)
	t.record(y, func() { t.be.LeakyReLUGrad(t.grad(x), t.grad(y), x.Value, slope) })
	return y
}

// Tanh is tanh(x): of the sum of its two products, the new state of an RNN cell.
func (t *Tape) Tanh(x *Var) *Var {
	y := t.result(x.Value.Rows, x.Value.Cols, x)
	y.fixed = true
	t.be.Tanh(y.Value, x.Value)
	t.record(y, func() { t.be.TanhGrad(t.grad(x), t.grad(y), y.Value) })
	return y
}

// GRUCell is the new state of a GRU cell, from its two products x and h (N×3·D, the gates r, z and
// n side by side) and the old state s (N×D): see [kernels.Backend.GRUCell]. x and h need gradients
// where s does. It uses x up, as [Tape.Dropout] does, and x is no result of ReLU.
func (t *Tape) GRUCell(x, h, s *Var) *Var {
	y := t.result(s.Value.Rows, s.Value.Cols, x, h, s)
	gates := x.Value
	if x.fixed {
		gates = t.arena.alloc(x.Value.Rows, x.Value.Cols)
	}
	t.be.GRUCell(y.Value, gates, x.Value, h.Value, s.Value)
	t.record(y, func() {
		var ds kernels.Tensor
		if s.needsGrad {
			ds = t.grad(s)
		} else {
			ds = t.arena.alloc(s.Value.Rows, s.Value.Cols) // for nobody
			defer t.arena.give(ds)
		}
		t.be.GRUCellGrad(t.grad(x), t.grad(h), ds, t.grad(y), gates, h.Value, s.Value)
	})
	return y
}

// TimeEncode is cosines of times (N×2, constants: see [kernels.SplitTime]) at rates w with shifts
// b, both 1×T: N×T. w and b need gradients both or neither.
func (t *Tape) TimeEncode(times kernels.Tensor, w, b *Var) *Var {
	y := t.result(times.Rows, w.Value.Cols, w, b)
	t.be.TimeEncode(y.Value, times, w.Value, b.Value)
	t.record(y, func() { t.be.TimeEncodeGrad(t.grad(w), t.grad(b), t.grad(y), times, w.Value, b.Value) })
	return y
}

// Columns is n columns of x from one on, as a copy: N×n.
func (t *Tape) Columns(x *Var, from, n int) *Var {
	if from == 0 && n == x.Value.Cols {
		return x
	}
	y := t.result(x.Value.Rows, n, x)
	t.be.Columns(y.Value, x.Value, from)
	t.record(y, func() { t.be.ColumnsGrad(t.grad(x), t.grad(y), from) })
	return y
}

// LinkLoss is the loss of scores of links that are there and of others that are not, both N×1: the
// mean of -log σ of the former plus the mean of -log(1-σ) of the latter. It returns each row's
// loss, before the means, and starts the backward pass.
func (t *Tape) LinkLoss(there, others *Var) (lossThere, lossOthers kernels.Tensor) {
	loss := func(scores *Var, target float32) kernels.Tensor {
		n := scores.Value.Rows
		targets := t.arena.alloc(n, 1)
		t.be.Fill(targets, target)
		return t.SigmoidCrossEntropy(scores, targets, 1/float32(max(1, n)))
	}
	return loss(there, 1), loss(others, 0)
}
