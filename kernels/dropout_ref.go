package kernels

func dropoutRef[T float](dst, src []T, ids []uint32, cols int, key uint64, p float32) {
	scale := T(dropoutScale(dropoutThreshold(p)))
	for r, id := range ids {
		for c := range cols {
			x := src[r*cols+c] * scale // read first: dst may be src
			if !DropoutKeep(key, id, c, p) {
				x = 0
			}
			dst[r*cols+c] = x
		}
	}
}

func dropoutGradRef[T float](dx, dy []T, ids []uint32, cols int, key uint64, p float32) {
	scale := T(dropoutScale(dropoutThreshold(p)))
	for r, id := range ids {
		for c := range cols {
			if DropoutKeep(key, id, c, p) {
				dx[r*cols+c] += dy[r*cols+c] * scale
			}
		}
	}
}
