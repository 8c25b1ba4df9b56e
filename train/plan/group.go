package plan

import "math"

// InFlight is the number of groups at a time, beside the groups that are drawn ahead: one in use,
// one being loaded, one being drawn.
const InFlight = 3

// group is steps that are drawn together.
type group []Drawn

func bytesOf(groups []group) (n int64) {
	for _, g := range groups {
		for _, s := range g {
			n += s.Batch.Bytes()
		}
	}
	return n
}

// fitsAhead reports whether a group of more bytes may be drawn while groups of held bytes are in no
// window yet.
func (p *Planner) fitsAhead(held, more int64) bool {
	return held == 0 || held+more <= p.Bytes/int64(InFlight+p.Ahead)*int64(1+p.Ahead)
}

// The first group of a range has few steps: a window's steps divided by rampParts, but at least
// rampSteps. Each group after it has twice as many as the one before. With windows of 40 steps, the
// first step came after 10 s without this, and after 4 s with it; tools/results/out-of-core.md,
// learnt rows.
//
// The rows of few steps may lie so close together that most of the table is read for them. That is
// so if their mean distance is at most rampGap bytes, which an SSD reads as fast as it begins
// another read. Then the first group fills a window, and later windows are drawn and read while its
// steps run. With 40 % of the rows of 10 M nodes in memory, 77 steps were read in 2.9 s, where 9
// took 1.9 s. The first step came after 4.0 s, where it had come after 2.4 s, but no other step
// waited: an epoch had waited for 8.5 s in all.
const (
	rampParts = 8
	rampSteps = 8
	rampGap   = 16 << 10
)

// firstSteps returns the number of steps of the first group, when fill steps fill a window. gap
// returns the mean distance, in bytes, between the rows that so many steps want.
func firstSteps(fill float64, gap func(steps float64) float64) float64 {
	few := min(fill, max(math.Floor(fill/rampParts), rampSteps))
	if gap(few) <= rampGap {
		return fill
	}
	return few
}

// sizing holds what determines the size of the next group.
type sizing struct {
	largest int64 // bytes of a batch so far
	steps   int   // of the last window
	rows    []int // number of different rows that it wanted of each table's cache
}

func (g *sizing) note(w *Window) {
	g.steps, g.rows = len(w.Steps), g.rows[:0]
	for _, r := range w.Rows {
		g.rows = append(g.rows, r.Rows())
	}
}

// groupSteps returns the number of steps of the next group. It is the number that fills a window,
// by the last window; that may be too few, since more steps share more rows. The table with the
// least room decides. If no rows are read, it is Parallel. If no batch is known yet, it is one
// step, which shows the size of batches. The first groups of a range may be shorter, since nothing
// is computed while they are drawn and read: see firstSteps.
func (p *Planner) groupSteps() int {
	g := &p.size
	if g.steps == 0 {
		return 1
	}
	n := p.Group
	if n == 0 {
		n = p.Parallel
		if fill := p.windowSteps(); fill > 0 {
			n = max(n, min(fill, ramp(fill, p.last, p.steps.To-p.next, p.gap)))
		}
	}
	if g.largest > 0 {
		n = min(n, int(p.Bytes/int64(InFlight+p.Ahead)/g.largest))
	}
	if p.steps.Expand != nil {
		n = min(n, p.steps.Lag/2)
	}
	return max(n, 1)
}

// ramp returns the most steps that the next group may have. fill steps fill a window, the group
// before it had last steps (0 if there is none), and left steps are left in the range.
func ramp(fill, last, left int, gap func(steps float64) float64) int {
	n := max(int(firstSteps(float64(fill), gap)), 2*last)
	if left < 2*n {
		return left
	}
	return n
}

// gap returns the mean distance, in bytes, between the rows that so many steps want of a table, if
// these steps are like the steps of the last window and share no rows. Of several tables with a
// cache, it returns the largest distance.
func (p *Planner) gap(steps float64) (bytes float64) {
	for i, t := range p.Tables {
		if rows := float64(p.size.rows[i]); t.WindowRows() > 0 && rows > 0 {
			bytes = max(bytes, float64(t.ColdBytes())*float64(p.size.steps)/rows/steps)
		}
	}
	return bytes
}

// windowSteps returns the number of steps that fill a window, if these steps are like the steps of
// the last one. It returns 0 if no table has a cache.
func (p *Planner) windowSteps() (n int) {
	for i, t := range p.Tables {
		if slots, rows := t.WindowRows(), p.size.rows[i]; slots > 0 && rows > 0 {
			if fill := max(slots*p.size.steps/rows, 1); n == 0 || fill < n {
				n = fill
			}
		}
	}
	return n
}
