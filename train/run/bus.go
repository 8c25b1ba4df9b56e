package run

import "github.com/gnnstore/gnnstore/kernels"

// Bus counts the waits, copies and launches of training steps. It sums over the processes of a run,
// and leaves out a process whose backend does not count. Its JSON keys are stable.
type Bus struct {
	Steps int64 `json:"steps"` // that were counted
	kernels.Counts
}

// StepWork counts the arithmetic of training steps, as Bus counts their waits.
type StepWork struct {
	Steps int64 `json:"steps"` // that were counted
	kernels.Work
}

// busMeter counts the steps of a run.
type busMeter struct {
	sum  Bus
	last kernels.Counts // before the step under way

	work     StepWork
	lastWork kernels.Work
}

// from begins a step, and counts nothing that came before.
func (m *busMeter) from(be kernels.Backend) {
	m.last, _ = kernels.CountsOf(be)
	m.lastWork, _ = kernels.WorkOf(be)
}

// step counts a step that has ended, as far as the backend counts.
func (m *busMeter) step(be kernels.Backend) {
	if now, ok := kernels.CountsOf(be); ok {
		m.sum.Steps++
		m.sum.Counts, m.last = m.sum.Add(now.Sub(m.last)), now
	}
	if now, ok := kernels.WorkOf(be); ok {
		m.work.Steps++
		m.work.Work, m.lastWork = m.work.Add(now.Sub(m.lastWork)), now
	}
}

// report sets the counts so far in r, or nil where there are none. Nobody writes to them again.
func (m *busMeter) report(r *Result) {
	r.Bus, r.Work = nil, nil
	if sum := m.sum; sum.Steps > 0 {
		r.Bus = &sum
	}
	if work := m.work; work.Steps > 0 {
		r.Work = &work
	}
}

// restore continues from the counts of a result.
func (m *busMeter) restore(r *Result) {
	if r.Bus != nil {
		m.sum = *r.Bus
	}
	if r.Work != nil {
		m.work = *r.Work
	}
}
