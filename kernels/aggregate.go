package kernels

import (
	"encoding/binary"
	"math"
)

// Aggregation reads rows where they lie: gathering them first would write and read every byte once
// more. Rows are taken four at a time, so that the sum is loaded and stored once for four
// additions; the additions stay in the order of the neighbours.

// NeighborMean computes, for every destination i, the mean of src's rows nbr[start[i]:end[i]], or 0
// where there are none. dst has len(start) rows.
func NeighborMean(dst, src []float32, cols int, start, end, nbr []uint32) {
	for i, lo := range start {
		list := nbr[lo:end[i]]
		sum := dst[i*cols:][:cols:cols]
		sumRows(sum, src, list)
		if len(list) > 1 {
			Scale(sum, 1/float32(len(list)))
		}
	}
}

// sumRows sets sum to the sum of the listed rows of src.
func sumRows(sum, src []float32, list []uint32) {
	clear(sum)
	for ; len(list) >= 4; list = list[4:] {
		r0, r1, r2, r3 := row(src, list[0], len(sum)), row(src, list[1], len(sum)), row(src, list[2], len(sum)), row(src, list[3], len(sum))
		for c := range sum {
			sum[c] = sum[c] + r0[c] + r1[c] + r2[c] + r3[c]
		}
	}
	for _, u := range list {
		Add(sum, row(src, u, len(sum)))
	}
}

// row is row u of src.
func row[T any](src []T, u uint32, cols int) []T {
	return src[int(u)*cols:][:cols]
}

// NeighborMeanHalf is NeighborMean of float16 rows, summed in float32. Its results equal, bit for
// bit, the results of widening the rows first.
func NeighborMeanHalf(dst []float32, src []uint16, cols int, start, end, nbr []uint32) {
	for i, lo := range start {
		list := nbr[lo:end[i]]
		sum := dst[i*cols:][:cols:cols]
		if !sumHalves(sum, src, list) {
			sumHalvesPlain(sum, src, list)
			Scale(sum, 1/float32(len(list)))
			continue
		}
		if len(list) > 0 {
			Scale(sum, halfScale*(1/float32(len(list))))
		}
	}
}

// sumHalves sets sum to the sum of the listed rows, divided by halfScale: a power of two changes no
// rounding, and one multiplication at the end replaces one per element read. Even the smallest half
// is 13 bits above the smallest float32 here. It reports false when a row holds Inf or NaN, for
// which the trick does not work; sum then means nothing.
func sumHalves(sum []float32, src []uint16, list []uint32) (finite bool) {
	clear(sum)
	seen := uint32(0)
	for ; len(list) >= 4; list = list[4:] {
		r0, r1, r2, r3 := row(src, list[0], len(sum)), row(src, list[1], len(sum)), row(src, list[2], len(sum)), row(src, list[3], len(sum))
		for c := range sum {
			s0, s1, s2, s3 := shiftHalf(r0[c]), shiftHalf(r1[c]), shiftHalf(r2[c]), shiftHalf(r3[c])
			seen |= (s0 + halfCarry) | (s1 + halfCarry) | (s2 + halfCarry) | (s3 + halfCarry)
			sum[c] = sum[c] + math.Float32frombits(s0) + math.Float32frombits(s1) +
				math.Float32frombits(s2) + math.Float32frombits(s3)
		}
	}
	if len(list) >= 2 {
		r0, r1 := row(src, list[0], len(sum)), row(src, list[1], len(sum))
		for c := range sum {
			s0, s1 := shiftHalf(r0[c]), shiftHalf(r1[c])
			seen |= (s0 + halfCarry) | (s1 + halfCarry)
			sum[c] = sum[c] + math.Float32frombits(s0) + math.Float32frombits(s1)
		}
		list = list[2:]
	}
	if len(list) == 1 {
		r := row(src, list[0], len(sum))
		for c := range sum {
			s := shiftHalf(r[c])
			seen |= s + halfCarry
			sum[c] += math.Float32frombits(s)
		}
	}
	return seen&halfNonFinite == 0
}

// sumHalvesPlain is sumHalves without the trick and its scale.
func sumHalvesPlain(sum []float32, src []uint16, list []uint32) {
	clear(sum)
	for _, u := range list {
		r := row(src, u, len(sum))
		for c := range sum {
			sum[c] += halfToFloat32(r[c])
		}
	}
}

