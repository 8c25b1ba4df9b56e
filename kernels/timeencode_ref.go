package kernels

import "math"

func timeEncodeRef[T float](dst, times, w, b []T, rows, cols int) {
	for i := range rows {
		for c := range cols {
			at := float64(times[2*i]) + float64(times[2*i+1])
			dst[i*cols+c] = T(math.Cos(math.FMA(at, float64(w[c]), float64(b[c]))))
		}
	}
}

func timeEncodeGradRef[T float](dw, db, dy, times, w, b []T, rows, cols int) {
	for i := range rows {
		for c := range cols {
			at := float64(times[2*i]) + float64(times[2*i+1])
			slope := -math.Sin(math.FMA(at, float64(w[c]), float64(b[c])))
			dw[c] += dy[i*cols+c] * T(slope*at)
			db[c] += dy[i*cols+c] * T(slope)
		}
	}
}
