package kernels

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEdgeDotGradients(t *testing.T) {
	g := newGradCheck(t)
	adj := g.smallEdges()
	q, k, y := g.normal(4, 6), g.normal(4, 6), g.zeros(8, 2)
	forward := func() { g.r.EdgeDot(y, q, k, adj, 0.25) }
	g.check("by q", q, y, forward, func(dq, dy Tensor) { g.r.EdgeDotGrad(dq, g.zeros(4, 6), dy, q, k, adj, 0.25) })
	g.check("by k", k, y, forward, func(dk, dy Tensor) { g.r.EdgeDotGrad(g.zeros(4, 6), dk, dy, q, k, adj, 0.25) })
}

// TestEdgeSoftmaxOfGradients takes the attention of each relation back to the scores of each.
func TestEdgeSoftmaxOfGradients(t *testing.T) {
	g := newGradCheck(t)
	other := g.smallEdges() // 0: 1 1 2, 1: none, 2: 2 0, 3: 2 0
	other.Start, other.End = g.uints(4, 6, 6, 7), g.uints(6, 6, 7, 8)
	adj := []Adjacency{g.smallEdges(), other}
	weights := g.zeros(8, 1)
	g.r.UploadF64(weights, []float64{3, 0.5, 1, math.NaN(), 7, 1, 0.01, 250}) // one beside the unused position
	scores, alpha := []Tensor{g.normal(8, 2), g.normal(8, 2)}, []Tensor{g.zeros(8, 2), g.zeros(8, 2)}
	for name, w := range map[string][]Tensor{"": {{}, {}}, ", weighted": {weights, {}}} {
		for from := range alpha {
			for to := range scores {
				g.check(fmt.Sprintf("of %d by %d%s", from, to, name), scores[to], alpha[from],
					func() { g.r.EdgeSoftmaxOf(alpha, scores, w, adj) },
					func(d, dy Tensor) {
						down, up := []Tensor{g.zeros(8, 2), g.zeros(8, 2)}, []Tensor{g.zeros(8, 2), g.zeros(8, 2)}
						down[to], up[from] = d, dy
						g.r.EdgeSoftmaxOfGrad(down, up, alpha, adj)
					})
			}
		}
	}
}

// TestEdgeSoftmaxOfOneRelation is EdgeSoftmax where a destination's score is 0 and no source's is
// below.
func TestEdgeSoftmaxOfOneRelation(t *testing.T) {
	const dsts, srcs, heads = 7, 9, 3
	for _, set := range Sets() {
		c := NewCPU(CPUOptions{Threads: 2, Set: set})
		start, end, nbr := smallLists(1, dsts, srcs)
		for e, u := range nbr { // of positions in no list
			nbr[e] = u % srcs
		}
		g := Adjacency{Start: indices(c, start), End: indices(c, end), Nbr: indices(c, nbr)}
		src := tensorOf(c, srcs, heads, absolute(floatsFrom(1, srcs*heads)))
		w := tensorOf(c, len(nbr), 1, absolute(floatsFrom(2, len(nbr))))
		values := func() Tensor { return tensorOf(c, len(nbr), heads, make([]float32, len(nbr)*heads)) }
		want, got, scores := values(), values(), values()
		c.EdgeSoftmax(want, src, tensorOf(c, dsts, heads, make([]float32, dsts*heads)), w, g, 0.2)
		c.GatherRows(scores, src, g.Nbr)
		c.EdgeSoftmaxOf([]Tensor{got}, []Tensor{scores}, []Tensor{w}, []Adjacency{g})
		require.InDeltaSlice(t, valuesOf(c, want), valuesOf(c, got), 1e-6, "%s", set)
	}
}

func indices(c Backend, values []uint32) Tensor {
	t := Tensor{Buf: c.Alloc(U32, len(values)), Type: U32, Rows: len(values), Cols: 1}
	c.UploadU32(t, values)
	return t
}

// TestEdgeDotSetsAgree has every tail of a head, and rows of several heads, whose ends are not
// where rows end.
func TestEdgeDotSetsAgree(t *testing.T) {
	const dsts, rows = 7, 9
	var f fence
	start, end, nbr := smallLists(1, dsts, rows)
	for _, width := range rowSizes() {
		for _, heads := range []int{1, 3} {
			cols := heads * width
			k := withSpecials(floatsFrom(1, rows*cols))
			agree(t, &f, 1e-5, fmt.Sprintf("%d heads of %d columns", heads, width), func(r *routines, f *fence) [][]float32 {
				dst, q, other := lay(f, floatsFrom(2, len(nbr)*heads)), lay(f, floatsFrom(3, dsts*cols)), lay(f, k)
				r.edgeDot(dst, q, other, cols, heads, lay(f, start), lay(f, end), lay(f, nbr), 0.3)
				return [][]float32{dst, q, other}
			})
		}
	}
}

