package plan

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Config holds what a Planner bases its decisions on.
type Config struct {
	// Sampler draws groups of batches. Parallel is the number of batches that it draws at once.
	Sampler  Sampler
	Parallel int
	// Tables hold the feature rows: table n has the rows for a batch's Inputs of type Types[n].
	// Without Types, table n is for type n.
	Tables []*cachetier.Stack
	Types  []int
	// Bytes bounds the blocks in flight. A batch that is alone may be larger.
	Bytes int64
	// Group is the number of steps that are drawn together, where Bytes allows. Default 0: as many
	// as fill a window of the tables.
	Group int
	// Ahead is the number of groups that are drawn beyond the one that windows are cut from. They
	// are the future that the tables' policies know.
	Ahead int
	// BatchBytes and BatchRows give the known size of a batch: the bytes of its blocks, and the
	// number of different rows that it reads from each table. With them the first group is as large
	// as the others. Default none: the first groups are a single step, which shows them.
	BatchBytes int64
	BatchRows  []int
	// Join, where it has a file, has long ranges go by horizons.
	Join Join
	// Agree returns the smallest n of all workers. It is set where workers draw from each other's
	// lists. They must draw the same groups in the same order, so each draws Ahead groups before it
	// cuts a window, whatever Bytes is. It draws the next group only when no group is partly in
	// windows: windows differ among workers, and groups do not. Otherwise workers could wait for
	// each other: one for memory that its steps hold, or for a step to be written back, and another
	// for a draw. A range goes by horizons if all workers can; a horizon has the same steps on all
	// workers. Default nil: this worker draws alone.
	Agree func(ctx context.Context, n int) (int, error)
}

// Batch is the input of a step, as far as a plan has to know it.
type Batch interface {
	// Inputs are the rows that it needs, each once: a list for each input that batches have. Reads
	// are the rows that this worker reads for the step. Where workers own rows, these are its own
	// rows that any worker needs; otherwise they are Inputs. Both stay as they are until the batch
	// is drawn anew.
	Inputs() [][]uint32
	Reads() [][]uint32
	// Bytes returns the bytes of memory that the batch takes.
	Bytes() int64
}

// Sampler draws batches.
type Sampler interface {
	// New returns an empty batch, to draw into.
	New() Batch
	// Draw draws the batches of len(into) steps of a range, starting with step from. Each batch in
	// into came from New, and may have been drawn into before. Draw is called in the order of
	// steps, once a step, but see Packer.
	Draw(ctx context.Context, s *Steps, from int, into []Batch) error
}

// Steps are the steps [From, To), and what their batches are drawn from: a Graph reads Seeds, Z,
// Without and Expand. One goroutine at a time calls Seeds, Z and Without; it need not be the one
// that calls Next. In a range that goes by horizons they may be called again for a step, in any
// order.
type Steps struct {
	From, To int
	// Follows says that the range goes on where the previous one ended. The rows that its last
	// steps wrote are seen after the lag of a table, as if both were one range. Default: they are
	// seen at once.
	Follows bool
	// Prepare is called before Seeds: once for the n steps of a group that starts at from. It may
	// exchange with other workers. Groups come in the order of steps. But steps that had no room in
	// a horizon are drawn again, and Prepare is called for them again. It is not called for steps
	// that Packer.DrawFar draws. Default nil: there is nothing to prepare.
	Prepare   func(ctx context.Context, from, n int) error
	Seeds     func(step int) [][]uint32 // by type; valid until the steps are used
	BatchSeed func(step int) sample.BatchSeed
	// Without returns the edges that the batch of a step is drawn without. Default nil: none are
	// left out.
	Without func(step int) []sample.Without
	// Cooperative: workers draw each step's batch together, each worker its own nodes. The Sampler
	// is a Cooperator. Default: each worker draws a batch of its own Seeds.
	Cooperative bool
	// Expand returns the Expander for the group of n steps that starts at from. It decides between
	// hops which nodes are drawn further, and may read what steps wrote: a step is drawn once the
	// step Lag before it is written back. Groups have half as many steps as Lag, or one, so that
	// one is drawn while another is used. Expand is called in the order of steps, once a step.
	// Default nil: all is drawn, as soon as there is room.
	Expand func(from, n int) sample.Expander
	Lag    int
	// Taken returns how many bytes of the device region the steps before a step have taken for
	// slots, once the step is drawn: see cachetier.Stack.ExpectBeside. Default nil: what slots have
	// taken when the step is drawn.
	Taken func(step int) int64
}

// Drawn is a step's batch, whose blocks are drawn. Done gives it back.
type Drawn struct {
	Step  int
	Batch Batch
}

// Window is steps whose feature rows are read together.
type Window struct {
	Steps []Drawn
	Rows  []*cachetier.Window // by table, each of these steps; released by who gathers
}

