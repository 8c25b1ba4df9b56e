package kerneltest

import (
	"fmt"
	"math"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// edges is a layer whose edges have values.
type edges struct {
	layer
	revEdge operand
}

func (e edges) on(on func(operand) kernels.Tensor) kernels.Adjacency {
	g := e.layer.on(on)
	g.RevEdge = on(e.revEdge)
	return g
}

func (e edges) operands() []operand { return append(e.layer.operands(), e.revEdge) }

// positions returns the number of edge rows, including positions that are in no list.
func (e edges) positions() int { return e.nbr.tensor.Rows }

// edges draws a layer and finds, for each source, the positions that name it.
func (r *rig) edges(dsts, srcs int) edges { return r.edgesOf(lists(r.rng, dsts, srcs), srcs) }

func (r *rig) edgesOf(all [][]uint32, srcs int) edges {
	l := r.layer(all, srcs)
	start, end, nbr := l.start.values(), l.end.values(), l.nbr.values()
	var revEdge []uint32
	for u := range uint32(srcs) {
		for i := range start {
			for e := start[i]; e < end[i]; e++ {
				if nbr[e] == u {
					revEdge = append(revEdge, e)
				}
			}
		}
	}
	return edges{l, r.uints(revEdge)}
}

// values returns the elements of a U32 operand.
func (o operand) values() []uint32 { return o.uints[o.off:][:o.tensor.Len()] }

// perEdge makes an operand with one value for each position and head.
func (r *rig) perEdge(e edges, heads int, values []float32) operand {
	return r.floats(e.positions(), heads, values)
}

// edgeCases calls test with every size of a layer and several numbers of heads; width is the
// columns of a head.
func (r *rig) edgeCases(test func(e edges, dsts, srcs, heads, width int)) {
	for _, s := range layerSizes {
		for _, heads := range []int{1, 3, 8} {
			width := (s.cols + heads - 1) / heads
			r.at("%d from %d, %d heads of %d", s.dsts, s.srcs, heads, width)
			test(r.edges(s.dsts, s.srcs), s.dsts, s.srcs, heads, width)
		}
	}
}

// sumTolerance is for sums of some 600 products of both signs, the hub's, which are much smaller
// than their parts.
const sumTolerance = 1e-4

func testWeightedSum(r *rig) {
	r.edgeCases(func(e edges, dsts, srcs, heads, width int) {
		cols := heads * width
		for _, draw := range []func(int) []float32{r.normals, r.sparseSpecials} {
			dst, src := r.normal(dsts, cols), r.floats(srcs, cols, draw(srcs*cols))
			w := r.perEdge(e, heads, draw(e.positions()*heads))
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.WeightedSum(on(dst), on(src), on(w), e.on(on))
			})
			r.close(sumTolerance, dst)
			r.unchanged(append(e.operands(), src, w)...)
		}
	})
}

// testWeightedSumHalf adds weights that no power of two may be multiplied into, and halves that are
// zero or subnormal.
func testWeightedSumHalf(r *rig) {
	r.edgeCases(func(e edges, dsts, srcs, heads, width int) {
		cols, n := heads*width, e.positions()*heads
		huge := r.normals(n)
		for i := 0; i < len(huge); i += 7 {
			huge[i] *= 1e6
		}
		bits := make([]uint16, srcs*cols)
		for i := range bits {
			bits[i] = uint16(r.rng.Uint32()) & 0x83ff
		}
		for _, c := range []struct {
			src, w    operand
			tolerance float64
		}{
			{r.halves(srcs, cols, r.normals(srcs*cols)), r.perEdge(e, heads, r.normals(n)), sumTolerance},
			{r.halves(srcs, cols, r.sparseSpecials(srcs*cols)), r.perEdge(e, heads, r.sparseSpecials(n)), sumTolerance},
			{r.halves(srcs, cols, r.normals(srcs*cols)), r.perEdge(e, heads, huge), 10},
			{r.halfBits(srcs, cols, bits), r.perEdge(e, heads, r.normals(n)), 1e-8},
		} {
			dst := r.normal(dsts, cols)
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.WeightedSum(on(dst), on(c.src), on(c.w), e.on(on))
			})
			r.close(c.tolerance, dst)
			r.unchanged(append(e.operands(), c.src, c.w)...)
		}
	})
}

