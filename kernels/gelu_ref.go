package kernels

import "math"

// normalRef is Φ(x) and x times Φ'(x).
func normalRef(x float64) (cdf, slope float64) {
	if math.IsInf(x, 0) {
		return math.Erfc(-x) / 2, 0
	}
	return math.Erfc(-x/math.Sqrt2) / 2, x * math.Exp(-x*x/2) / math.Sqrt(2*math.Pi)
}

func geluRef[T float](dst, src []T) {
	for i, x := range src {
		cdf, _ := normalRef(float64(x))
		if dst[i] = 0; cdf != 0 { // -Inf times 0 has a limit
			dst[i] = x * T(cdf)
		}
	}
}

func geluGradRef[T float](dx, dy, x []T) {
	for i, v := range x {
		cdf, slope := normalRef(float64(v))
		dx[i] += dy[i] * T(cdf+slope)
	}
}
