package kernels

import "math"

func sigmoidRef[T float](s T) T { return T(1 / (1 + math.Exp(-float64(s)))) }

func gateRef[T float](dst, a, x []T, s T) {
	for i := range dst {
		dst[i] = sigmoidRef(s)*a[i] + (1-sigmoidRef(s))*x[i]
	}
}

func gateGradRef[T float](da, dx, ds, dy, a, x []T, s T) {
	var slope T
	for i, g := range dy {
		da[i] += sigmoidRef(s) * g
		dx[i] += (1 - sigmoidRef(s)) * g
		slope += g * (a[i] - x[i])
	}
	ds[0] += sigmoidRef(s) * (1 - sigmoidRef(s)) * slope
}
