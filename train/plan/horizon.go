package plan

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/spill"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Packer is a Sampler whose batches can wait on disk. Draw and DrawFar never run at the same time.
// A step is drawn again if its horizon was full, or if the disk has lost its batch. A lost batch
// may be drawn between any two other draws, out of order. With Config.Agree a lost batch is an
// error, and DrawFar is not called.
type Packer interface {
	Sampler
	// Pack appends a batch that Draw drew to dst. Unpack restores that batch in b. Unpack is called
	// by several goroutines at once, for different batches, and beside Draw.
	Pack(dst []byte, b Batch) []byte
	Unpack(b Batch, src []byte) error
	// Far reports whether DrawFar can draw. DrawFar draws n steps, starting with step from, and
	// reads each neighbour list once a hop. It calls done with each batch in order; done may pack
	// the batch, and may not use or keep it. What does not fit in memory waits in r.
	Far() bool
	DrawFar(ctx context.Context, s *Steps, r sample.Room, from, n int, done func(step int, b Batch) error) error
}

// Join holds the spill that horizons use.
type Join struct {
	File *spill.File
	// Windows bounds the windows of the horizons that exist at a time.
	Windows int
	// Room keeps steps while they are drawn hop by hop. Default nil: they are drawn in groups.
	Room *spill.File
}

// horizonLeast is the least number of windows in a range that goes by horizons: with fewer, the
// scan and the spill cost more than they save.
const horizonLeast = 4

// horizon is a group of steps that are drawn, and whose rows are being read, before the first of
// them is used. One scan of each table serves all its windows. Batches wait for their window in the
// spill, each in a run of its own.
type horizon struct {
	from, to int // steps
	windows  []farWindow
	at       int                  // the first window that is not planned
	tables   []*cachetier.Horizon // nil for tables that are in memory as a whole
	held     held                 // nil until it is drawn
	err      error
	done     chan struct{} // closed when it is prepared
}

// horizonState is the part of a Planner's state that is for ranges that go by horizons.
type horizonState struct {
	on        bool               // the range, or what is left of it, goes by horizons
	own       bool               // on is this worker's own decision: it has not asked the others yet
	now, next *horizon           // in use, and being prepared
	end       context.CancelFunc // of preparing
	begun     int                // horizons of the range
	before    drain              // of the horizon before now, whose windows may still be loading
	drawing   sync.Mutex         // held while drawing

	// Used by the goroutine that prepares:
	spare   []Batch // memory to draw the next ones in
	most    int     // steps that are drawn together hop by hop, since the room was full for twice as many; 0: any number
	grouped bool    // steps are drawn in groups: the room was too small for a window, or was damaged
}

type farWindow struct {
	steps  []farStep
	bytes  int64 // of their batches, in memory
	blocks int64 // of their batches, in the spill
}

type farStep struct {
	step int
	run  *spill.Run // of the packed batch
}

// joins reports whether the steps of a range go by horizons. It uses only what is known before the
// first step is drawn.
func (p *Planner) joins() bool {
	packer, ok := p.Sampler.(Packer)
	for _, t := range p.Tables {
		ok = ok && t.Joined()
	}
	n := p.steps.To - p.steps.From
	return ok && packer != nil && p.Join.File != nil && p.steps.Expand == nil && p.size.steps > 0 && n >= horizonLeast*max(p.windowSteps(), 1)
}

