package staleness

import "math"

// The stages of a step, in order. Page brings rows from disk ahead of their step, including rows of
// state, whatever their values will be. Features and State copy them for the step, and share a
// reader: only one of the two runs at a time, across all steps.
const (
	Sample = iota
	Page
	Features
	State
	Train
	Publish
	Stages // how many there are
)

// Costs are the times that one step takes, in any one unit.
type Costs struct {
	Stage [Stages]float64
	// Forward is the time from the start of Train until the new state is known, for early
	// publication. The state is then visible Publication later, and the rest of Train goes on
	// meanwhile. Stage[Publish] is then the rest of the work, off the critical path, such as
	// writing records to their table. Default: state is visible after Stage[Publish].
	Early                bool
	Forward, Publication float64
	// Compute is the processor time of all stages together, without their waits, and Cores the
	// number of processors that they share. Default: each stage has a processor of its own.
	Compute float64
	Cores   int
}

// Serial returns the time of a step whose stages do not overlap.
func (c Costs) Serial() (sum float64) {
	for _, t := range c.Stage {
		sum += t
	}
	return sum
}

// Limit returns the shortest period of a step, at any k: the period of the busiest resource.
func (c Costs) Limit() float64 {
	s := c.Stage
	t := max(s[Sample], s[Page], s[Features]+s[State], s[Train], s[Publish])
	if c.Cores > 0 {
		t = max(t, c.Compute/float64(c.Cores))
	}
	return t
}

// cycle is the time from the fetch of state until the update that follows from it is visible.
func (c Costs) cycle() float64 {
	if c.Early {
		return c.Stage[State] + c.Forward + c.Publication
	}
	return c.Stage[State] + c.Stage[Train] + c.Stage[Publish]
}

// Period returns the period of a step in a full pipeline with staleness k, at least 1.
func (c Costs) Period(k int) float64 { return max(c.Limit(), c.cycle()/float64(k)) }

// Within returns the least k whose period is at most 1 + share times Limit: measured costs have an
// error of about such a share.
func (c Costs) Within(share float64) int { return c.least(c.cycle() / (1 + share)) }

// InFlight returns the number of steps that must be under way for a period of Limit.
func (c Costs) InFlight() int { return c.least(c.Serial()) }

// least returns the least n ≥ 1 with work/n ≤ Limit. A quotient that rounding has put a hair above
// an integer counts as the integer.
func (c Costs) least(work float64) int {
	limit := c.Limit()
	if !(limit > 0) {
		return 1
	}
	return max(1, int(math.Ceil(work/limit*(1-1e-12))))
}

// Speedup returns the speedup of a full pipeline with staleness k over the serial loop.
func (c Costs) Speedup(k int) float64 {
	if p := c.Period(k); p > 0 {
		return c.Serial() / p
	}
	return 1
}
