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

// Config is what a Planner decides by.
type Config struct {
	// Sampler draws groups of batches, and Parallel is how many it draws at once.
	Sampler  Sampler
	Parallel int
	// Tables are where feature rows come from: the n-th has those of a batch's Inputs of type
	// Types[n]. Without Types that is type n.
	Tables []*cachetier.Stack
	Types  []int
	// Bytes bounds the blocks in flight. A batch that is alone may be larger.
	Bytes int64
	// Group is how many steps are drawn together, where Bytes allows. Default 0: as many as a
	// window of the tables takes.
	Group int
	// Ahead is how many groups are drawn before the one of which windows are made: what the tables'
	// policies know of the future.
	Ahead int
	// BatchBytes and BatchRows are what a batch is known to take: the bytes of its blocks, and the
	// different rows that it reads of each table. With them the first group is as large as the
	// others. Default none: the first groups are a single step, which shows them.
	BatchBytes int64
	BatchRows  []int
	// Join, where it has a file, has long ranges go by horizons.
	Join Join
}

// Batch is what a step computes on, as far as a plan has to know it.
type Batch interface {
	// Inputs are the rows that it reads, each once: a list for each input that batches have. They
	// stay as they are until the batch is drawn anew.
	Inputs() [][]uint32
	// Bytes is what it takes in memory.
	Bytes() int64
}

// Sampler draws batches.
type Sampler interface {
	// New is an empty batch, to draw into.
	New() Batch
	// Draw draws the batches of a range's steps from one on, as many as there are in into, which
	// are all that New or an earlier Draw gave. It is called in the order of steps, once a step,
	// but see Packer.
	Draw(ctx context.Context, s *Steps, from int, into []Batch) error
}

