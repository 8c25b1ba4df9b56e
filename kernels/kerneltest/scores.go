package kerneltest

import (
	"math"

	"github.com/gnnstore/gnnstore/kernels"
)

func testEdgeDot(r *rig) {
	r.edgeCases(func(e edges, dsts, srcs, heads, width int) {
		cols := heads * width
		for i, draw := range []func(int) []float32{r.normals, r.sparseSpecials} {
			dst := r.perEdge(e, heads, r.normals(e.positions()*heads))
			q, k := r.floats(dsts, cols, draw(dsts*cols)), r.floats(srcs, cols, draw(srcs*cols))
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.EdgeDot(on(dst), on(q), on(k), e.on(on), []float32{0.125, -1.75}[i])
			})
			r.close(1e-5, dst)
			r.unchanged(append(e.operands(), q, k)...)
		}
	})
}

func testEdgeDotGrad(r *rig) {
	r.edgeCases(func(e edges, dsts, srcs, heads, width int) {
		cols := heads * width
		for i, draw := range []func(int) []float32{r.normals, r.sparseSpecials} {
			dq, dk := r.normal(dsts, cols), r.normal(srcs, cols)
			q, k := r.floats(dsts, cols, draw(dsts*cols)), r.floats(srcs, cols, draw(srcs*cols))
			ddst := r.perEdge(e, heads, draw(e.positions()*heads))
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.EdgeDotGrad(on(dq), on(dk), on(ddst), on(q), on(k), e.on(on), []float32{0.125, -1.75}[i])
			})
			r.close(sumTolerance, dq, dk)
			r.unchanged(append(e.operands(), ddst, q, k)...)
		}
	})
}

// distanceCases calls test with every size of a layer, for rows of numbers and of complex numbers.
// Some rows of both ends are equal, and some numbers are NaN.
func (r *rig) distanceCases(test func(e edges, q, k operand, complex bool)) {
	for _, s := range layerSizes {
		for _, complex := range []bool{false, true} {
			cols := s.cols
			if complex {
				cols += cols % 2
			}
			r.at("%d from %d, %d columns, complex %v", s.dsts, s.srcs, cols, complex)
			for _, of := range []float32{0, float32(math.NaN())} {
				x, y := r.normals(s.dsts*cols), r.normals(s.srcs*cols)
				copy(y, x[:min(len(x), len(y), 3*cols)])
				if len(y) > 5 {
					y[5] = of
				}
				test(r.edges(s.dsts, s.srcs), r.floats(s.dsts, cols, x), r.floats(s.srcs, cols, y), complex)
			}
		}
	}
}

func testEdgeDistance(r *rig) {
	r.distanceCases(func(e edges, q, k operand, complex bool) {
		dst := r.perEdge(e, 1, r.normals(e.positions()))
		r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
			b.EdgeDistance(on(dst), on(q), on(k), e.on(on), complex, -1.75)
		})
		r.close(1e-5, dst)
		r.unchanged(append(e.operands(), q, k)...)
	})
}

func testEdgeDistanceGrad(r *rig) {
	r.distanceCases(func(e edges, q, k operand, complex bool) {
		dq, dk := r.normal(q.tensor.Rows, q.tensor.Cols), r.normal(k.tensor.Rows, k.tensor.Cols)
		ddst := r.perEdge(e, 1, r.normals(e.positions()))
		r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
			b.EdgeDistanceGrad(on(dq), on(dk), on(ddst), on(q), on(k), e.on(on), complex, -1.75)
		})
		r.close(sumTolerance, dq, dk)
		r.unchanged(append(e.operands(), ddst, q, k)...)
	})
}

// relations draws n relations into the same destinations, of different numbers of sources. Which
// destinations have no edges differs, and the second relation of three or more has none at all.
func (r *rig) relations(dsts, srcs, n int) []edges {
	all := make([]edges, n)
	for i := range all {
		from := srcs + 3*i
		drawn, turned := lists(r.rng, dsts, from), make([][]uint32, dsts)
		for d := range turned {
			if n < 3 || i != 1 {
				turned[d] = drawn[(d+i)%dsts]
			}
		}
		all[i] = r.edgesOf(turned, from)
	}
	return all
}

// values makes an operand of edge values for each relation.
func (r *rig) values(relations []edges, heads int, draw func(int) []float32) []operand {
	all := make([]operand, len(relations))
	for i, e := range relations {
		all[i] = r.perEdge(e, heads, draw(e.positions()*heads))
	}
	return all
}

func each(operands []operand, on func(operand) kernels.Tensor) []kernels.Tensor {
	all := make([]kernels.Tensor, len(operands))
	for i, o := range operands {
		all[i] = on(o)
	}
	return all
}

func adjacencies(relations []edges, on func(operand) kernels.Tensor) []kernels.Adjacency {
	all := make([]kernels.Adjacency, len(relations))
	for i, e := range relations {
		all[i] = e.on(on)
	}
	return all
}

