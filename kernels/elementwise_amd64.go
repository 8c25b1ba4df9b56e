//go:build amd64 && !purego

package kernels

// cutElements calls work on pieces of [0, n) that one call of assembly may take.
func cutElements(n int, work func(lo, n int)) {
	for lo := 0; lo < n; lo += callRows {
		work(lo, min(callRows, n-lo))
	}
}

// cutRows calls work on runs of rows that one call of assembly may take. It reports false, having
// called nothing, when a single row is more than that, or none.
func cutRows(rows, cols int, work func(lo, n int)) bool {
	if cols == 0 || cols > callRows {
		return false
	}
	step := callRows / cols
	for lo := 0; lo < rows; lo += step {
		work(lo, min(step, rows-lo))
	}
	return true
}

func (r *routines) elementwise(
	fill func(dst *float32, n int, v float32), add, relu, reluMask func(dst, src *float32, n int), reluGrad func(dx, dy, y *float32, n int),
	addRow, columnSum func(dst, row *float32, rows, cols int),
	adam func(param, grad, m, v *float32, n int, lr, eps, decay, beta1, rest1, beta2, rest2, inverse1, inverse2 float32),
) {
	r.fill = func(dst []float32, v float32) {
		cutElements(len(dst), func(lo, n int) { fill(&dst[lo], n, v) })
	}
	r.add = func(dst, src []float32) {
		src = src[:len(dst)]
		cutElements(len(dst), func(lo, n int) { add(&dst[lo], &src[lo], n) })
	}
	r.relu = func(dst, src []float32) {
		src = src[:len(dst)]
		cutElements(len(dst), func(lo, n int) { relu(&dst[lo], &src[lo], n) })
	}
	r.reluMask = func(d, y []float32) {
		y = y[:len(d)]
		cutElements(len(d), func(lo, n int) { reluMask(&d[lo], &y[lo], n) })
	}
	r.reluGrad = func(dx, dy, y []float32) {
		dy, y = dy[:len(dx)], y[:len(dx)]
		cutElements(len(dx), func(lo, n int) { reluGrad(&dx[lo], &dy[lo], &y[lo], n) })
	}
	r.addRow = func(dst, row []float32) {
		cols := len(row)
		if cols == 0 || len(dst)%cols != 0 ||
			!cutRows(len(dst)/cols, cols, func(lo, n int) { addRow(&dst[lo*cols], &row[0], n, cols) }) {
			AddRow(dst, row)
		}
	}
	r.columnSumGrad = func(drow, src []float32) {
		cols := len(drow)
		if cols == 0 || len(src)%cols != 0 ||
			!cutRows(len(src)/cols, cols, func(lo, n int) { columnSum(&drow[0], &src[lo*cols], n, cols) }) {
			ColumnSumGrad(drow, src)
		}
	}
	r.adam = func(param, grad, m, v []float32, s AdamStep) {
		grad, m, v = grad[:len(param)], m[:len(param)], v[:len(param)]
		cutElements(len(param), func(lo, n int) {
			adam(&param[lo], &grad[lo], &m[lo], &v[lo], n, s.LR, s.Eps, s.WeightDecay,
				s.Beta1, 1-s.Beta1, s.Beta2, 1-s.Beta2, 1/s.Correct1, 1/s.Correct2)
		})
	}
}