// Planner decides which batches and rows the steps of a run need, and in which order they come. Use
// NewPlanner.
type Planner struct {
	Config
	flight flight
	writes writes

	mu       sync.Mutex // held while deciding, and never while drawing, reading or waiting
	steps    Steps
	next     int     // the first step that is not drawn
	last     int     // steps of the newest group of the range, 0 if there is none
	drawn    []group // in order; the oldest holds only its steps that are in no window yet
	begun    bool    // some steps of the oldest group are in a window
	agreed   int     // steps of the next group, if the workers have agreed on them; else 0
	size     sizing
	horizons horizonState // used by the goroutine that calls Next

	clock struct {
		sample, plan, steps, rows atomic.Int64 // nanoseconds; the newest window's
	}
}

// NewPlanner makes a planner that has no steps yet.
func NewPlanner(c Config) *Planner {
	p := &Planner{Config: c, flight: newFlight()}
	for t := len(p.Types); t < len(c.Tables); t++ {
		p.Types = append(p.Types, t)
	}
	p.writes.changed = sync.NewCond(&p.writes)
	if len(c.BatchRows) == len(c.Tables) && c.BatchBytes > 0 {
		p.size = sizing{largest: c.BatchBytes, steps: 1, rows: append([]int(nil), c.BatchRows...)}
	}
	return p
}

// Begin starts a range of steps, at any step. All windows of the range before must have been used,
// or Reset called. The planner keeps the known sizes of batches.
func (p *Planner) Begin(steps Steps) {
	p.horizons.stop() // who prepares a horizon takes p.mu
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.drawn) > 0 {
		panic("plan: Begin while steps are drawn and in no window")
	}
	for _, t := range p.Tables {
		if !steps.Follows {
			t.Settle()
		}
	}
	p.steps, p.next, p.last, p.agreed = steps, steps.From, 0, 0
	p.horizons.begun, p.horizons.most, p.horizons.on, p.horizons.grouped = 0, 0, p.joins(), false
	p.horizons.own = p.Agree != nil && steps.From < steps.To && steps.Expand == nil
	p.writes.begin(steps.From)
}

// Next draws groups, as far as the budget allows, and plans the next window. It returns nil at the
// end of the range. Bytes alone decide how far ahead it draws, or Ahead where Agree is set, and not
// the progress of the stages that use windows. Next waits for these stages if the budget is spent,
// or if two windows of a table are not released. An error ends the range: see Reset.
func (p *Planner) Next(ctx context.Context) (*Window, error) {
	if err := p.joinTogether(ctx); err != nil {
		return nil, err
	}
	if p.horizons.on {
		return p.nextFar(ctx)
	}
	for {
		n, held, more := p.ahead()
		if n > 0 && p.Agree != nil {
			if p.agreed == 0 {
				var err error
				if p.agreed, err = p.Agree(ctx, n); err != nil {
					return nil, err
				}
			}
			if n = p.agreed; p.waitsForWhole(n) {
				n = 0
			}
		}
		if n == 0 {
			return p.cut(ctx)
		}
		// Steps in no window cannot be used and given back.
		if err := p.flight.wait(ctx, held, more, p.Bytes); err != nil {
			return nil, err
		}
		p.agreed = 0
		if _, err := p.draw(ctx, n); err != nil {
			return nil, err
		}
	}
}

// Draw draws the next n steps, or the rest if fewer are left, as one group, whatever the budget is:
// for a Forecast. It returns nothing at the end of the range. Next then returns windows of these
// steps.
func (p *Planner) Draw(ctx context.Context, n int) ([]Drawn, error) {
	if n = min(n, p.steps.To-p.next); n <= 0 {
		return nil, nil
	}
	p.horizons.on, p.horizons.own = false, false
	return p.draw(ctx, n)
}

// ahead returns the number of steps to draw before the next window is cut, 0 for none. more is
// about the bytes that they take, and held the bytes of drawn steps that are in no window.
func (p *Planner) ahead() (n int, held, more int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = min(p.groupSteps(), p.steps.To-p.next)
	held, more = bytesOf(p.drawn), int64(n)*p.size.largest
	if len(p.drawn) > p.Ahead || p.Agree == nil && (!p.fitsAhead(held, more) || p.waitsForDrawn(n)) {
		n = 0
	}
	return n, held, more
}

// waitsForDrawn reports whether the next n steps must wait until a step is written back that is in
// no window yet.
func (p *Planner) waitsForDrawn(n int) bool {
	return p.steps.Expand != nil && len(p.drawn) > 0 && p.next+n-1-p.steps.Lag >= p.drawn[0][0].Step
}

// waitsForWhole is waitsForDrawn for workers that draw together: the next n steps wait until whole
// groups are in windows. Windows differ among workers, and groups do not.
func (p *Planner) waitsForWhole(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begun || p.waitsForDrawn(n)
}

