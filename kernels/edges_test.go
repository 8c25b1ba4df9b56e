package kernels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// smallEdges is 4 destinations among 4 sources, with a repeated edge, a self loop, an empty list
// and an unused position.
func (g gradCheck) smallEdges() Adjacency {
	return Adjacency{ // 0: 1 1 2, 1: none, 2: 2 0, 3: 2 0
		Start: g.uints(0, 3, 4, 6), End: g.uints(3, 3, 6, 8), Nbr: g.uints(1, 1, 2, 99, 2, 0, 2, 0),
		RevStart: g.uints(0, 2, 4, 7, 7), RevDst: g.uints(2, 3, 0, 0, 0, 2, 3), RevEdge: g.uints(5, 7, 0, 1, 2, 4, 6),
	}
}

func TestWeightedSumGradients(t *testing.T) {
	g := newGradCheck(t)
	adj := g.smallEdges()
	x, w, y := g.normal(4, 6), g.normal(8, 2), g.zeros(4, 6)
	forward := func() { g.r.WeightedSum(y, x, w, adj) }
	g.check("by src", x, y, forward, func(dx, dy Tensor) { g.r.WeightedSumGrad(dx, dy, w, adj) })
	g.check("by w", w, y, forward, func(dw, dy Tensor) { g.r.WeightedSumWeightGrad(dw, dy, x, adj) })
}

func TestHeadDotGradients(t *testing.T) {
	g := newGradCheck(t)
	x, a, y := g.normal(5, 6), g.normal(2, 3), g.zeros(5, 2)
	forward := func() { g.r.HeadDot(y, x, a) }
	g.check("by src", x, y, forward, func(dx, dy Tensor) { g.r.HeadDotGrad(dx, g.zeros(2, 3), dy, x, a) })
	g.check("by a", a, y, forward, func(da, dy Tensor) { g.r.HeadDotGrad(g.zeros(5, 6), da, dy, x, a) })
}

func TestEdgeSoftmaxGradients(t *testing.T) {
	g := newGradCheck(t)
	adj := g.smallEdges()
	src, own, y := g.normal(4, 2), g.normal(4, 2), g.zeros(8, 2)
	weights := g.zeros(8, 1)
	g.r.UploadF64(weights, []float64{3, 0.5, 1, math.NaN(), 7, 1, 0.01, 250}) // one beside the unused position
	for name, w := range map[string]Tensor{"": {}, ", weighted": weights} {
		forward := func() { g.r.EdgeSoftmax(y, src, own, w, adj, 0.2) }
		g.check("by srcScore"+name, src, y, forward, func(d, dy Tensor) {
			g.r.EdgeSoftmaxGrad(d, g.zeros(4, 2), g.zeros(8, 2), dy, y, src, own, adj, 0.2)
		})
		g.check("by dstScore"+name, own, y, forward, func(d, dy Tensor) {
			g.r.EdgeSoftmaxGrad(g.zeros(4, 2), d, g.zeros(8, 2), dy, y, src, own, adj, 0.2)
		})
	}
}

func TestEdgeDropoutGradient(t *testing.T) {
	g := newGradCheck(t)
	adj, from, to := g.smallEdges(), g.uints(3, 1, 4, 15), g.uints(9, 2, 6, 3)
	x, y := g.normal(8, 5), g.zeros(8, 5)
	g.check("EdgeDropoutGrad", x, y, func() { g.r.EdgeDropout(y, x, from, to, adj, 42, 0.4) },
		func(dx, dy Tensor) { g.r.EdgeDropoutGrad(dx, dy, from, to, adj, 42, 0.4) })
}

func TestELUGradient(t *testing.T) {
	g := newGradCheck(t)
	x, y := g.normal(5, 4), g.zeros(5, 4)
	g.check("ELUGrad", x, y, func() { g.r.ELU(y, x) }, func(dx, dy Tensor) { g.r.ELUGrad(dx, dy, y) })
}

// TestEdgeDropoutKeepsItsShare: over 80,000 edges, within five standard deviations, whichever
// coordinate varies.
func TestEdgeDropoutKeepsItsShare(t *testing.T) {
	const n, p = 80000, 0.3
	for name, keep := range map[string]func(i int) bool{
		"key":         func(i int) bool { return EdgeDropoutKeep(uint64(i), 7, 8, 1, p) },
		"destination": func(i int) bool { return EdgeDropoutKeep(5, uint32(i), 8, 1, p) },
		"source":      func(i int) bool { return EdgeDropoutKeep(5, 7, uint32(i), 1, p) },
		"head":        func(i int) bool { return EdgeDropoutKeep(5, 7, 8, i, p) },
		"direction":   func(i int) bool { return EdgeDropoutKeep(5, uint32(i), uint32(i+1), 0, p) },
	} {
		kept := 0.0
		for i := range n {
			if keep(i) {
				kept++
			}
		}
		require.InDelta(t, 0, (kept-n*(1-p))/math.Sqrt(n*p*(1-p)), 5, name)
	}
}