func testWeightedSumGrad(r *rig) {
	r.edgeCases(func(e edges, dsts, srcs, heads, width int) {
		cols := heads * width
		for _, draw := range []func(int) []float32{r.normals, r.sparseSpecials} {
			dsrc, ddst := r.normal(srcs, cols), r.floats(dsts, cols, draw(dsts*cols))
			w := r.perEdge(e, heads, draw(e.positions()*heads))
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.WeightedSumGrad(on(dsrc), on(ddst), on(w), e.on(on))
			})
			r.close(1e-5, dsrc)
			r.unchanged(append(e.operands(), ddst, w)...)
		}
	})
}

func testWeightedSumWeightGrad(r *rig) {
	r.edgeCases(func(e edges, dsts, srcs, heads, width int) {
		cols := heads * width
		for _, draw := range []func(int) []float32{r.normals, r.sparseSpecials} {
			dw := r.perEdge(e, heads, r.normals(e.positions()*heads))
			ddst, src := r.floats(dsts, cols, draw(dsts*cols)), r.floats(srcs, cols, draw(srcs*cols))
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.WeightedSumWeightGrad(on(dw), on(ddst), on(src), e.on(on))
			})
			r.close(1e-5, dw)
			r.unchanged(append(e.operands(), ddst, src)...)
		}
	})
}

func testHeadDot(r *rig) {
	for _, s := range shapes {
		for _, heads := range []int{1, 3, 8} {
			r.at("%d rows, %d heads of %d", s[0], heads, s[1])
			cols := heads * s[1]
			dst, src := r.normal(s[0], heads), r.floats(s[0], cols, r.sparseSpecials(s[0]*cols))
			a := r.normal(heads, s[1])
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.HeadDot(on(dst), on(src), on(a)) })
			r.close(1e-5, dst)
			r.unchanged(src, a)
		}
	}
}

func testHeadDotGrad(r *rig) {
	for _, s := range shapes {
		for _, heads := range []int{1, 3, 8} {
			r.at("%d rows, %d heads of %d", s[0], heads, s[1])
			cols := heads * s[1]
			dsrc, da, a := r.normal(s[0], cols), r.normal(heads, s[1]), r.normal(heads, s[1])
			ddst := r.floats(s[0], heads, r.sparseSpecials(s[0]*heads))
			src := r.floats(s[0], cols, r.sparseSpecials(s[0]*cols))
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.HeadDotGrad(on(dsrc), on(da), on(ddst), on(src), on(a))
			})
			r.close(5e-5, dsrc, da)
			r.unchanged(ddst, src, a)
		}
	}
}

// slope is GAT's.
const slope = 0.2

// testEdgeSoftmax has scores whose exponentials overflow or vanish unless the largest is taken off
// first.
func testEdgeSoftmax(r *rig) {
	r.edgeCases(func(e edges, dsts, srcs, heads, _ int) {
		for _, size := range []float32{1, 80, 1e4, 1e30} {
			scaled := func(n int) []float32 {
				s := r.normals(n)
				kernels.Scale(s, size)
				return s
			}
			for i, draw := range []func(int) []float32{scaled, scaled, r.sparseSpecials, r.sparseSpecials} {
				dst, w := r.perEdge(e, heads, r.normals(e.positions()*heads)), r.floats(0, 1, nil)
				if i%2 == 1 {
					w = r.perEdge(e, 1, r.shares(e.positions()))
				}
				src, own := r.floats(srcs, heads, draw(srcs*heads)), r.floats(dsts, heads, draw(dsts*heads))
				if size > 1 { // the oracle must round a sum of scores where float32 does
					own = r.floats(dsts, heads, make([]float32, dsts*heads))
				}
				r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
					b.EdgeSoftmax(on(dst), on(src), on(own), on(w), e.on(on), slope)
				})
				r.close(math.Max(5e-6, 1e-7*math.Min(float64(size), 1e3)), dst)
				r.unchanged(append(e.operands(), src, own, w)...)
			}
		}
	})
}

// shares are weights above 0, from a ten-thousandth to ten thousand.
func (r *rig) shares(n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(math.Pow(10, 8*r.rng.Float64()-4))
	}
	return s
}

