//go:build amd64 && !purego

package kernels

// cells fills in what a set has for cells.go.
func (r *routines) cells(
	gruCell func(dst, gates, x, h, s *float32, rows, cols int), gruCellGrad func(dx, dh, ds, dy, gates, h, s *float32, rows, cols int),
	tanh func(dst, src *float32, n int), tanhGrad func(dx, dy, y *float32, n int),
) {
	r.gruCell = func(dst, gates, x, h, s []float32, d int) {
		if d == 0 {
			return
		}
		rows := len(dst) / d
		gates, x, h, s = gates[:3*rows*d], x[:3*rows*d], h[:3*rows*d], s[:rows*d]
		if !cutRows(rows, 3*d, func(lo, n int) {
			gruCell(&dst[lo*d], &gates[3*lo*d], &x[3*lo*d], &h[3*lo*d], &s[lo*d], n, d)
		}) {
			GRUCell(dst, gates, x, h, s, d)
		}
	}
	r.gruCellGrad = func(dx, dh, ds, dy, gates, h, s []float32, d int) {
		if d == 0 {
			return
		}
		rows := len(dy) / d
		dx, dh, ds, gates, h, s = dx[:3*rows*d], dh[:3*rows*d], ds[:rows*d], gates[:3*rows*d], h[:3*rows*d], s[:rows*d]
		if !cutRows(rows, 9*d, func(lo, n int) {
			gruCellGrad(&dx[3*lo*d], &dh[3*lo*d], &ds[lo*d], &dy[lo*d], &gates[3*lo*d], &h[3*lo*d], &s[lo*d], n, d)
		}) {
			GRUCellGrad(dx, dh, ds, dy, gates, h, s, d)
		}
	}
	r.tanh = func(dst, src []float32) {
		src = src[:len(dst)]
		cutElements(len(dst), func(lo, n int) { tanh(&dst[lo], &src[lo], n) })
	}
	r.tanhGrad = func(dx, dy, y []float32) {
		dy, y = dy[:len(dx)], y[:len(dx)]
		cutElements(len(dx), func(lo, n int) { tanhGrad(&dx[lo], &dy[lo], &y[lo], n) })
	}
}
