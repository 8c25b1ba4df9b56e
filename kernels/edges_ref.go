package kernels

import "math"

func weightedSumRef[T float](dst, src, w []T, cols, heads int, start, end, nbr []uint32) {
	for i := range start {
		for c := range cols {
			var sum T
			for e := start[i]; e < end[i]; e++ {
				sum += w[int(e)*heads+c/(cols/heads)] * src[int(nbr[e])*cols+c]
			}
			dst[i*cols+c] = sum
		}
	}
}

func weightedSumGradRef[T float](dsrc, ddst, w []T, cols, heads int, revStart, revDst, revEdge []uint32) {
	for u := range len(revStart) - 1 {
		for k := revStart[u]; k < revStart[u+1]; k++ {
			for c := range cols {
				dsrc[u*cols+c] += w[int(revEdge[k])*heads+c/(cols/heads)] * ddst[int(revDst[k])*cols+c]
			}
		}
	}
}

func weightedSumWeightGradRef[T float](dw, ddst, src []T, cols, heads int, start, end, nbr []uint32) {
	for i := range start {
		for e := start[i]; e < end[i]; e++ {
			for c := range cols {
				dw[int(e)*heads+c/(cols/heads)] += ddst[i*cols+c] * src[int(nbr[e])*cols+c]
			}
		}
	}
}

func headDotRef[T float](dst, src, a []T, rows, cols, heads int) {
	for n := range rows {
		for h := range heads {
			dst[n*heads+h] = 0
		}
		for c := range cols {
			dst[n*heads+c/(cols/heads)] += src[n*cols+c] * a[c]
		}
	}
}

func headDotGradRef[T float](dsrc, da, ddst, src, a []T, rows, cols, heads int) {
	for n := range rows {
		for c := range cols {
			g := ddst[n*heads+c/(cols/heads)]
			dsrc[n*cols+c] += g * a[c]
			da[c] += g * src[n*cols+c]
		}
	}
}

func leakyRef[T float](x, slope T) T {
	if x > 0 {
		return x
	}
	return x * slope
}

func edgeSoftmaxRef[T float](dst, srcScore, dstScore, w []T, heads int, start, end, nbr []uint32, slope T) {
	weight := func(e uint32) float64 {
		if len(w) == 0 {
			return 1
		}
		return float64(w[e])
	}
	for i := range start {
		for h := range heads {
			score := func(e uint32) float64 {
				return float64(leakyRef(srcScore[int(nbr[e])*heads+h]+dstScore[i*heads+h], slope))
			}
			top, total := math.Inf(-1), 0.0
			for e := start[i]; e < end[i]; e++ {
				top = max(top, score(e))
			}
			for e := start[i]; e < end[i]; e++ {
				total += weight(e) * math.Exp(score(e)-top)
			}
			for e := start[i]; e < end[i]; e++ {
				dst[int(e)*heads+h] = T(weight(e) * math.Exp(score(e)-top) / total)
			}
		}
	}
}

func edgeSoftmaxGradRef[T float](dedge, ddstScore, dalpha, alpha, srcScore, dstScore []T, heads int,
	start, end, nbr []uint32, slope T) {
	for i := range start {
		for h := range heads {
			var mean T
			for e := start[i]; e < end[i]; e++ {
				mean += alpha[int(e)*heads+h] * dalpha[int(e)*heads+h]
			}
			for e := start[i]; e < end[i]; e++ {
				g := alpha[int(e)*heads+h] * (dalpha[int(e)*heads+h] - mean)
				if !(srcScore[int(nbr[e])*heads+h]+dstScore[i*heads+h] > 0) {
					g *= slope
				}
				dedge[int(e)*heads+h] = g
				ddstScore[i*heads+h] += g
			}
		}
	}
}

func edgeSumGradRef[T float](dsrc, dedge []T, heads int, revStart, revEdge []uint32) {
	for u := range len(revStart) - 1 {
		for k := revStart[u]; k < revStart[u+1]; k++ {
			for h := range heads {
				dsrc[u*heads+h] += dedge[int(revEdge[k])*heads+h]
			}
		}
	}
}

// edgeDropoutRef calls set with the place of every edge value and whether it is kept.
func edgeDropoutRef(set func(at int, keep bool), srcIDs, dstIDs []uint32, heads int, start, end, nbr []uint32, key uint64,
	p float32) {
	for i := range start {
		for e := start[i]; e < end[i]; e++ {
			for h := range heads {
				set(int(e)*heads+h, EdgeDropoutKeep(key, dstIDs[i], srcIDs[nbr[e]], h, p))
			}
		}
	}
}

func eluRef[T float](dst, src []T) {
	for i, x := range src {
		if x <= 0 {
			x = T(math.Expm1(float64(x)))
		}
		dst[i] = x
	}
}

func eluGradRef[T float](dx, dy, y []T) {
	for i := range dx {
		slope := T(1)
		if !(y[i] > 0) {
			slope = y[i] + 1
		}
		dx[i] += dy[i] * slope
	}
}
