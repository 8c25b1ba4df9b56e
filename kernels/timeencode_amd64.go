//go:build amd64 && !purego

package kernels

// timeEncodes fills in what a set has for timeencode.go.
func (r *routines) timeEncodes(encode func(dst, times, w, b *float32, rows, cols int),
	encodeGrad func(dw, db, dy, times, w, b *float32, rows, cols int)) {
	r.timeEncode = func(dst, times, w, b []float32) {
		cols, rows := len(w), len(times)/2
		dst, b = dst[:rows*cols], b[:cols]
		if !cutRows(rows, cols, func(lo, n int) { encode(&dst[lo*cols], &times[2*lo], &w[0], &b[0], n, cols) }) {
			TimeEncode(dst, times, w, b)
		}
	}
	r.timeEncodeGrad = func(dw, db, dy, times, w, b []float32) {
		cols, rows := len(w), len(times)/2
		dw, db, dy, b = dw[:cols], db[:cols], dy[:rows*cols], b[:cols]
		if !cutRows(rows, cols, func(lo, n int) { encodeGrad(&dw[0], &db[0], &dy[lo*cols], &times[2*lo], &w[0], &b[0], n, cols) }) {
			TimeEncodeGrad(dw, db, dy, times, w, b)
		}
	}
}
