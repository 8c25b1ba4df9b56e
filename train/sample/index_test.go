package sample

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestIndex: ids are numbered as a map does it, whether a table or an array holds them, while one
// becomes the other, while it grows, and when positions run over.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SampledFrom([]int{1, 100, 5000, 1 << 20}).Draw(t, "nodes")
		x := index{nodes: nodes}
		if rapid.Bool().Draw(t, "any ids") {
			x.nodes = 0
		}
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			if rapid.IntRange(0, 3).Draw(t, "") == 0 {
				x.base, x.n = max(x.base+x.n, math.MaxUint32-uint32(rapid.IntRange(0, 5000).Draw(t, "before the end"))), 0
			}
			id := rapid.Uint32Range(0, uint32(nodes-1))
			known := rapid.SliceOfNDistinct(id, 0, min(nodes, 50), rapid.ID[uint32]).Draw(t, "known")
			want, pos := slices.Clone(known), map[uint32]uint32{}
			for i, u := range known {
				pos[u] = uint32(i)
			}
			x.begin(known)
			for range rapid.IntRange(1, 3).Draw(t, "hops") {
				n, seed := rapid.IntRange(0, 6000).Draw(t, "ids"), rapid.Uint64().Draw(t, "seed")
				ids, places := make([]uint32, n), make([]uint32, n)
				for e := range ids {
					u := uint32(draw(seed, e, nodes))
					if _, ok := pos[u]; !ok {
						pos[u] = uint32(len(want))
						want = append(want, u)
					}
					ids[e], places[e] = u, pos[u]
				}
				var bad int
				known, bad = x.number(ids, known)
				require.Negative(t, bad)
				require.True(t, slices.Equal(want, known))
				require.True(t, slices.Equal(places, ids))
			}
			require.False(t, x.nodes == 0 && x.array != nil)
			require.LessOrEqual(t, 4*len(x.array), 8*max(128, 4*(nodes+chunk)), "no more than the table would take")
		}
	})
}

// TestIndexNamesWhatIsNoNode: by its place, whatever holds the others.
func TestIndexNamesWhatIsNoNode(t *testing.T) {
	for _, nodes := range []int{3000, 1 << 24} {
		x := index{nodes: nodes}
		ids := make([]uint32, 2*chunk)
		for e := range ids {
			ids[e] = uint32(e)
		}
		ids[chunk+7] = uint32(nodes)
		x.begin([]uint32{5})
		known, bad := x.number(ids, []uint32{5})
		require.Equal(t, chunk+7, bad)
		require.Len(t, known, chunk+7)
		require.Equal(t, nodes == 3000, x.array != nil)
	}
}

// BenchmarkIndex numbers what a hop draws from nodes, a third of it new, after its destinations.
func BenchmarkIndex(b *testing.B) {
	for _, nodes := range []int{200_000, 10_000_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			topo := skewed(nodes, 1)
			dst, x := make([]uint32, 0, 50_000), index{nodes: nodes}
			for i := range cap(dst) {
				dst = append(dst, uint32(i*(nodes/cap(dst))))
			}
			ids, known := make([]uint32, min(500_000, len(topo.neighbors))), []uint32(nil)
			for b.Loop() {
				copy(ids, topo.neighbors)
				known = append(known[:0], dst...)
				x.begin(known)
				known, _ = x.number(ids, known)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ids)), "ns/edge")
		})
	}
}
