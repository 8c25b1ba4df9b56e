package kernels

func reluRef[T float](dst, src []T) {
	for i, v := range src {
		if v < 0 {
			v = 0
		}
		dst[i] = v
	}
}

func reluGradRef[T float](dx, dy, y []T) {
	for i := range dx {
		if y[i] > 0 {
			dx[i] += dy[i]
		}
	}
}

func reluMaskRef[T float](d, y []T) {
	for i, v := range y {
		if !(v > 0) {
			d[i] = 0
		}
	}
}

func leakyReLURef[T float](dst, src []T, slope T) {
	for i, v := range src {
		dst[i] = leakyRef(v, slope)
	}
}

func leakyReLUGradRef[T float](dx, dy, x []T, slope T) {
	for i, v := range x {
		if v > 0 {
			dx[i] += dy[i]
		} else {
			dx[i] += slope * dy[i]
		}
	}
}
