package kernels

import "math"

func edgeDotRef[T float](dst, q, k []T, cols, heads int, start, end, nbr []uint32, scale T) {
	for i := range start {
		for e := start[i]; e < end[i]; e++ {
			for h := range heads {
				var sum T
				for c := h * cols / heads; c < (h+1)*cols/heads; c++ {
					sum += q[i*cols+c] * k[int(nbr[e])*cols+c]
				}
				dst[int(e)*heads+h] = scale * sum
			}
		}
	}
}

// edgeDotGradRef needs no reverse lists: it takes the edges of a source in the order of their
// destinations, as they have them.
func edgeDotGradRef[T float](dq, dk, ddst, q, k []T, cols, heads int, start, end, nbr []uint32, scale T) {
	for i := range start {
		for e := start[i]; e < end[i]; e++ {
			for c := range cols {
				by := scale * ddst[int(e)*heads+c/(cols/heads)]
				dq[i*cols+c] += by * k[int(nbr[e])*cols+c]
				dk[int(nbr[e])*cols+c] += by * q[i*cols+c]
			}
		}
	}
}

// edgesRef are the edge values of a relation, and its lists.
type edgesRef[T float] struct {
	values     []T
	start, end []uint32
}

// each visits the place of head h of all edges of destination i, relation by relation.
func each[T float](relations []edgesRef[T], i, h, heads int, visit func(r, e, at int)) {
	for r, of := range relations {
		for e := of.start[i]; e < of.end[i]; e++ {
			visit(r, int(e), int(e)*heads+h)
		}
	}
}

func edgeSoftmaxOfRef[T float](alpha, scores, w []edgesRef[T], dsts, heads int) {
	for i := range dsts {
		for h := range heads {
			top, total := math.Inf(-1), 0.0
			each(scores, i, h, heads, func(r, _, at int) { top = max(top, float64(scores[r].values[at])) })
			part := func(r, e, at int) float64 {
				x := math.Exp(float64(scores[r].values[at]) - top)
				if len(w[r].values) > 0 {
					x *= float64(w[r].values[e])
				}
				return x
			}
			each(scores, i, h, heads, func(r, e, at int) { total += part(r, e, at) })
			each(scores, i, h, heads, func(r, e, at int) { alpha[r].values[at] = T(part(r, e, at) / total) })
		}
	}
}

func edgeSoftmaxOfGradRef[T float](dscores, dalpha, alpha []edgesRef[T], dsts, heads int) {
	for i := range dsts {
		for h := range heads {
			var mean T
			each(alpha, i, h, heads, func(r, _, at int) { mean += alpha[r].values[at] * dalpha[r].values[at] })
			each(alpha, i, h, heads, func(r, _, at int) {
				dscores[r].values[at] += alpha[r].values[at] * (dalpha[r].values[at] - mean)
			})
		}
	}
}
