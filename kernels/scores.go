package kernels

import (
	"fmt"
	"math"
)

// Scores of edges: attention where each edge has a score of its own, and not the sum of one of its
// source and one of its destination as in EdgeSoftmax. Shapes: D destinations, S sources, H heads
// of C columns; E positions of a relation's list.

// EdgeDot sets dst[e,h], for the edges e of every destination i, to scale times the product of head
// h of q's row i and head h of k's row nbr[e]. Rows of q and k have cols columns.
func EdgeDot(dst, q, k []float32, cols, heads int, start, end, nbr []uint32, scale float32) {
	width := cols / heads
	for i, lo := range start {
		own := q[i*cols:][:cols]
		for e, u := range nbr[lo:end[i]] {
			r, d := row(k, u, cols), dst[(int(lo)+e)*heads:][:heads]
			for h := range d {
				d[h] = scale * dot(own[h*width:][:width], r[h*width:][:width])
			}
		}
	}
}

// scaleLists sets dst to src times scale at the positions of the lists. Both have heads columns.
func scaleLists(dst, src []float32, heads int, start, end []uint32, scale float32) {
	for i, lo := range start {
		d, s := dst[int(lo)*heads:int(end[i])*heads], src[int(lo)*heads:int(end[i])*heads]
		for at, v := range s {
			d[at] = v * scale
		}
	}
}

// edgeSoftmaxOf computes, for the destinations [lo, hi) and every head, the softmax of
// scores[r][e,h] over the edges e of all relations r. Relation r has the edges from start[r][i] to
// end[r][i], and w[r], unless it is empty, a weight above 0 for every position, which its
// exponential is multiplied by.
func (r *routines) edgeSoftmaxOf(alpha, scores, w [][]float32, heads int, start, end [][]uint32, lo, hi int) {
	top, factor, total := make([]float32, heads), make([]float32, heads), make([]float64, heads)
	for i := lo; i < hi; i++ {
		for h := range top {
			top[h] = float32(math.Inf(-1))
		}
		for rel, all := range scores {
			for s := listRows(all, heads, start[rel][i], end[rel][i]); len(s) > 0; s = s[heads:] {
				for h, v := range s[:heads] {
					top[h] = max(top[h], v) // the built-in max keeps a NaN
				}
			}
		}
		clear(total)
		for rel, all := range alpha {
			first, last := start[rel][i], end[rel][i]
			a, s := listRows(all, heads, first, last), listRows(scores[rel], heads, first, last)
			for at := 0; at < len(a); at += heads {
				d := a[at:][:heads]
				for h, v := range s[at:][:heads] {
					d[h] = v - top[h]
				}
			}
			r.exp(a, a)
			if len(w[rel]) > 0 {
				ScaleRows(a, w[rel][first:last], heads)
			}
			for ; len(a) > 0; a = a[heads:] {
				for h, v := range a[:heads] {
					total[h] += float64(v)
				}
			}
		}
		for h, t := range total {
			factor[h] = float32(1 / t)
		}
		for rel, all := range alpha {
			for a := listRows(all, heads, start[rel][i], end[rel][i]); len(a) > 0; a = a[heads:] {
				for h, f := range factor {
					a[h] *= f
				}
			}
		}
	}
}

// listRows are the rows of edge values from position lo to hi.
func listRows(values []float32, heads int, lo, hi uint32) []float32 {
	return values[int(lo)*heads : int(hi)*heads]
}

// edgeSoftmaxOfGrad takes the gradient dalpha of edgeSoftmaxOf's result alpha back to dscores, to
// which it adds, for the destinations [lo, hi). Weights need no mention: see EdgeSoftmaxGrad.
func edgeSoftmaxOfGrad(dscores, dalpha, alpha [][]float32, heads int, start, end [][]uint32, lo, hi int) {
	mean := make([]float32, heads)
	for i := lo; i < hi; i++ {
		clear(mean)
		for rel := range alpha {
			a, up := listRows(alpha[rel], heads, start[rel][i], end[rel][i]), listRows(dalpha[rel], heads, start[rel][i], end[rel][i])
			for at := 0; at < len(a); at += heads {
				d := up[at:][:heads]
				for h, v := range a[at:][:heads] {
					mean[h] += v * d[h]
				}
			}
		}
		for rel := range alpha {
			a, up := listRows(alpha[rel], heads, start[rel][i], end[rel][i]), listRows(dalpha[rel], heads, start[rel][i], end[rel][i])
			down := listRows(dscores[rel], heads, start[rel][i], end[rel][i])
			for at := 0; at < len(a); at += heads {
				d, s := up[at:][:heads], down[at:][:heads]
				for h, v := range a[at:][:heads] {
					s[h] += v * (d[h] - mean[h])
				}
			}
		}
	}
}

func checkEdgeDot(dst, q, k Tensor, g Adjacency) {
	if q.Cols != k.Cols || !headsDivide(dst.Cols, q.Cols) || !isEdges(dst, g, dst.Cols) || !isList(g, q.Rows) {
		refuse("EdgeDot", "dst", dst, "q", q, "k", k, "Start", g.Start, "End", g.End, "Nbr", g.Nbr)
	}
}

