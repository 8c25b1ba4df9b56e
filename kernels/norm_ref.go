package kernels

import "math"

func layerNormRef[T float](dst, stats, x, gain, bias []T, rows, cols int, eps T) {
	for r := range rows {
		v := x[r*cols : (r+1)*cols]
		var mean, variance T
		for c := range cols {
			mean += v[c] / T(cols)
		}
		for c := range cols {
			variance += (v[c] - mean) * (v[c] - mean) / T(cols)
		}
		inverse := 1 / T(math.Sqrt(float64(variance+eps)))
		stats[2*r], stats[2*r+1] = mean, inverse
		for c := range cols {
			dst[r*cols+c] = (v[c]-mean)*inverse*gain[c] + bias[c]
		}
	}
}

func layerNormGradRef[T float](dx, dgain, dbias, dy, x, stats, gain []T, rows, cols int) {
	for r := range rows {
		mean, inverse := stats[2*r], stats[2*r+1]
		h := func(c int) T { return (x[r*cols+c] - mean) * inverse }
		g := func(c int) T { return dy[r*cols+c] * gain[c] }
		var meanG, meanGH T
		for c := range cols {
			meanG += g(c) / T(cols)
			meanGH += g(c) * h(c) / T(cols)
		}
		for c := range cols {
			dx[r*cols+c] += (g(c) - meanG - h(c)*meanGH) * inverse
			dgain[c] += dy[r*cols+c] * h(c)
			dbias[c] += dy[r*cols+c]
		}
	}
}
