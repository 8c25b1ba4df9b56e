package staleness

// step is one step of a schedule. Tests compute it stage by stage, and compare it with
// Costs.Period.
type step struct {
	K          int // it sees the updates of steps up to its number less K
	Start, End [Stages]float64
	Visible    float64 // when the others see its update
}

// constant returns a schedule of n steps. Step i, counted from 1, has staleness min(i, k).
func (c Costs) constant(n, k int) []step {
	s := make([]step, 0, n)
	for i := range n {
		t, seen := c.begin(s)
		t.K = min(i+1, max(1, k))
		if p := i - t.K; p >= 0 {
			seen = max(seen, s[p].Visible)
		}
		s = append(s, c.finish(s, t, seen))
	}
	return s
}

// begin returns the step after s, up to its features, and the earliest time at which it could fetch
// state.
func (c Costs) begin(s []step) (t step, eager float64) {
	var last step
	if len(s) > 0 {
		last = s[len(s)-1]
	}
	t.run(c, Sample, last.End[Sample])
	t.run(c, Page, max(t.End[Sample], last.End[Page]))
	t.run(c, Features, max(t.End[Page], last.End[State]))
	return t, max(t.End[Features], last.End[State])
}

// finish completes t from its fetch of state on, which starts at start.
func (c Costs) finish(s []step, t step, start float64) step {
	var last step
	if len(s) > 0 {
		last = s[len(s)-1]
	}
	t.run(c, State, start)
	t.run(c, Train, max(t.End[State], last.End[Train]))
	t.run(c, Publish, max(t.End[Train], last.End[Publish]))
	t.Visible = t.End[Publish]
	if c.Early {
		t.Visible = t.Start[Train] + c.Forward + c.Publication
	}
	return t
}

func (t *step) run(c Costs, stage int, start float64) {
	t.Start[stage], t.End[stage] = start, start+c.Stage[stage]
}
