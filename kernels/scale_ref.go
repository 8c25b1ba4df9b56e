package kernels

func scaleRef[T float](dst []T, factor T) {
	for i := range dst {
		dst[i] *= factor
	}
}

func scaleRowsRef[T float](dst, factors []T, rows, cols int) {
	for r := range rows {
		for c := range cols {
			dst[r*cols+c] *= factors[r]
		}
	}
}

func sumSquaresRef[T float](x []T) (total T) {
	for _, v := range x {
		total += v * v
	}
	return total
}
