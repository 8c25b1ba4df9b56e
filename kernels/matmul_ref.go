package kernels

func matMulRef[T float](dst, a, b []T, m, n, k int, transA, transB, accumulate bool) {
	ai, al := k, 1 // op(a)[i][l] is a[i*ai+l*al]
	if transA {
		ai, al = 1, m
	}
	bl, bj := n, 1 // op(b)[l][j] is b[l*bl+j*bj]
	if transB {
		bl, bj = 1, k
	}
	for i := range m {
		for j := range n {
			var sum T
			for l := range k {
				sum += a[i*ai+l*al] * b[l*bl+j*bj]
			}
			if accumulate {
				sum += dst[i*n+j]
			}
			dst[i*n+j] = sum
		}
	}
}
