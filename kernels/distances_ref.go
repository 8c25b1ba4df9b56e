package kernels

import "math"

// partsOf returns the columns that a number of a row has, and how many numbers there are: number n
// has the columns n, and n plus half of the columns if rows are complex.
func partsOf(cols int, complex bool) (numbers int, parts func(n int) []int) {
	if complex {
		return cols / 2, func(n int) []int { return []int{n, cols/2 + n} }
	}
	return cols, func(n int) []int { return []int{n} }
}

// absoluteRef returns the absolute value of number n of x-y, where parts has its columns.
func absoluteRef[T float](x, y []T, parts []int) float64 {
	sum := 0.0
	for _, c := range parts {
		d := float64(x[c] - y[c])
		sum += d * d
	}
	return math.Sqrt(sum)
}

func edgeDistanceRef[T float](dst, q, k []T, cols int, complex bool, start, end, nbr []uint32, scale T) {
	numbers, parts := partsOf(cols, complex)
	for i := range start {
		for e := start[i]; e < end[i]; e++ {
			sum := 0.0
			for n := range numbers {
				sum += absoluteRef(q[i*cols:][:cols], k[int(nbr[e])*cols:][:cols], parts(n))
			}
			dst[e] = scale * T(sum)
		}
	}
}

// edgeDistanceGradRef takes the edges of a source in the order of their destinations, as the
// reverse lists have them.
func edgeDistanceGradRef[T float](dq, dk, ddst, q, k []T, cols int, complex bool, start, end, nbr []uint32, scale T) {
	numbers, parts := partsOf(cols, complex)
	for i := range start {
		for e := start[i]; e < end[i]; e++ {
			x, y := q[i*cols:][:cols], k[int(nbr[e])*cols:][:cols]
			for n := range numbers {
				abs := absoluteRef(x, y, parts(n))
				if abs == 0 {
					continue
				}
				for _, c := range parts(n) {
					by := scale * ddst[e] * T(float64(x[c]-y[c])/abs)
					dq[i*cols+c] += by
					dk[int(nbr[e])*cols+c] -= by
				}
			}
		}
	}
}
