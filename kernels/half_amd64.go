//go:build amd64 && !purego

package kernels

// callRows are the elements of one call of the assembly that takes elements or rows as they come:
// 512 KB of four arrays, 100 µs at 5 GB/s.
const callRows = 1 << 15

// wholeHalves divides the number of elements that a call of half.go's assembly takes. The plain
// functions, which give the same bits, do the rest.
const wholeHalves = 16

func (r *routines) conversions(widen func(dst *float32, src *uint16, n int), narrow func(dst *uint16, src *float32, n int) int) {
	r.widen = func(dst []float32, src []uint16) {
		for len(src) >= wholeHalves {
			n := min(len(src), callRows) &^ (wholeHalves - 1)
			d := dst[:n]
			widen(&d[0], &src[0], n)
			dst, src = dst[n:], src[n:]
		}
		widenPlain(dst, src)
	}
	r.narrow = func(dst []uint16, src []float32) (overflowed int) {
		for len(src) >= wholeHalves {
			n := min(len(src), callRows) &^ (wholeHalves - 1)
			d := dst[:n]
			overflowed += narrow(&d[0], &src[0], n)
			dst, src = dst[n:], src[n:]
		}
		return overflowed + narrowPlain(dst, src)
	}
}