func checkEdgeDotGrad(dq, dk, ddst, q, k Tensor, g Adjacency) {
	if q.Cols != k.Cols || !sameShape(dq, q) || !sameShape(dk, k) || !headsDivide(ddst.Cols, q.Cols) ||
		!isEdges(ddst, g, ddst.Cols) || !isList(g, q.Rows) || !isReversed(g, k.Rows) || !isColumn(g.RevDst, g.RevEdge.Rows) {
		refuse("EdgeDotGrad", "dq", dq, "dk", dk, "ddst", ddst, "q", q, "k", k, "Start", g.Start, "End", g.End, "Nbr", g.Nbr,
			"RevStart", g.RevStart, "RevDst", g.RevDst, "RevEdge", g.RevEdge)
	}
}

// checkRelations checks edge values of several relations and returns their heads. Each of values
// has a tensor a relation, and is called as names says.
func checkRelations(op string, g []Adjacency, names []string, values ...[]Tensor) (heads int) {
	for n, list := range values {
		if len(list) != len(g) {
			panic(fmt.Sprintf("kernels: %s: %s of %d relations, lists of %d", op, names[n], len(list), len(g)))
		}
	}
	for r := range g {
		heads = values[0][0].Cols
		fits := heads >= 1 && isList(g[r], g[0].Start.Rows)
		var named []any
		for n, list := range values {
			fits = fits && isEdges(list[r], g[r], heads)
			named = append(named, names[n], list[r])
		}
		if !fits {
			named = append(named, "Start", g[r].Start, "End", g[r].End, "Nbr", g[r].Nbr)
			refuse(fmt.Sprintf("%s: relation %d of %d heads and %d destinations", op, r, heads, g[0].Start.Rows), named...)
		}
	}
	return heads
}

func checkEdgeSoftmaxOf(alpha, scores, w []Tensor, g []Adjacency) (heads int) {
	const op = "EdgeSoftmaxOf"
	heads = checkRelations(op, g, []string{"alpha", "scores"}, alpha, scores)
	if len(w) != len(g) {
		panic(fmt.Sprintf("kernels: %s: w of %d relations, lists of %d", op, len(w), len(g)))
	}
	for r := range g {
		if w[r].Rows != 0 && !isEdges(w[r], g[r], 1) {
			refuse(fmt.Sprintf("%s: relation %d", op, r), "w", w[r], "Nbr", g[r].Nbr)
		}
	}
	return heads
}

func checkEdgeSoftmaxOfGrad(dscores, dalpha, alpha []Tensor, g []Adjacency) (heads int) {
	return checkRelations("EdgeSoftmaxOfGrad", g, []string{"dscores", "dalpha", "alpha"}, dscores, dalpha, alpha)
}

// EdgeDot implements [Backend].
func (c *CPU) EdgeDot(dst, q, k Tensor, g Adjacency, scale float32) {
	const op = "EdgeDot"
	checkEdgeDot(dst, q, k, g)
	d, a, b := c.floats(op, "dst", dst), c.floats(op, "q", q), c.floats(op, "k", k)
	start, end, nbr := c.adjacency(op, g)
	n, heads := q.Cols, dst.Cols
	c.lists(q.Rows, n, func(lo, hi int) {
		c.edgeDot(d, a[lo*n:hi*n], b, n, heads, start[lo:hi], end[lo:hi], nbr, scale)
	})
}

// EdgeDotGrad implements [Backend]. It is two weighted sums: of k's rows for dq, of q's rows for
// dk.
func (c *CPU) EdgeDotGrad(dq, dk, ddst, q, k Tensor, g Adjacency, scale float32) {
	const op = "EdgeDotGrad"
	checkEdgeDotGrad(dq, dk, ddst, q, k, g)
	da, db, up := c.floats(op, "dq", dq), c.floats(op, "dk", dk), c.floats(op, "ddst", ddst)
	a, b, n, heads := c.floats(op, "q", q), c.floats(op, "k", k), q.Cols, ddst.Cols
	start, end, nbr := c.adjacency(op, g)
	c.weights = grow(c.weights, len(nbr)*heads)
	byEdge := c.weights[:len(nbr)*heads]
	c.lists(dq.Rows, n, func(lo, hi int) {
		scaleLists(byEdge, up, heads, start[lo:hi], end[lo:hi], scale)
		c.addWeightedHeads(da[lo*n:hi*n], b, byEdge, n, heads, start[lo:hi], end[lo:hi], nbr)
	})
	revStart := c.uints(op, "RevStart", g.RevStart)
	revDst, revEdge := c.uints(op, "RevDst", g.RevDst), c.uints(op, "RevEdge", g.RevEdge)
	c.weights = grow(c.weights, len(revEdge)*heads)
	bySource := c.weights[:len(revEdge)*heads]
	c.rows(len(revEdge), heads, func(lo, hi int) {
		GatherRows(bySource[lo*heads:hi*heads], up, heads, revEdge[lo:hi])
		Scale(bySource[lo*heads:hi*heads], scale)
	})
	c.lists(dk.Rows, n, func(lo, hi int) {
		c.addWeightedHeads(db[lo*n:hi*n], a, bySource, n, heads, revStart[lo:hi], revStart[lo+1:hi+1], revDst)
	})
}

