package kerneltest

import (
	"math"
	"math/rand/v2"

	"github.com/gnnstore/gnnstore/kernels"
)

// layer is a sampled layer on both sides, with its reverse.
type layer struct {
	start, end, nbr, revStart, revDst operand
}

func (l layer) on(on func(operand) kernels.Tensor) kernels.Adjacency {
	return kernels.Adjacency{Start: on(l.start), End: on(l.end), Nbr: on(l.nbr), RevStart: on(l.revStart), RevDst: on(l.revDst)}
}

func (l layer) operands() []operand { return []operand{l.start, l.end, l.nbr, l.revStart, l.revDst} }

// lists draws neighbour lists: every third destination has none, lists repeat neighbours, source 0
// is everyone's, and the last destination is a hub that reads every source twice.
func lists(rng *rand.Rand, dsts, srcs int) [][]uint32 {
	all := make([][]uint32, dsts)
	for i := range all {
		if srcs == 0 || i%3 == 2 {
			continue
		}
		all[i] = append(all[i], 0)
		for range i % 11 {
			all[i] = append(all[i], rng.Uint32N(uint32(srcs)))
		}
		if i%5 == 0 {
			all[i] = append(all[i], all[i]...)
		}
	}
	if dsts > 1 {
		for u := range uint32(srcs) {
			all[dsts-1] = append(all[dsts-1], u, u)
		}
	}
	return all
}

// layer lays lists out in CSR2 form, with unused entries between them as pruning leaves them, and
// their reverse.
func (r *rig) layer(all [][]uint32, srcs int) layer {
	start, end, nbr := make([]uint32, len(all)), make([]uint32, len(all)), []uint32{}
	revStart, revDst := []uint32{0}, []uint32{}
	for i, list := range all {
		start[i] = uint32(len(nbr))
		nbr = append(nbr, list...)
		end[i] = uint32(len(nbr))
		if i%4 == 1 {
			nbr = append(nbr, guardUint)
		}
	}
	for u := range uint32(srcs) {
		for i, list := range all {
			for _, v := range list {
				if v == u {
					revDst = append(revDst, uint32(i))
				}
			}
		}
		revStart = append(revStart, uint32(len(revDst)))
	}
	return layer{r.uints(start), r.uints(end), r.uints(nbr), r.uints(revStart), r.uints(revDst)}
}

var layerSizes = []struct{ dsts, srcs, cols int }{
	{0, 0, 3}, {0, 4, 3}, {4, 4, 0}, {4, 0, 5}, {1, 1, 1}, {2, 3, 7}, {9, 20, 8}, {31, 40, 33}, {200, 300, 129},
}

func testNeighborMean(r *rig) {
	for _, s := range layerSizes {
		for _, draw := range []func(int) []float32{r.normals, r.sparseSpecials} {
			r.at("%d from %d, %d columns", s.dsts, s.srcs, s.cols)
			g := r.layer(lists(r.rng, s.dsts, s.srcs), s.srcs)
			dst, src := r.normal(s.dsts, s.cols), r.floats(s.srcs, s.cols, draw(s.srcs*s.cols))
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.NeighborMean(on(dst), on(src), g.on(on)) })
			r.close(2e-6, dst)
			r.unchanged(append(g.operands(), src)...)
		}
	}
}

// sparseSpecials is normal but for a few Inf and NaN, so that most destinations stay finite.
func (r *rig) sparseSpecials(n int) []float32 {
	s := r.normals(n)
	for i := 0; i < n; i += 211 {
		s[i] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[i%3]
	}
	return s
}

func testNeighborMeanHalf(r *rig) {
	anyBits := func(n int) []uint16 {
		s := make([]uint16, n)
		for i := range s {
			s[i] = uint16(r.rng.Uint32())
		}
		return s
	}
	tiny := func(n int) []uint16 { // zeros and subnormals
		s := anyBits(n)
		for i := range s {
			s[i] &= 0x83ff
		}
		return s
	}
	ordinary := func(n int) []uint16 {
		s := make([]uint16, n)
		kernels.Float32ToHalf(s, r.sparseSpecials(n))
		return s
	}
	for _, s := range layerSizes {
		for i, draw := range []func(int) []uint16{anyBits, tiny, ordinary} {
			r.at("%d from %d, %d columns, values %d", s.dsts, s.srcs, s.cols, i)
			g := r.layer(lists(r.rng, s.dsts, s.srcs), s.srcs)
			dst, src := r.normal(s.dsts, s.cols), r.halfBits(s.srcs, s.cols, draw(s.srcs*s.cols))
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.NeighborMean(on(dst), on(src), g.on(on)) })
			r.close([]float64{1e-2, 1e-9, 2e-6}[i], dst)
			r.unchanged(append(g.operands(), src)...)
		}
	}
}

func testNeighborMeanGrad(r *rig) {
	for _, s := range layerSizes {
		for _, draw := range []func(int) []float32{r.normals, r.sparseSpecials} {
			for _, fresh := range []int{s.srcs, s.srcs / 2, 0} {
				r.at("%d from %d, %d columns, fresh from %d", s.dsts, s.srcs, s.cols, fresh)
				g := r.layer(lists(r.rng, s.dsts, s.srcs), s.srcs)
				dsrc, ddst := r.normal(s.srcs, s.cols), r.floats(s.dsts, s.cols, draw(s.dsts*s.cols))
				r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
					b.NeighborMeanGrad(on(dsrc), on(ddst), g.on(on), fresh)
				})
				r.close(1e-5, dsrc)
				r.unchanged(append(g.operands(), ddst)...)
			}
		}
	}
}

// testNeighborMeanOfNone gives the zero Tensor where there is nothing to say: no edges, no reverse.
func testNeighborMeanOfNone(r *rig) {
	r.at("no edges")
	zeros := r.uints(make([]uint32, 3))
	dst, src := r.normal(3, 4), r.normal(5, 4)
	r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
		b.NeighborMean(on(dst), on(src), kernels.Adjacency{Start: on(zeros), End: on(zeros)})
	})
	r.close(0, dst)

	r.at("no edges back")
	revStart, dsrc, ddst := r.uints(make([]uint32, 6)), r.normal(5, 4), r.normal(3, 4)
	r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
		b.NeighborMeanGrad(on(dsrc), on(ddst), kernels.Adjacency{Start: on(zeros), End: on(zeros), RevStart: on(revStart)}, 5)
	})
	r.close(0, dsrc)
}