// draw draws the next n steps, and tells the tables to expect their rows.
func (p *Planner) draw(ctx context.Context, n int) (group, error) {
	if p.steps.Expand != nil {
		if err := p.Written(ctx, p.next+n-1-p.steps.Lag); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	g, batches := make(group, n), make([]Batch, n)
	for i := range g {
		batches[i] = p.flight.take(p.Sampler)
		g[i] = Drawn{p.next + i, batches[i]}
	}
	if err := p.Sampler.Draw(ctx, &p.steps, p.next, batches); err != nil {
		return nil, err
	}
	p.clock.sample.Add(int64(time.Since(began)))
	p.mu.Lock()
	defer p.mu.Unlock()
	began = time.Now()
	for _, b := range batches {
		p.flight.add(b)
		p.size.largest = max(p.size.largest, b.Bytes())
	}
	expect(p.Tables, p.Types, g, p.steps.Taken)
	p.drawn, p.next, p.last = append(p.drawn, g), p.next+n, n
	p.clock.plan.Add(int64(time.Since(began)))
	return g, nil
}

// expect tells each table the rows that the steps of g read: the rows of type types[t] for table t.
func expect[T table](tables []T, types []int, g group, taken func(step int) int64) {
	ids := make([][][]uint32, len(tables)) // by table and step
	var bytes []int64                      // by step
	for _, d := range g {
		if taken != nil {
			bytes = append(bytes, taken(d.Step))
		}
		reads := d.Batch.Reads()
		for t := range ids {
			ids[t] = append(ids[t], reads[types[t]])
		}
	}
	for t := range tables {
		tables[t].ExpectBeside(ids[t], bytes)
	}
}

// table is a *cachetier.Stack or a *cachetier.Simulation.
type table interface {
	ExpectBeside(steps [][]uint32, taken []int64)
	Fit() int
}

// fit returns how many of the n steps that are left of a group fit every table with their rows.
func fit[T table](tables []T, n int) int {
	for _, t := range tables {
		n = min(n, t.Fit())
	}
	return n
}

// room waits until every table has room for another window.
func (p *Planner) room(ctx context.Context) error {
	for _, t := range p.Tables {
		if err := t.Room(ctx); err != nil {
			return err
		}
	}
	return nil
}

// cut makes the next window from the oldest group: as many steps as fit every table. It returns nil
// if nothing is drawn.
func (p *Planner) cut(ctx context.Context) (*Window, error) {
	if len(p.drawn) == 0 {
		return nil, nil
	}
	if err := p.room(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	began := time.Now()
	g := p.drawn[0]
	n := fit(p.Tables, len(g))
	w, rows := &Window{Steps: g[:n]}, 0
	for _, t := range p.Tables {
		r, err := t.Next(ctx, n)
		if err != nil {
			return nil, err
		}
		w.Rows = append(w.Rows, r)
		rows += r.Rows()
	}
	if p.drawn[0], p.begun = g[n:], n < len(g); !p.begun {
		p.drawn = slices.Delete(p.drawn, 0, 1) // and the array forgets the batches, which Trim gives up
	}
	p.size.note(w)
	p.clock.plan.Add(int64(time.Since(began)))
	p.clock.steps.Store(int64(n))
	p.clock.rows.Store(int64(rows))
	return w, nil
}

// Keep makes the caches of the tables decide which rows stay beside the rows of w. Call it before w
// is loaded; drawing may go on meanwhile. It waits until the window before the last one is
// released. A window of one step decides when it is gathered.
func (p *Planner) Keep(ctx context.Context, w *Window) error {
	for _, r := range w.Rows {
		if err := r.Ready(ctx); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range w.Rows {
		r.Keep()
	}
	return nil
}

// Done takes back a batch that was used. Its memory is free for later steps.
func (p *Planner) Done(d Drawn) { p.flight.give(d.Batch) }

// Trim gives up the memory of used batches, which the planner keeps for later ones. Call it when
// another planner takes over the budget. It may be called at any time.
func (p *Planner) Trim() { p.flight.trim() }

// Reset forgets all drawn and planned steps, here and in the tables, after a range that was cut
// short. No other goroutine may plan, load, gather or use meanwhile.
func (p *Planner) Reset() {
	p.horizons.stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.Tables {
		t.Reset()
	}
	p.drawn, p.steps, p.begun = nil, Steps{}, false
	p.next, p.agreed, p.horizons.own = 0, 0, false
	p.flight.reset()
}

// Newest returns the steps of the newest window, and the number of different rows that it needs of
// the caches: 0 if there is no window. It may be called at any time.
func (p *Planner) Newest() (steps, rows int) {
	return int(p.clock.steps.Load()), int(p.clock.rows.Load())
}

// Worked returns the time that the planner has spent drawing, and deciding. It may be called at any
// time.
func (p *Planner) Worked() (drawing, deciding time.Duration) {
	return time.Duration(p.clock.sample.Load()), time.Duration(p.clock.plan.Load())
}
