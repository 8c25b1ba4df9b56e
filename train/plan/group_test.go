package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRamp: groups of a range grow up to the size of a window, and no smaller group leaves a rest
// that is smaller than itself. If the rows of few steps lie close together, the first group fills a
// window.
func TestRamp(t *testing.T) {
	for _, c := range []struct {
		fill, steps int
		close       float64 // from so many steps on
		want        []int
	}{
		{40, 150, 9, []int{8, 16, 32, 40, 40, 14}},
		{40, 150, 8, []int{40, 40, 40, 30}},
		{400, 1000, 51, []int{50, 100, 200, 400, 250}},
		{400, 1000, 50, []int{400, 400, 200}},
		{40, 20, 9, []int{8, 12}},
		{40, 15, 9, []int{15}},
		{3, 8, 9, []int{3, 3, 2}},
	} {
		var got []int
		for left, last := c.steps, 0; left > 0; left -= last {
			gap := func(steps float64) float64 { return c.close / steps * rampGap }
			last = min(c.fill, ramp(c.fill, last, left, gap))
			got = append(got, last)
		}
		require.Equal(t, c.want, got)
	}
}
