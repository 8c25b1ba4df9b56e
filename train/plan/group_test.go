package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRamp: groups of a range grow up to the size of a window, and no smaller group leaves a rest
// that is smaller than itself.
func TestRamp(t *testing.T) {
	for _, c := range []struct {
		fill, steps int
		want        []int
	}{
		{40, 150, []int{8, 16, 32, 40, 40, 14}},
		{400, 1000, []int{50, 100, 200, 400, 250}},
		{40, 20, []int{8, 12}},
		{40, 15, []int{15}},
		{3, 8, []int{3, 3, 2}},
	} {
		p := &Planner{steps: Steps{From: 5, To: 5 + c.steps}, next: 5}
		var got []int
		for p.next < p.steps.To {
			p.last = min(c.fill, p.ramp(c.fill), p.steps.To-p.next)
			p.next += p.last
			got = append(got, p.last)
		}
		require.Equal(t, c.want, got)
	}
}
