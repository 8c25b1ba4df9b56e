package cachetier

import (
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
)

// Cost is what some windows take from the disk.
type Cost struct {
	Windows int     `json:"windows"`
	Steps   int     `json:"steps"`
	Rows    int64   `json:"rows"`    // read and wanted, each once for a window
	Reads   int64   `json:"reads"`   // extents of the file
	Bytes   int64   `json:"bytes"`   // asked of it
	Seconds float64 `json:"seconds"` // that the device is busy, by the Reader's Costs
}

func (c *Cost) add(d Cost) {
	c.Windows += d.Windows
	c.Steps += d.Steps
	c.Rows += d.Rows
	c.Reads += d.Reads
	c.Bytes += d.Bytes
	c.Seconds += d.Seconds
}

// Forecast is what a run over a trace would read.
type Forecast struct {
	InputRows int64 `json:"input_rows"` // ids of the trace
	All       Cost  `json:"all"`
	// Warm is All without the windows of the first group, which find the cache empty.
	Warm Cost `json:"warm"`
}

// Forecast says what windows over the steps of trace, in groups of w, would read, starting with an empty cache. It plans as a
// run would and reads nothing; the group that comes last foresees nothing, so that a trace should have several groups more
// than Options.Lookahead. Meanwhile it takes the memory of Stats.Tiers.Host.IndexBytes once more. What is expected and
// resident here stays as it is. An id past the table, or a w below 1, panics.
func (s *Stack) Forecast(trace [][]uint32, w int) (Forecast, error) {
	if w < 1 {
		panic("cachetier: Forecast of windows without steps")
	}
	s.alive("Forecast")
	sim := newStack(s.table, s.reader, s.layout)
	defer sim.freeIndex()
	if err := sim.openCache(); err != nil {
		return Forecast{}, fmt.Errorf("cachetier: %w", err)
	}
	var f Forecast
	for group := range slices.Chunk(trace, w) {
		sim.Expect(group)
		for _, ids := range group {
			f.InputRows += int64(len(ids))
		}
	}
	for first := min(w, len(trace)); ; {
		win := sim.planNext(sim.fit())
		if win == nil {
			return f, nil
		}
		c := sim.forecast(win)
		win.Release()
		f.All.add(c)
		if first <= 0 {
			f.Warm.add(c)
		}
		first -= c.Steps
	}
}

// forecast plans w and counts what it would read.
func (s *Stack) forecast(w *Window) Cost {
	c := Cost{Windows: 1, Steps: w.Steps()}
	var next func() (disk.Extent, bool)
	switch {
	case w.single:
		p := &s.scratch
		if s.cache != nil && s.layout.cache.Kind == policy.None {
			s.cache.Forget()
		}
		s.find(p, w.steps[0])
		p.uniteWants()
		c.Rows = int64(len(p.wants))
		if s.cache != nil {
			s.cache.Step(w.need.Set, sets(w.future))
		}
		next = s.reader.merge(p.wants)
	case w.need == nil:
		return c
	default:
		w.keep()
		c.Rows = int64(w.change.Misses)
		s.mark(w.steps)
		w.loaded = true // as far as the policy knows
		rows, part := s.newRows(w.index), 0
		next = func() (disk.Extent, bool) {
			for ; part <= policy.Parts; part++ {
				if t, ok := rows.extent(part); ok {
					return t, true
				}
			}
			return disk.Extent{}, false
		}
	}
	var t disk.Traffic
	for extent, ok := next(); ok; extent, ok = next() {
		t.Add(s.reader.Takes(extent))
	}
	c.Reads, c.Bytes, c.Seconds = t.Reads, t.Bytes, s.reader.Costs().Seconds(t)
	return c
}