func testEdgeSoftmaxGrad(r *rig) {
	r.edgeCases(func(e edges, dsts, srcs, heads, _ int) {
		for _, draw := range []func(int) []float32{r.normals, r.sparseSpecials} {
			src, own := r.normal(srcs, heads), r.normal(dsts, heads)
			// Both sides start from the same, rounded, attention.
			given := make([]float32, e.positions()*heads)
			result := r.perEdge(e, heads, given)
			g := e.on(func(o operand) kernels.Tensor { return o.oracle })
			r.ref.EdgeSoftmax(result.oracle, src.oracle, own.oracle, kernels.Tensor{}, g, slope)
			r.ref.DownloadF32(given, result.oracle)
			alpha, dalpha := r.perEdge(e, heads, given), r.perEdge(e, heads, draw(e.positions()*heads))
			dsrc, down := r.normal(srcs, heads), r.normal(dsts, heads)
			dedge := r.perEdge(e, heads, r.normals(e.positions()*heads))
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.EdgeSoftmaxGrad(on(dsrc), on(down), on(dedge), on(dalpha), on(alpha), on(src), on(own), e.on(on),
					slope)
			})
			r.close(1e-5, dsrc, down, dedge)
			r.unchanged(append(e.operands(), dalpha, alpha, src, own)...)
		}
	})
}

func testEdgeDropout(r *rig) {
	r.edgeCases(func(e edges, dsts, srcs, heads, _ int) {
		for _, p := range rates {
			key, from, to := r.rng.Uint64(), r.ids(srcs), r.ids(dsts)
			n := e.positions() * heads
			dst, src := r.perEdge(e, heads, r.normals(n)), r.perEdge(e, heads, r.spread(n))
			dx, same := r.perEdge(e, heads, r.normals(n)), r.perEdge(e, heads, r.normals(n))
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.EdgeDropout(on(dst), on(src), on(from), on(to), e.on(on), key, p)
				b.EdgeDropout(on(same), on(same), on(from), on(to), e.on(on), key, p)
				b.EdgeDropoutGrad(on(dx), on(src), on(from), on(to), e.on(on), key, p)
			})
			r.close(1e-6, dst, same, dx)
			r.unchanged(append(e.operands(), from, to, src)...)
		}
	})
}

// testEdgesOfNone gives the zero Tensor where there is nothing to say: no edges, no reverse.
func testEdgesOfNone(r *rig) {
	r.at("no edges")
	zeros, revStart := r.uints(make([]uint32, 3)), r.uints(make([]uint32, 6))
	dst, src, none, unweighted := r.normal(3, 4), r.normal(5, 4), r.floats(0, 2, nil), r.floats(0, 1, nil)
	srcScore, own, dsrc, down, back := r.normal(5, 2), r.normal(3, 2), r.normal(5, 2), r.normal(3, 2), r.normal(5, 4)
	r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
		g := kernels.Adjacency{Start: on(zeros), End: on(zeros), RevStart: on(revStart)}
		b.WeightedSum(on(dst), on(src), on(none), g)
		b.WeightedSumGrad(on(back), on(dst), on(none), g)
		b.EdgeSoftmax(on(none), on(srcScore), on(own), kernels.Tensor{}, g, slope)
		b.EdgeSoftmax(on(none), on(srcScore), on(own), on(unweighted), g, slope)
		b.EdgeSoftmaxGrad(on(dsrc), on(down), on(none), on(none), on(none), on(srcScore), on(own), g, slope)
	})
	r.close(0, dst, back, dsrc, down)
}

func testELU(r *rig) {
	for _, s := range shapes {
		r.at("%d×%d", s[0], s[1])
		n := s[0] * s[1]
		dst, src := r.normal(s[0], s[1]), r.floats(s[0], s[1], r.spread(n))
		dx, dy := r.normal(s[0], s[1]), r.floats(s[0], s[1], r.spread(n))
		r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.ELU(on(dst), on(src)) })
		r.close(1e-6, dst)
		y := r.floats(s[0], s[1], append(r.normals(n-n/2), r.spread(n/2)...))
		for i := range n { // as ELU leaves them: above -1
			y.floats[y.off+i] = max(y.floats[y.off+i], -1)
		}
		r.b.UploadF32(whole(y.tensor), y.floats)
		r.ref.UploadF32(whole(y.oracle), y.floats)
		r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.ELUGrad(on(dx), on(dy), on(y)) })
		r.close(1e-6, dx)
		r.unchanged(src, dy, y)
	}
}

