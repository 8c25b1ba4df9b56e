package kernels

import (
	"fmt"
	"strings"
)

// Every backend operation begins with its function here, so that all backends refuse the same
// shapes in the same words. A refusal is a panic: it is the caller's bug.

// refuse panics with the operation and the shapes of its tensors, given as name, tensor, name,
// tensor …
func refuse(op string, namesAndTensors ...any) {
	var shapes []string
	for i := 0; i < len(namesAndTensors); i += 2 {
		t := namesAndTensors[i+1].(Tensor)
		shapes = append(shapes, fmt.Sprintf("%s %d×%d", namesAndTensors[i], t.Rows, t.Cols))
	}
	panic("kernels: " + op + ": " + strings.Join(shapes, ", "))
}

func sameShape(a, b Tensor) bool { return a.Rows == b.Rows && a.Cols == b.Cols }

// isColumn accepts the zero Tensor as a column of no rows, and isRow as a row of no columns.
func isColumn(t Tensor, rows int) bool { return t.Rows == rows && (t.Cols == 1 || rows == 0) }
func isRow(t Tensor, cols int) bool    { return t.Cols == cols && (t.Rows == 1 || cols == 0) }

func checkSame(op, nameA string, a Tensor, nameB string, b Tensor) {
	if !sameShape(a, b) {
		refuse(op, nameA, a, nameB, b)
	}
}

func checkLen(op string, t Tensor, n int) {
	if t.Len() != n {
		panic(fmt.Sprintf("kernels: %s: tensor %d×%d, slice of %d", op, t.Rows, t.Cols, n))
	}
}

// checkMatMul returns the sizes of op(a), m×k, and op(b), k×n.
func checkMatMul(dst, a, b Tensor, transA, transB bool) (m, n, k int) {
	m, k = a.Rows, a.Cols
	if transA {
		m, k = k, m
	}
	kb, n := b.Rows, b.Cols
	if transB {
		kb, n = n, kb
	}
	if k != kb || dst.Rows != m || dst.Cols != n {
		nameA, nameB := "a", "b"
		if transA {
			nameA = "a transposed from"
		}
		if transB {
			nameB = "b transposed from"
		}
		refuse("MatMul", "dst", dst, nameA, a, nameB, b)
	}
	return m, n, k
}

func checkAffine(dst, bias Tensor, terms []Term) {
	for _, t := range terms {
		if t.X.Rows != dst.Rows || t.W.Rows != dst.Cols || t.X.Cols != t.W.Cols {
			refuse("Affine", "dst", dst, "x", t.X, "w", t.W)
		}
	}
	if bias.Buf != nil && !isRow(bias, dst.Cols) {
		refuse("Affine", "dst", dst, "bias", bias)
	}
}

func checkAffineGrad(dy, y, dbias Tensor, terms []TermGrad) {
	const op = "AffineGrad"
	if y.Buf != nil && !sameShape(dy, y) || dbias.Buf != nil && !isRow(dbias, dy.Cols) {
		refuse(op, "dy", dy, "y", y, "dbias", dbias)
	}
	for _, t := range terms {
		out, in := t.W.Rows, t.W.Cols
		if t.Across {
			out, in = in, out
		}
		if t.X.Rows != dy.Rows || t.X.Cols != in || dy.Cols != out ||
			t.DW.Buf != nil && !sameShape(t.DW, t.W) || t.DX.Buf != nil && !sameShape(t.DX, t.X) {
			refuse(op, "dy", dy, "x", t.X, "w", t.W, "dw", t.DW, "dx", t.DX)
		}
	}
}

func checkRow(op, name string, t Tensor, rowName string, row Tensor) {
	if !isRow(row, t.Cols) {
		refuse(op, name, t, rowName, row)
	}
}

func checkNeighborMean(dst, src Tensor, g Adjacency) {
	if dst.Cols != src.Cols || !isList(g, dst.Rows) {
		refuse("NeighborMean", "dst", dst, "src", src, "Start", g.Start, "End", g.End, "Nbr", g.Nbr)
	}
}