// inverseDegrees sets w[i] to 1/(end[i]-start[i]), once per row instead of once per edge.
func inverseDegrees(w []float32, start, end []uint32) {
	end, w = end[:len(start)], w[:len(start)]
	for i, lo := range start {
		w[i] = 1 / float32(end[i]-lo)
	}
}

// rowWeightedSum adds to every row i of dst the rows u of src that nbr[start[i]:end[i]] names,
// times w[u]. If fresh, it sets dst instead of adding to it.
func rowWeightedSum(dst, src []float32, cols int, start, end, nbr []uint32, w []float32, fresh bool) {
	if fresh {
		clear(dst[:len(start)*cols])
	}
	for i, lo := range start {
		list := nbr[lo:end[i]]
		sum := dst[i*cols:][:cols:cols]
		for ; len(list) >= 4; list = list[4:] {
			r0, r1, r2, r3 := row(src, list[0], len(sum)), row(src, list[1], len(sum)), row(src, list[2], len(sum)), row(src, list[3], len(sum))
			w0, w1, w2, w3 := w[list[0]], w[list[1]], w[list[2]], w[list[3]]
			for c := range sum {
				sum[c] = sum[c] + w0*r0[c] + w1*r1[c] + w2*r2[c] + w3*r3[c]
			}
		}
		for _, u := range list {
			addScaled(sum, row(src, u, len(sum)), w[u])
		}
	}
}

func addScaled(dst, src []float32, by float32) {
	src = src[:len(dst)]
	for c := range dst {
		dst[c] += by * src[c]
	}
}

// weightedSum adds to cols columns of every row i of dst the same columns of the rows of src that
// nbr[start[i]:end[i]] names, each times the weight of its edge: w[e*wstride] for nbr[e]. Rows of
// dst lie dstStride elements apart, rows of src stride. So one head of several is dst, src and w
// from its first element on, with the width of all heads as strides.
func weightedSum(dst []float32, dstStride, cols int, src []float32, stride int, start, end, nbr []uint32, w []float32, wstride int) {
	for i, lo := range start {
		sum := dst[i*dstStride:][:cols:cols]
		for e, u := range nbr[lo:end[i]] {
			addScaled(sum, src[int(u)*stride:][:cols], w[(int(lo)+e)*wstride])
		}
	}
}

// weightedSumHalf is weightedSum of float16 rows.
func weightedSumHalf(dst []float32, dstStride, cols int, src []uint16, stride int, start, end, nbr []uint32, w []float32, wstride int) {
	for i, lo := range start {
		sum := dst[i*dstStride:][:cols:cols]
		for e, u := range nbr[lo:end[i]] {
			addScaledHalf(sum, src[int(u)*stride:][:cols], w[(int(lo)+e)*wstride])
		}
	}
}

// maxHalfWeight bounds the weights that halfScale can be multiplied into: 2¹⁵ times 2¹¹² is just
// finite.
const maxHalfWeight = 1 << 15

// addScaledHalf is addScaled of a float16 row. The power of two that shiftHalf leaves out goes into
// the weight: the exact product is the same, so its rounding is, too. A row with Inf or NaN and a
// huge weight take the plain way.
func addScaledHalf(sum []float32, r []uint16, by float32) {
	if !(by < maxHalfWeight && by > -maxHalfWeight) || !finiteHalves(r) {
		for c := range sum {
			sum[c] += by * halfToFloat32(r[c])
		}
		return
	}
	by *= halfScale
	for c := range sum {
		sum[c] += by * math.Float32frombits(shiftHalf(r[c]))
	}
}

// finiteHalves looks at four at a time: their exponents and 1 of the exponent's units come to the
// sign's bit where the exponent is 31, and never to more.
func finiteHalves(r []uint16) bool {
	const exponent, unit, sign = 0x7c00, 0x0400, 0x8000
	const lanes = 0x0001_0001_0001_0001
	var seen uint64
	if b, ok := bytesOf(r); ok {
		for ; len(b) >= 8; b = b[8:] {
			seen |= binary.NativeEndian.Uint64(b)&(lanes*exponent) + lanes*unit
		}
		r = r[len(r)&^3:]
	}
	for _, h := range r {
		seen |= uint64(h&exponent + unit)
	}
	return seen&(lanes*sign) == 0
}
