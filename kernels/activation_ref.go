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
