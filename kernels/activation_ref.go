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