// nextFar is Next where steps go by horizons.
func (p *Planner) nextFar(ctx context.Context) (*Window, error) {
	for {
		h := p.horizons.now
		if h == nil {
			if h = p.horizons.next; h == nil {
				if p.next >= p.steps.To {
					return nil, nil
				}
				h = p.begin(ctx, p.limits())
				p.horizons.next = h // so that Reset finds it, however this ends
			}
			select {
			case <-h.done:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			if p.horizons.next = nil; h.err != nil {
				h.close()
				if p.horizons.on = !errors.Is(h.err, errAlone); p.horizons.on {
					return nil, h.err
				}
				return p.Next(ctx)
			}
			p.horizons.now, p.next = h, h.to
			if p.next < p.steps.To {
				p.horizons.next = p.begin(ctx, p.limits())
			}
		}
		if h.at < len(h.windows) {
			return p.planFar(ctx, h)
		}
		p.horizons.now, p.horizons.before = nil, h.drain()
		h.close()
	}
}

// begin starts a goroutine that prepares the next horizon, while others are used.
func (p *Planner) begin(ctx context.Context, l limits) *horizon {
	p.horizons.begun++
	h := &horizon{done: make(chan struct{}), from: p.next, to: p.next}
	g := &preparing{p: p, h: h, l: l, packer: p.Sampler.(Packer), before: p.horizons.before}
	if now := p.horizons.now; now != nil {
		g.beside = now.drain()
	}
	ctx, end := context.WithCancel(ctx)
	p.horizons.end = end
	go func() {
		defer close(h.done)
		defer end()
		h.err = Guarded(func() error { return p.prepare(ctx, g) })
	}()
	return h
}

// Guarded runs work, which may draw or read, and turns out-of-memory and mapping panics into
// errors.
func Guarded(work func() error) (err error) {
	defer kernels.RecoverMemory(&err)
	return store.Guard(work)
}

// preparing is the state of preparing a horizon.
type preparing struct {
	p      *Planner
	h      *horizon
	l      limits
	beside drain // the horizon in use
	before drain // the one before that
	packer Packer
	blocks int64 // of the spill, for batches
	packed []byte
}

// prepare draws the steps of a horizon, as far as its limits allow, sends their batches to the
// spill, and has the tables scanned for them.
func (p *Planner) prepare(ctx context.Context, g *preparing) error {
	h := g.h
	for _, t := range p.Tables {
		var of *cachetier.Horizon
		if t.WindowRows() > 0 {
			of = t.NewHorizon()
		}
		h.tables = append(h.tables, of)
	}
	h.windows = []farWindow{{}}
	if err := p.drawAll(ctx, g); err != nil {
		return err
	}
	if len(h.last().steps) == 0 { // the step that it was begun for did not fit
		h.windows = h.windows[:len(h.windows)-1]
	}
	for _, t := range h.tables {
		if t != nil {
			t.Done()
		}
	}
	h.held = g.measure()
	return g.scan(ctx)
}

// measure returns what the horizon takes of the spill. Its windows must be known.
func (g *preparing) measure() held {
	windows := g.h.windows
	r := make(held, len(windows)+1)
	for k := len(windows) - 1; k >= 0; k-- {
		r[k].steps = r[k+1].steps + len(windows[k].steps)
		r[k].blocks = r[k+1].blocks + windows[k].blocks
		r[k].rows = make([]int64, len(g.h.tables))
		for i, t := range g.h.tables {
			if t != nil {
				r[k].rows[i] = g.p.Tables[i].SpillBytes(t.Left(k))
			}
		}
	}
	return r
}

// scan sends the rows of all windows from the tables to their runs. First it waits until the spill
// has room for the whole horizon. That is after a fixed number of windows of the horizon in use, so
// timing does not change it.
func (g *preparing) scan(ctx context.Context) error {
	if err := g.before.all(ctx); err != nil {
		return err
	}
	if err := g.beside.until(ctx, g.p.Join.File.Stats().CapacityBytes-g.h.held.after(0)); err != nil {
		return err
	}
	for _, t := range g.h.tables {
		if t == nil {
			continue
		}
		if err := t.Scan(ctx); err != nil {
			return err
		}
	}
	return nil
}

// drawAll draws the steps of a horizon. It draws as many together as there is room for, hop by hop,
// and reads each list of the file once a hop. It draws group by group if the sampler cannot do
// that, if Config.Agree is set, or if there is no room for the steps of one window.
func (p *Planner) drawAll(ctx context.Context, g *preparing) error {
	began := time.Now()
	defer func() { p.clock.sample.Add(int64(time.Since(began))) }()
	if p.Agree != nil {
		return p.drawTogether(ctx, g)
	}
	if p.Join.Room != nil && g.packer.Far() {
		for more := true; more && !p.horizons.grouped; {
			var err error
			if more, err = p.drawFar(ctx, g); err != nil {
				return err
			}
		}
		if !p.horizons.grouped {
			return nil
		}
	}
	for more := true; more && g.h.to-g.h.from < g.l.steps; {
		var err error
		if more, err = p.drawSome(ctx, g, min(p.farGroup(), g.l.steps-(g.h.to-g.h.from))); err != nil {
			return err
		}
	}
	return nil
}

// drawSome draws n steps together, and adds them to the horizon until it is full. It reports
// whether all of them found room.
func (p *Planner) drawSome(ctx context.Context, g *preparing, n int) (all bool, err error) {
	from, batches := g.h.to, p.horizons.batches(g.packer, n)
	if err := p.drawGroup(ctx, from, batches); err != nil {
		return false, err
	}
	for i, b := range batches {
		if more, err := g.add(ctx, from+i, b); !more || err != nil {
			return false, err
		}
	}
	return true, nil
}

// errEnough ends the drawing of a horizon that is full.
var errEnough = errors.New("plan: a horizon is full")

// drawFar draws the steps that the horizon is thought to have, or as many of them as there is room
// for. It reports whether there are more.
func (p *Planner) drawFar(ctx context.Context, g *preparing) (more bool, err error) {
	from := g.h.to
	left := p.thought(g) - (from - g.h.from)
	if left <= 0 {
		return false, nil
	}
	n := left
	if p.horizons.most > 0 {
		n = min(n, p.horizons.most)
	}
	p.horizons.drawing.Lock()
	defer p.horizons.drawing.Unlock()
	r := &room{file: p.Join.Room}
	defer r.drop()
	err = g.packer.DrawFar(ctx, &p.steps, r, from, n, func(step int, b Batch) error {
		more, err := g.add(ctx, step, b)
		if err == nil && !more {
			err = errEnough
		}
		return err
	})
	full := new(spill.FullError)
	switch {
	case errors.Is(err, errEnough):
		return false, nil
	case errors.As(err, &full) && n >= 2*g.l.window:
		p.horizons.most = n / 2
		return true, nil
	case errors.As(err, &full) || errors.Is(err, spill.ErrDamaged):
		p.horizons.grouped = true
		return true, nil
	}
	return n < left, err
}

// thought estimates the number of steps of the horizon.
func (p *Planner) thought(g *preparing) int {
	n := g.l.windows * g.l.window
	if windows := len(g.beside.held) - 1; windows > 1 { // on average: the last one may be short
		n = max(n, g.l.windows*g.beside.held[0].steps/windows)
	}
	n = min(n, g.l.steps)
	if g.l.windows > 1 && len(g.beside.held) > 0 {
		n = min(n, g.beside.growth().fitting(n, g.l.bytes, g.l.blocks))
	}
	return n
}

// room keeps steps between two hops.
type room struct {
	file *spill.File
	runs []*spill.Records
}

// NewRun returns a run without records.
func (r *room) NewRun() sample.Run {
	run := r.file.NewRecords()
	r.runs = append(r.runs, run)
	return run
}

// drop frees the records that an error has left.
func (r *room) drop() {
	for _, run := range r.runs {
		run.Drop()
	}
}

// spilled returns the most bytes of the spill that the horizon takes. The rows of a single window
// need none.
func (g *preparing) spilled() (bytes int64) {
	bytes = g.blocks
	for i, t := range g.h.tables {
		if t != nil && g.l.windows > 1 {
			bytes += g.p.Tables[i].SpillBytes(t.Rows())
		}
	}
	return bytes
}

// add adds a step, unless the horizon is full, here or on another worker that draws with this one.
// If the first step has no room, the error is errAlone.
func (g *preparing) add(ctx context.Context, step int, b Batch) (more bool, err error) {
	first := g.h.to == g.h.from
	g.p.noteLargest(b)
	run, bytes, err := g.take(ctx, b, first)
	if err != nil {
		return false, err
	}
	fits, err := g.p.allOf(ctx, run != nil)
	if run != nil && !fits {
		g.h.undo()
		run.Drop()
	}
	switch {
	case err != nil:
		return false, err
	case !fits && first:
		return false, errAlone
	case !fits:
		return false, nil
	}
	w := g.h.last()
	w.steps, w.bytes, w.blocks = append(w.steps, farStep{step, run}), w.bytes+b.Bytes(), w.blocks+bytes
	g.h.to = step + 1
	return true, nil
}

// take adds the rows of a step to a window, and sends its batch to the spill. The run is nil if
// there is no room for the rows or for the batch; then neither is added.
func (g *preparing) take(ctx context.Context, b Batch, first bool) (run *spill.Run, bytes int64, err error) {
	if !g.place(b) {
		return nil, 0, nil
	}
	run, bytes, err = g.put(ctx, b, first)
	if full := new(spill.FullError); errors.As(err, &full) {
		g.h.undo()
		return nil, 0, nil
	}
	return run, bytes, err
}

// place adds the rows of a step to the last window, or to a new one where that is full.
func (g *preparing) place(b Batch) (ok bool) {
	if g.fits(b) {
		return true
	}
	if len(g.h.last().steps) == 0 || len(g.h.windows) == g.l.windows {
		return false
	}
	return g.h.cut() && g.fits(b)
}

// put sends a batch to the spill, once the horizon before the one in use has nothing left there.
// The error is a *spill.FullError if the horizon then takes too much of the spill, unless the batch
// is its first.
func (g *preparing) put(ctx context.Context, b Batch, first bool) (run *spill.Run, bytes int64, err error) {
	g.packed = g.packer.Pack(g.packed[:0], b)
	file := g.p.Join.File
	segment := int64(file.Segment())
	bytes = (int64(len(g.packed)) + segment - 1) / segment * segment
	if g.blocks += bytes; !first && (g.blocks > g.l.blocks || g.spilled() > g.l.bytes) {
		return nil, 0, &spill.FullError{Bytes: g.l.bytes}
	}
	if err := g.before.all(ctx); err != nil {
		return nil, 0, err
	}
	run = file.NewRun()
	if err := run.Put(ctx, g.packed); err != nil {
		run.Drop()
		return nil, 0, err
	}
	return run, bytes, nil
}

// fits adds the rows of a step to the last window, unless the window is full: a table's cache has
// no room, batches would take too much, or it has Group steps.
func (g *preparing) fits(b Batch) bool {
	if w := g.h.last(); len(w.steps) > 0 && (w.bytes+b.Bytes() > g.p.Bytes/InFlight || len(w.steps) == g.p.Group) {
		return false
	}
	reads := b.Reads()
	for i, t := range g.h.tables {
		if t != nil && !t.Add(reads[g.p.Types[i]]) {
			for _, before := range g.h.tables[:i] {
				if before != nil {
					before.Undo()
				}
			}
			return false
		}
	}
	return true
}

// batches returns n batches to draw into.
func (f *horizonState) batches(from Sampler, n int) []Batch {
	for len(f.spare) < n {
		f.spare = append(f.spare, from.New())
	}
	return f.spare[:n]
}

// stop ends the preparing of a horizon, and gives up all horizons.
func (f *horizonState) stop() {
	if f.next != nil {
		f.end()
		<-f.next.done
		f.next.close()
	}
	if f.now != nil {
		f.now.close()
	}
	f.now, f.next, f.before = nil, nil, drain{}
}

// errAlone says that the first step of a horizon does not fit a cache, or the spill.
var errAlone = errors.New("plan: a step does not fit a horizon")

// farBytes returns the bytes that a group drawn for a horizon may take: a third of what batches may
// take. With Config.Agree groups are no larger than without horizons: workers also draw for each
// other, and the memory for that was planned by groups of that size.
func (p *Planner) farBytes() int64 {
	if p.Agree != nil {
		return p.Bytes / int64(InFlight+p.Ahead)
	}
	return p.Bytes / InFlight
}

// farGroup returns the number of steps that are drawn together for a horizon.
func (p *Planner) farGroup() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(1, int(p.farBytes()/max(p.size.largest, 1)))
}