func checkNeighborMeanGrad(dsrc, ddst Tensor, g Adjacency, fresh int) {
	if fresh < 0 || fresh > dsrc.Rows {
		panic(fmt.Sprintf("kernels: NeighborMeanGrad: fresh is %d, of %d rows", fresh, dsrc.Rows))
	}
	if dsrc.Cols != ddst.Cols || !isColumn(g.Start, ddst.Rows) || !isColumn(g.End, ddst.Rows) ||
		dsrc.Rows > 0 && !isColumn(g.RevStart, dsrc.Rows+1) || !isColumn(g.RevDst, g.RevDst.Rows) {
		refuse("NeighborMeanGrad", "dsrc", dsrc, "ddst", ddst, "Start", g.Start, "End", g.End,
			"RevStart", g.RevStart, "RevDst", g.RevDst)
	}
}

func checkDropout(op string, dst, src, ids Tensor, p float32) {
	if !sameShape(dst, src) || !isColumn(ids, dst.Rows) {
		refuse(op, "dst", dst, "src", src, "ids", ids)
	}
	checkRate(op, p)
}

func checkRate(op string, p float32) {
	if !(p >= 0 && p < 1) {
		panic(fmt.Sprintf("kernels: %s: p is %v, not in [0, 1)", op, p))
	}
}

func checkLayerNorm(dst, stats, x, gain, bias Tensor) {
	if !sameShape(dst, x) || stats.Rows != x.Rows || stats.Cols != 2 && x.Rows > 0 || !isRow(gain, x.Cols) || !isRow(bias, x.Cols) {
		refuse("LayerNorm", "dst", dst, "stats", stats, "x", x, "gain", gain, "bias", bias)
	}
}

func checkLayerNormGrad(dx, dgain, dbias, dy, x, stats, gain Tensor) {
	if !sameShape(dx, x) || !sameShape(dy, x) || stats.Rows != x.Rows || stats.Cols != 2 && x.Rows > 0 ||
		!isRow(gain, x.Cols) || !isRow(dgain, x.Cols) || !isRow(dbias, x.Cols) {
		refuse("LayerNormGrad", "dx", dx, "dgain", dgain, "dbias", dbias, "dy", dy, "x", x, "stats", stats, "gain", gain)
	}
}

func checkSoftmaxCrossEntropy(loss, dlogits, logits, labels Tensor) {
	if !sameShape(dlogits, logits) || !isColumn(loss, logits.Rows) || !isColumn(labels, logits.Rows) {
		refuse("SoftmaxCrossEntropy", "loss", loss, "dlogits", dlogits, "logits", logits, "labels", labels)
	}
}

// checkLabels looks at the values: a label beyond the classes would otherwise be found in the
// middle of a row.
func checkLabels(labels []uint32, classes int) {
	for r, label := range labels {
		if label != NoLabel && int64(label) >= int64(classes) {
			panic(fmt.Sprintf("kernels: SoftmaxCrossEntropy: row %d has label %d, of %d classes", r, label, classes))
		}
	}
}

func checkArgMax(dst, src Tensor) {
	if !isColumn(dst, src.Rows) {
		refuse("ArgMax", "dst", dst, "src", src)
	}
}

func checkAdam(params []AdamParam) {
	for _, p := range params {
		if !sameShape(p.Grad, p.Value) || !sameShape(p.M, p.Value) || !sameShape(p.V, p.Value) {
			refuse("Adam", "value", p.Value, "grad", p.Grad, "m", p.M, "v", p.V)
		}
	}
}

// String names the type as the documentation does.
func (t DType) String() string {
	switch t {
	case F32:
		return "F32"
	case F16:
		return "F16"
	case U32:
		return "U32"
	}
	return fmt.Sprintf("DType(%d)", uint8(t))
}

// Size is the bytes of an element.
func (t DType) Size() int {
	if t == F16 {
		return 2
	}
	return 4
}
