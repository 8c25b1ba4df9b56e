package kernels

import "math"

// Edges with values: an edge array has a row for every position of Nbr and a column for every head.
// Heads split the columns of a row into equal parts: with C columns a head, head h has the columns
// h·C … (h+1)·C. A destination writes the edges of its own list and no other, so work is split by
// destinations; sums over a source's edges find them through RevEdge.

// weightedHeads computes, for every destination i and head h, the sum over its edges e of w[e,h]
// times head h of src's row nbr[e], in the order of nbr; 0 where there are none. dst has len(start)
// rows of cols columns.
func (r *routines) weightedHeads(dst, src, w []float32, cols, heads int, start, end, nbr []uint32) {
	clear(dst[:len(start)*cols])
	r.addWeightedHeads(dst, src, w, cols, heads, start, end, nbr)
}

// addWeightedHeads is weightedHeads that adds.
func (r *routines) addWeightedHeads(dst, src, w []float32, cols, heads int, start, end, nbr []uint32) {
	if len(w) == 0 || len(src) == 0 {
		return
	}
	width := cols / heads
	// element-wise products: a pass over all rows for each column would miss the caches
	if width == 1 && heads > 1 {
		addProducts(dst, src, w, cols, start, end, nbr)
		return
	}
	for h := range heads {
		r.weightedSum(dst[h*width:], cols, width, src[h*width:], cols, start, end, nbr, w[h:], heads)
	}
}

// addProducts is addWeightedHeads for heads of one column: an edge has a weight for each element.
func addProducts(dst, src, w []float32, cols int, start, end, nbr []uint32) {
	for i, lo := range start {
		sum := dst[i*cols:][:cols]
		for e := lo; e < end[i]; e++ {
			x, by := row(src, nbr[e], cols), w[int(e)*cols:][:cols]
			for c := range sum {
				sum[c] += by[c] * x[c]
			}
		}
	}
}

// weightedHeadsHalf is weightedHeads of float16 rows, summed in float32. Its results equal, bit for
// bit, the results of widening the rows first.
func (r *routines) weightedHeadsHalf(dst []float32, src []uint16, w []float32, cols, heads int, start, end, nbr []uint32) {
	clear(dst[:len(start)*cols])
	if len(w) == 0 || len(src) == 0 {
		return
	}
	width := cols / heads
	for h := range heads {
		r.weightedSumHalf(dst[h*width:], cols, width, src[h*width:], cols, start, end, nbr, w[h:], heads)
	}
}

// WeightedSumWeightGrad adds to dw[e,h] the product of head h of ddst's row i and of src's row
// nbr[e], for the edges e of every destination i.
func WeightedSumWeightGrad(dw, ddst, src []float32, cols, heads int, start, end, nbr []uint32) {
	width := cols / heads
	for i, lo := range start {
		up := ddst[i*cols:][:cols]
		for e := lo; e < end[i]; e++ {
			r, d := row(src, nbr[e], cols), dw[int(e)*heads:][:heads]
			if width == 1 {
				for c, x := range r[:len(d)] {
					d[c] += up[c] * x
				}
				continue
			}
			for h := range d {
				d[h] += dot(up[h*width:][:width], r[h*width:][:width])
			}
		}
	}
}

// dot adds in four lanes, like sum.
func dot(x, y []float32) float32 {
	var s0, s1, s2, s3 float32
	for y = y[:len(x)]; len(x) >= 4 && len(y) >= 4; x, y = x[4:], y[4:] {
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
	}
	for c := range x {
		s0 += x[c] * y[c]
	}
	return s0 + s1 + (s2 + s3)
}

// HeadDot computes dst[n,h], the product of head h of src's row n and row h of a. a holds heads
// rows, and dst heads columns.
func HeadDot(dst, src, a []float32, heads int) {
	width := len(a) / heads
	for k := range dst {
		dst[k] = dot(src[k*width:][:width], a[k%heads*width:][:width])
	}
}

// HeadDotGrad adds ddst[n,h] times row h of a to head h of dsrc's row n, and times head h of src's
// row n to row h of da, rows in order.
func HeadDotGrad(dsrc, da, ddst, src, a []float32, heads int) {
	width := len(a) / heads
	for k, g := range ddst {
		ds, s := dsrc[k*width:][:width], src[k*width:][:width]
		ah, dah := a[k%heads*width:][:width], da[k%heads*width:][:width]
		for c := range s {
			ds[c] += g * ah[c]
			dah[c] += g * s[c]
		}
	}
}

// leaky is LeakyReLU (Maas, Hannun, Ng 2013).
func leaky(x, slope float32) float32 {
	if x > 0 {
		return x
	}
	return x * slope
}

// EdgeSoftmax computes, for every destination i and head h, the softmax over its edges e of
// leaky(srcScore[nbr[e],h] + dstScore[i,h]), the attention of GAT (Veličković et al. 2018, equation
// 3). w, unless it is empty, holds a weight above 0 for every position of nbr, which its
// exponential is multiplied by.
func EdgeSoftmax(dst, srcScore, dstScore, w []float32, heads int, start, end, nbr []uint32, slope float32) {
	for i, lo := range start {
		list, own := nbr[lo:end[i]], dstScore[i*heads:][:heads]
		if len(list) == 0 {
			continue
		}
		d := dst[int(lo)*heads:][:len(list)*heads]
		for h, at := range own {
			top := leaky(srcScore[int(list[0])*heads+h]+at, slope)
			for e, u := range list {
				score := leaky(srcScore[int(u)*heads+h]+at, slope)
				d[e*heads+h] = score
				top = max(top, score) // the built-in max keeps a NaN
			}
			var total float64 // see SoftmaxCrossEntropy
			if len(w) > 0 {
				for e, by := range w[lo:end[i]] {
					x := float64(by) * math.Exp(float64(d[e*heads+h]-top))
					d[e*heads+h] = float32(x)
					total += x
				}
			} else {
				for e := range list {
					x := math.Exp(float64(d[e*heads+h] - top))
					d[e*heads+h] = float32(x)
					total += x
				}
			}
			factor := float32(1 / total)
			for e := range list {
				d[e*heads+h] *= factor
			}
		}
	}
}

