//go:build amd64 && !purego

package kernels

import "unsafe"

// The assembly checks every list and every row number itself, in the register that it then reads
// with, and stops at the first that is outside. The plain function then runs over the same work and
// panics where the bad one is.

const (
	// callElements are the elements added in one call of assembly: 100 µs even at 5 GB/s, which is
	// rows from memory that no prefetch has reached.
	callElements = 1 << 17
	// stripeCols are the columns of one call. No feature is as wide; a call must end all the same.
	stripeCols = 1 << 12
)

// Sums of lists, in assembly. See aggregate_stubs_amd64.go.
type (
	listSum[T any]      func(dst *float32, dstStride, cols int, src *T, stride, rows int, start, end *uint32, n int, nbr *uint32, edges, keep int) uint64
	weightedFunc[T any] func(dst *float32, dstStride, cols int, src *T, stride, rows int, start, end *uint32, n int, nbr *uint32, edges int, w *float32, wstride int) uint64
	rowWeightedFunc     func(dst *float32, dstStride, cols int, src *float32, stride, rows int, start, end *uint32, n int, nbr *uint32, edges int, w *float32, keep int) uint64
)

// mean is NeighborMean or NeighborMeanHalf. It reports false where plain must find what is wrong.
func (sum listSum[T]) mean(dst []float32, src []T, cols int, start, end, nbr []uint32) bool {
	if len(src) < cols || cols == 0 || len(dst) < len(start)*cols {
		return false
	}
	return cutLists(cols, start, end, func(c, width, lo int, start, end []uint32, long bool) bool {
		d, keep := dst[lo*cols+c:], 0
		if long {
			keep = 1
		}
		return sum(&d[0], cols, width, &src[c], cols, len(src)/cols, &start[0], &end[0], len(start),
			unsafe.SliceData(nbr), len(nbr), keep) == 0
	}, func(c, width, i int) { clear(dst[i*cols+c:][:width]) }, func(c, width, i int) {
		Scale(dst[i*cols+c:][:width], 1/float32(end[i]-start[i]))
	})
}

// weighted is weightedSum or weightedSumHalf, reporting as mean does.
func (sum weightedFunc[T]) weighted(dst []float32, dstStride, cols int, src []T, stride int, start, end, nbr []uint32, w []float32, wstride int) bool {
	if len(src) < cols || cols == 0 || stride < 1 || dstStride < 0 || wstride < 0 || len(start) == 0 ||
		len(dst) < (len(start)-1)*dstStride+cols || len(w) < (len(nbr)-1)*wstride+1 {
		return false
	}
	rows := (len(src)-cols)/stride + 1
	return cutLists(cols, start, end, func(c, width, lo int, start, end []uint32, _ bool) bool {
		return sum(&dst[lo*dstStride+c], dstStride, width, &src[c], stride, rows, &start[0], &end[0], len(start),
			unsafe.SliceData(nbr), len(nbr), unsafe.SliceData(w), wstride) == 0
	}, nil, nil)
}

// weighted is rowWeightedSum, reporting as mean does.
func (sum rowWeightedFunc) weighted(dst, src []float32, cols int, start, end, nbr []uint32, w []float32, fresh bool) bool {
	if len(src) < cols || cols == 0 || len(dst) < len(start)*cols {
		return false
	}
	return cutLists(cols, start, end, func(c, width, lo int, start, end []uint32, long bool) bool {
		keep := 1
		if fresh && !long {
			keep = 0
		}
		return sum(&dst[lo*cols+c], cols, width, &src[c], cols, min(len(src)/cols, len(w)), &start[0], &end[0], len(start),
			unsafe.SliceData(nbr), len(nbr), unsafe.SliceData(w), keep) == 0
	}, func(c, width, i int) {
		if fresh {
			clear(dst[i*cols+c:][:width])
		}
	}, nil)
}

