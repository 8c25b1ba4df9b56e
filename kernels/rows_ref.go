package kernels

import "math"

func gatherRowsRef[T float](dst, src []T, cols int, ids []uint32) {
	for i, u := range ids {
		for c := range cols {
			dst[i*cols+c] = src[int(u)*cols+c]
		}
	}
}

func gatherRowsGradRef[T float](dsrc, ddst []T, cols int, ids []uint32) {
	for i, u := range ids {
		for c := range cols {
			dsrc[int(u)*cols+c] += ddst[i*cols+c]
		}
	}
}

func addEdgesRef[T float](dst, src, w []T, cols int, to, from []uint32) {
	for e, i := range to {
		by := T(1)
		if w != nil {
			by = w[e]
		}
		for c := range cols {
			dst[int(i)*cols+c] += by * src[int(from[e])*cols+c]
		}
	}
}

func scatterRowsRef[T float | uint16](dst, src []T, cols int, ids []uint32) {
	for i, u := range ids {
		for c := range cols {
			dst[int(u)*cols+c] = src[i*cols+c]
		}
	}
}

func rowNormsRef[T float](dst, src []T, rows, cols int) {
	for i := range rows {
		dst[i] = T(math.Sqrt(float64(sumSquaresRef(src[i*cols : (i+1)*cols]))))
	}
}