// TestLongScoresAreCut has lists that no single call of assembly may take, and rows that are left
// to the plain function.
func TestLongScoresAreCut(t *testing.T) {
	for _, s := range []struct{ rows, cols, edges int }{{5, 3, 130_000}, {3, 9003, 40}} {
		start, end := []uint32{0, 3, uint32(s.edges - 2)}, []uint32{3, uint32(s.edges - 2), uint32(s.edges)}
		_, _, nbr := randomRows(s.edges, s.rows)
		q, k := floatsFrom(1, len(start)*s.cols), floatsFrom(2, s.rows*s.cols)
		want := make([]float32, s.edges*3)
		EdgeDot(want, q, k, s.cols, 3, start, end, nbr, 0.5)
		for _, set := range nativeSets() {
			r, got := routinesOf(set), make([]float32, len(want))
			r.edgeDot(got, q, k, s.cols, 3, start, end, nbr, 0.5)
			near(t, got, want, 1e-4, fmt.Sprintf("%s, %d columns", set, s.cols))
		}
	}
}

// TestCorruptScoreListsPanic gives a row or a list that is outside.
func TestCorruptScoreListsPanic(t *testing.T) {
	const rows, cols, heads = 6, 20, 2
	q, k, dst := floatsFrom(1, 2*cols), floatsFrom(2, rows*cols), make([]float32, 4*heads)
	for _, set := range Sets() {
		r := routinesOf(set)
		for name, lists := range map[string]struct{ start, end, nbr []uint32 }{
			"a row that is not there": {[]uint32{0, 2}, []uint32{2, 4}, []uint32{0, 1, 5, rows}},
			"a row far away":          {[]uint32{0, 2}, []uint32{2, 4}, []uint32{0, 1, math.MaxUint32, 0}},
			"a list past the end":     {[]uint32{0, 2}, []uint32{2, 5}, []uint32{0, 1, 2, 3}},
			"a list that ends first":  {[]uint32{0, 3}, []uint32{2, 1}, []uint32{0, 1, 2, 3}},
			"a list far away":         {[]uint32{0, math.MaxUint32 - 1}, []uint32{2, math.MaxUint32}, []uint32{0, 1, 2, 3}},
		} {
			require.Panics(t, func() { r.edgeDot(dst, q, k, cols, heads, lists.start, lists.end, lists.nbr, 1) }, "%s: %s", set, name)
		}
	}
}

// BenchmarkScores is the attention of one relation, on a block of 10,000 destinations with 10 edges
// each: beside BenchmarkGATEdges, whose weightgrad multiplies the same rows.
func BenchmarkScores(b *testing.B) {
	const dsts, srcs, degree = 10000, 60000, 10
	for _, set := range Sets() {
		c := NewCPU(CPUOptions{Set: set})
		g, nbr := regularEdges(c, dsts, srcs, degree)
		f := func(seed uint64, rows, cols int) Tensor { return tensorOf(c, rows, cols, floatsFrom(seed, rows*cols)) }
		for _, s := range []struct{ heads, width int }{{8, 8}, {4, 64}, {1, 256}} {
			cols := s.heads * s.width
			q, k, dq, dk := f(1, dsts, cols), f(2, srcs, cols), f(3, dsts, cols), f(4, srcs, cols)
			x, y, dy := f(5, len(nbr), s.heads), f(6, len(nbr), s.heads), f(7, len(nbr), s.heads)
			one := []Adjacency{g}
			for _, op := range []struct {
				name string
				run  func()
			}{
				{"weightgrad", func() { c.WeightedSumWeightGrad(dy, q, k, g) }},
				{"dot", func() { c.EdgeDot(x, q, k, g, 0.125) }},
				{"dotgrad", func() { c.EdgeDotGrad(dq, dk, y, q, k, g, 0.125) }},
				{"softmax", func() { c.EdgeSoftmaxOf([]Tensor{y}, []Tensor{x}, []Tensor{{}}, one) }},
				{"softmaxgrad", func() { c.EdgeSoftmaxOfGrad([]Tensor{x}, []Tensor{dy}, []Tensor{y}, one) }},
			} {
				b.Run(fmt.Sprintf("op=%s/heads=%d/width=%d/set=%s", op.name, s.heads, s.width, set), func(b *testing.B) {
					for b.Loop() {
						op.run()
					}
					b.ReportMetric(float64(len(nbr)*b.N)/b.Elapsed().Seconds(), "edges/s")
				})
			}
		}
	}
}
