package tape

import (
	"fmt"

	"github.com/gnnstore/gnnstore/kernels"
)

// Shapes: N rows, I input columns, O output columns, D destinations, S sources.

// Term is one product of [Tape.Affine].
type Term struct {
	X *Var // N×I; a leaf in float16 comes through Factor
	W *Var // O×I, as PyTorch's Linear keeps it

	// Across says that W is I×O, as PyTorch Geometric's RGCNConv keeps it, and the product x·w.
	Across bool
}

// Affine is y = Σ x·wᵀ + bias, N×O; bias (1×O) may be nil. Terms are alike: all of them Across, or
// none.
func (t *Tape) Affine(bias *Var, terms ...Term) *Var { return t.affine(false, bias, terms) }

// AffineReLU is ReLU of Affine in one operation.
func (t *Tape) AffineReLU(bias *Var, terms ...Term) *Var { return t.affine(true, bias, terms) }

func (t *Tape) affine(relu bool, bias *Var, terms []Term) *Var {
	inputs, products := make([]*Var, 0, 2*len(terms)+1), make([]kernels.Term, 0, len(terms))
	for _, term := range terms {
		inputs = append(inputs, term.X, term.W)
		products = append(products, kernels.Term{X: term.X.Value, W: term.W.Value})
	}
	across := terms[0].Across
	var row kernels.Tensor
	if bias != nil {
		inputs, row = append(inputs, bias), bias.Value
	}
	var y *Var
	if across {
		y = t.result(terms[0].X.Value.Rows, terms[0].W.Value.Cols, inputs...)
		t.multiply(y.Value, row, relu, products)
	} else {
		y = t.result(terms[0].X.Value.Rows, terms[0].W.Value.Rows, inputs...)
		t.be.Affine(y.Value, row, relu, products...)
	}
	t.record(y, func() {
		dy := t.grad(y)
		var of, dbias kernels.Tensor
		if relu {
			if y.kept {
				dy = t.copy(dy)
			}
			of = y.Value // whoever read y is done with its gradient
		}
		if bias != nil && bias.needsGrad {
			dbias = t.grad(bias)
		}
		back := make([]kernels.TermGrad, 0, len(terms))
		for i, term := range terms {
			g := kernels.TermGrad{Term: products[i], Across: across}
			if term.W.needsGrad {
				g.DW = t.grad(term.W)
			}
			if term.X.needsGrad {
				var fresh bool
				g.DX, fresh = t.into(term.X)
				g.Add = !fresh
			}
			back = append(back, g)
		}
		t.be.AffineGrad(dy, of, dbias, back...)
	})
	return y
}

// multiply is kernels.Backend.Affine for weights that are I×O.
func (t *Tape) multiply(y, bias kernels.Tensor, relu bool, products []kernels.Term) {
	for i, p := range products {
		t.be.MatMul(y, p.X, p.W, false, false, i > 0)
	}
	if bias.Buf != nil {
		t.be.AddRow(y, bias)
	}
	if relu {
		t.be.ReLU(y, y)
	}
}

// Repeat is n times the one row of x.
func (t *Tape) Repeat(x *Var, n int) *Var {
	y := t.result(n, x.Value.Cols, x)
	t.be.Fill(y.Value, 0)
	t.be.AddRow(y.Value, x.Value)
	t.record(y, func() {
		if x.needsGrad {
			t.be.ColumnSumGrad(t.grad(x), t.grad(y))
		}
	})
	return y
}

// Convert is x in float32; x is a leaf.
func (t *Tape) Convert(x *Var) *Var {
	if x.Value.Type == kernels.F32 {
		return x
	}
	y := t.result(x.Value.Rows, x.Value.Cols)
	t.be.Convert(y.Value, x.Value)
	return y
}

// Factor makes x fit for the X of a Term: it converts float16, unless the backend takes that.
func (t *Tape) Factor(x *Var) *Var {
	if t.be.TakesHalf() {
		return x
	}
	return t.Convert(x)
}

// Head is the first n rows of x, without a copy.
func (t *Tape) Head(x *Var, n int) *Var { return t.Window(x, 0, n) }

// Window is rows lo to hi of x, without a copy.
func (t *Tape) Window(x *Var, lo, hi int) *Var {
	if lo == 0 && hi == x.Value.Rows {
		return x
	}
	return &Var{Value: x.Value.Slice(lo, hi), needsGrad: x.needsGrad, whole: x, fixed: true}
}

// Reshape is the elements of x, in their order, as rows of so many columns, without a copy.
func (t *Tape) Reshape(x *Var, rows, cols int) *Var {
	v := x.Value
	if v.Rows == rows && v.Cols == cols {
		return x
	}
	if rows*cols != v.Len() {
		panic(fmt.Sprintf("tape: Reshape: %d×%d as %d×%d", v.Rows, v.Cols, rows, cols))
	}
	v.Rows, v.Cols = rows, cols
	return &Var{Value: v, needsGrad: x.needsGrad, whole: x, fixed: true}
}

// GatherRows is row ids[i] of x for every i: N×I, where ids is U32, N×1. x may be a leaf in
// float16.
func (t *Tape) GatherRows(x *Var, ids kernels.Tensor) *Var {
	y := t.result(ids.Rows, x.Value.Cols, x)
	t.be.GatherRows(y.Value, x.Value, ids)
	t.record(y, func() { t.be.GatherRowsGrad(t.grad(x), t.grad(y), ids) })
	return y
}

