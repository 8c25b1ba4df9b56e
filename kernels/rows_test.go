package kernels

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAddEdgesAsWeightedSum: edges add up to the bits that WeightedSum makes of the same terms,
// with any set and any number of threads.
func TestAddEdgesAsWeightedSum(t *testing.T) {
	const edges, rows = 4000, 50
	for _, cols := range []int{1, 33, 200} {
		rng := rand.New(rand.NewPCG(5, 6))
		lists, weights := make([][]uint32, rows), make([][]float32, rows)
		var to, from []uint32
		w := floatsFrom(1, edges)
		for e := range edges {
			i, u := rng.Uint32N(rows), rng.Uint32N(rows)
			to, from = append(to, i), append(from, u)
			lists[i], weights[i] = append(lists[i], u), append(weights[i], w[e])
		}
		start, by, src := []uint32{0}, []float32(nil), floatsFrom(2, rows*cols)
		for i, list := range lists {
			start, by = append(start, start[i]+uint32(len(list))), append(by, weights[i]...)
		}
		for _, set := range Sets() {
			for _, threads := range []int{1, 2, 8} {
				c := NewCPU(CPUOptions{Threads: threads, Set: set})
				ints := func(v []uint32) Tensor {
					x := Tensor{Buf: c.Alloc(U32, len(v)), Type: U32, Rows: len(v), Cols: 1}
					c.UploadU32(x, v)
					return x
				}
				want, got := tensorOf(c, rows, cols, make([]float32, rows*cols)), tensorOf(c, rows, cols, make([]float32, rows*cols))
				rowsOf := tensorOf(c, rows, cols, src)
				c.WeightedSum(want, rowsOf, tensorOf(c, edges, 1, by), Adjacency{Start: ints(start[:rows]), End: ints(start[1:]), Nbr: ints(slices.Concat(lists...))})
				c.AddEdges(got, rowsOf, tensorOf(c, edges, 1, w), ints(to), ints(from))
				require.Equal(t, valuesOf(c, want), valuesOf(c, got), fmt.Sprintf("%d columns: %s with %d threads", cols, set, threads))
			}
		}
	}
}

// TestGatherRowsGradAddsInOrder compares with the reference loop in float32, to the bit: in another
// order the sums would round otherwise. Tables of one row are the case in which all positions add
// to the same.
func TestGatherRowsGradAddsInOrder(t *testing.T) {
	for _, s := range []struct{ list, table, cols int }{{3000, 1, 67}, {3000, 1, 33}, {5000, 700, 65}, {900, 90, 300}, {70000, 40, 1}} {
		rng := rand.New(rand.NewPCG(3, 4))
		list := make([]uint32, s.list)
		for i := range list {
			list[i] = rng.Uint32N(uint32(s.table))
		}
		before, up := floatsFrom(1, s.table*s.cols), floatsFrom(2, s.list*s.cols)
		want := append([]float32(nil), before...)
		gatherRowsGradRef(want, up, s.cols, list)
		for _, set := range Sets() {
			for _, threads := range []int{1, 2, 3, 8} {
				c := NewCPU(CPUOptions{Threads: threads, Set: set})
				dsrc, ddst := tensorOf(c, s.table, s.cols, before), tensorOf(c, s.list, s.cols, up)
				ids := Tensor{Buf: c.Alloc(U32, s.list), Type: U32, Rows: s.list, Cols: 1}
				c.UploadU32(ids, list)
				c.GatherRowsGrad(dsrc, ddst, ids)
				require.Equal(t, want, valuesOf(c, dsrc), fmt.Sprintf("%+v: %s with %d threads", s, set, threads))
			}
		}
	}
}

// TestRowNormsOfManyRows: more rows than a call of assembly takes, and others than it takes
// together, have the bits of the plain function.
func TestRowNormsOfManyRows(t *testing.T) {
	for _, s := range []struct{ rows, cols int }{{1003, 129}, {3, 40000}, {9, 8191}, {70001, 1}} {
		src, want := floatsFrom(1, s.rows*s.cols), make([]float32, s.rows)
		RowNorms(want, src, s.cols)
		for _, set := range Sets() {
			r, got := routinesOf(set), make([]float32, s.rows)
			r.rowNorms(got, src, s.cols)
			require.Equal(t, want, got, fmt.Sprintf("%+v: %s", s, set))
		}
	}
}