// cutLists cuts an aggregation into calls that end soon: columns [c, c+width) of as many
// destinations from lo on as have callElements between them, or of pieces of one longer list.
// Around such a list it calls before and after, if they are not nil. It stops and reports false
// when a call does.
func cutLists(cols int, start, end []uint32, call func(c, width, lo int, start, end []uint32, long bool) bool,
	before, after func(c, width, i int)) bool {
	end = end[:len(start)]
	for c := 0; c < cols; c += stripeCols {
		width := min(stripeCols, cols-c)
		limit := callElements / width
		for lo := 0; lo < len(start); {
			hi, entries := lo, 0
			for ; hi < len(start); hi++ {
				if entries += int(end[hi] - start[hi]); entries > limit {
					break
				}
			}
			if hi > lo {
				if !call(c, width, lo, start[lo:hi], end[lo:hi], false) {
					return false
				}
				lo = hi
				continue
			}
			if start[lo] > end[lo] {
				return false
			}
			if before != nil {
				before(c, width, lo)
			}
			for from := start[lo]; from < end[lo]; {
				to := from + min(uint32(limit), end[lo]-from)
				if !call(c, width, lo, []uint32{from}, []uint32{to}, true) {
					return false
				}
				from = to
			}
			if after != nil {
				after(c, width, lo)
			}
			lo++
		}
	}
	return true
}

// aggregation fills in what a set has for aggregate.go.
func (r *routines) aggregation(sum listSum[float32], sumHalf listSum[uint16], weighted weightedFunc[float32],
	weightedHalf weightedFunc[uint16], rowWeighted rowWeightedFunc, minHalf int) {
	r.neighborMean = func(dst, src []float32, cols int, start, end, nbr []uint32) {
		if !sum.mean(dst, src, cols, start, end, nbr) {
			NeighborMean(dst, src, cols, start, end, nbr)
		}
	}
	r.neighborMeanHalf = func(dst []float32, src []uint16, cols int, start, end, nbr []uint32) {
		if cols < minHalf || !sumHalf.mean(dst, src, cols, start, end, nbr) {
			NeighborMeanHalf(dst, src, cols, start, end, nbr)
		}
	}
	r.weightedSum = func(dst []float32, dstStride, cols int, src []float32, stride int, start, end, nbr []uint32, w []float32, wstride int) {
		if !weighted.weighted(dst, dstStride, cols, src, stride, start, end, nbr, w, wstride) {
			weightedSum(dst, dstStride, cols, src, stride, start, end, nbr, w, wstride)
		}
	}
	r.weightedSumHalf = func(dst []float32, dstStride, cols int, src []uint16, stride int, start, end, nbr []uint32, w []float32, wstride int) {
		switch {
		case cols < minHalf:
			r.weightedSumNarrow(dst, dstStride, cols, src, stride, start, end, nbr, w, wstride)
		case !weightedHalf.weighted(dst, dstStride, cols, src, stride, start, end, nbr, w, wstride):
			weightedSumHalf(dst, dstStride, cols, src, stride, start, end, nbr, w, wstride)
		}
	}
	r.rowWeightedSum = func(dst, src []float32, cols int, start, end, nbr []uint32, w []float32, fresh bool) {
		if !rowWeighted.weighted(dst, src, cols, start, end, nbr, w, fresh) {
			rowWeightedSum(dst, src, cols, start, end, nbr, w, fresh)
		}
	}
}

// weightedSumNarrow widens narrowRows rows at a time.
const narrowRows = 64

// rowNumbers has the numbers from 0 to narrowRows-1.
var rowNumbers = func() (n [narrowRows]uint32) {
	for i := range n {
		n[i] = uint32(i)
	}
	return n
}()

// weightedSumNarrow is weightedSumHalf for rows narrower than a vector. It widens the rows and adds
// them as float32, so that each product is rounded as in addEdges. Otherwise a sum would depend on
// how its list is split.
func (r *routines) weightedSumNarrow(dst []float32, dstStride, cols int, src []uint16, stride int, start, end, nbr []uint32, w []float32, wstride int) {
	wide, from, to := make([]float32, narrowRows*cols), []uint32{0}, []uint32{0}
	for i, lo := range start {
		list := nbr[lo:end[i]]
		for at := 0; at < len(list); at += narrowRows {
			rows := list[at:min(at+narrowRows, len(list))]
			for e, u := range rows {
				r.widen(wide[e*cols:][:cols], src[int(u)*stride:][:cols])
			}
			to[0] = uint32(len(rows))
			r.weightedSum(dst[i*dstStride:], dstStride, cols, wide, cols, from, to, rowNumbers[:len(rows)], w[(int(lo)+at)*wstride:], wstride)
		}
	}
}
