package kernels

// Packed, the columns of b that a wide strip reads lie together, row by row; one wide strip of b
// follows the other. Rows of a lie together by tile, column by column. What has no column or row to
// hold stays as it was, and is not read.

// packTransposed copies the first k columns of b, which has n rows of stride elements, to wide
// strips, transposed.
func (s *strips) packTransposed(dst, b []float32, n, stride, k, threads int) {
	const piece = 64 // columns of a call: 64 rows of a strip are 8 KiB, written eight columns at a time
	wide := 2 * s.lanes
	parallelFor(threads, n, wide, func(lo, hi int) {
		for l := 0; l < k; l += piece {
			end := min(l+piece, k)
			for r := lo; r < hi; r += 8 {
				to, done := dst[lo*k+r-lo:], l
				if blocks := (end - l) / 8; blocks > 0 && hi-r >= 8 {
					s.pack8(&to[l*wide], 4*wide, &b[r*stride+l], 4*stride, blocks)
					done += 8 * blocks
				}
				for rest := r; rest < min(r+8, hi); rest++ {
					for at := done; at < end; at++ {
						to[at*wide+rest-r] = b[rest*stride+at]
					}
				}
			}
		}
	})
}

// packB copies some rows of b, w columns of stride, to wide strips of k rows.
func (s *strips) packB(dst, b []float32, w, stride, k, rows int) {
	wide := 2 * s.lanes
	for l := range rows {
		for j := 0; j < w; j += wide {
			copy(dst[j*k+l*wide:][:wide], b[l*stride+j:l*stride+min(j+wide, w)])
		}
	}
}

// packA copies h columns of k rows of a transposed a, which are rows of op(a), to tiles.
func (s *strips) packA(dst, a []float32, h, stride, k int) {
	for l := range k {
		for i := 0; i < h; i += s.tile {
			copy(dst[i*k+l*s.tile:][:s.tile], a[l*stride+i:l*stride+min(i+s.tile, h)])
		}
	}
}