// relations lends what several relations have of edge values, and listEnds their lists.
func (c *CPU) relations(op, name string, values []Tensor) [][]float32 {
	all := make([][]float32, len(values))
	for r, t := range values {
		all[r] = c.floats(op, name, t)
	}
	return all
}

func (c *CPU) listEnds(op string, g []Adjacency) (start, end [][]uint32) {
	for _, a := range g {
		start, end = append(start, c.uints(op, "Start", a.Start)), append(end, c.uints(op, "End", a.End))
	}
	return start, end
}

// EdgeSoftmaxOf implements [Backend].
func (c *CPU) EdgeSoftmaxOf(alpha, scores, w []Tensor, g []Adjacency) {
	const op = "EdgeSoftmaxOf"
	heads := checkEdgeSoftmaxOf(alpha, scores, w, g)
	if len(g) == 0 {
		return
	}
	a, s, by := c.relations(op, "alpha", alpha), c.relations(op, "scores", scores), c.relations(op, "w", w)
	start, end := c.listEnds(op, g)
	c.lists(g[0].Start.Rows, edgeCost*heads*len(g), func(lo, hi int) {
		c.edgeSoftmaxOf(a, s, by, heads, start, end, lo, hi)
	})
}

// EdgeSoftmaxOfGrad implements [Backend].
func (c *CPU) EdgeSoftmaxOfGrad(dscores, dalpha, alpha []Tensor, g []Adjacency) {
	const op = "EdgeSoftmaxOfGrad"
	heads := checkEdgeSoftmaxOfGrad(dscores, dalpha, alpha, g)
	if len(g) == 0 {
		return
	}
	d, up, a := c.relations(op, "dscores", dscores), c.relations(op, "dalpha", dalpha), c.relations(op, "alpha", alpha)
	start, end := c.listEnds(op, g)
	c.lists(g[0].Start.Rows, heads*len(g), func(lo, hi int) { edgeSoftmaxOfGrad(d, up, a, heads, start, end, lo, hi) })
}

// EdgeDot implements [Backend].
func (r *Reference) EdgeDot(dst, q, k Tensor, g Adjacency, scale float32) {
	const op = "EdgeDot"
	checkEdgeDot(dst, q, k, g)
	start, end, nbr := r.adjacency(op, g)
	edgeDotRef(r.floats(op, "dst", dst), r.floats(op, "q", q), r.floats(op, "k", k), q.Cols, dst.Cols, start, end, nbr,
		float64(scale))
}

// EdgeDotGrad implements [Backend].
func (r *Reference) EdgeDotGrad(dq, dk, ddst, q, k Tensor, g Adjacency, scale float32) {
	const op = "EdgeDotGrad"
	checkEdgeDotGrad(dq, dk, ddst, q, k, g)
	start, end, nbr := r.adjacency(op, g)
	edgeDotGradRef(r.floats(op, "dq", dq), r.floats(op, "dk", dk), r.floats(op, "ddst", ddst), r.floats(op, "q", q),
		r.floats(op, "k", k), q.Cols, ddst.Cols, start, end, nbr, float64(scale))
}

// edgesOf lends edge values of several relations with their lists.
func (r *Reference) edgesOf(op, name string, values []Tensor, g []Adjacency) []edgesRef[float64] {
	all := make([]edgesRef[float64], len(values))
	for i, t := range values {
		all[i] = edgesRef[float64]{r.floats(op, name, t), r.uints(op, "Start", g[i].Start), r.uints(op, "End", g[i].End)}
	}
	return all
}

// EdgeSoftmaxOf implements [Backend].
func (r *Reference) EdgeSoftmaxOf(alpha, scores, w []Tensor, g []Adjacency) {
	const op = "EdgeSoftmaxOf"
	heads := checkEdgeSoftmaxOf(alpha, scores, w, g)
	if len(g) > 0 {
		edgeSoftmaxOfRef(r.edgesOf(op, "alpha", alpha, g), r.edgesOf(op, "scores", scores, g), r.edgesOf(op, "w", w, g),
			g[0].Start.Rows, heads)
	}
}

// EdgeSoftmaxOfGrad implements [Backend].
func (r *Reference) EdgeSoftmaxOfGrad(dscores, dalpha, alpha []Tensor, g []Adjacency) {
	const op = "EdgeSoftmaxOfGrad"
	heads := checkEdgeSoftmaxOfGrad(dscores, dalpha, alpha, g)
	if len(g) > 0 {
		edgeSoftmaxOfGradRef(r.edgesOf(op, "dscores", dscores, g), r.edgesOf(op, "dalpha", dalpha, g),
			r.edgesOf(op, "alpha", alpha, g), g[0].Start.Rows, heads)
	}
}
