package run

import "github.com/gnnstore/gnnstore/kernels"

// Bus counts the work that training steps gave a backend. It sums over the processes of a run, and
// leaves out a process whose backend does not count. Its JSON keys are stable.
type Bus struct {
	Steps int64 `json:"steps"` // that were counted
	kernels.Counts
}

// busMeter counts the steps of a run.
type busMeter struct {
	sum  Bus
	last kernels.Counts // before the step under way
}

// from begins a step, and counts nothing that came before.
func (m *busMeter) from(be kernels.Backend) { m.last, _ = kernels.CountsOf(be) }

// step counts a step that has ended, if the backend counts.
func (m *busMeter) step(be kernels.Backend) {
	now, ok := kernels.CountsOf(be)
	if !ok {
		return
	}
	m.sum.Steps++
	m.sum.Counts, m.last = m.sum.Add(now.Sub(m.last)), now
}

// so returns the counts so far, or nil if there are none. Nobody writes to it again.
func (m *busMeter) so() *Bus {
	if m.sum.Steps == 0 {
		return nil
	}
	sum := m.sum
	return &sum
}
