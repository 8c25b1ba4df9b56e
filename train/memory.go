package train

import (
	"runtime/debug"
	"time"

	"github.com/gnnstore/gnnstore/kernels"
)

// memoryPeak follows the process's memory; it looks a few times a second at most.
type memoryPeak struct {
	last      time.Time
	rss, file int64
}

func (p *memoryPeak) look() {
	if now := time.Now(); now.Sub(p.last) > 100*time.Millisecond {
		p.last = now
		anon, file := kernels.ResidentBytes()
		p.rss, p.file = max(p.rss, anon), max(p.file, file)
	}
}

// heapLimit keeps the Go heap within what a budget for the whole process leaves: GOMEMLIMIT is the budget less what lies
// outside the heap. Its zero value limits nothing.
type heapLimit struct {
	budget  int64
	outside int64
	before  int64 // the limit to put back
}

// minHeap is what the Go heap gets though the rest takes the whole budget: below it the collector would never rest.
const minHeap = 64 << 20

// follow adjusts the limit to what lies outside the heap now.
func (l *heapLimit) follow() {
	outside := kernels.HostBytes() + kernels.MaxSpareBytes
	if l.budget == 0 || outside == l.outside {
		return
	}
	before := debug.SetMemoryLimit(max(l.budget-outside, minHeap))
	if l.outside == 0 {
		l.before = before
	}
	l.outside = outside
}

func (l *heapLimit) close() {
	if l.outside != 0 {
		debug.SetMemoryLimit(l.before)
		l.outside = 0
	}
}
