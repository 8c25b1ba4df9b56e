package kernels

func neighborMeanRef[T float](dst, src []T, cols int, start, end, nbr []uint32) {
	for i := range start {
		for c := range cols {
			var sum T
			for e := start[i]; e < end[i]; e++ {
				sum += src[int(nbr[e])*cols+c]
			}
			if degree := end[i] - start[i]; degree > 0 {
				sum /= T(degree)
			}
			dst[i*cols+c] = sum
		}
	}
}

func neighborMeanGradRef[T float](dsrc, ddst []T, cols int, start, end, revStart, revDst []uint32) {
	for u := range len(revStart) - 1 {
		for e := revStart[u]; e < revStart[u+1]; e++ {
			i := revDst[e]
			for c := range cols {
				dsrc[u*cols+c] += ddst[int(i)*cols+c] / T(end[i]-start[i])
			}
		}
	}
}

func weightedStripRef[T float](dst []T, dstStride, cols int, src []T, stride int, start, end, nbr []uint32, w []T, wstride int) {
	for i := range start {
		for e := int(start[i]); e < int(end[i]); e++ {
			for c := range cols {
				dst[i*dstStride+c] += w[e*wstride] * src[int(nbr[e])*stride+c]
			}
		}
	}
}
