package optim

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRates(t *testing.T) {
	// Ten steps, two to an epoch, from 1.
	for _, c := range []struct {
		Schedule
		want []float64
	}{
		{Schedule{}, []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
		{Schedule{Kind: Constant, Warmup: 4}, []float64{0.25, 0.5, 0.75, 1, 1, 1, 1, 1, 1, 1}},
		{Schedule{Kind: Step, Every: 2}, []float64{1, 1, 1, 1, 0.1, 0.1, 0.1, 0.1, 0.01, 0.01}},
		{Schedule{Kind: Step, Milestones: []int{1, 2, 9}, Gamma: 0.5, Warmup: 2}, []float64{0.5, 1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25}},
		{Schedule{Kind: Cosine, MinLR: 0.5, Warmup: 8}, []float64{0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1, 1, 0.75}},
		{Schedule{Kind: Cosine, Warmup: 20}, []float64{0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5}}, // a run that ends while it warms up
	} {
		require.NoError(t, c.Validate())
		for step, want := range c.want {
			require.InDelta(t, want, c.Rate(1, step, 10, 2), 1e-15, "%+v, step %d", c.Schedule, step)
		}
	}
	require.Equal(t, 0.25, Schedule{Kind: Cosine, MinLR: 0.25}.Rate(1, 10, 10, 2), "after the last step")
	require.Equal(t, 0.25, Schedule{Kind: Cosine, MinLR: 0.25}.Rate(1, 99, 10, 2))
}

// TestRatesFall: after the warm-up no rate rises, none is above the base or below the floor, and
// none is NaN.
func TestRatesFall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Schedule{Warmup: rapid.IntRange(0, 50).Draw(t, "warmup")}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			s.Kind, s.MinLR = Cosine, rapid.Float64Range(0, 0.01).Draw(t, "min")
		case 1:
			s.Kind, s.Every, s.Gamma = Step, rapid.IntRange(1, 5).Draw(t, "every"), rapid.Float64Range(0.01, 1).Draw(t, "gamma")
		case 2:
			s.Kind, s.Milestones = Step, []int{1, 3, 4}
		}
		total, perEpoch := rapid.IntRange(1, 100).Draw(t, "total"), rapid.IntRange(1, 30).Draw(t, "perEpoch")
		require.NoError(t, s.Validate())
		last := math.Inf(1)
		for step := range total + 10 {
			rate := s.Rate(0.01, step, total, perEpoch)
			require.True(t, rate >= 0 && rate <= 0.01, "step %d: %v", step, rate)
			if step >= s.Warmup {
				require.GreaterOrEqual(t, rate, s.MinLR)
				require.LessOrEqual(t, rate, last)
				last = rate
			}
		}
	})
}

func TestScheduleOptions(t *testing.T) {
	for _, c := range []struct {
		Schedule
		want string
	}{
		{Schedule{Kind: "linear"}, "{schedule} linear: there are constant, cosine and step"},
		{Schedule{Warmup: -1}, "{warmup} -1: at least 0 steps"},
		{Schedule{Kind: Cosine, MinLR: math.NaN()}, "{min_lr} NaN: at least 0"},
		{Schedule{MinLR: 0.1}, "{min_lr} 0.1: only {schedule} cosine"},
		{Schedule{Kind: Cosine, Every: 3}, "only {schedule} step has them"},
		{Schedule{Kind: Step}, "give either {lr_every} or {lr_milestones}"},
		{Schedule{Kind: Step, Every: 1, Milestones: []int{1}}, "give either {lr_every} or {lr_milestones}"},
		{Schedule{Kind: Step, Every: 1, Gamma: -1}, "{lr_gamma} -1: "},
		{Schedule{Kind: Step, Milestones: []int{2, 2}}, "{lr_milestones} [2 2]: ascending epochs, from 1"},
		{Schedule{Kind: Step, Milestones: []int{0, 2}}, "{lr_milestones} [0 2]: ascending epochs, from 1"},
	} {
		require.ErrorContains(t, c.Validate(), c.want)
	}
}