// relationCases calls test with every size of a layer, several numbers of heads, and one to three
// relations.
func (r *rig) relationCases(test func(relations []edges, heads int)) {
	for _, s := range layerSizes {
		for _, heads := range []int{1, 3, 8} {
			for n := 1; n <= 3; n++ {
				r.at("%d from %d, %d heads, %d relations", s.dsts, s.srcs, heads, n)
				test(r.relations(s.dsts, s.srcs, n), heads)
			}
		}
	}
}

// testEdgeSoftmaxOf has scores whose exponentials overflow or vanish unless the largest is taken
// off first.
func testEdgeSoftmaxOf(r *rig) {
	r.relationCases(func(relations []edges, heads int) {
		for _, size := range []float32{1, 80, 1e4, 1e30} {
			scaled := func(n int) []float32 {
				s := r.normals(n)
				kernels.Scale(s, size)
				return s
			}
			for i, draw := range []func(int) []float32{scaled, r.sparseSpecials} {
				alpha, scores := r.values(relations, heads, r.normals), r.values(relations, heads, draw)
				w := make([]operand, len(relations))
				for rel, e := range relations {
					if w[rel] = r.floats(0, 1, nil); (rel+i)%2 == 1 {
						w[rel] = r.perEdge(e, 1, r.shares(e.positions()))
					}
				}
				r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
					b.EdgeSoftmaxOf(each(alpha, on), each(scores, on), each(w, on), adjacencies(relations, on))
				})
				r.close(5e-6, alpha...)
				r.unchanged(append(scores, w...)...)
				for _, e := range relations {
					r.unchanged(e.operands()...)
				}
			}
		}
	})
}

func testEdgeSoftmaxOfGrad(r *rig) {
	r.relationCases(func(relations []edges, heads int) {
		for _, draw := range []func(int) []float32{r.normals, r.sparseSpecials} {
			// Both sides start from the same, rounded, attention.
			scores, results := r.values(relations, heads, r.normals), r.values(relations, heads, r.normals)
			oracle := func(o operand) kernels.Tensor { return o.oracle }
			none := make([]kernels.Tensor, len(relations))
			r.ref.EdgeSoftmaxOf(each(results, oracle), each(scores, oracle), none, adjacencies(relations, oracle))
			alpha := make([]operand, len(relations))
			for i, e := range relations {
				given := make([]float32, e.positions()*heads)
				r.ref.DownloadF32(given, results[i].oracle)
				alpha[i] = r.perEdge(e, heads, given)
			}
			dscores, dalpha := r.values(relations, heads, r.normals), r.values(relations, heads, draw)
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.EdgeSoftmaxOfGrad(each(dscores, on), each(dalpha, on), each(alpha, on), adjacencies(relations, on))
			})
			r.close(1e-5, dscores...)
			r.unchanged(append(alpha, dalpha...)...)
			for _, e := range relations {
				r.unchanged(e.operands()...)
			}
		}
	})
}

// testScoresOfNone gives the zero Tensor where there is nothing to say: no edges, no reverse, no
// relations.
func testScoresOfNone(r *rig) {
	r.at("no edges")
	zeros, revStart := r.uints(make([]uint32, 3)), r.uints(make([]uint32, 6))
	q, k, dq, dk, none := r.normal(3, 4), r.normal(5, 4), r.normal(3, 4), r.normal(5, 4), r.floats(0, 2, nil)
	r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
		g := kernels.Adjacency{Start: on(zeros), End: on(zeros), RevStart: on(revStart)}
		b.EdgeDot(on(none), on(q), on(k), g, 0.5)
		b.EdgeDotGrad(on(dq), on(dk), on(none), on(q), on(k), g, 0.5)
		empty, both := []kernels.Tensor{on(none), on(none)}, []kernels.Adjacency{g, g}
		b.EdgeSoftmaxOf(empty, empty, make([]kernels.Tensor, 2), both)
		b.EdgeSoftmaxOfGrad(empty, empty, empty, both)
		b.EdgeSoftmaxOf(nil, nil, nil, nil)
		b.EdgeSoftmaxOfGrad(nil, nil, nil, nil)
	})
	r.close(0, dq, dk)
	r.unchanged(q, k)
}

