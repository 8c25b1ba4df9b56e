//go:build amd64 && !purego

package kernels

// rowsOfNorms is the number of rows that the assembly of RowNorms takes at a time.
const rowsOfNorms = 4

// rowNormsBy fills in RowNorms, to the same bits.
func (r *routines) rowNormsBy(run func(dst, src *float32, rows, cols int)) {
	r.rowNorms = func(dst, src []float32, cols int) {
		whole := len(dst) &^ (rowsOfNorms - 1)
		src = src[:len(dst)*cols]
		if cols == 0 || rowsOfNorms*cols > callRows {
			whole = 0
		}
		for lo := 0; lo < whole; {
			n := min(whole-lo, callRows/cols&^(rowsOfNorms-1))
			run(&dst[lo], &src[lo*cols], n, cols)
			lo += n
		}
		RowNorms(dst[whole:], src[whole*cols:], cols)
	}
}