// Steps are the steps [From, To), and what their batches are drawn from: Seeds, Z, Without and
// Expand are those of a Graph. Seeds, Z and Without are called by one goroutine at a time, which
// need not be that of Next; of a range that goes by horizons also for a step again, in any order.
type Steps struct {
	From, To int
	// Follows says that the range goes on where the one before ended: what its last steps wrote is
	// seen once the lag of a table is over, as if both were one range. Default: it is seen at once.
	Follows bool
	Seeds   func(step int) [][]uint32 // by type; valid until the steps are used
	Z       func(step int) sample.Z
	// Without is the edges that the batch of a step is drawn without. Default nil: none are left
	// out.
	Without func(step int) []sample.Without
	// Expand is who says between hops what n steps from a step on draw further, which may depend on
	// what steps wrote: a step is drawn once the step Lag before it is written back. Groups have
	// half as many steps as Lag, or one, so that one is drawn while another is used. Expand is
	// called in the order of steps, once a step. Default nil: all is drawn, as soon as there is
	// room.
	Expand func(from, n int) sample.Expander
	Lag    int
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

// Planner decides what the steps of a run need and when it is there. Use NewPlanner.
type Planner struct {
	Config
	flight flight
	writes writes

	mu    sync.Mutex // held by who decides, and never while drawing, reading or waiting
	steps Steps
	next  int     // the first step that is not drawn
	last  int     // steps of the newest group of the range, 0 if there is none
	drawn []group // in order; of the oldest what is in no window yet
	size  sizing
	far   far // of who calls Next

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

// Begin has the planner plan a range of steps, beginning at any of them. All windows of the range
// before were used, or Reset was called. What was learnt of the size of batches stays.
func (p *Planner) Begin(steps Steps) {
	p.far.stop() // who prepares a horizon takes p.mu
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
	p.steps, p.next, p.last = steps, steps.From, 0
	p.far.begun, p.far.most, p.far.on, p.far.grouped = 0, 0, p.joins(), false
	p.writes.begin(steps.From)
}

// Next draws groups, as far as the budget allows, and plans the next window. It is nil at the end
// of the range. How far is drawn ahead of the window is a matter of bytes, not of how far those who
// use windows are. Next waits for them where the budget is spent, or where two windows of a table
// are not released. An error ends the range: see Reset.
func (p *Planner) Next(ctx context.Context) (*Window, error) {
	if p.far.on {
		return p.nextFar(ctx)
	}
	for {
		n, held, more := p.ahead()
		if n == 0 {
			return p.cut(ctx)
		}
		// What is in no window cannot be used up.
		if err := p.flight.wait(ctx, held, more, p.Bytes); err != nil {
			return nil, err
		}
		if _, err := p.draw(ctx, n); err != nil {
			return nil, err
		}
	}
}

// Draw draws the next n steps, or those that are left, as one group, whatever the budget is: for a
// Forecast. It is empty at the end of the range. Windows of them come by Next.
func (p *Planner) Draw(ctx context.Context, n int) ([]Drawn, error) {
	if n = min(n, p.steps.To-p.next); n <= 0 {
		return nil, nil
	}
	p.far.on = false
	return p.draw(ctx, n)
}

// ahead is how many steps are drawn before the next window is made, of more bytes to those held; 0
// if none are.
func (p *Planner) ahead() (n int, held, more int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = min(p.groupSteps(), p.steps.To-p.next)
	held, more = bytesOf(p.drawn), int64(n)*p.size.largest
	if len(p.drawn) > p.Ahead || !p.fitsAhead(held, more) || p.waitsForDrawn(n) {
		n = 0
	}
	return n, held, more
}

// waitsForDrawn tells whether the next n steps can only be drawn once one is written back that is
// in no window yet.
func (p *Planner) waitsForDrawn(n int) bool {
	return p.steps.Expand != nil && len(p.drawn) > 0 && p.next+n-1-p.steps.Lag >= p.drawn[0][0].Step
}

// draw draws the next n steps, and has the tables expect their rows.
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
	expect(p.Tables, p.Types, g)
	p.drawn, p.next, p.last = append(p.drawn, g), p.next+n, n
	p.clock.plan.Add(int64(time.Since(began)))
	return g, nil
}

// expect has tables, of rows of these types, expect those of g.
func expect[T table](tables []T, types []int, g group) {
	ids := make([][][]uint32, len(tables)) // by table and step
	for _, d := range g {
		inputs := d.Batch.Inputs()
		for t := range ids {
			ids[t] = append(ids[t], inputs[types[t]])
		}
	}
	for t := range tables {
		tables[t].Expect(ids[t])
	}
}

// table is a *cachetier.Stack or a *cachetier.Simulation.
type table interface {
	Expect(steps [][]uint32)
	Fit() int
}

// fit is how many of n steps, which are what is left of a group, have their rows fit every table.
func fit[T table](tables []T, n int) int {
	for _, t := range tables {
		n = min(n, t.Fit())
	}
	return n
}

// cut makes the next window of the oldest group: as many steps as fit every table. It is nil where
// nothing is drawn.
func (p *Planner) cut(ctx context.Context) (*Window, error) {
	if len(p.drawn) == 0 {
		return nil, nil
	}
	for _, t := range p.Tables {
		if err := t.Room(ctx); err != nil {
			return nil, err
		}
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
	if p.drawn[0] = g[n:]; n == len(g) {
		p.drawn = slices.Delete(p.drawn, 0, 1) // and the array forgets the batches, which Trim gives up
	}
	p.size.note(w)
	p.clock.plan.Add(int64(time.Since(began)))
	p.clock.steps.Store(int64(n))
	p.clock.rows.Store(int64(rows))
	return w, nil
}

// Keep has the caches of the tables decide what stays beside the rows of w: when w is to be loaded,
// while drawing goes on. It waits until the window before the last one is released. A window of one
// step decides when it is gathered.
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

// Done takes back a batch that was used: its memory may be planned anew.
func (p *Planner) Done(d Drawn) { p.flight.give(d.Batch) }

// Trim gives up the memory of batches that were used, which the planner keeps for the next ones:
// where another planner of the same budget goes on. It may be called at any time.
func (p *Planner) Trim() { p.flight.trim() }

// Reset forgets what was drawn and planned, here and in the tables: after a range that was cut
// short. Nobody may plan, load, gather or use meanwhile.
func (p *Planner) Reset() {
	p.far.stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.Tables {
		t.Reset()
	}
	p.drawn, p.steps = nil, Steps{}
	p.next = 0
	p.flight.reset()
}

// Newest is the steps of the newest window and the different rows that it needs of the caches, 0 if
// there is none. It may be called at any time.
func (p *Planner) Newest() (steps, rows int) {
	return int(p.clock.steps.Load()), int(p.clock.rows.Load())
}

// Worked is how long the planner has drawn, and how long it has decided. It may be called at any
// time.
func (p *Planner) Worked() (drawing, deciding time.Duration) {
	return time.Duration(p.clock.sample.Load()), time.Duration(p.clock.plan.Load())
}