// testScoreRefusals calls every operation on scores with one shape that does not fit.
func testScoreRefusals(r *rig) {
	f := func(rows, cols int) kernels.Tensor { return r.normal(rows, cols).tensor }
	u := func(n int) kernels.Tensor { return r.uints(make([]uint32, n)).tensor }
	g := kernels.Adjacency{Start: u(2), End: u(2), Nbr: u(5), RevStart: u(4), RevDst: u(5), RevEdge: u(5)}
	short, fewer := g, g
	short.RevDst = u(4)
	fewer.Start, fewer.End = u(1), u(1)
	list := func(t ...kernels.Tensor) []kernels.Tensor { return t }
	two, b := []kernels.Adjacency{g, g}, r.b
	e, w := list(f(5, 2), f(5, 2)), make([]kernels.Tensor, 2)
	r.refuses(map[string]func(){
		"EdgeDot heads":            func() { b.EdgeDot(f(5, 4), f(2, 6), f(3, 6), g, 1) },
		"EdgeDot of no heads":      func() { b.EdgeDot(f(5, 0), f(2, 6), f(3, 6), g, 1) },
		"EdgeDot edges":            func() { b.EdgeDot(f(4, 2), f(2, 6), f(3, 6), g, 1) },
		"EdgeDot columns":          func() { b.EdgeDot(f(5, 2), f(2, 6), f(3, 4), g, 1) },
		"EdgeDot destinations":     func() { b.EdgeDot(f(5, 2), f(3, 6), f(3, 6), g, 1) },
		"EdgeDot of halves":        func() { b.EdgeDot(f(5, 1), f(2, 1), r.halves(3, 1, []float32{1, 2, 3}).tensor, g, 1) },
		"EdgeDistance edges":       func() { b.EdgeDistance(f(4, 1), f(2, 6), f(3, 6), g, false, 1) },
		"EdgeDistance heads":       func() { b.EdgeDistance(f(5, 2), f(2, 6), f(3, 6), g, false, 1) },
		"EdgeDistance columns":     func() { b.EdgeDistance(f(5, 1), f(2, 6), f(3, 4), g, false, 1) },
		"EdgeDistance of odd":      func() { b.EdgeDistance(f(5, 1), f(2, 5), f(3, 5), g, true, 1) },
		"EdgeDistanceGrad of q":    func() { b.EdgeDistanceGrad(f(3, 6), f(3, 6), f(5, 1), f(2, 6), f(3, 6), g, false, 1) },
		"EdgeDistanceGrad of k":    func() { b.EdgeDistanceGrad(f(2, 6), f(3, 4), f(5, 1), f(2, 6), f(3, 6), g, false, 1) },
		"EdgeDistanceGrad of odd":  func() { b.EdgeDistanceGrad(f(2, 5), f(3, 5), f(5, 1), f(2, 5), f(3, 5), g, true, 1) },
		"EdgeDistanceGrad reverse": func() { b.EdgeDistanceGrad(f(2, 6), f(3, 6), f(5, 1), f(2, 6), f(3, 6), short, true, 1) },
		"EdgeDotGrad of q":         func() { b.EdgeDotGrad(f(3, 6), f(3, 6), f(5, 2), f(2, 6), f(3, 6), g, 1) },
		"EdgeDotGrad of k":         func() { b.EdgeDotGrad(f(2, 6), f(3, 4), f(5, 2), f(2, 6), f(3, 6), g, 1) },
		"EdgeDotGrad edges":        func() { b.EdgeDotGrad(f(2, 6), f(3, 6), f(4, 2), f(2, 6), f(3, 6), g, 1) },
		"EdgeDotGrad sources":      func() { b.EdgeDotGrad(f(2, 6), f(4, 6), f(5, 2), f(2, 6), f(4, 6), g, 1) },
		"EdgeDotGrad reverse":      func() { b.EdgeDotGrad(f(2, 6), f(3, 6), f(5, 2), f(2, 6), f(3, 6), short, 1) },
		"EdgeSoftmaxOf heads":      func() { b.EdgeSoftmaxOf(list(f(5, 2), f(5, 3)), e, w, two) },
		"EdgeSoftmaxOf no heads":   func() { b.EdgeSoftmaxOf(list(f(5, 0), f(5, 0)), list(f(5, 0), f(5, 0)), w, two) },
		"EdgeSoftmaxOf edges":      func() { b.EdgeSoftmaxOf(e, list(f(5, 2), f(4, 2)), w, two) },
		"EdgeSoftmaxOf relations":  func() { b.EdgeSoftmaxOf(e, list(f(5, 2)), w, two) },
		"EdgeSoftmaxOf weights":    func() { b.EdgeSoftmaxOf(e, e, list(kernels.Tensor{}, f(4, 1)), two) },
		"EdgeSoftmaxOf no weights": func() { b.EdgeSoftmaxOf(e, e, nil, two) },
		"EdgeSoftmaxOf destinations": func() {
			b.EdgeSoftmaxOf(e, list(f(5, 2), f(5, 2)), w, []kernels.Adjacency{g, fewer})
		},
		"EdgeSoftmaxOfGrad":           func() { b.EdgeSoftmaxOfGrad(e, e, list(f(5, 2), f(5, 1)), two) },
		"EdgeSoftmaxOfGrad relations": func() { b.EdgeSoftmaxOfGrad(list(f(5, 2)), e, e, two) },
	})
}
