//go:build amd64 && !purego

package kernels

// gelus fills in what a set has for gelu.go.
func (r *routines) gelus(gelu func(dst, src *float32, n int), geluGrad func(dx, dy, x *float32, n int)) {
	r.gelu = func(dst, src []float32) {
		src = src[:len(dst)]
		cutElements(len(dst), func(lo, n int) { gelu(&dst[lo], &src[lo], n) })
	}
	r.geluGrad = func(dx, dy, x []float32) {
		dy, x = dy[:len(dx)], x[:len(dx)]
		cutElements(len(dx), func(lo, n int) { geluGrad(&dx[lo], &dy[lo], &x[lo], n) })
	}
}
