package kernels

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEdgeDistanceGradients(t *testing.T) {
	g := newGradCheck(t)
	adj := g.smallEdges()
	q, k, y := g.normal(4, 6), g.normal(4, 6), g.zeros(8, 1)
	for _, complex := range []bool{false, true} {
		forward := func() { g.r.EdgeDistance(y, q, k, adj, complex, -0.5) }
		g.check(fmt.Sprintf("by q, complex %v", complex), q, y, forward,
			func(dq, dy Tensor) { g.r.EdgeDistanceGrad(dq, g.zeros(4, 6), dy, q, k, adj, complex, -0.5) })
		g.check(fmt.Sprintf("by k, complex %v", complex), k, y, forward,
			func(dk, dy Tensor) { g.r.EdgeDistanceGrad(g.zeros(4, 6), dk, dy, q, k, adj, complex, -0.5) })
	}
}

// TestEdgeDistanceSetsAgree has every tail of a row. Some numbers are equal.
func TestEdgeDistanceSetsAgree(t *testing.T) {
	const dsts, rows = 7, 9
	var f fence
	start, end, nbr := smallLists(1, dsts, rows)
	for _, width := range rowSizes() {
		for _, complex := range []bool{false, true} {
			cols := width
			if complex {
				cols *= 2
			}
			x, y := floatsFrom(3, dsts*cols), floatsFrom(1, rows*cols)
			copy(y, x[:3*cols])
			note := fmt.Sprintf("%d columns, complex %v", cols, complex)
			agree(t, &f, 1e-5, note, func(r *routines, f *fence) [][]float32 {
				dst, q, k, w := lay(f, floatsFrom(2, len(nbr))), lay(f, x), lay(f, y), lay(f, floatsFrom(4, len(nbr)))
				dx := lay(f, floatsFrom(5, dsts*cols))
				r.edgeDistance(dst, q, k, cols, complex, lay(f, start), lay(f, end), lay(f, nbr), 0.3)
				r.edgeDistanceGrad(dx, q, k, w, cols, complex, lay(f, start), lay(f, end), lay(f, nbr))
				return [][]float32{dst, q, k, w, dx}
			})
		}
	}
}

// TestLongDistancesAreCut has lists that no single call of assembly may take, and rows that are
// left to the plain function.
func TestLongDistancesAreCut(t *testing.T) {
	for _, s := range []struct{ rows, cols, edges int }{{5, 4, 130_000}, {3, 9004, 40}} {
		start, end := []uint32{0, 3, uint32(s.edges - 2)}, []uint32{3, uint32(s.edges - 2), uint32(s.edges)}
		_, _, nbr := randomRows(s.edges, s.rows)
		q, k, w := floatsFrom(1, len(start)*s.cols), floatsFrom(2, s.rows*s.cols), floatsFrom(3, s.edges)
		for _, complex := range []bool{false, true} {
			want, dwant := make([]float32, s.edges), make([]float32, len(q))
			EdgeDistance(want, q, k, s.cols, complex, start, end, nbr, 0.5)
			edgeDistanceGrad(dwant, q, k, w, s.cols, complex, start, end, nbr)
			for _, set := range nativeSets() {
				r, got, dgot := routinesOf(set), make([]float32, s.edges), make([]float32, len(q))
				r.edgeDistance(got, q, k, s.cols, complex, start, end, nbr, 0.5)
				r.edgeDistanceGrad(dgot, q, k, w, s.cols, complex, start, end, nbr)
				near(t, got, want, 1e-4, fmt.Sprintf("%s, %d columns", set, s.cols))
				near(t, dgot, dwant, 1e-3, fmt.Sprintf("%s, %d columns", set, s.cols))
			}
		}
	}
}

// TestCorruptDistanceListsPanic gives a row or a list that is outside. Nothing is added then.
func TestCorruptDistanceListsPanic(t *testing.T) {
	const rows, cols = 6, 20
	q, k, dst := floatsFrom(1, 2*cols), floatsFrom(2, rows*cols), make([]float32, 4)
	for _, set := range Sets() {
		r := routinesOf(set)
		for name, lists := range map[string]struct{ start, end, nbr []uint32 }{
			"a row that is not there": {[]uint32{0, 2}, []uint32{2, 4}, []uint32{0, 1, 5, rows}},
			"a row far away":          {[]uint32{0, 2}, []uint32{2, 4}, []uint32{0, 1, math.MaxUint32, 0}},
			"a list past the end":     {[]uint32{0, 2}, []uint32{2, 5}, []uint32{0, 1, 2, 3}},
			"a list that ends first":  {[]uint32{0, 3}, []uint32{2, 1}, []uint32{0, 1, 2, 3}},
			"a list far away":         {[]uint32{0, math.MaxUint32 - 1}, []uint32{2, math.MaxUint32}, []uint32{0, 1, 2, 3}},
		} {
			for _, complex := range []bool{false, true} {
				require.Panics(t, func() {
					r.edgeDistance(dst, q, k, cols, complex, lists.start, lists.end, lists.nbr, 1)
				}, "%s: %s", set, name)
				require.Panics(t, func() {
					r.edgeDistanceGrad(make([]float32, len(q)), q, k, dst, cols, complex, lists.start, lists.end, lists.nbr)
				}, "%s: %s", set, name)
			}
		}
	}
}

// BenchmarkDistances compares 512 rows of 250 complex numbers with 256 others, forward and back.
func BenchmarkDistances(b *testing.B) {
	const dsts, srcs, cols = 512, 256, 500
	for _, set := range Sets() {
		c := NewCPU(CPUOptions{Set: set})
		start, end, revStart := make([]uint32, dsts), make([]uint32, dsts), make([]uint32, srcs+1)
		nbr, revDst, revEdge := make([]uint32, dsts*srcs), make([]uint32, dsts*srcs), make([]uint32, dsts*srcs)
		for i := range dsts {
			start[i], end[i] = uint32(i*srcs), uint32((i+1)*srcs)
			for u := range srcs {
				nbr[i*srcs+u], revDst[u*dsts+i], revEdge[u*dsts+i] = uint32(u), uint32(i), uint32(i*srcs+u)
				revStart[u+1] = uint32((u + 1) * dsts)
			}
		}
		g := Adjacency{Start: indices(c, start), End: indices(c, end), Nbr: indices(c, nbr),
			RevStart: indices(c, revStart), RevDst: indices(c, revDst), RevEdge: indices(c, revEdge)}
		f := func(seed uint64, rows, cols int) Tensor { return tensorOf(c, rows, cols, floatsFrom(seed, rows*cols)) }
		q, k, dst, dq, dk := f(1, dsts, cols), f(2, srcs, cols), f(3, dsts*srcs, 1), f(4, dsts, cols), f(5, srcs, cols)
		for _, complex := range []bool{false, true} {
			b.Run(fmt.Sprintf("set=%s/complex=%v/op=distance", set, complex), func(b *testing.B) {
				for b.Loop() {
					c.EdgeDistance(dst, q, k, g, complex, 1)
				}
				b.ReportMetric(float64(dsts*srcs*b.N)/b.Elapsed().Seconds(), "pairs/s")
			})
			b.Run(fmt.Sprintf("set=%s/complex=%v/op=grad", set, complex), func(b *testing.B) {
				for b.Loop() {
					c.EdgeDistanceGrad(dq, dk, dst, q, k, g, complex, 1)
				}
				b.ReportMetric(float64(dsts*srcs*b.N)/b.Elapsed().Seconds(), "pairs/s")
			})
		}
	}
}
