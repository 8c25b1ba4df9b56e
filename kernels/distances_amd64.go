//go:build amd64 && !purego

package kernels

import "unsafe"

// distanceFunc is EdgeDistance in assembly, and distanceGradFunc edgeDistanceGrad, each of rows of
// one kind. See distances_stubs_amd64.go. aggregate_amd64.go has their checks.
type (
	distanceFunc func(
		dst, q, k *float32, width, rows int, start, end *uint32, n int, nbr *uint32, edges int, scale float32,
	) uint64
	distanceGradFunc func(
		dx, x, y, w *float32, width, rows int, start, end *uint32, n int, nbr *uint32, edges int,
	) uint64
)

// distances computes EdgeDistance. A row has cols columns, which hold so many numbers: complex ones
// take two columns each. It returns false if the plain function must run instead: because a row is
// empty or too wide, or to panic at an argument that is wrong.
func (f distanceFunc) distances(dst, q, k []float32, cols, numbers int, start, end, nbr []uint32, scale float32) bool {
	if numbers == 0 || cols > stripeCols || len(k) < cols || len(q) < len(start)*cols || len(dst) < len(nbr) {
		return false
	}
	return cutLists(cols, start, end, func(_, _, lo int, start, end []uint32, _ bool) bool {
		return f(unsafe.SliceData(dst), &q[lo*cols], &k[0], numbers, len(k)/cols, &start[0], &end[0], len(start),
			unsafe.SliceData(nbr), len(nbr), scale) == 0
	}, nil, nil)
}

// add is edgeDistanceGrad, reporting as distances does. It reports false before it has added
// anything.
func (f distanceGradFunc) add(dx, x, y, w []float32, cols, numbers int, start, end, nbr []uint32) bool {
	if numbers == 0 || cols > stripeCols || len(y) < cols || len(x) < len(start)*cols || len(dx) < len(start)*cols ||
		len(w) < len(nbr) || !listsAreIn(start, end, nbr, len(y)/cols) {
		return false
	}
	return cutLists(cols, start, end, func(_, _, lo int, start, end []uint32, _ bool) bool {
		return f(&dx[lo*cols], &x[lo*cols], &y[0], unsafe.SliceData(w), numbers, len(y)/cols,
			&start[0], &end[0], len(start), unsafe.SliceData(nbr), len(nbr)) == 0
	}, nil, nil)
}

// listsAreIn reports whether all lists are in nbr, and name rows below rows.
func listsAreIn(start, end, nbr []uint32, rows int) bool {
	for i, lo := range start {
		if lo > end[i] || int(end[i]) > len(nbr) {
			return false
		}
		for _, u := range nbr[lo:end[i]] {
			if int(u) >= rows {
				return false
			}
		}
	}
	return true
}

// distances fills in what a set has for distances.go: functions for rows of numbers and of complex
// numbers.
func (r *routines) distances(real, complex distanceFunc, realGrad, complexGrad distanceGradFunc) {
	r.edgeDistance = func(dst, q, k []float32, cols int, isComplex bool, start, end, nbr []uint32, scale float32) {
		f, numbers := real, cols
		if isComplex {
			f, numbers = complex, cols/2
		}
		if !f.distances(dst, q, k, cols, numbers, start, end, nbr, scale) {
			EdgeDistance(dst, q, k, cols, isComplex, start, end, nbr, scale)
		}
	}
	r.edgeDistanceGrad = func(dx, x, y, w []float32, cols int, isComplex bool, start, end, nbr []uint32) {
		f, numbers := realGrad, cols
		if isComplex {
			f, numbers = complexGrad, cols/2
		}
		if !f.add(dx, x, y, w, cols, numbers, start, end, nbr) {
			edgeDistanceGrad(dx, x, y, w, cols, isComplex, start, end, nbr)
		}
	}
}
