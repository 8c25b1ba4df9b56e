package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// smallLists are lists of 0 to 20 rows with gaps between them that name no row, as pruning leaves
// them.
func smallLists(seed uint64, dsts, rows int) (start, end, nbr []uint32) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for i := range dsts {
		start = append(start, uint32(len(nbr)))
		for range []int{1, 0, 4, 20, 2, 7}[i%6] {
			nbr = append(nbr, rng.Uint32N(uint32(rows)))
		}
		end = append(end, uint32(len(nbr)))
		if i%3 == 1 {
			nbr = append(nbr, math.MaxUint32)
		}
	}
	return start, end, nbr
}

func TestNeighborMeanSetsAgree(t *testing.T) {
	const dsts, rows = 7, 9
	var f fence
	start, end, nbr := smallLists(1, dsts, rows)
	for _, cols := range rowSizes() {
		src := withSpecials(floatsFrom(1, rows*cols), math.MaxFloat32)
		agree(t, &f, 0, fmt.Sprintf("float32, %d columns", cols), func(r *routines, f *fence) [][]float32 {
			dst, s := lay(f, floatsFrom(2, dsts*cols)), lay(f, src)
			r.neighborMean(dst, s, cols, lay(f, start), lay(f, end), lay(f, nbr))
			return [][]float32{dst, s}
		})
		agree(t, &f, 0, fmt.Sprintf("float16, %d columns", cols), func(r *routines, f *fence) [][]float32 {
			dst := lay(f, floatsFrom(2, dsts*cols))
			r.neighborMeanHalf(dst, lay(f, halvesOfFloats(src)), cols, lay(f, start), lay(f, end), lay(f, nbr))
			return [][]float32{dst}
		})
	}
}

func TestRowWeightedSumSetsAgree(t *testing.T) {
	const dsts, rows = 7, 9
	var f fence
	start, end, nbr := smallLists(1, dsts, rows)
	for _, cols := range rowSizes() {
		src := withSpecials(floatsFrom(1, rows*cols))
		agree(t, &f, 3e-6, fmt.Sprintf("%d columns", cols), func(r *routines, f *fence) [][]float32 {
			dst, set := lay(f, floatsFrom(2, dsts*cols)), lay(f, floatsFrom(4, dsts*cols))
			s, w := lay(f, src), lay(f, floatsFrom(3, rows))
			r.rowWeightedSum(dst, s, cols, lay(f, start), lay(f, end), lay(f, nbr), w, false)
			r.rowWeightedSum(set, s, cols, lay(f, start), lay(f, end), lay(f, nbr), w, true)
			zeroed := lay(f, make([]float32, dsts*cols))
			r.rowWeightedSum(zeroed, s, cols, lay(f, start), lay(f, end), lay(f, nbr), w, false)
			requireSameBits(t, zeroed, set)
			return [][]float32{dst, set, s, w}
		})
	}
}

// TestWeightedSumSetsAgree takes each of three heads out of rows that hold them all: what lies
// between must stay.
func TestWeightedSumSetsAgree(t *testing.T) {
	const dsts, rows, heads = 7, 9, 3
	var f fence
	start, end, nbr := smallLists(1, dsts, rows)
	for _, cols := range rowSizes()[1:] {
		width := heads * cols
		src := withSpecials(floatsFrom(1, rows*width))
		for head := range heads {
			at := head * cols
			agree(t, &f, 3e-6, fmt.Sprintf("float32, head %d of %d columns", head, cols), func(r *routines, f *fence) [][]float32 {
				dst, s, w := lay(f, floatsFrom(2, dsts*width)), lay(f, src), lay(f, floatsFrom(3, len(nbr)*heads))
				r.weightedSum(dst[at:], width, cols, s[at:], width, lay(f, start), lay(f, end), lay(f, nbr), w[head:], heads)
				return [][]float32{dst, s, w}
			})
			agree(t, &f, 3e-6, fmt.Sprintf("float16, head %d of %d columns", head, cols), func(r *routines, f *fence) [][]float32 {
				dst, w := lay(f, floatsFrom(2, dsts*width)), lay(f, floatsFrom(3, len(nbr)*heads))
				s := lay(f, halvesOfFloats(src))
				r.weightedSumHalf(dst[at:], width, cols, s[at:], width, lay(f, start), lay(f, end), lay(f, nbr), w[head:], heads)
				return [][]float32{dst, w}
			})
		}
	}
}

// TestWeightedSumFollowsItsDefinition compares the plain functions with the reference loop in
// float64.
func TestWeightedSumFollowsItsDefinition(t *testing.T) {
	const dsts, rows, heads, cols = 12, 9, 2, 5
	start, end, nbr := smallLists(1, dsts, rows)
	halves := halvesOfFloats(floatsFrom(1, rows*heads*cols))
	src := make([]float32, len(halves))
	HalfToFloat32(src, halves)
	w := floatsFrom(2, len(nbr)*heads)
	want := make([]float64, dsts*heads*cols)
	weightedStripRef(want[cols:], heads*cols, cols, doubles(src[cols:]), heads*cols, start, end, nbr, doubles(w[1:]), heads)
	got, gotHalf := make([]float32, len(want)), make([]float32, len(want))
	weightedSum(got[cols:], heads*cols, cols, src[cols:], heads*cols, start, end, nbr, w[1:], heads)
	weightedSumHalf(gotHalf[cols:], heads*cols, cols, halves[cols:], heads*cols, start, end, nbr, w[1:], heads)
	require.InDeltaSlice(t, want, doubles(got), 1e-5)
	require.Equal(t, got, gotHalf)
}

