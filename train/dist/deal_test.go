package dist

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestDeal: each node is in one share, and a share has as many nodes of its worker as fit.
func TestDeal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 6).Draw(t, "workers")
		owners := rapid.SliceOfN(rapid.IntRange(0, workers-1), 0, 40).Draw(t, "owners")
		var seeds []uint32
		for i := range owners {
			seeds = append(seeds, uint32(7*i%41))
		}
		owner := func(v uint32) int { return owners[slices.Index(seeds, v)] }
		dealt := slices.Clone(seeds)
		Deal(dealt, workers, owner)
		require.ElementsMatch(t, seeds, dealt)
		for p := range workers {
			lo, hi := Share(len(seeds), p, workers)
			var own, all []uint32
			for _, v := range dealt[lo:hi] {
				if owner(v) == p {
					own = append(own, v)
				}
			}
			for _, v := range seeds {
				if owner(v) == p {
					all = append(all, v)
				}
			}
			require.True(t, slices.Equal(all[:min(len(all), hi-lo)], own))
		}
	})
}
