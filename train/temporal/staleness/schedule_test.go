package staleness

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// spans are the starts and ends of a stage over the first steps.
func spans(s []Step, stage, n int) (all [][2]float64) {
	for _, t := range s[:n] {
		all = append(all, [2]float64{t.Start[stage], t.End[stage]})
	}
	return all
}

func ks(s []Step) (all []int) {
	for _, t := range s {
		all = append(all, t.K)
	}
	return all
}

func TestSchedules(t *testing.T) {
	c := Costs{Stage: [Stages]float64{1, 0, 1, 1, 4, 2}}
	s := c.Plan(30, 0)
	require.Equal(t, []int{1, 2, 2, 2, 2}, ks(s[:5]))
	require.Equal(t, [][2]float64{{2, 3}, {4, 5}, {9, 10}, {13, 14}}, spans(s, State, 4))
	require.Equal(t, [][2]float64{{3, 7}, {7, 11}, {11, 15}, {15, 19}}, spans(s, Train, 4))
	require.Equal(t, [][2]float64{{7, 9}, {11, 13}, {15, 17}, {19, 21}}, spans(s, Publish, 4))
	require.Equal(t, 2, c.Best())
	require.Equal(t, 3, c.InFlight())
	require.Equal(t, 9+29*4.0, s[29].End[Publish])
	require.Equal(t, s, c.Constant(30, 2))

	c = Costs{Stage: [Stages]float64{2, 0, 3, 1, 3, 2}}
	require.Equal(t, 4.0, c.Limit())
	require.Equal(t, 2, c.Best())
	s = c.Plan(10, 0)
	require.Equal(t, [][2]float64{{2, 5}, {6, 9}, {10, 13}}, spans(s, Features, 3))
	require.Equal(t, [][2]float64{{6, 9}, {10, 13}, {14, 17}}, spans(s, Train, 3))

	c = Costs{Stage: [Stages]float64{1, 0, 1, 1, 2, 3}} // publishing is slowest: k grows for ever and gains nothing
	s = c.Plan(30, 0)
	require.Equal(t, []int{1, 2, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7}, ks(s[:14]))
	require.Equal(t, 12, s[29].K)
	capped := c.Plan(30, 3)
	require.Equal(t, []int{1, 2, 3, 3, 3, 3}, ks(capped[:6]))
	require.Equal(t, 95.0, s[29].End[Publish])
	require.Equal(t, 95.0, capped[29].End[Publish])

	c = Costs{Stage: [Stages]float64{1, 0, 4, 4, 1, 1}} // reading is slowest
	require.Equal(t, 8.0, c.Limit())
	for _, step := range c.Plan(30, 0) {
		require.Equal(t, 1, step.K)
	}
}

// TestPlanIsLeast holds Plan to a search over all k, step by step, and to what any schedule must
// be.
func TestPlanIsLeast(t *testing.T) {
	const n = 40
	for _, c := range random()[:75] {
		for _, most := range []int{0, 1, 3} {
			s := c.Plan(n, most)
			for i := range s {
				before, eager := c.begin(s[:i])
				start4 := eager + c.Stage[State]
				if i > 0 {
					start4 = max(start4, s[i-1].End[Train])
				}
				want, visible := 0, func(k int) float64 {
					if k > i {
						return 0 // what state is at first
					}
					return s[i-k].Visible
				}
				for k := i + 1; k >= 1 && visible(k) <= start4-c.Stage[State]; k-- {
					want = k
				}
				require.Positive(t, want)
				if most >= 1 {
					want = min(want, most)
				}
				require.Equal(t, want, s[i].K, "%+v, step %d, at most %d", c, i+1, most)
				require.Equal(t, max(eager, visible(want)), s[i].Start[State])
				require.Equal(t, before.End[Features], s[i].End[Features])
				if i > 0 {
					require.GreaterOrEqual(t, i-s[i].K, i-1-s[i-1].K, "a later step sees less")
					require.GreaterOrEqual(t, s[i].Start[Features], s[i-1].End[State], "the reader does two things at once")
				}
				for stage := range Stages {
					require.True(t, stage == 0 || s[i].Start[stage] >= s[i].End[stage-1])
					require.True(t, i == 0 || s[i].Start[stage] >= s[i-1].End[stage])
				}
			}
			if most == 0 {
				continue
			}
			for i, step := range c.Constant(n, most) {
				require.Equal(t, min(i+1, most), step.K)
			}
		}
	}
}
