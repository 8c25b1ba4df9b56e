package plan

import (
	"context"
	"math"

	"github.com/gnnstore/gnnstore/cachetier"
)

// limits bounds a horizon. They are known before any step of it is drawn, so they do not depend on
// the progress of other stages.
type limits struct {
	windows, steps int
	bytes          int64 // of the spill
	blocks         int64 // of the bytes, for batches, which go to the spill while they are drawn
	window         int   // steps of a window, as far as is known; 1 at least
}

// limits returns the limits of the next horizon of a range: firstSteps for the first, then some
// windows, then as many as there is room for, but at most horizonGrowth times the last, so that no
// step waits for too many to be drawn. So the first step waits no longer than without horizons.
//
// The spill empties as windows are loaded. A horizon may take the room that the horizon in use
// leaves after most of its windows, and its scan waits for that room. Its batches may take the room
// beside the whole horizon in use.
func (p *Planner) limits() limits {
	whole := p.Join.File.Stats().CapacityBytes
	l := limits{windows: p.Join.Windows, steps: p.steps.To - p.next, bytes: whole, blocks: whole, window: max(p.windowSteps(), 1)}
	if h := p.horizons.now; h != nil {
		n := len(h.windows)
		l.windows, l.bytes, l.blocks = l.windows-n, whole-h.held.after(drained(n)), whole-h.held.after(0)
		if p.horizons.begun > 1 {
			l.windows = min(l.windows, n*horizonGrowth)
		}
	}
	l.bytes = min(l.bytes, whole/8*7) // so that batches of the next horizon find room
	switch p.horizons.begun {
	case 0:
		l.windows, l.steps = 1, min(l.steps, int(firstSteps(float64(l.window), p.gap)))
	case 1:
		l.windows = min(l.windows, rampOf(float64(l.window)))
	}
	l.windows = max(l.windows, 1)
	return l
}

const (
	rampWindows   = 4  // of the first horizon of several: so many are drawn while some steps are used
	rampWanted    = 80 // the least steps of the ramp if windows are short: a pass of the table takes as long for fewer
	horizonGrowth = 4  // times as many windows as the one before
)

// rampOf returns the most windows, of so many steps each, that the first horizon of several may
// have.
func rampOf(window float64) int { return max(rampWindows, int(rampWanted/window)) }

// drained returns the number of windows, of the n of a horizon, after which there must be room for
// the next horizon. The table is scanned while the others are used: a quarter, and two at least, or
// the last of two.
func drained(n int) int { return max(min(n-1, 1), n-max(n/4, 2)) }

// held counts what a horizon has in the spill: held[k] is for windows k and later. The last entry
// is 0.
type held []struct {
	steps  int
	blocks int64   // bytes at most
	rows   []int64 // the same, by table
}

// after returns the most bytes that the horizon has in the spill once the windows before the k-th
// are loaded. The rows of a single window need none.
func (h held) after(k int) int64 {
	bytes := h[k].blocks
	for _, rows := range h[k].rows {
		if len(h) > 2 {
			bytes += rows
		}
	}
	return bytes
}

// growth estimates what a horizon of more or fewer steps takes of a spill, from one of known size.
// The bytes of batches are in proportion to steps.
type growth struct {
	steps, blocks float64
	tables        []rowGrowth
}

// rowGrowth estimates the rows of a table. They grow more slowly than steps: the more steps there
// are, the more rows they share.
type rowGrowth struct {
	popularity
	bytes float64 // for the rows of all steps
	power float64 // exponent that corrects the growth by the popularity to the known growth
}

// rowGrowthOf returns the growth of rows with steps for a table of count rows. All steps read
// rows of them, and someSteps read someRows. If one of the two is unknown, it trusts the
// popularity.
func rowGrowthOf(count, bytes, steps, rows, someSteps, someRows float64) rowGrowth {
	g := rowGrowth{popularity{count: count}, bytes, 1}
	if rows > 0 {
		g.each = g.uses(rows) / steps
	}
	if thought := math.Log(g.of(steps) / g.of(someSteps)); someSteps < steps && someRows > 0 && thought > 0.01 {
		g.power = math.Log(rows/someRows) / thought
	}
	return g
}

// at returns the bytes of a spill that so many steps take: for batches, and in all.
func (g growth) at(steps float64) (blocks, all float64) {
	blocks = g.blocks * steps / g.steps
	all = blocks
	for _, t := range g.tables {
		if t.each > 0 {
			all += t.bytes * math.Pow(t.of(steps)/t.of(g.steps), t.power)
		}
	}
	return blocks, all
}

// fitting returns the most steps, from 1 to n, that take at most bytes of the spill, and at most
// blocks of them for batches. It returns 1 if none do.
func (g growth) fitting(n int, bytes, blocks int64) int {
	lo, hi := 1, n+1
	for hi-lo > 1 {
		mid := (lo + hi) / 2
		if own, all := g.at(float64(mid)); own <= float64(blocks) && all <= float64(bytes) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// drain is a horizon whose windows are loaded while the next one is prepared. The zero drain has
// none.
type drain struct {
	tables []*cachetier.Horizon
	held   held
}

// drain returns the drain of h. It can be used while h is closed, and after.
func (h *horizon) drain() drain { return drain{h.tables, h.held} }

// growth estimates how the bytes of horizons grow with their steps. It compares all windows of this
// horizon with its later half.
func (d drain) growth() growth {
	k := (len(d.held) - 1) / 2
	all, some := d.held[0], d.held[k]
	g := growth{steps: float64(all.steps), blocks: float64(all.blocks)}
	for i, t := range d.tables {
		if t != nil {
			g.tables = append(g.tables, rowGrowthOf(float64(t.Table()), float64(all.rows[i]), g.steps, float64(t.Left(0)), float64(some.steps), float64(t.Left(k))))
		}
	}
	return g
}

// all waits until all windows are loaded.
func (d drain) all(ctx context.Context) error { return d.loaded(ctx, len(d.held)-1) }

// until waits until so many windows are loaded that the others have at most so many bytes in the
// spill.
func (d drain) until(ctx context.Context, bytes int64) error {
	k := 0
	for k < len(d.held)-1 && d.held.after(k) > bytes {
		k++
	}
	return d.loaded(ctx, k)
}

// loaded waits until the windows before the k-th are loaded.
func (d drain) loaded(ctx context.Context, k int) error {
	for _, t := range d.tables {
		if t != nil {
			if err := t.Drained(ctx, k); err != nil {
				return err
			}
		}
	}
	return nil
}
