package build

import (
	"sync"
	"time"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/kernels"
)

// progressInterval is the least time between two reports within a stage: ten a second read as
// motion.
const progressInterval = 100 * time.Millisecond

// shortStage is the length of a stage after which memory is measured, which takes 0.1 ms.
const shortStage = 5 * time.Millisecond

// meter counts a stage and reports it now and then. A nil report makes it silent. Any goroutine may
// add.
type meter struct {
	report func(ingest.Progress)
	mu     sync.Mutex
	now    ingest.Progress
	began  time.Time
	last   time.Time

	peakOwn, peakFile int64 // bytes in memory, of the process and of mapped files
}

// begin starts a stage; end ends it with a last report. Thousands of relations have stages of less
// than a millisecond: after a short one memory is not measured again.
func (m *meter) begin(stage string, total int64, unit string) {
	m.now, m.began = ingest.Progress{Stage: stage, Total: total, Unit: unit}, time.Now()
}

func (m *meter) add(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Done += int64(n)
	if t := time.Now(); t.Sub(m.last) >= progressInterval {
		m.last = t
		m.look()
	}
}

// look measures memory and reports.
func (m *meter) look() {
	own, file := kernels.ResidentBytes()
	m.peakOwn, m.peakFile = max(m.peakOwn, own), max(m.peakFile, file)
	if m.report != nil {
		m.report(m.now)
	}
}

func (m *meter) end() (done int64) {
	if t := time.Now(); t.Sub(m.began) >= shortStage || t.Sub(m.last) >= progressInterval {
		m.last = t
		m.look()
	} else if m.report != nil {
		m.report(m.now)
	}
	return m.now.Done
}
