package staleness

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// spans are the starts and ends of a stage over the first steps.
func spans(s []step, stage, n int) (all [][2]float64) {
	for _, t := range s[:n] {
		all = append(all, [2]float64{t.Start[stage], t.End[stage]})
	}
	return all
}

func ks(s []step) (all []int) {
	for _, t := range s {
		all = append(all, t.K)
	}
	return all
}

func TestSchedules(t *testing.T) {
	c := Costs{Stage: [Stages]float64{1, 0, 1, 1, 4, 2}}
	s := c.constant(30, 2)
	require.Equal(t, []int{1, 2, 2, 2, 2}, ks(s[:5]))
	require.Equal(t, [][2]float64{{2, 3}, {4, 5}, {9, 10}, {13, 14}}, spans(s, State, 4))
	require.Equal(t, [][2]float64{{3, 7}, {7, 11}, {11, 15}, {15, 19}}, spans(s, Train, 4))
	require.Equal(t, [][2]float64{{7, 9}, {11, 13}, {15, 17}, {19, 21}}, spans(s, Publish, 4))
	require.Equal(t, 2, c.Within(0))
	require.Equal(t, 3, c.InFlight())
	require.Equal(t, 9+29*4.0, s[29].End[Publish])

	c = Costs{Stage: [Stages]float64{2, 0, 3, 1, 3, 2}}
	require.Equal(t, 4.0, c.Limit())
	require.Equal(t, 2, c.Within(0))
	s = c.constant(10, 2)
	require.Equal(t, [][2]float64{{2, 5}, {6, 9}, {10, 13}}, spans(s, Features, 3))
	require.Equal(t, [][2]float64{{6, 9}, {10, 13}, {14, 17}}, spans(s, Train, 3))
}
