package sample

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestLowest: fill gives the same ids as sorting, from any guess, and with equal numbers as well.
func TestLowest(t *testing.T) {
	var l lowest
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 4), rapid.SampledFrom([]uint64{math.MaxUint64, math.MaxUint64 - 1}))
		numbers := rapid.SliceOfN(number, 1, 60).Draw(t, "numbers")
		places := make([]uint32, len(numbers))
		for i := range places {
			l.id[i], places[i] = uint32(i), uint32(i)
		}
		copy(l.number[:], numbers)
		slices.SortStableFunc(places, func(a, b uint32) int {
			switch {
			case numbers[a] < numbers[b]:
				return -1
			case numbers[a] > numbers[b]:
				return 1
			}
			return 0
		})
		want := places[:rapid.IntRange(1, len(places)).Draw(t, "k")]
		slices.Sort(want)
		got := make([]uint32, len(want))
		l.fill(got, len(numbers), number.Draw(t, "guess"))
		require.Equal(t, want, got)
	})
}
