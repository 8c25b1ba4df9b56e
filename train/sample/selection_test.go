package sample

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestSelectionOfParts: what is selected, and its order, depend on the list alone, not on its parts
// nor on the order in which they come. Neighbours that are there several times have equal numbers.
func TestSelectionOfParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := make([]uint32, rapid.IntRange(1, 3000).Draw(t, "neighbours"))
		few, n := rapid.Uint64Range(1, 3000).Draw(t, "different"), numbers{first: rapid.Uint64().Draw(t, "seed")}
		var want []candidate
		for i := range ids {
			ids[i] = uint32(Hash(7, uint64(i)) % few)
			want = append(want, candidate{number: mix(n.first + (uint64(ids[i])+1)*golden), place: uint32(i), id: ids[i]})
		}
		keep := rapid.IntRange(0, 60).Draw(t, "keep")
		slices.SortStableFunc(want, func(a, b candidate) int { return cmp.Compare(a.number, b.number) })
		want = want[:min(keep, len(want))]
		slices.SortFunc(want, func(a, b candidate) int { return cmp.Compare(a.place, b.place) })

		var starts []int
		for at := 0; at < len(ids); at += rapid.IntRange(1, len(ids)).Draw(t, "part") {
			starts = append(starts, at)
		}
		var s selection
		s.reset(keep, math.MaxUint64)
		for _, i := range rapid.Permutation(slices.Clone(starts)).Draw(t, "order") {
			end := len(ids)
			if k, _ := slices.BinarySearch(starts, i+1); k < len(starts) {
				end = starts[k]
			}
			s.offerIDs(&n, i, ids[i:end])
		}
		require.True(t, slices.Equal(want, s.chosen()))
	})
}