// Assemble returns row at[i] of x or, where at[i] has kernels.InSlot, a row of slots (F16), for
// every i: N×I. back has the one place of each row of x: at[back[r]] is r. Both are U32, at N×1.
// Slots are constants, but rows of the result that come from them have gradients like all others.
// These end there, for callers that ask for the loss's gradient in a row that was not computed.
func (t *Tape) Assemble(x *Var, slots, at, back kernels.Tensor) *Var {
	if back.Rows != x.Value.Rows {
		panic(fmt.Sprintf("tape: Assemble: %d rows, and places of %d", x.Value.Rows, back.Rows))
	}
	y := t.result(at.Rows, x.Value.Cols, x)
	y.needsGrad = !t.off
	t.be.AssembleRows(y.Value, x.Value, slots, at)
	t.record(y, func() {
		if !x.needsGrad {
			return
		}
		if dx, fresh := t.into(x); fresh {
			t.be.GatherRows(dx, t.grad(y), back)
			return
		}
		d := t.arena.alloc(back.Rows, x.Value.Cols)
		t.be.GatherRows(d, t.grad(y), back)
		t.be.Add(t.grad(x), d)
	})
	return y
}

// ScatterRows is a matrix of so many rows that are 0, but for row ids[i], which is row i of x. ids
// is U32, N×1, and names no row twice.
func (t *Tape) ScatterRows(x *Var, ids kernels.Tensor, rows int) *Var {
	y := t.result(rows, x.Value.Cols, x)
	t.be.Fill(y.Value, 0)
	t.be.ScatterRows(y.Value, x.Value, ids)
	t.record(y, func() {
		d := t.arena.alloc(ids.Rows, x.Value.Cols)
		t.be.GatherRows(d, t.grad(y), ids)
		t.addGrad(x, d)
	})
	return y
}

// NeighborMean is the mean of each destination's neighbours among the rows of x, D×I; 0 where there
// is none.
func (t *Tape) NeighborMean(x *Var, g kernels.Adjacency) *Var {
	y := t.result(g.Start.Rows, x.Value.Cols, x)
	t.be.NeighborMean(y.Value, x.Value, g)
	t.record(y, func() {
		dx, fresh := t.intoRows(x)
		t.be.NeighborMeanGrad(dx, t.grad(y), g, fresh)
	})
	return y
}

// ReLU is max(0, x). It uses x up, as [Tape.Dropout] does.
func (t *Tape) ReLU(x *Var) *Var {
	y := t.over(x)
	t.be.ReLU(y.Value, x.Value)
	t.record(y, func() {
		if y.whole == x {
			t.be.ReLUMask(t.grad(y), y.Value)
		} else {
			t.be.ReLUGrad(t.grad(x), t.grad(y), y.Value)
		}
	})
	return y
}

// Dropout zeroes elements at rate p and scales the rest, by a hash of (key, ids[row], column): the
// same nodes lose the same elements whatever batch they are in. p = 0 is x itself.
//
// It uses x up: the caller gives x to no other operation. Then the result is written over x, and
// the gradient of x over the gradient of the result. Both get memory of their own where x has to
// stay: a leaf, a Head, a Var under Keep, and the result of an operation that reads it in Backward,
// such as ELU. ReLU reads its result as well, but may be dropped in place: a dropped element is 0,
// and has no gradient either way.
func (t *Tape) Dropout(x *Var, ids kernels.Tensor, key uint64, p float32) *Var {
	if p == 0 {
		return x
	}
	y := t.over(x)
	t.be.Dropout(y.Value, x.Value, ids, key, p)
	t.record(y, func() {
		if dy := t.grad(y); y.whole == x {
			t.be.Dropout(dy, dy, ids, key, p)
		} else {
			t.be.DropoutGrad(t.grad(x), dy, ids, key, p)
		}
	})
	return y
}

// layerNormEps is PyTorch's default.
const layerNormEps = 1e-5

// LayerNorm normalises each row, then scales by gain and shifts by bias, both 1×I.
func (t *Tape) LayerNorm(x, gain, bias *Var) *Var {
	y := t.result(x.Value.Rows, x.Value.Cols, x, gain, bias)
	stats := t.arena.alloc(x.Value.Rows, 2)
	t.be.LayerNorm(y.Value, stats, x.Value, gain.Value, bias.Value, layerNormEps)
	t.record(y, func() {
		dx, fresh := t.into(x)
		t.be.LayerNormGrad(dx, t.grad(gain), t.grad(bias), t.grad(y), x.Value, stats, gain.Value, fresh)
	})
	return y
}

// CrossEntropy returns each row's loss (N×1) and starts the backward pass with scale times its
// gradient: with scale 1/labelled rows the loss is their mean. labels is U32, kernels.NoLabel where
// there is none.
func (t *Tape) CrossEntropy(logits *Var, labels kernels.Tensor, scale float32) kernels.Tensor {
	return t.loss(logits, func(loss, d kernels.Tensor) {
		t.be.SoftmaxCrossEntropy(loss, d, logits.Value, labels, scale)
	})
}