func doubles(s []float32) []float64 {
	d := make([]float64, len(s))
	for i, v := range s {
		d[i] = float64(v)
	}
	return d
}

// TestLongListsAreCut has lists and rows that no single call of assembly may take.
func TestLongListsAreCut(t *testing.T) {
	for _, s := range []struct{ rows, cols, edges int }{{5, 3, 130_000}, {3, 9001, 40}} {
		start, end := []uint32{0, 3, uint32(s.edges - 2)}, []uint32{3, uint32(s.edges - 2), uint32(s.edges)}
		_, _, nbr := randomRows(s.edges, s.rows)
		src, w := floatsFrom(1, s.rows*s.cols), floatsFrom(2, s.edges)
		halves := halvesOfFloats(src)
		run := func(r *routines) (all [][]float32) {
			dst := func() []float32 { all = append(all, floatsFrom(3, len(start)*s.cols)); return all[len(all)-1] }
			r.neighborMean(dst(), src, s.cols, start, end, nbr)
			r.neighborMeanHalf(dst(), halves, s.cols, start, end, nbr)
			r.weightedSum(dst(), s.cols, s.cols, src, s.cols, start, end, nbr, w, 1)
			r.weightedSumHalf(dst(), s.cols, s.cols, halves, s.cols, start, end, nbr, w, 1)
			r.rowWeightedSum(dst(), src, s.cols, start, end, nbr, w, false)
			r.rowWeightedSum(dst(), src, s.cols, start, end, nbr, w, true)
			return all
		}
		want := run(&portable)
		for _, set := range nativeSets() {
			r := routinesOf(set)
			for i, got := range run(&r) {
				near(t, got, want[i], 1e-3, fmt.Sprintf("%s, %d columns, operation %d", set, s.cols, i))
			}
		}
	}
}

func randomRows(edges, rows int) (start, end, nbr []uint32) {
	rng := rand.New(rand.NewPCG(5, 6))
	nbr = make([]uint32, edges)
	for i := range nbr {
		nbr[i] = rng.Uint32N(uint32(rows))
	}
	return []uint32{0}, []uint32{uint32(edges)}, nbr
}

// TestCorruptListsPanic gives each aggregation one row or one list that is outside: it must panic,
// and not read there.
func TestCorruptListsPanic(t *testing.T) {
	const rows, cols = 6, 20
	src, w := floatsFrom(1, rows*cols), floatsFrom(2, 100)
	halves := halvesOfFloats(src)
	for _, set := range Sets() {
		r := routinesOf(set)
		for name, lists := range map[string]struct{ start, end, nbr []uint32 }{
			"a row that is not there": {[]uint32{0, 2}, []uint32{2, 4}, []uint32{0, 1, 5, rows}},
			"a row far away":          {[]uint32{0, 2}, []uint32{2, 4}, []uint32{0, 1, math.MaxUint32, 0}},
			"a list past the end":     {[]uint32{0, 2}, []uint32{2, 5}, []uint32{0, 1, 2, 3}},
			"a list that ends first":  {[]uint32{0, 3}, []uint32{2, 1}, []uint32{0, 1, 2, 3}},
			"a list far away":         {[]uint32{0, math.MaxUint32 - 1}, []uint32{2, math.MaxUint32}, []uint32{0, 1, 2, 3}},
		} {
			dst := make([]float32, 2*cols)
			for op, run := range map[string]func(){
				"neighborMean":     func() { r.neighborMean(dst, src, cols, lists.start, lists.end, lists.nbr) },
				"neighborMeanHalf": func() { r.neighborMeanHalf(dst, halves, cols, lists.start, lists.end, lists.nbr) },
				"weightedSum": func() {
					r.weightedSum(dst, cols, cols, src, cols, lists.start, lists.end, lists.nbr, w, 1)
				},
				"weightedSumHalf": func() {
					r.weightedSumHalf(dst, cols, cols, halves, cols, lists.start, lists.end, lists.nbr, w, 1)
				},
				"rowWeightedSum": func() {
					r.rowWeightedSum(dst, src, cols, lists.start, lists.end, lists.nbr, w, true)
				},
			} {
				require.Panics(t, run, "%s, %s: %s", set, op, name)
			}
		}
		require.Panics(t, func() {
			r.rowWeightedSum(make([]float32, cols), src, cols, []uint32{0}, []uint32{1}, []uint32{3}, w[:3], true)
		}, "%s: a row without a weight", set)
	}
}
