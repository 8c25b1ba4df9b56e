package kernels

import (
	"fmt"
	"math"
)

// A record is a learnt row with the optimizer state that its RowRule keeps: values, then that
// state.

// RowRule is the rule that updates learnt rows. It fixes the columns of a record beside the values.
type RowRule uint8

const (
	// RowAdam is Adam with the corrections of AdamStep, the same for all rows: values, m, v.
	RowAdam RowRule = iota
	// RowAdamSteps is Adam with corrections by the number of steps that the row was part of:
	// values, m, v, and a column with that number.
	RowAdamSteps
	// RowAdagrad divides by the root of one accumulator a row: values, and a column with the sum,
	// over the steps that the row was part of, of the mean of its squared gradients.
	RowAdagrad
)

// Columns returns the number of columns of a record with cols values.
func (r RowRule) Columns(cols int) int {
	switch r {
	case RowAdam:
		return 3 * cols
	case RowAdamSteps:
		return 3*cols + 1
	case RowAdagrad:
		return cols + 1
	}
	panic(fmt.Sprintf("kernels: no RowRule %d", r))
}

// RowStep is one update of records by a rule. RowAdam uses all of AdamStep, RowAdamSteps all but
// its corrections, RowAdagrad LR and Eps.
type RowStep struct {
	Rule RowRule
	AdamStep
}

// updateRecords updates records of cols values each by the gradients of these values.
func (r *routines) updateRecords(rec, grad []float32, cols int, s RowStep) {
	width, adam := s.Rule.Columns(cols), s.AdamStep
	for ; len(rec) > 0; rec, grad = rec[width:], grad[cols:] {
		x, rest, g := rec[:cols], rec[cols:width], grad[:cols]
		switch s.Rule {
		case RowAdagrad:
			rest[0] += float32(SumSquares(g) / float64(cols))
			rate := s.LR / (float32(math.Sqrt(float64(rest[0]))) + s.Eps)
			for i := range x {
				x[i] -= rate * g[i]
			}
			continue
		case RowAdamSteps:
			rest[2*cols]++ // from 2²⁴ on it stays, when the corrections are 1
			steps := float64(rest[2*cols])
			adam.Correct1 = float32(1 - math.Pow(float64(s.Beta1), steps))
			adam.Correct2 = float32(1 - math.Pow(float64(s.Beta2), steps))
		}
		r.adam(x, g, rest[:cols], rest[cols:2*cols], adam)
	}
}

func checkRecords(rec, grad Tensor, s RowStep) {
	if rec.Rows != grad.Rows || grad.Cols == 0 || rec.Cols != s.Rule.Columns(grad.Cols) {
		refuse("UpdateRecords", "rec", rec, "grad", grad)
	}
}

// checkColumns checks that columns from on of matrix of cover some. The names are for the message.
func checkColumns(op, name string, some Tensor, ofName string, of Tensor, from int) {
	if some.Rows != of.Rows || from < 0 || from > of.Cols-some.Cols {
		refuse(op, name, some, ofName, of)
	}
}

// Columns implements [Backend].
func (c *CPU) Columns(dst, src Tensor, from int) {
	checkColumns("Columns", "dst", dst, "src", src, from)
	d, s := c.floats("Columns", "dst", dst), c.floats("Columns", "src", src)
	c.rows(dst.Rows, dst.Cols, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(d[i*dst.Cols:][:dst.Cols], s[i*src.Cols+from:])
		}
	})
}

// ColumnsGrad implements [Backend].
func (c *CPU) ColumnsGrad(dsrc, ddst Tensor, from int) {
	const op = "ColumnsGrad"
	checkColumns(op, "ddst", ddst, "dsrc", dsrc, from)
	ds, dd := c.floats(op, "dsrc", dsrc), c.floats(op, "ddst", ddst)
	c.rows(ddst.Rows, ddst.Cols, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			c.add(ds[i*dsrc.Cols+from:][:ddst.Cols], dd[i*ddst.Cols:][:ddst.Cols])
		}
	})
}

// UpdateRecords implements [Backend].
func (c *CPU) UpdateRecords(rec, grad Tensor, s RowStep, of Guard) {
	checkRecords(rec, grad, s)
	void, scale := c.guard("UpdateRecords", of)
	if void {
		return
	}
	d, g, n := c.floats("UpdateRecords", "rec", rec), c.floats("UpdateRecords", "grad", grad), grad.Cols
	c.rows(rec.Rows, rec.Cols, func(lo, hi int) {
		if scale != 1 {
			Scale(g[lo*n:hi*n], scale)
		}
		c.updateRecords(d[lo*rec.Cols:hi*rec.Cols], g[lo*n:hi*n], n, s)
	})
}

// Columns implements [Backend].
func (r *Reference) Columns(dst, src Tensor, from int) {
	checkColumns("Columns", "dst", dst, "src", src, from)
	d, s := r.floats("Columns", "dst", dst), r.floats("Columns", "src", src)
	for i := range dst.Len() {
		d[i] = s[i/dst.Cols*src.Cols+from+i%dst.Cols]
	}
}

// ColumnsGrad implements [Backend].
func (r *Reference) ColumnsGrad(dsrc, ddst Tensor, from int) {
	const op = "ColumnsGrad"
	checkColumns(op, "ddst", ddst, "dsrc", dsrc, from)
	ds, dd := r.floats(op, "dsrc", dsrc), r.floats(op, "ddst", ddst)
	for i := range ddst.Len() {
		ds[i/ddst.Cols*dsrc.Cols+from+i%ddst.Cols] += dd[i]
	}
}

// UpdateRecords implements [Backend].
func (r *Reference) UpdateRecords(rec, grad Tensor, s RowStep, of Guard) {
	checkRecords(rec, grad, s)
	void, scale := r.guard("UpdateRecords", of)
	if void {
		return
	}
	d, g, n := r.floats("UpdateRecords", "rec", rec), r.floats("UpdateRecords", "grad", grad), grad.Cols
	scaleRef(g, scale)
	for i := range rec.Rows {
		updateRecordRef(d[i*rec.Cols:][:rec.Cols], g[i*n:][:n], s)
	}
}

func updateRecordRef(rec, grad []float64, s RowStep) {
	n := len(grad)
	if s.Rule == RowAdagrad {
		for _, g := range grad {
			rec[n] += g * g / float64(n)
		}
		for i, g := range grad {
			rec[i] -= float64(s.LR) * g / (math.Sqrt(rec[n]) + float64(s.Eps))
		}
		return
	}
	adam := s.AdamStep
	if s.Rule == RowAdamSteps {
		rec[3*n]++
		adam.Correct1 = float32(1 - math.Pow(float64(s.Beta1), rec[3*n]))
		adam.Correct2 = float32(1 - math.Pow(float64(s.Beta2), rec[3*n]))
	}
	adamRef(rec[:n], grad, rec[n:2*n], rec[2*n:3*n], adam)
}
