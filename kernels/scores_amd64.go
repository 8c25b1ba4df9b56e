//go:build amd64 && !purego

package kernels

import "unsafe"

// edgeDotFunc is EdgeDot in assembly. See scores_stubs_amd64.go. aggregate_amd64.go has its checks.
type edgeDotFunc func(dst, q, k *float32, heads, width, rows int, start, end *uint32, n int, nbr *uint32, edges, ahead int, scale float32) uint64

// aheadBytes is the size of the rows that are prefetched while others are multiplied, as in the
// sums of lists.
const aheadBytes = 4096

// dots is EdgeDot. It returns false where the plain function must run instead: to find an error, or
// because a row is too wide.
func (f edgeDotFunc) dots(dst, q, k []float32, cols, heads int, start, end, nbr []uint32, scale float32) bool {
	if cols == 0 || cols > stripeCols || len(k) < cols || len(q) < len(start)*cols || len(dst) < len(nbr)*heads {
		return false
	}
	ahead := max(1, min(aheadBytes/(4*cols), 32))
	return cutLists(cols, start, end, func(_, _, lo int, start, end []uint32, _ bool) bool {
		return f(unsafe.SliceData(dst), &q[lo*cols], &k[0], heads, cols/heads, len(k)/cols, &start[0], &end[0], len(start),
			unsafe.SliceData(nbr), len(nbr), ahead, scale) == 0
	}, nil, nil)
}

// scores fills in what a set has for scores.go.
func (r *routines) scores(edgeDot edgeDotFunc) {
	r.edgeDot = func(dst, q, k []float32, cols, heads int, start, end, nbr []uint32, scale float32) {
		if !edgeDot.dots(dst, q, k, cols, heads, start, end, nbr, scale) {
			EdgeDot(dst, q, k, cols, heads, start, end, nbr, scale)
		}
	}
}
