package kernels

import "math"

func geluRef[T float](dst, src []T) {
	for i, x := range src {
		dst[i] = x * T(math.Erfc(-float64(x)/math.Sqrt2)) / 2
	}
}

func geluGradRef[T float](dx, dy, x []T) {
	for i, v := range x {
		at := float64(v)
		dx[i] += dy[i] * T(math.Erfc(-at/math.Sqrt2)/2+at*math.Exp(-at*at/2)/math.Sqrt(2*math.Pi))
	}
}
