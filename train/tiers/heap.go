package tiers

import (
	"cmp"
	"runtime/debug"
	"sync"

	"github.com/gnnstore/gnnstore/kernels"
)

// HeapLimit keeps the Go heap within what a budget for the whole process leaves: GOMEMLIMIT is the
// budget less what lies outside the heap. Without a budget nothing is limited. If runs share a
// process, the limit of the run that adjusted it last holds.
type HeapLimit struct {
	Budget  int64 // less what lies outside the heap and is not counted by kernels.HostBytes
	Least   int64 // what the heap gets at least; 0: minHeap
	outside int64 // 0: not at work
}

// minHeap is the limit of the Go heap even where the rest takes the whole budget. Below it the
// collector would run all the time.
const minHeap = 64 << 20

// heapLimits counts the limits at work in this process.
var heapLimits struct {
	sync.Mutex
	atWork int
	before int64 // the limit to put back after the last of them
}

// Follow adjusts the limit to what lies outside the heap now.
func (l *HeapLimit) Follow() {
	outside := kernels.HostBytes() + kernels.SpareBytes()
	if l.Budget == 0 || outside == l.outside {
		return
	}
	heapLimits.Lock()
	defer heapLimits.Unlock()
	before := debug.SetMemoryLimit(max(l.Budget-outside, cmp.Or(l.Least, minHeap)))
	if l.outside == 0 {
		if heapLimits.atWork++; heapLimits.atWork == 1 {
			heapLimits.before = before
		}
	}
	l.outside = outside
}

// Close takes the limit back. The last one restores the limit that was there before.
func (l *HeapLimit) Close() {
	if l.outside == 0 {
		return
	}
	heapLimits.Lock()
	defer heapLimits.Unlock()
	if heapLimits.atWork--; heapLimits.atWork == 0 {
		debug.SetMemoryLimit(heapLimits.before)
	}
	l.outside = 0
}