// testEdgeRefusals calls every operation on edges with one shape that does not fit.
func testEdgeRefusals(r *rig) {
	f := func(rows, cols int) kernels.Tensor { return r.normal(rows, cols).tensor }
	u := func(n int) kernels.Tensor { return r.uints(make([]uint32, n)).tensor }
	g := kernels.Adjacency{Start: u(2), End: u(2), Nbr: u(5), RevStart: u(4), RevDst: u(5), RevEdge: u(5)}
	short, none := g, kernels.Tensor{}
	short.RevEdge = u(4)
	b := r.b
	r.refuses(map[string]func(){
		"WeightedSum heads":        func() { b.WeightedSum(f(2, 6), f(3, 6), f(5, 4), g) },
		"WeightedSum of no heads":  func() { b.WeightedSum(f(2, 6), f(3, 6), f(5, 0), g) },
		"WeightedSum edges":        func() { b.WeightedSum(f(2, 6), f(3, 6), f(4, 2), g) },
		"WeightedSum destinations": func() { b.WeightedSum(f(3, 6), f(3, 6), f(5, 2), g) },
		"WeightedSumGrad reverse":  func() { b.WeightedSumGrad(f(3, 6), f(2, 6), f(5, 2), short) },
		"WeightedSumGrad sources":  func() { b.WeightedSumGrad(f(4, 6), f(2, 6), f(5, 2), g) },
		"WeightedSumWeightGrad":    func() { b.WeightedSumWeightGrad(f(5, 2), f(2, 6), f(3, 4), g) },
		"HeadDot":                  func() { b.HeadDot(f(3, 2), f(3, 6), f(2, 4)) },
		"HeadDotGrad":              func() { b.HeadDotGrad(f(3, 6), f(2, 2), f(3, 2), f(3, 6), f(2, 3)) },
		"EdgeSoftmax heads":        func() { b.EdgeSoftmax(f(5, 2), f(3, 2), f(2, 3), none, g, slope) },
		"EdgeSoftmax edges":        func() { b.EdgeSoftmax(f(4, 2), f(3, 2), f(2, 2), none, g, slope) },
		"EdgeSoftmax weights":      func() { b.EdgeSoftmax(f(5, 2), f(3, 2), f(2, 2), f(4, 1), g, slope) },
		"EdgeSoftmax head weights": func() { b.EdgeSoftmax(f(5, 2), f(3, 2), f(2, 2), f(5, 2), g, slope) },
		"EdgeSoftmaxGrad": func() {
			b.EdgeSoftmaxGrad(f(3, 2), f(2, 2), f(4, 2), f(5, 2), f(5, 2), f(3, 2), f(2, 2), g, slope)
		},
		"EdgeSoftmaxGrad no reverse": func() {
			b.EdgeSoftmaxGrad(f(4, 2), f(2, 2), f(5, 2), f(5, 2), f(5, 2), f(4, 2), f(2, 2), g, slope)
		},
		"EdgeDropout ids":    func() { b.EdgeDropout(f(5, 2), f(5, 2), u(3), u(3), g, 1, 0.5) },
		"EdgeDropout of all": func() { b.EdgeDropout(f(5, 2), f(5, 2), u(3), u(2), g, 1, 1) },
		"EdgeDropoutGrad":    func() { b.EdgeDropoutGrad(f(5, 2), f(5, 3), u(3), u(2), g, 1, 0.5) },
		"ELU":                func() { b.ELU(f(2, 3), f(3, 2)) },
		"ELUGrad":            func() { b.ELUGrad(f(2, 3), f(2, 3), f(3, 2)) },
	})
}

// refuses checks that each of ops panics, at the latest in the wait of the Mark behind it.
func (r *rig) refuses(ops map[string]func()) {
	for name, op := range ops {
		require.Panics(r.t, func() {
			op()
			r.b.Mark()()
		}, name)
	}
}

// refusesUntouched checks that each of ops panics and, where operations run in their calls, that it
// leaves operands as they are.
func (r *rig) refusesUntouched(ops []func(), operands ...operand) {
	for i, op := range ops {
		r.refuses(map[string]func(){fmt.Sprint(i): op})
	}
	if !r.b.Behind() {
		r.unchanged(operands...)
	}
}