// EdgeSoftmaxGrad takes the gradient dalpha of EdgeSoftmax's result alpha back. It sets dedge[e,h],
// for the edges of every destination, to the gradient of srcScore[nbr[e],h] + dstScore[i,h], and
// adds their sums to ddstScore. EdgeSumGrad makes their sums by source. Weights need no mention: a
// weight's logarithm is a constant that is added to the score before the softmax.
func EdgeSoftmaxGrad(dedge, ddstScore, dalpha, alpha, srcScore, dstScore []float32, heads int, start, end, nbr []uint32, slope float32) {
	for i, lo := range start {
		list := nbr[lo:end[i]]
		for h := range heads {
			first, at := int(lo)*heads+h, dstScore[i*heads+h]
			var mean, sum float32
			for e := range list {
				mean += alpha[first+e*heads] * dalpha[first+e*heads]
			}
			for e, u := range list {
				g := alpha[first+e*heads] * (dalpha[first+e*heads] - mean)
				if !(srcScore[int(u)*heads+h]+at > 0) {
					g *= slope
				}
				dedge[first+e*heads] = g
				sum += g
			}
			ddstScore[i*heads+h] += sum
		}
	}
}

// EdgeSumGrad adds to every row u of dsrc the rows revEdge[revStart[u]:revStart[u+1]] of dedge.
// dsrc has len(revStart)-1 rows of heads columns.
func EdgeSumGrad(dsrc, dedge []float32, heads int, revStart, revEdge []uint32) {
	for u := range len(revStart) - 1 {
		sum := dsrc[u*heads:][:heads]
		for _, e := range revEdge[revStart[u]:revStart[u+1]] {
			Add(sum, row(dedge, e, heads))
		}
	}
}

// EdgeDropoutKeep reports whether [EdgeDropout] keeps a head of the edges between two nodes:
// [DropoutKeep], with a key for every destination. Parallel edges share their fate.
func EdgeDropoutKeep(key uint64, dst, src uint32, head int, p float32) bool {
	return DropoutKeep(edgeKey(key, dst), src, head, p)
}

func edgeKey(key uint64, dst uint32) uint64 { return splitMix(key + golden*uint64(dst)) }

// EdgeDropout keeps the values of src that EdgeDropoutKeep names, scaled as Dropout does, and sets
// the others to 0, for the edges of the destinations dstIDs[i] from sources srcIDs[nbr[e]]. dst may
// be src itself.
func EdgeDropout(dst, src []float32, srcIDs, dstIDs []uint32, heads int, start, end, nbr []uint32, key uint64, p float32) {
	threshold := dropoutThreshold(p)
	factor := float32(dropoutScale(threshold))
	for i, lo := range start {
		own := edgeKey(key, dstIDs[i])
		for e := lo; e < end[i]; e++ {
			state := own + golden*(uint64(srcIDs[nbr[e]])<<32)
			d, s := dst[int(e)*heads:][:heads], src[int(e)*heads:][:heads]
			for h, v := range s {
				d[h] = keepLane(v*factor, splitMix(state+golden*uint64(h/4))>>(16*(h%4)), threshold)
			}
		}
	}
}

// EdgeDropoutGrad adds to dx the values of dy that EdgeDropout kept, scaled as it does.
func EdgeDropoutGrad(dx, dy []float32, srcIDs, dstIDs []uint32, heads int, start, end, nbr []uint32, key uint64, p float32) {
	threshold := dropoutThreshold(p)
	factor := float32(dropoutScale(threshold))
	for i, lo := range start {
		own := edgeKey(key, dstIDs[i])
		for e := lo; e < end[i]; e++ {
			state := own + golden*(uint64(srcIDs[nbr[e]])<<32)
			d, s := dx[int(e)*heads:][:heads], dy[int(e)*heads:][:heads]
			for h, v := range s {
				d[h] += keepLane(v*factor, splitMix(state+golden*uint64(h/4))>>(16*(h%4)), threshold)
			}
		}
	}
}

// ELU computes dst = src where it is above 0, and exp(src)-1 elsewhere (Clevert, Unterthiner,
// Hochreiter 2016, with α = 1).
func ELU(dst, src []float32) {
	src = src[:len(dst)]
	for i, x := range src {
		if !(x > 0) {
			x = float32(math.Expm1(float64(x)))
		}
		dst[i] = x
	}
}

// ELUGrad adds dy times the slope of ELU to dx. The slope is 1 where y > 0, and y+1 elsewhere.
func ELUGrad(dx, dy, y []float32) {
	dy, y = dy[:len(dx)], y[:len(dx)]
	for i := range dx {
		dx[i] += dy[i] * min(y[i]+1, 1) // the built-in min keeps a NaN
	}
}
