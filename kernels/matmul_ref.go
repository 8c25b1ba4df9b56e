package kernels

func matMulRef[T float](dst, a, b []T, m, n, k int, transA, transB, accumulate bool) {
	if !accumulate {
		clear(dst[:m*n])
	}
	matMulTileRef(dst, a, b, m, n, k, transA, transB, 0, m, 0, n)
}

// matMulTileRef adds op(a)·op(b) to rows [i0, i1) and columns [j0, j1) of dst.
func matMulTileRef[T float](dst, a, b []T, m, n, k int, transA, transB bool, i0, i1, j0, j1 int) {
	ai, al := k, 1 // op(a)[i][l] is a[i*ai+l*al]
	if transA {
		ai, al = 1, m
	}
	bl, bj := n, 1 // op(b)[l][j] is b[l*bl+j*bj]
	if transB {
		bl, bj = 1, k
	}
	for i := i0; i < i1; i++ {
		for j := j0; j < j1; j++ {
			var sum T
			for l := range k {
				sum += a[i*ai+l*al] * b[l*bl+j*bj]
			}
			dst[i*n+j] += sum
		}
	}
}
