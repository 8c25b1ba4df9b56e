//go:build amd64 && !purego

package kernels

// dropoutFunc is dropout in assembly, of float32s or halves. See dropout_stubs_amd64.go.
type dropoutFunc[T any] func(dst *float32, src *T, ids *uint32, rows, cols int, key, threshold uint64, factor float32)

// rows runs it over rows, and reports false where the plain function must.
func (f dropoutFunc[T]) rows(dst []float32, src []T, ids []uint32, cols int, key uint64, p float32) bool {
	total := len(ids) * cols
	dst, src = dst[:total], src[:total]
	threshold := dropoutThreshold(p)
	factor := float32(dropoutScale(threshold))
	return cutRows(len(ids), cols, func(lo, n int) {
		f(&dst[lo*cols], &src[lo*cols], &ids[lo], n, cols, key, uint64(threshold)*0x0001_0001_0001_0001, factor)
	})
}

// dropouts fills in what a set has for dropout.go; without half, halves are widened first.
func (r *routines) dropouts(dropout, dropoutGrad dropoutFunc[float32], half dropoutFunc[uint16]) {
	r.dropout = func(dst, src []float32, ids []uint32, cols int, key uint64, p float32) {
		if !dropout.rows(dst, src, ids, cols, key, p) {
			Dropout(dst, src, ids, cols, key, p)
		}
	}
	r.dropoutGrad = func(dx, dy []float32, ids []uint32, cols int, key uint64, p float32) {
		if !dropoutGrad.rows(dx, dy, ids, cols, key, p) {
			DropoutGrad(dx, dy, ids, cols, key, p)
		}
	}
	widen := r.widen
	r.dropoutHalf = func(dst []float32, src []uint16, ids []uint32, cols int, key uint64, p float32) {
		switch {
		case half == nil:
			widen(dst, src)
			if !dropout.rows(dst, dst, ids, cols, key, p) {
				Dropout(dst, dst, ids, cols, key, p)
			}
		case !half.rows(dst, src, ids, cols, key, p):
			DropoutHalf(dst, src, ids, cols, key, p)
		}
	}
}
