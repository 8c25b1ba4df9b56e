package tape

import "github.com/gnnstore/gnnstore/kernels"

// Shapes: N rows, C columns, K matrices, R rows of B scalars.

// Sum is the sum of matrices of one shape. It uses the first up, as [Tape.Dropout] does.
func (t *Tape) Sum(first *Var, others ...*Var) *Var {
	if len(others) == 0 {
		return first
	}
	y := t.over(first)
	if y.whole != first {
		t.be.Convert(y.Value, first.Value)
	}
	for _, x := range others {
		t.be.Add(y.Value, x.Value)
		y.needsGrad = y.needsGrad || x.needsGrad && !t.off
	}
	t.record(y, func() {
		dy := t.grad(y)
		for _, x := range others {
			t.addGrad(x, dy)
		}
		if y.whole != first {
			t.addGrad(first, dy)
		}
	})
	return y
}

// AddRows is x plus, for every i, row ids[i] of table: Sum of x and GatherRows, in one pass. It
// uses x up, as [Tape.Dropout] does. ids is U32, N×1, and count is 0, 1, 2 and so on, U32, N×1.
func (t *Tape) AddRows(x, table *Var, ids, count kernels.Tensor) *Var {
	y := t.over(x)
	if y.whole != x {
		t.be.Convert(y.Value, x.Value)
	}
	y.needsGrad = y.needsGrad || table.needsGrad && !t.off
	t.be.AddEdges(y.Value, table.Value, kernels.Tensor{}, count, ids)
	t.record(y, func() {
		dy := t.grad(y)
		if table.needsGrad {
			t.be.GatherRowsGrad(t.grad(table), dy, ids)
		}
		if y.whole != x {
			t.addGrad(x, dy)
		}
	})
	return y
}

// addGrad adds d to x's gradient, if it needs one.
func (t *Tape) addGrad(x *Var, d kernels.Tensor) {
	if !x.needsGrad {
		return
	}
	if dx, fresh := t.into(x); fresh {
		t.be.Convert(dx, d)
	} else {
		t.be.Add(dx, d)
	}
}

// Product is x·w, N×O, for x N×I and w I×O.
func (t *Tape) Product(x, w *Var) *Var { return t.Affine(nil, Term{X: x, W: w, Across: true}) }

// Mix is one matrix for each column b of a (R×B): Σ a[rows[k],b]·x[k] over the matrices x, which
// are float32 and of one shape. It is one product of matrices, with every x as a row: so the x are
// read once for all columns.
func (t *Tape) Mix(x []*Var, a *Var, rows []int) []*Var {
	n, cols, mixed := x[0].Value.Rows, x[0].Value.Cols, a.Value.Cols
	flat, by := t.arena.alloc(len(x), n*cols), t.arena.alloc(len(x), mixed)
	for k, v := range x {
		t.be.Convert(shaped(flat.Slice(k, k+1), n, cols), v.Value)
		t.be.Convert(by.Slice(k, k+1), a.Value.Slice(rows[k], rows[k]+1))
	}
	all := t.result(mixed*n, cols, append([]*Var{a}, x...)...)
	t.be.MatMul(shaped(all.Value, mixed, n*cols), by, flat, true, false, false)
	t.record(all, func() {
		d := shaped(t.grad(all), mixed, n*cols)
		if a.needsGrad {
			da := t.arena.alloc(len(x), mixed)
			t.be.MatMul(da, flat, d, false, true, false)
			for k, r := range rows {
				t.be.Add(t.grad(a).Slice(r, r+1), da.Slice(k, k+1))
			}
		}
		t.be.MatMul(flat, by, d, false, false, false) // the x are not read again
		for k, v := range x {
			t.addGrad(v, shaped(flat.Slice(k, k+1), n, cols))
		}
	})
	mixes := make([]*Var, mixed)
	for b := range mixes {
		mixes[b] = t.Window(all, b*n, (b+1)*n)
	}
	return mixes
}

// shaped is the elements of v as rows of so many columns.
func shaped(v kernels.Tensor, rows, cols int) kernels.Tensor {
	v.Rows, v.Cols = rows, cols
	return v
}