// TestWeightedSumHalfEqualsWidened is exact: huge weights, subnormals, Inf and NaN included.
func TestWeightedSumHalfEqualsWidened(t *testing.T) {
	const rows, cols, heads = 40, 6, 2
	half := make([]uint16, rows*cols)
	for i := range half {
		half[i] = uint16(splitMix(uint64(i)))
	}
	wide := make([]float32, len(half))
	HalfToFloat32(wide, half)
	nbr := make([]uint32, 3*rows)
	for e := range nbr {
		nbr[e] = uint32(e * 7 % rows)
	}
	w := floatsFrom(1, len(nbr)*heads)
	for i := 0; i < len(w); i += 5 {
		w[i] *= 1e7
	}
	start, end := []uint32{0, 1, 30, 110}, []uint32{1, 30, 110, 110}
	want, got := make([]float32, 4*cols), make([]float32, 4*cols)
	portable.weightedHeads(want, wide, w, cols, heads, start, end, nbr)
	portable.weightedHeadsHalf(got, half, w, cols, heads, start, end, nbr)
	for i := range want {
		if want[i] == want[i] || got[i] == got[i] { // any NaN is right
			require.Equal(t, math.Float32bits(want[i]), math.Float32bits(got[i]), i)
		}
	}
}

// TestWeightsOfOneChangeNothing is exact, so that a softmax without weights stays what it was.
func TestWeightsOfOneChangeNothing(t *testing.T) {
	const srcs, heads = 40, 3
	nbr, ones := make([]uint32, 3*srcs), make([]float32, 3*srcs)
	for e := range nbr {
		nbr[e], ones[e] = uint32(e*7%srcs), 1
	}
	start, end := []uint32{0, 1, 30, 110}, []uint32{1, 30, 110, 110}
	src, own := floatsFrom(1, srcs*heads), floatsFrom(2, len(start)*heads)
	want, got := make([]float32, len(nbr)*heads), make([]float32, len(nbr)*heads)
	EdgeSoftmax(want, src, own, nil, heads, start, end, nbr, 0.2)
	EdgeSoftmax(got, src, own, ones, heads, start, end, nbr, 0.2)
	require.Equal(t, want, got)
}

// absolute makes weights of s.
func absolute(s []float32) []float32 {
	for i, x := range s {
		s[i] = max(x, -x)
	}
	return s
}

// regularEdges is a block in which every destination has as many edges, to sources that a hash
// draws. nbr is its Nbr.
func regularEdges(c Backend, dsts, srcs, degree int) (g Adjacency, nbr []uint32) {
	nbr, starts := make([]uint32, dsts*degree), make([]uint32, dsts+1)
	for e := range nbr {
		nbr[e] = uint32(splitMix(uint64(e)) % uint64(srcs))
	}
	for i := range starts {
		starts[i] = uint32(i * degree)
	}
	revStart, revDst, revEdge := []uint32{0}, []uint32{}, []uint32{}
	by := make([][]uint32, srcs)
	for e, u := range nbr {
		by[u] = append(by[u], uint32(e))
	}
	for _, list := range by {
		for _, e := range list {
			revDst, revEdge = append(revDst, e/uint32(degree)), append(revEdge, e)
		}
		revStart = append(revStart, uint32(len(revDst)))
	}
	return Adjacency{
		Start: indices(c, starts[:dsts]), End: indices(c, starts[1:]), Nbr: indices(c, nbr),
		RevStart: indices(c, revStart), RevDst: indices(c, revDst), RevEdge: indices(c, revEdge),
	}, nbr
}