// drawGroup draws batches of steps from one on.
func (p *Planner) drawGroup(ctx context.Context, from int, into []Batch) error {
	p.horizons.drawing.Lock()
	defer p.horizons.drawing.Unlock()
	return p.Sampler.Draw(ctx, &p.steps, from, into)
}

// noteLargest takes note of how large batches are.
func (p *Planner) noteLargest(b Batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.size.largest = max(p.size.largest, b.Bytes())
}

// last returns the window that is being made.
func (h *horizon) last() *farWindow { return &h.windows[len(h.windows)-1] }

// cut begins the next window, unless a table has no memory for the set of its rows. The tables
// before that one then have a last window without steps.
func (h *horizon) cut() (ok bool) {
	for _, t := range h.tables {
		if t != nil && !t.Cut() {
			return false
		}
	}
	h.windows = append(h.windows, farWindow{})
	return true
}

// undo takes back the last step that was added.
func (h *horizon) undo() {
	for _, t := range h.tables {
		if t != nil {
			t.Undo()
		}
	}
}

// planFar plans the next window of h: its batches come back from the spill.
func (p *Planner) planFar(ctx context.Context, h *horizon) (*Window, error) {
	if err := p.room(ctx); err != nil {
		return nil, err
	}
	next := h.windows[h.at]
	w := &Window{}
	if err := p.flight.wait(ctx, 0, next.bytes, p.unpacked()); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := p.unpack(ctx, w, next.steps); err != nil {
		return nil, err
	}
	p.clock.plan.Add(int64(time.Since(began)))
	p.mu.Lock()
	defer p.mu.Unlock()
	began, rows := time.Now(), 0
	for i, t := range p.Tables {
		ids := make([][]uint32, len(w.Steps))
		for k, d := range w.Steps {
			ids[k] = d.Batch.Reads()[p.Types[i]]
		}
		var r *cachetier.Window
		var err error
		if of := h.tables[i]; of != nil {
			r, err = of.Next(ctx, ids)
		} else {
			t.Expect(ids)
			r, err = t.Next(ctx, len(ids))
		}
		if err != nil {
			return nil, err
		}
		w.Rows = append(w.Rows, r)
		rows += r.Rows()
	}
	h.at++
	p.size.note(w)
	p.clock.plan.Add(int64(time.Since(began)))
	p.clock.steps.Store(int64(len(w.Steps)))
	p.clock.rows.Store(int64(rows))
	return w, nil
}

