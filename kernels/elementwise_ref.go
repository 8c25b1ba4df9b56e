package kernels

// float is the type that a reference loop computes in: float64 as the oracle, float32 to show the
// effect of rounding alone.
type float interface{ float32 | float64 }

func fillRef[T float](dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}

func addRef[T float](dst, src []T) {
	for i := range dst {
		dst[i] += src[i]
	}
}

func addRowRef[T float](dst, row []T, rows, cols int) {
	for r := range rows {
		for c := range cols {
			dst[r*cols+c] += row[c]
		}
	}
}

func columnSumGradRef[T float](drow, src []T, rows, cols int) {
	for r := range rows {
		for c := range cols {
			drow[c] += src[r*cols+c]
		}
	}
}
