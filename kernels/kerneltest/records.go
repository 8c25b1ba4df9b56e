package kerneltest

import (
	"math"

	"github.com/gnnstore/gnnstore/kernels"
)

// testUpdateRecords takes several steps, so that what a record keeps is read back as it was
// written.
func testUpdateRecords(r *rig) {
	for rule := kernels.RowAdam; rule <= kernels.RowAdagrad; rule++ {
		for _, s := range shapes {
			rows, cols := s[0], s[1]
			if cols == 0 {
				continue
			}
			width := rule.Columns(cols)
			start := make([]float32, rows*width) // what is kept is 0 at first
			for i := range rows {
				copy(start[i*width:], r.normals(cols))
			}
			rec := r.floats(rows, width, start)
			for step := range 3 {
				r.at("rule %d, %d×%d, step %d", rule, rows, cols, step+1)
				values := r.normals(rows * cols)
				for i := 0; i < len(values); i += 5 {
					values[i] = 0
				}
				if step == 2 && len(values) > 10 {
					values[3], values[7] = float32(math.NaN()), float32(math.Inf(1))
				}
				grad, t := r.floats(rows, cols, values), float64(step+1)
				update := kernels.RowStep{Rule: rule, AdamStep: kernels.AdamStep{
					LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Correct1: float32(1 - math.Pow(0.9, t)), Correct2: float32(1 - math.Pow(0.999, t)),
				}}
				r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
					b.UpdateRecords(on(rec), on(grad), update, kernels.Guard{})
				})
				r.close(2e-6, rec)
				r.unchanged(grad)
			}
		}
	}
}

func testColumns(r *rig) {
	for _, s := range shapes {
		for from := range min(s[1], 3) + 1 {
			r.at("%d×%d from %d", s[0], s[1], from)
			dst, src := r.normal(s[0], (s[1]-from+1)/2), r.normal(s[0], s[1])
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.Columns(on(dst), on(src), from) })
			r.close(0, dst)
			r.unchanged(src)
		}
	}
}

func testColumnsGrad(r *rig) {
	for _, s := range shapes {
		for from := range min(s[1], 3) + 1 {
			r.at("%d×%d from %d", s[0], s[1], from)
			some := (s[1] - from + 1) / 2
			dsrc, ddst := r.normal(s[0], s[1]), r.floats(s[0], some, r.spread(s[0]*some))
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.ColumnsGrad(on(dsrc), on(ddst), from) })
			r.close(1e-7, dsrc)
			r.unchanged(ddst)
		}
	}
}

func testRecordRefusals(r *rig) {
	f := func(rows, cols int) kernels.Tensor { return r.normal(rows, cols).tensor }
	adam, adagrad, of := kernels.RowStep{}, kernels.RowStep{Rule: kernels.RowAdagrad}, kernels.Guard{}
	r.refuses(map[string]func(){
		"UpdateRecords columns":         func() { r.b.UpdateRecords(f(2, 4), f(2, 2), adam, of) },
		"UpdateRecords of another rule": func() { r.b.UpdateRecords(f(2, 6), f(2, 2), adagrad, of) },
		"UpdateRecords rows":            func() { r.b.UpdateRecords(f(2, 6), f(3, 2), adam, of) },
		"UpdateRecords of no values":    func() { r.b.UpdateRecords(f(2, 0), f(2, 0), adam, of) },
		"UpdateRecords of no rule":      func() { r.b.UpdateRecords(f(2, 6), f(2, 2), kernels.RowStep{Rule: 99}, of) },
		"Columns rows":                  func() { r.b.Columns(f(2, 2), f(3, 2), 0) },
		"Columns before the first":      func() { r.b.Columns(f(2, 2), f(2, 3), -1) },
		"Columns beyond the last":       func() { r.b.Columns(f(2, 2), f(2, 3), 2) },
		"ColumnsGrad rows":              func() { r.b.ColumnsGrad(f(3, 3), f(2, 2), 0) },
		"ColumnsGrad beyond the last":   func() { r.b.ColumnsGrad(f(2, 3), f(2, 2), 2) },
	})
}
