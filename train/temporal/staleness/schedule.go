package staleness

// Step is one step of a schedule.
type Step struct {
	K          int // it sees the updates of steps up to its number less K
	Start, End [Stages]float64
	Visible    float64 // when the others see its update
}

// Constant is the schedule of n steps with staleness k, or of fewer: step i, from 1, has min(i, k).
func (c Costs) Constant(n, k int) []Step {
	s := make([]Step, 0, n)
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

// Plan is the schedule of n steps where each has the least k with which its training does not wait
// for state, and at most most. most below 1 is no bound.
func (c Costs) Plan(n, most int) []Step {
	s, p := make([]Step, 0, n), -1 // p is the newest step that is seen: it never decreases
	for i := range n {
		t, eager := c.begin(s)
		train := eager + c.Stage[State] // when training would start
		if i > 0 {
			train = max(train, s[i-1].End[Train])
		}
		for p+1 < i && s[p+1].Visible <= train-c.Stage[State] {
			p++
		}
		if most >= 1 {
			p = max(p, i-most) // rather wait than be older
		}
		t.K = i - p
		if p >= 0 {
			eager = max(eager, s[p].Visible)
		}
		s = append(s, c.finish(s, t, eager))
	}
	return s
}

// begin returns the step after s, up to its features, and the earliest time at which it could fetch
// state.
func (c Costs) begin(s []Step) (t Step, eager float64) {
	var last Step
	if len(s) > 0 {
		last = s[len(s)-1]
	}
	t.run(c, Sample, last.End[Sample])
	t.run(c, Page, max(t.End[Sample], last.End[Page]))
	t.run(c, Features, max(t.End[Page], last.End[State]))
	return t, max(t.End[Features], last.End[State])
}

// finish completes t from its fetch of state on, which starts at start.
func (c Costs) finish(s []Step, t Step, start float64) Step {
	var last Step
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

func (t *Step) run(c Costs, stage int, start float64) {
	t.Start[stage], t.End[stage] = start, start+c.Stage[stage]
}