// TestThreadsGiveTheSameBitsOnEdges runs everything that is split by destinations or by sources, on
// many chunks.
func TestThreadsGiveTheSameBitsOnEdges(t *testing.T) {
	const dsts, srcs, degree, heads, cols = 2000, 3000, 9, 4, 64
	var want [][]float32
	for _, threads := range []int{1, 2, 7} {
		c := NewCPU(CPUOptions{Threads: threads})
		g, nbr := regularEdges(c, dsts, srcs, degree)
		f := func(seed uint64, rows, cols int) Tensor { return tensorOf(c, rows, cols, floatsFrom(seed, rows*cols)) }
		x, a, src, own := f(1, srcs, cols), f(2, heads, cols/heads), f(3, srcs, heads), f(4, dsts, heads)
		alpha, y, dalpha := f(5, len(nbr), heads), f(6, dsts, cols), f(7, len(nbr), heads)
		dedge, dsrc, down, dx, da := f(8, len(nbr), heads), f(9, srcs, heads), f(10, dsts, heads), f(11, srcs, cols), f(12, heads, cols/heads)
		c.EdgeSoftmax(alpha, src, own, tensorOf(c, len(nbr), 1, absolute(floatsFrom(13, len(nbr)))), g, 0.2)
		c.EdgeDropout(dalpha, alpha, indices(c, nbr[:srcs]), indices(c, nbr[:dsts]), g, 5, 0.5)
		c.WeightedSum(y, x, dalpha, g)
		c.WeightedSumWeightGrad(dalpha, y, x, g)
		c.EdgeSoftmaxGrad(dsrc, down, dedge, dalpha, alpha, src, own, g, 0.2)
		c.WeightedSumGrad(dx, y, alpha, g)
		c.HeadDotGrad(dx, da, dsrc, x, a)
		scores, dq, dk := f(14, len(nbr), heads), f(15, dsts, cols), f(16, srcs, cols)
		both, joint, djoint := []Adjacency{g, g}, []Tensor{f(17, len(nbr), heads), f(18, len(nbr), heads)}, []Tensor{f(19, len(nbr), heads), f(20, len(nbr), heads)}
		c.EdgeDot(scores, y, x, g, 0.5)
		c.EdgeSoftmaxOf(joint, []Tensor{scores, alpha}, make([]Tensor, 2), both)
		c.EdgeSoftmaxOfGrad(djoint, []Tensor{dalpha, scores}, joint, both)
		c.EdgeDotGrad(dq, dk, djoint[0], y, x, g, 0.5)
		far, dfar, dnear := f(21, len(nbr), 1), f(22, dsts, cols), f(23, srcs, cols)
		c.EdgeDistance(far, y, x, g, true, -1)
		c.EdgeDistanceGrad(dfar, dnear, far, y, x, g, true, -1)
		var got [][]float32
		all := []Tensor{alpha, y, dalpha, dedge, dsrc, down, dx, da, scores, dq, dk, far, dfar, dnear}
		for _, t := range append(all, append(joint, djoint...)...) {
			got = append(got, valuesOf(c, t))
		}
		if want == nil {
			want = got
		}
		require.Equal(t, want, got, "%d threads", threads)
	}
}

// BenchmarkGATEdges is one attention layer of 8 heads on a block of 10,000 destinations with 10
// edges each, forward and back.
func BenchmarkGATEdges(b *testing.B) {
	const dsts, srcs, degree, heads, cols = 10000, 60000, 10, 8, 64
	c := NewCPU(CPUOptions{})
	g, nbr := regularEdges(c, dsts, srcs, degree)
	f := func(seed uint64, rows, cols int) Tensor { return tensorOf(c, rows, cols, floatsFrom(seed, rows*cols)) }
	x, y, alpha, dalpha, src, own := f(1, srcs, cols), f(2, dsts, cols), f(3, len(nbr), heads), f(4, len(nbr), heads), f(5, srcs, heads), f(6, dsts, heads)
	for _, s := range []struct {
		name string
		w    Tensor
	}{{"softmax", Tensor{}}, {"weighted_softmax", tensorOf(c, len(nbr), 1, absolute(floatsFrom(7, len(nbr))))}} {
		b.Run("op="+s.name, func(b *testing.B) {
			for b.Loop() {
				c.EdgeSoftmax(alpha, src, own, s.w, g, 0.2)
			}
			b.ReportMetric(float64(len(nbr)*b.N)/b.Elapsed().Seconds(), "edges/s")
		})
	}
	b.Run("op=sum", func(b *testing.B) {
		for b.Loop() {
			c.WeightedSum(y, x, alpha, g)
		}
		b.ReportMetric(float64(len(nbr)*b.N)/b.Elapsed().Seconds(), "edges/s")
	})
	b.Run("op=weightgrad", func(b *testing.B) {
		for b.Loop() {
			c.WeightedSumWeightGrad(dalpha, y, x, g)
		}
		b.ReportMetric(float64(len(nbr)*b.N)/b.Elapsed().Seconds(), "edges/s")
	})
}
