package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestAddEdgesSetsAgree: sets add what the plain function does, and touch nothing beyond: columns
// of all tails, whole rows and a range of columns, lists shorter and longer than what is prefetched
// and than what a call adds, and operands that end where memory does.
func TestAddEdgesSetsAgree(t *testing.T) {
	storetest.Long(t)
	var f fence
	rng := rand.New(rand.NewPCG(1, 2))
	for _, cols := range rowSizes() {
		const rows, sources = 7, 5
		if cols == 0 {
			continue
		}
		lists := []int{0, 1, 2, 31, 33, 40}
		if cols > 256 {
			lists = append(lists, 2*(1<<16)/cols) // more than a call adds
		}
		for _, n := range lists {
			to, from := make([]uint32, n), make([]uint32, n)
			for e := range to {
				to[e], from[e] = rng.Uint32N(rows), rng.Uint32N(sources)
				if e > 0 && e%3 == 0 { // a sum that the edge before has just changed
					to[e] = to[e-1]
				}
			}
			src, w := floatsFrom(1, sources*cols), floatsFrom(2, n)
			if n <= 40 { // infinities would hide the others
				src = withSpecials(src)
			}
			for _, lo := range []int{0, cols / 3} {
				add := func(weighs bool) trial {
					return func(r *routines, f *fence) [][]float32 {
						dst, by := lay(f, floatsFrom(3, rows*cols)), []float32(nil)
						if weighs {
							by = lay(f, w)
						}
						r.addEdges(dst, lay(f, src), by, cols, lo, cols, lay(f, to), lay(f, from))
						return [][]float32{dst}
					}
				}
				// Rows of float16 have the same bits as rows that are widened first.
				halves := func(weighs bool) trial {
					return func(r *routines, f *fence) [][]float32 {
						dst, wide, by := lay(f, floatsFrom(3, rows*cols)), lay(f, floatsFrom(3, rows*cols)), []float32(nil)
						if weighs {
							by = lay(f, w)
						}
						half := lay(f, halvesOfFloats(src))
						r.addEdgesHalf(dst, half, by, cols, lo, cols, lay(f, to), lay(f, from))
						widened := make([]float32, len(half))
						r.widen(widened, half)
						r.addEdges(wide, widened, by, cols, lo, cols, to, from)
						for i := range wide {
							require.Equal(t, math.Float32bits(wide[i]), math.Float32bits(dst[i]), "%s: %d edges, columns %d to %d: %d", r.set, n, lo, cols, i)
						}
						return [][]float32{dst}
					}
				}
				agree(t, &f, 0, fmt.Sprintf("%d edges, columns %d to %d", n, lo, cols), add(false))
				agree(t, &f, 0, fmt.Sprintf("%d edges of halves, columns %d to %d", n, lo, cols), halves(false))
				// A compiler may fuse the multiplication with the addition.
				agree(t, &f, 1e-4, fmt.Sprintf("%d edges by weights, columns %d to %d", n, lo, cols), add(true))
				agree(t, &f, 1e-4, fmt.Sprintf("%d edges of halves by weights, columns %d to %d", n, lo, cols), halves(true))
			}
		}
	}
}

// BenchmarkAddEdges adds the rows of a block, in their order, to sums that lie anywhere in memory
// that is far larger than a cache, on one core.
func BenchmarkAddEdges(b *testing.B) {
	const sums, block, edges = 1 << 30, 16 << 20, 1 << 18
	dst, err := NewHostBuf(sums)
	require.NoError(b, err)
	defer dst.Close()
	src, err := NewHostBuf(block)
	require.NoError(b, err)
	defer src.Close()
	for i := range dst.Float32s() {
		dst.Float32s()[i] = 1 // or all of it would be one page of zeros
	}
	for i := range src.Float32s() {
		src.Float32s()[i] = 1
	}
	for _, cols := range []int{64, 128, 256} {
		rng := rand.New(rand.NewPCG(1, 2))
		to, from := make([]uint32, edges), make([]uint32, edges)
		for e := range to {
			to[e], from[e] = rng.Uint32N(uint32(sums/4/cols)), rng.Uint32N(uint32(block/4/cols))
		}
		slices.Sort(from)
		for _, set := range Sets() {
			r := routinesOf(set)
			run := func(elem string, add func()) {
				b.Run(fmt.Sprintf("columns=%d/rows=%s/set=%s", cols, elem, set), func(b *testing.B) {
					b.SetBytes(4 * int64(cols) * edges)
					for b.Loop() {
						add()
					}
				})
			}
			run("f32", func() { r.addEdges(dst.Float32s(), src.Float32s(), nil, cols, 0, cols, to, from) })
			run("f16", func() { r.addEdgesHalf(dst.Float32s(), src.Uint16s(), nil, cols, 0, cols, to, from) })
		}
	}
}

// TestSumsDoNotDependOnHowTheyAreTaken: adding a list at once gives the same bits as adding it edge
// by edge, at every width.
func TestSumsDoNotDependOnHowTheyAreTaken(t *testing.T) {
	for _, set := range Sets() {
		r := routinesOf(set)
		for cols := 1; cols <= 19; cols++ {
			const sources, edges = 9, 150
			rng := rand.New(rand.NewPCG(uint64(cols), 3))
			src, halves := floatsFrom(uint64(cols), sources*cols), make([]uint16, sources*cols)
			r.narrow(halves, src)
			r.widen(src, halves)
			w, to, from := floatsFrom(5, edges), make([]uint32, edges), make([]uint32, edges)
			for e := range from {
				from[e] = rng.Uint32N(sources)
			}
			want := make([]float32, cols)
			r.addEdges(want, src, w, cols, 0, cols, to, from)
			for name, sum := range map[string]func(dst []float32){
				"addEdgesHalf": func(dst []float32) { r.addEdgesHalf(dst, halves, w, cols, 0, cols, to, from) },
				"weightedSum": func(dst []float32) {
					r.weightedSum(dst, cols, cols, src, cols, []uint32{0}, []uint32{edges}, from, w, 1)
				},
				"weightedSumHalf": func(dst []float32) {
					r.weightedSumHalf(dst, cols, cols, halves, cols, []uint32{0}, []uint32{edges}, from, w, 1)
				},
			} {
				got := make([]float32, cols)
				sum(got)
				require.Equal(t, want, got, "%s of %d columns by %s", name, cols, set)
			}
		}
	}
}
