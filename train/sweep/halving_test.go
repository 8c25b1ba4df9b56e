package sweep

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestLadder(t *testing.T) {
	for _, c := range []struct {
		h                       Halving
		settings, epochs, every int
		want                    []Rung
	}{
		{Halving{Eta: 3, MinEpochs: 1}, 27, 9, 1, []Rung{{1, 27}, {3, 9}, {9, 3}}},
		{Halving{MinEpochs: 1}, 27, 27, 1, []Rung{{1, 27}, {3, 9}, {9, 3}, {27, 1}}},
		{Halving{}, 27, 27, 1, []Rung{{1, 27}, {3, 9}, {9, 3}, {27, 1}}},
		{Halving{}, 9, 100, 1, []Rung{{11, 9}, {33, 3}, {100, 1}}},
		{Halving{Eta: 2}, 5, 20, 5, []Rung{{5, 5}, {10, 2}, {20, 1}}},
		{Halving{Eta: 2, MinEpochs: 2, Rungs: 2}, 16, 20, 1, []Rung{{2, 16}, {20, 8}}},
		{Halving{Rungs: 1}, 16, 20, 1, []Rung{{20, 16}}},
		{Halving{}, 1, 20, 1, []Rung{{20, 1}}},
		{Halving{Eta: 10}, 3, 20, 1, []Rung{{20, 3}}},
		{Halving{Eta: 10, MinEpochs: 2}, 3, 20, 1, []Rung{{2, 3}, {20, 1}}},
		{Halving{Eta: 2}, 8, 3, 1, []Rung{{1, 8}, {2, 4}, {3, 2}}},
	} {
		got, err := c.h.Ladder(c.settings, c.epochs, c.every)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%+v", c)
	}
	_, err := Halving{MinEpochs: 20}.Ladder(3, 20, 1)
	require.ErrorContains(t, err, "min_epochs 20: give less than epochs, which is 20")
}

// TestLadderClimbs: epochs grow, settings shrink by eta at most, each rung ends with an evaluation,
// and the last one is the whole of the training.
func TestLadderClimbs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Halving{Eta: rapid.SampledFrom([]int{0, 2, 3, 10, MostRuns}).Draw(t, "eta"), Rungs: rapid.IntRange(0, mostRungs).Draw(t, "rungs")}
		settings, every := rapid.IntRange(1, MostRuns).Draw(t, "settings"), rapid.IntRange(1, 7).Draw(t, "every")
		epochs := rapid.OneOf(rapid.IntRange(1, 200), rapid.IntRange(1<<50, 1<<62)).Draw(t, "epochs")
		h.MinEpochs = rapid.IntRange(0, min(epochs-1, 100)).Draw(t, "least")
		ladder, err := h.Ladder(settings, epochs, every)
		require.NoError(t, err)
		require.NoError(t, h.validate())
		require.Equal(t, settings, ladder[0].Settings)
		require.Equal(t, epochs, ladder[len(ladder)-1].Epochs)
		if h.Rungs > 0 {
			require.LessOrEqual(t, len(ladder), h.Rungs)
		}
		for i, r := range ladder {
			require.Positive(t, r.Settings)
			require.True(t, r.Epochs%every == 0 || r.Epochs == epochs)
			require.GreaterOrEqual(t, r.Epochs, h.MinEpochs)
			if i > 0 {
				require.Greater(t, r.Epochs, ladder[i-1].Epochs)
				require.LessOrEqual(t, r.Settings, ladder[i-1].Settings)
			}
		}
	})
}

// TestBest compares best with a search that takes the best of the remaining settings again and
// again.
func TestBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scores := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Score {
			return Score{
				Value: float64(rapid.IntRange(0, 5).Draw(t, "value")), Whole: rapid.Bool().Draw(t, "whole"), None: rapid.IntRange(0, 4).Draw(t, "none") == 0,
			}
		}), 0, 20).Draw(t, "scores")
		keep, low := rapid.IntRange(0, 22).Draw(t, "keep"), rapid.Bool().Draw(t, "low")
		better := func(a, b float64) bool { return a > b && !low || a < b && low }
		var want []int
		for len(want) < keep {
			found := -1
			for i, s := range scores {
				if s.None || slices.Contains(want, i) {
					continue
				}
				switch {
				case found < 0, s.Whole && !scores[found].Whole,
					s.Whole == scores[found].Whole && better(s.Value, scores[found].Value):
					found = i
				}
			}
			if found < 0 {
				break
			}
			want = append(want, found)
		}
		require.True(t, slices.Equal(want, best(scores, keep, better)))
	})
}
