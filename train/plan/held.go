package plan

import (
	"context"
	"math"

	"github.com/gnnstore/gnnstore/cachetier"
)

// limits bound a horizon. They are known before any of it is drawn, so that it does not depend on
// how far others have come.
type limits struct {
	windows, steps int
	bytes          int64 // of the spill
	blocks         int64 // of them, for batches, which go there while they are drawn
	window         int   // steps of a window, as far as is known; 1 at least
}

// limits of the next horizon of a range: a few steps, then some windows, then as many as there is
// room for, but not so many more than before that a step waits for all to be drawn. So the first
// step waits for no more than it does without horizons.
//
// The spill empties as windows are loaded. So a horizon may have what the one in use leaves after
// most of its windows, and is scanned for once it does; its batches have what is left beside all of
// it.
func (p *Planner) limits() limits {
	whole := p.Join.File.Stats().CapacityBytes
	l := limits{windows: p.Join.Windows, steps: p.steps.To - p.next, bytes: whole, blocks: whole, window: max(p.windowSteps(), 1)}
	if h := p.far.now; h != nil {
		n := len(h.windows)
		l.windows, l.bytes, l.blocks = l.windows-n, whole-h.held.after(drained(n)), whole-h.held.after(0)
		if p.far.begun > 1 {
			l.windows = min(l.windows, n*horizonGrowth)
		}
	}
	l.bytes = min(l.bytes, whole/8*7) // so that batches of the one after find room
	switch p.far.begun {
	case 0:
		l.windows, l.steps = 1, min(l.steps, max(l.window/rampParts, rampSteps))
	case 1:
		l.windows = min(l.windows, rampOf(float64(l.window)))
	}
	l.windows = max(l.windows, 1)
	return l
}

const (
	rampWindows   = 4  // of the first horizon of several: so many are drawn while some steps are used
	rampWanted    = 80 // steps of it at least, where windows are short: a pass of the table takes as long for fewer
	horizonGrowth = 4  // times as many windows as the one before
)

// rampOf is how many windows of so many steps the first horizon of several has at most.
func rampOf(window float64) int { return max(rampWindows, int(rampWanted/window)) }

// drained is after how many of its n windows a horizon is to have left room for the next one. The
// table is scanned while the others are used: a quarter, and two at least, or the last of two.
func drained(n int) int { return max(min(n-1, 1), n-max(n/4, 2)) }

// held is what a horizon has in the spill: the k-th is for its windows from the k-th on. The last
// is nothing.
type held []struct {
	steps  int
	blocks int64   // bytes at most
	rows   []int64 // the same, by table
}

// after is how many bytes the spill has of the horizon at most, once the windows before the k-th
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

// growth says what horizons of more steps, or fewer, take of a spill, by one of so many steps: for
// batches in proportion.
type growth struct {
	steps, blocks float64
	tables        []rowGrowth
}

// rowGrowth is about the rows of a table: the more steps, the more of what they want is wanted by
// others of them as well.
type rowGrowth struct {
	popularity
	bytes float64 // for the rows of all steps
	power float64 // of how they grow by the popularity: what they are known to
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

// at is what so many steps take.
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

// fitting is how many steps, n at most and one at least, take no more than so many bytes, and of
// them so many for batches.
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

// drain is that of h, which may be closed meanwhile.
func (h *horizon) drain() drain { return drain{h.tables, h.held} }

// growth is how what horizons take grows with their steps, by what the windows of this one have in
// common.
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

// until waits for as many windows to be loaded that the others have at most so many bytes of the
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
