package staleness

import "math"

// The stages of a step, in order. Page brings rows from disk ahead of their step, those of state as
// well, whatever their values will be. Features and State copy them for it, and share a reader: of
// all steps, one of the two runs at a time.
const (
	Sample = iota
	Page
	Features
	State
	Train
	Publish
	Stages // how many there are
)

// Costs is what one step takes. All times have one unit, any.
type Costs struct {
	Stage [Stages]float64
	// Forward is how far into Train the new state is known, for early publication: the state is
	// then visible Publication later, and the rest of Train goes on meanwhile. Stage[Publish] is
	// then what is left to do off the way, such as writing records to their table. Default: state
	// is visible after Stage[Publish].
	Early                bool
	Forward, Publication float64
	// Compute is the processor time of all stages together, without what they wait, and Cores the
	// processors that they share. Default: each stage has a processor of its own.
	Compute float64
	Cores   int
}

// Serial is what a step takes when stages do not overlap.
func (c Costs) Serial() (sum float64) {
	for _, t := range c.Stage {
		sum += t
	}
	return sum
}

// Limit is the shortest period of a step, at any k: that of the busiest resource.
func (c Costs) Limit() float64 {
	s := c.Stage
	t := max(s[Sample], s[Page], s[Features]+s[State], s[Train], s[Publish])
	if c.Cores > 0 {
		t = max(t, c.Compute/float64(c.Cores))
	}
	return t
}

// cycle is the time from the fetch of state to where the update that it leads to is visible.
func (c Costs) cycle() float64 {
	if c.Early {
		return c.Stage[State] + c.Forward + c.Publication
	}
	return c.Stage[State] + c.Stage[Train] + c.Stage[Publish]
}

// Period is that of a step in a pipeline that is full, with staleness k, at least 1.
func (c Costs) Period(k int) float64 { return max(c.Limit(), c.cycle()/float64(k)) }

// PeriodInFlight is that of a step where steps are not staggered by state, but where at most n are
// under way at a time, each from its first stage to its last.
func (c Costs) PeriodInFlight(n int) float64 { return max(c.Limit(), c.Serial()/float64(n)) }

// Best is the least k whose period is Limit. 1 means that the plain loop's results come at full
// speed.
func (c Costs) Best() int { return c.Within(0) }

// Within is the least k whose period is at most 1 + share times Limit: costs that were measured are
// known to some share alone.
func (c Costs) Within(share float64) int { return c.least(c.cycle() / (1 + share)) }

// InFlight is how many steps must be under way for a period of Limit.
func (c Costs) InFlight() int { return c.least(c.Serial()) }

// least is the least n ≥ 1 with work/n ≤ Limit. A quotient that rounding has put a hair above an
// integer counts as the integer.
func (c Costs) least(work float64) int {
	limit := c.Limit()
	if !(limit > 0) {
		return 1
	}
	return max(1, int(math.Ceil(work/limit*(1-1e-12))))
}

// Speedup is how many times as fast as the serial loop a full pipeline is with staleness k.
func (c Costs) Speedup(k int) float64 {
	if p := c.Period(k); p > 0 {
		return c.Serial() / p
	}
	return 1
}
