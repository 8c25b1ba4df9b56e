package pipeline

import (
	"context"
	"sync"

	"github.com/gnnstore/gnnstore/cachetier"
)

// flight is the bytes of blocks between drawing and the end of use.
type flight struct {
	sync.Mutex
	bytes int64
	fell  chan struct{} // has an element when bytes fell since the last look
}

func (f *flight) init() { f.fell = make(chan struct{}, 1) }

func (f *flight) add(n int64) {
	f.Lock()
	f.bytes += n
	f.Unlock()
	if n < 0 {
		select {
		case f.fell <- struct{}{}:
		default:
		}
	}
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

// group is steps that are drawn together.
type group []Sampled

func bytesOf(groups []group) (n int64) {
	for _, g := range groups {
		for _, s := range g {
			n += s.Batch.Bytes()
		}
	}
	return n
}

// fitsAhead says whether a group of more bytes may be drawn while there are held bytes of groups that are not planned.
func (p *Pipeline) fitsAhead(held, more int64) bool {
	return held == 0 || held+more <= p.Bytes/int64(InFlight+p.Ahead)*int64(1+p.Ahead)
}

// sizing is what the size of the next group follows from.
type sizing struct {
	largest int64 // bytes of a batch so far
	steps   int   // of the last window
	rows    int   // that it wanted of the cache, each once
}

func (g *sizing) note(w *cachetier.Window) { g.steps, g.rows = w.Steps(), w.Rows() }

// Window is the steps of the newest window and the different rows that it needs of the cache, 0 if there is none. It may be
// called at any time.
func (p *Pipeline) Window() (steps, rows int) {
	return int(p.clock.steps.Load()), int(p.clock.rows.Load())
}

// InFlight is how many groups there are at a time, beside those that are drawn ahead: one in use, one being loaded, one
// being drawn.
const InFlight = 3

// groupSteps is the size of the next group: as many steps as the last window says will fill one, or more, since each row is
// wanted by more of them the more they are. Where no rows are read, one step for each that is drawn at once. Where nothing
// is known of batches, the first groups are a single step, which shows how large they are.
func (p *Pipeline) groupSteps() int {
	g := &p.size
	if g.steps == 0 {
		return 1
	}
	n := p.Group
	if n == 0 {
		n = p.Parallel
		if slots := p.Stack.WindowRows(); slots > 0 && g.rows > 0 {
			n = max(n, slots*g.steps/g.rows)
		}
	}
	if g.largest > 0 {
		n = min(n, int(p.Bytes/int64(InFlight+p.Ahead)/g.largest))
	}
	return max(n, 1)
}
