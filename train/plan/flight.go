package plan

import (
	"context"
	"sync"
)

// flight is the batches between drawing and the end of use, and the memory of those that were used.
// Its lock is its own, so that whoever uses a batch does not wait for a decision.
type flight struct {
	sync.Mutex
	bytes int64         // of batches
	fell  chan struct{} // has an element when bytes fell since the last look
	free  []Batch       // used
}

func newFlight() flight { return flight{fell: make(chan struct{}, 1)} }

// take returns a batch to draw into: a used one if there is one, else a new one.
func (f *flight) take(from Sampler) Batch {
	f.Lock()
	defer f.Unlock()
	if n := len(f.free); n > 0 {
		b := f.free[n-1]
		f.free = f.free[:n-1]
		return b
	}
	return from.New()
}

// add counts a batch that is drawn.
func (f *flight) add(b Batch) {
	f.Lock()
	defer f.Unlock()
	f.bytes += b.Bytes()
}

// give takes b out of flight and keeps its memory for the next.
func (f *flight) give(b Batch) {
	f.Lock()
	f.bytes -= b.Bytes()
	f.free = append(f.free, b)
	f.Unlock()
	select {
	case f.fell <- struct{}{}:
	default:
	}
}

// trim gives up the memory of batches that were used.
func (f *flight) trim() {
	f.Lock()
	defer f.Unlock()
	f.free = nil
}

// reset takes note that no batch is in flight any more.
func (f *flight) reset() {
	f.Lock()
	defer f.Unlock()
	f.bytes = 0
}

// wait returns when more bytes fit the budget, or when no more than held are in flight.
func (f *flight) wait(ctx context.Context, held, more, budget int64) error {
	for {
		f.Lock()
		fits := f.bytes <= held || f.bytes+more <= budget
		f.Unlock()
		if fits {
			return nil
		}
		select {
		case <-f.fell:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
