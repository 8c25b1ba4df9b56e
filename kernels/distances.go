package kernels

import "math"

// Distances of rows that edges join: what TransE and RotatE score links by. Rows of complex numbers
// have the real parts in their first half of columns and the imaginary parts in the second.

// EdgeDistance sets dst[e], for the edges e of every destination i, to scale times the distance of
// q's row i and k's row nbr[e]: the sum over columns of |q-k| or, of complex rows, the sum of the
// absolute values of q-k. Rows have cols columns.
func EdgeDistance(dst, q, k []float32, cols int, complex bool, start, end, nbr []uint32, scale float32) {
	for i, lo := range start {
		own := q[i*cols:][:cols]
		for e, u := range nbr[lo:end[i]] {
			dst[int(lo)+e] = scale * distance(own, row(k, u, cols), complex)
		}
	}
}

func distance(x, y []float32, complex bool) (sum float32) {
	if !complex {
		for c, v := range x {
			sum += float32(math.Abs(float64(v - y[c])))
		}
		return sum
	}
	half := len(x) / 2
	for c := range half {
		re, im := x[c]-y[c], x[half+c]-y[half+c]
		sum += float32(math.Sqrt(float64(re*re + im*im)))
	}
	return sum
}

// edgeDistanceGrad adds to row i of dx, for the edges e of every destination i, w[e] times the
// gradient of the distance of x's row i and y's row nbr[e] by the former. It is 0 where two numbers
// are equal.
func edgeDistanceGrad(dx, x, y, w []float32, cols int, complex bool, start, end, nbr []uint32) {
	half := cols / 2
	for i, lo := range start {
		own, d := x[i*cols:][:cols], dx[i*cols:][:cols]
		for e, u := range nbr[lo:end[i]] {
			other, by := row(y, u, cols), w[int(lo)+e]
			if !complex {
				for c, v := range own {
					switch diff := v - other[c]; {
					case diff > 0:
						d[c] += by
					case diff < 0:
						d[c] -= by
					case diff != 0: // NaN
						d[c] += diff
					}
				}
				continue
			}
			for c := range half {
				re, im := own[c]-other[c], own[half+c]-other[half+c]
				if square := re*re + im*im; square != 0 {
					f := by / float32(math.Sqrt(float64(square)))
					d[c] += f * re
					d[half+c] += f * im
				}
			}
		}
	}
}

func checkEdgeDistance(dst, q, k Tensor, g Adjacency, complex bool) {
	if q.Cols != k.Cols || complex && q.Cols%2 != 0 || !isEdges(dst, g, 1) || !isList(g, q.Rows) {
		refuse("EdgeDistance", "dst", dst, "q", q, "k", k, "Start", g.Start, "End", g.End, "Nbr", g.Nbr)
	}
}

func checkEdgeDistanceGrad(dq, dk, ddst, q, k Tensor, g Adjacency, complex bool) {
	if q.Cols != k.Cols || complex && q.Cols%2 != 0 || !sameShape(dq, q) || !sameShape(dk, k) || !isEdges(ddst, g, 1) ||
		!isList(g, q.Rows) || !isReversed(g, k.Rows) || !isColumn(g.RevDst, g.RevEdge.Rows) {
		refuse("EdgeDistanceGrad", "dq", dq, "dk", dk, "ddst", ddst, "q", q, "k", k, "Start", g.Start, "End", g.End,
			"Nbr", g.Nbr, "RevStart", g.RevStart, "RevDst", g.RevDst, "RevEdge", g.RevEdge)
	}
}

// EdgeDistance implements [Backend].
func (c *CPU) EdgeDistance(dst, q, k Tensor, g Adjacency, complex bool, scale float32) {
	const op = "EdgeDistance"
	checkEdgeDistance(dst, q, k, g, complex)
	d, a, b := c.floats(op, "dst", dst), c.floats(op, "q", q), c.floats(op, "k", k)
	start, end, nbr := c.adjacency(op, g)
	n := q.Cols
	c.lists(q.Rows, n, func(lo, hi int) {
		c.edgeDistance(d, a[lo*n:hi*n], b, n, complex, start[lo:hi], end[lo:hi], nbr, scale)
	})
}

// EdgeDistanceGrad implements [Backend]. The distance is symmetric, so edgeDistanceGrad computes
// both gradients: dq over the lists of destinations, and dk over the reverse lists of sources.
func (c *CPU) EdgeDistanceGrad(dq, dk, ddst, q, k Tensor, g Adjacency, complex bool, scale float32) {
	const op = "EdgeDistanceGrad"
	checkEdgeDistanceGrad(dq, dk, ddst, q, k, g, complex)
	da, db, up := c.floats(op, "dq", dq), c.floats(op, "dk", dk), c.floats(op, "ddst", ddst)
	a, b, n := c.floats(op, "q", q), c.floats(op, "k", k), q.Cols
	start, end, nbr := c.adjacency(op, g)
	c.weights = grow(c.weights, len(nbr))
	byEdge := c.weights[:len(nbr)]
	c.lists(dq.Rows, n, func(lo, hi int) {
		scaleLists(byEdge, up, 1, start[lo:hi], end[lo:hi], scale)
		c.edgeDistanceGrad(da[lo*n:hi*n], a[lo*n:hi*n], b, byEdge, n, complex, start[lo:hi], end[lo:hi], nbr)
	})
	revStart := c.uints(op, "RevStart", g.RevStart)
	revDst, revEdge := c.uints(op, "RevDst", g.RevDst), c.uints(op, "RevEdge", g.RevEdge)
	c.weights = grow(c.weights, len(revEdge))
	bySource := c.weights[:len(revEdge)]
	c.rows(len(revEdge), 1, func(lo, hi int) {
		GatherRows(bySource[lo:hi], up, 1, revEdge[lo:hi])
		Scale(bySource[lo:hi], scale)
	})
	c.lists(dk.Rows, n, func(lo, hi int) {
		from, to := revStart[lo:hi], revStart[lo+1:hi+1]
		c.edgeDistanceGrad(db[lo*n:hi*n], b[lo*n:hi*n], a, bySource, n, complex, from, to, revDst)
	})
}

// EdgeDistance implements [Backend].
func (r *Reference) EdgeDistance(dst, q, k Tensor, g Adjacency, complex bool, scale float32) {
	const op = "EdgeDistance"
	checkEdgeDistance(dst, q, k, g, complex)
	start, end, nbr := r.adjacency(op, g)
	edgeDistanceRef(r.floats(op, "dst", dst), r.floats(op, "q", q), r.floats(op, "k", k), q.Cols, complex, start, end, nbr,
		float64(scale))
}

// EdgeDistanceGrad implements [Backend].
func (r *Reference) EdgeDistanceGrad(dq, dk, ddst, q, k Tensor, g Adjacency, complex bool, scale float32) {
	const op = "EdgeDistanceGrad"
	checkEdgeDistanceGrad(dq, dk, ddst, q, k, g, complex)
	start, end, nbr := r.adjacency(op, g)
	edgeDistanceGradRef(r.floats(op, "dq", dq), r.floats(op, "dk", dk), r.floats(op, "ddst", ddst), r.floats(op, "q", q),
		r.floats(op, "k", k), q.Cols, complex, start, end, nbr, float64(scale))
}
