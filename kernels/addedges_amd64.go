//go:build amd64 && !purego

package kernels

import "unsafe"

const (
	// addAheadBytes is how many bytes ahead of the current edge rows are prefetched, and
	// addAheadRows the most rows. On a Xeon with AVX512-FP16, half and twice that distance make no
	// difference. On an EPYC with AVX-512, 4 to 128 rows make none either.
	addAheadBytes = 4 << 10
	addAheadRows  = 32
	// addCallElements is the number of elements that a call adds: 100 µs even where no prefetch
	// helps.
	addCallElements = 1 << 16
)

// edgeAdder sets addEdges of a set that has run and runBy in assembly.
func (r *routines) edgeAdder(
	run func(dst, src *float32, cols, stride int, to, from *uint32, n, ahead int),
	runBy func(dst, src *float32, cols, stride int, to, from *uint32, n, ahead int, w *float32),
) {
	plain := r.addEdges
	r.addEdges = func(dst, src, w []float32, cols, lo, hi int, to, from []uint32) {
		if hi <= lo || hi-lo > addCallElements {
			plain(dst, src, w, cols, lo, hi, to, from)
			return
		}
		addInCalls(run, runBy, dst, src, w, cols, lo, hi, to, from)
	}
}

// halfEdgeAdder sets addEdgesHalf of a set that has run and runBy in assembly. They take rows whose
// length is a multiple of whole; the other columns are widened first.
func (r *routines) halfEdgeAdder(
	run func(dst *float32, src *uint16, cols, stride int, to, from *uint32, n, ahead int),
	runBy func(dst *float32, src *uint16, cols, stride int, to, from *uint32, n, ahead int, w *float32),
	whole int,
) {
	r.addEdgesHalf = func(dst []float32, src []uint16, w []float32, cols, lo, hi int, to, from []uint32) {
		if hi <= lo || hi-lo > addCallElements {
			r.addEdgesWidened(dst, src, w, cols, lo, hi, to, from)
			return
		}
		end := lo + (hi-lo)/whole*whole
		if lo < end {
			addInCalls(run, runBy, dst, src, w, cols, lo, end, to, from)
		}
		if end < hi {
			r.addEdgesWidened(dst, src, w, cols, end, hi, to, from)
		}
	}
}

// addInCalls adds columns lo to hi, at least one, in calls of bounded length.
func addInCalls[T float32 | uint16](
	run func(dst *float32, src *T, cols, stride int, to, from *uint32, n, ahead int),
	runBy func(dst *float32, src *T, cols, stride int, to, from *uint32, n, ahead int, w *float32),
	dst []float32, src []T, w []float32, cols, lo, hi int, to, from []uint32,
) {
	width := hi - lo
	ahead, most := max(1, min(addAheadBytes/(4*width), addAheadRows)), addCallElements/width
	for len(to) > 0 {
		n := min(len(to)-ahead, most)
		if n <= 0 {
			n, ahead = min(len(to), most), 0
		}
		if w == nil {
			run(&dst[lo], &src[lo], width, 4*cols, &to[0], &from[0], n, ahead)
		} else {
			runBy(&dst[lo], &src[lo], width, 4*cols, &to[0], &from[0], n, ahead, unsafe.SliceData(w))
			w = w[n:]
		}
		to, from = to[n:], from[n:]
	}
}
