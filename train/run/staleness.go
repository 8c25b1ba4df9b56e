package run

import "fmt"

// AutoStaleness is the decision on Options.Staleness Auto on a machine. A resumed run keeps it.
type AutoStaleness struct {
	K int `json:"k"`
	// Best is the least staleness with which a step takes at most 5 % longer than if no step waits
	// for state, by the Rehearsal. Most is the largest with at most half of the nodes read out of
	// date; 0 if Best is 1, since then nothing larger is of use.
	Best int `json:"k_star"`
	Most int `json:"k_max,omitempty"`
	Rehearsal
	Reason string `json:"reason"` // a line
}

// Rehearsal has the seconds that each stage took for a step, one stage at work at a time, and the
// time of a step that this predicts for a full pipeline: see staleness.Costs. Its JSON keys are
// stable.
type Rehearsal struct {
	Steps    int     `json:"rehearsed_steps"`
	Sample   float64 `json:"sample_seconds"`
	Page     float64 `json:"load_seconds"` // bringing rows from disk
	Features float64 `json:"features_seconds"`
	State    float64 `json:"state_seconds"`
	Train    float64 `json:"step_seconds"`
	Publish  float64 `json:"publish_seconds"` // within Train, or behind it where state is published late
	Forward  float64 `json:"forward_seconds"` // of Train, until new state is known
	Compute  float64 `json:"processor_seconds"`
	Cores    int     `json:"cores"` // processors that share Compute

	Serial   float64 `json:"serial_seconds"`       // all stages in turn
	Plain    float64 `json:"plain_period_seconds"` // of a step at staleness 1
	Seconds  float64 `json:"seconds"`              // and at the staleness of the run
	Speedup  float64 `json:"speedup"`              // Serial ÷ Seconds
	InFlight int     `json:"p_star"`               // steps that are under way where none waits
}

// Explain sets Reason. fits is the largest staleness that the memory has room for, 0 if it does not
// bound it.
func (a *AutoStaleness) Explain(fits int) {
	begun := fmt.Sprintf("staleness auto: %d, by a rehearsal of %s: ", a.K, Counted(a.Steps, "step"))
	ms := func(s float64) string { return fmt.Sprintf("%.3g ms", 1e3*s) }
	step := fmt.Sprintf("a step should take %s, and %s with its stages in turn", ms(a.Seconds), ms(a.Serial))
	switch {
	case a.Best == 1:
		a.Reason = begun + "the plain loop, in which training waits for no state; " + step
		return
	case a.K == a.Best:
		step += fmt.Sprintf("; at 1, %s", ms(a.Plain))
		a.Reason = begun + fmt.Sprintf("the least with which training waits for no state; %s; up to %d, at most half of the nodes read are out of date", step, a.Most)
	case a.K == fits:
		a.Reason = begun + fmt.Sprintf("the most that {inflight} or the memory has room for, where %d would have training wait for no state; %s; at 1, %s", a.Best, step, ms(a.Plain))
	default:
		a.Reason = begun + fmt.Sprintf("the most with at least half of the nodes read up to date, where %d would have training wait for no state; %s; at 1, %s",
			a.Best, step, ms(a.Plain))
	}
	a.Reason += fmt.Sprintf("; {staleness} %d repeats the run", a.K)
}
