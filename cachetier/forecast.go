package cachetier

import (
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
)

// Cost counts what a number of windows read from disk.
type Cost struct {
	Windows int     `json:"windows"`
	Steps   int     `json:"steps"`
	Rows    int64   `json:"rows"`    // wanted rows read, each counted once per window
	Reads   int64   `json:"reads"`   // extents of the file
	Bytes   int64   `json:"bytes"`   // requested from the file
	Seconds float64 `json:"seconds"` // in which the device is busy, by the Reader's Costs
}

// Add adds d to c.
func (c *Cost) Add(d Cost) {
	c.Windows += d.Windows
	c.Steps += d.Steps
	c.Rows += d.Rows
	c.Reads += d.Reads
	c.Bytes += d.Bytes
	c.Seconds += d.Seconds
}

// Forecast predicts the reads of a run over a trace.
type Forecast struct {
	InputRows int64 `json:"input_rows"` // ids in the trace
	All       Cost  `json:"all"`
	// Warm is All without the windows of the first group, which start with an empty cache.
	Warm Cost `json:"warm"`
}

// Forecast counts the reads of windows over the steps of trace, planned in groups of w steps from
// an empty cache. It runs a [Simulation] that knows all groups from the start. The last group has
// no later groups to look ahead to, so a trace should have several groups more than
// Options.Lookahead. It panics on an id past the table, or a w below 1.
func (s *Stack) Forecast(trace [][]uint32, w int) (f Forecast, err error) {
	if w < 1 {
		panic("cachetier: Forecast of windows without steps")
	}
	m, err := s.Simulate()
	if err != nil {
		return f, err
	}
	defer m.Close()
	for group := range slices.Chunk(trace, w) {
		m.Expect(group)
		for _, ids := range group {
			f.InputRows += int64(len(ids))
		}
	}
	for n := m.Fit(); n > 0; n = m.Fit() {
		c := m.Next(n)
		if f.All.Steps >= w {
			f.Warm.Add(c)
		}
		f.All.Add(c)
	}
	return f, nil
}

// Simulation plans windows and chooses the rows to keep as a Stack with an empty cache would, and
// reads nothing. If it was made from a Stack, it leaves the expected steps and cached rows of that
// Stack unchanged. It takes Stats.Tiers.Host.IndexBytes of memory until Close, which must come
// before the Stack's Close. One goroutine at a time may use it.
type Simulation struct{ s *Stack }

// Simulate begins a simulation with the same table and options as s.
func (s *Stack) Simulate() (*Simulation, error) {
	s.alive("Simulate")
	return newSimulation(s.rows, s.rowBytes, s.source, s.layout)
}

// Simulate begins a simulation over t without a Stack: nothing is opened or read, and the rows of
// the tiers take no memory. Zero Options.Costs mean disk.Assumed.
func Simulate(t Table, o Options) (*Simulation, error) {
	o, err := o.fitting(t)
	if err != nil {
		return nil, fmt.Errorf("cachetier: %w", err)
	}
	from := &rowReader{disk.Dry(o.Costs), t.Shards(), t.RowBytes()}
	return newSimulation(t.Rows(), t.RowBytes(), from, o.layout(t.Rows(), t.RowBytes(), bookkeeping{}))
}

func newSimulation(rows, rowBytes int, from source, l layout) (*Simulation, error) {
	s := newStack(rows, rowBytes, from, l)
	if err := s.openCache(); err != nil {
		s.freeIndex()
		return nil, fmt.Errorf("cachetier: %w", err)
	}
	return &Simulation{s}, nil
}

// Expect announces the next group of steps: see [Stack.Expect].
func (m *Simulation) Expect(steps [][]uint32) { m.s.Expect(steps) }

// ExpectBeside is Expect: a simulation has no device region that slots take.
func (m *Simulation) ExpectBeside(steps [][]uint32, _ []int64) { m.s.Expect(steps) }

// HotRows returns how many rows from the start of the table are in the device and static regions.
// WindowRows returns how many other rows a window of several steps can need: see
// [Stack.WindowRows].
func (m *Simulation) HotRows() int    { return m.s.hot }
func (m *Simulation) WindowRows() int { return m.s.slots }

// Fit returns how many steps the next window can have: see [Stack.Fit].
func (m *Simulation) Fit() int { return m.s.Fit() }

// Next plans the next window, with 1 to Fit steps, and returns what it would read.
func (m *Simulation) Next(steps int) Cost {
	w := m.s.planNext(steps)
	c := m.s.forecast(w)
	w.Release()
	return c
}

// Close releases the memory. A second Close does nothing.
func (m *Simulation) Close() { m.s.freeIndex() }

// forecast counts the reads of w, and changes the cache as they would.
func (s *Stack) forecast(w *Window) Cost {
	c := Cost{Windows: 1, Steps: w.Steps()}
	var list func() []uint32
	var hot uint32 // list counts rows from here
	switch {
	case w.single:
		p := &s.scratch
		if s.cache != nil && s.layout.cache.Kind == policy.None {
			s.cache.Forget()
		}
		s.find(p, w.steps[0].ids)
		p.uniteWants()
		c.Rows = int64(len(p.wants))
		if s.cache != nil {
			s.cache.Step(w.need.Set, sets(w.future))
		}
		rows := make([]uint32, len(p.wants))
		for i, q := range p.wants {
			rows[i] = q.row()
		}
		list = func() (all []uint32) {
			all, rows = rows, nil
			return all
		}
	case w.need == nil:
		return c
	default:
		w.keep()
		c.Rows = int64(w.change.Misses)
		s.mark(w.steps)
		w.loaded = true // as far as the policy knows
		rows, part := s.newRows(w.index), 0
		hot = uint32(s.hot)
		list = func() []uint32 {
			for ; part <= policy.Parts; part++ {
				if some := rows.rows(part); some != nil {
					return some
				}
			}
			return nil
		}
	}
	t := s.source.takes(list, hot)
	c.Reads, c.Bytes, c.Seconds = t.Reads, t.Bytes, s.source.Costs().Seconds(t)
	return c
}