// unpacked returns the bytes that unpacked batches may take. With Config.Agree the rest is for the
// group that is drawn.
func (p *Planner) unpacked() int64 {
	if p.Agree == nil {
		return p.Bytes
	}
	return p.Bytes - p.farBytes()
}

// unpack restores the batches of steps from the spill. Batches that the spill has lost are drawn
// anew. With Config.Agree they are an error.
func (p *Planner) unpack(ctx context.Context, w *Window, steps []farStep) error {
	packer := p.Sampler.(Packer)
	w.Steps = make([]Drawn, len(steps))
	for i, s := range steps {
		w.Steps[i] = Drawn{s.step, p.flight.take(packer)}
	}
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	unpackSome := func() error {
		var packed []byte
		for i := int(next.Add(1)) - 1; i < len(steps); i = int(next.Add(1)) - 1 {
			var err error
			if packed, err = steps[i].run.Whole(ctx, packed); err == nil {
				err = packer.Unpack(w.Steps[i].Batch, packed)
			}
			switch damaged := errors.Is(err, spill.ErrDamaged); {
			case damaged && p.Agree != nil: // others do not draw it again
				err = fmt.Errorf("the batch of step %d is lost: %w; {spill_bytes} 0 goes by windows, "+
					"{tmp} names another directory", steps[i].step+1, err)
			case damaged:
				err = p.drawGroup(ctx, steps[i].step, []Batch{w.Steps[i].Batch})
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for range min(len(steps), runtime.GOMAXPROCS(0)) {
		g.Go(func() error { return Guarded(unpackSome) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, d := range w.Steps {
		p.flight.add(d.Batch)
	}
	return nil
}

// close gives up the runs and rows that h has in the spill.
func (h *horizon) close() {
	for ; h.at < len(h.windows); h.at++ {
		for _, s := range h.windows[h.at].steps {
			s.run.Drop()
		}
	}
	for _, t := range h.tables {
		if t != nil {
			t.Close()
		}
	}
	h.tables = nil
}
