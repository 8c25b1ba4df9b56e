// Package pipeline carries out the plan of a plan.Planner: it reads and gathers the rows of each
// step ahead of it.
//
//	plan the next window ─▶ load it ─▶ gather a step ─▶ use it ─▶ write it back
//
// Each stage is a goroutine that takes the windows and their steps in order. What is drawn, which
// steps read their rows together and what stays in memory is the planner's business alone, so the
// speed of the stages changes nothing that they deliver. [Stats] has the time that each stage
// worked, and names the stage that the others wait for.
//
// Memory: batches are the planner's; a Pipeline lends one to use, and then to the writers, for the
// length of the call, and gives it back. Their rows are in buffers of the backend for each table,
// Config.Buffers of them: of two, one is in use and one being gathered. A step that is written back
// while the next is in use holds one, and where there is none left gathering waits for it. If some
// of a table's rows lie on the device, the buffers hold the others, and all are put together in one
// of two further buffers when use begins. Rows are gathered by a kernels.Staging, which for a
// backend that the host cannot write to is memory for the rows of one more batch. One Run at a
// time.
//
// Start at [Pipeline.Run].
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/plan"
)

// Config configures the stages.
type Config struct {
	// Planner decides what to move. Tables describe the rows of its tables, in their order.
	Planner *plan.Planner
	Tables  []Table
	// Backend holds the rows. Gather allocates, fills and frees buffers of it while use computes
	// with it.
	Backend kernels.Backend
	// Buffers is the number of steps that have their rows on the Backend at a time: one in use, and
	// others that are gathered before it, or written back after it. Default 2, and that is the
	// least.
	Buffers int
	// Deal fills dst with the rows of a batch's Inputs of type n, where workers own rows. read has
	// the rows that this worker has read for the step: the batch's Reads, of rowBytes each. Deal
	// sends the first sentBytes of each to the workers that need them, and gets as many of others
	// back. All workers call it for the same steps and types, in the same order. Default nil: each
	// worker reads the Inputs itself.
	Deal func(ctx context.Context, b plan.Batch, n, rowBytes, sentBytes int, read, dst []byte) error
	// Left is called when an error ends the stage that draws or the stage that gathers. It tells
	// the other workers not to wait for this one. Default nil.
	Left func(stage Stage, err error)
	// Late is for tests. It is called when rows of a table are copied: with State if they wait for
	// earlier steps, else with Gather. Default nil.
	Late func(stage string)
}

// Table describes the rows of a table: Cols elements of Type.
type Table struct {
	Type kernels.DType
	Cols int
	// Lag is the number of steps that a gather may be ahead of writing back: if it is positive, the
	// rows of step i are gathered once step i - Lag is written back. Default 0: they are gathered
	// whenever there is a buffer.
	Lag int
	// SentCols is the number of columns, from the first on, that Deal sends. The batch's rows have
	// these columns alone, and Gathered.Own has the rows that this worker owns. Default 0: all are
	// sent, and Own has none.
	SentCols int
	// Bytes [KeepFrom, KeepTo) of each row stay on the host as well: see Gathered.Kept. Default
	// none.
	KeepFrom, KeepTo int
}

// Steps are the steps [From, To) of a Run, and what their batches are drawn from.
type Steps = plan.Steps

// Gathered is a batch whose feature rows are in memory.
type Gathered struct {
	plan.Drawn
	// Rows has, by type, a row for each of Batch.Inputs(), or nothing where no table has any. It is
	// complete when use begins. It is valid until the batch is given back, and no longer than until
	// the step after the next begins.
	Rows []kernels.Tensor
	// Own has, by type, the whole rows that this worker has read for all workers, where a table has
	// SentCols. It is valid as long as Rows.
	Own []kernels.Tensor
	// Read has the counters of each table when its rows were gathered. They count this batch and
	// the batches before it, and none after it.
	Read []cachetier.Stats
	// Kept has, for each table, the bytes of rows that stay on the host, row after row.
	Kept [][]byte

	buffers *buffers // of Rows
	planner *plan.Planner
	written bool         // WriteBack was called
	settle  func() error // see Settle
	late    bool
}

// Settle says, within use, that the backend goes on with the step when use returns. The Pipeline
// calls settle, which waits for the step and finishes it, and only then gives the batch back: at
// once, or, if late is set, after the next step was used or as soon as there is none to use. Steps
// are settled in their order. An error of settle ends Run, as an error of use does.
func (b *Gathered) Settle(settle func() error, late bool) { b.settle, b.late = settle, late }

// WriteBack says, within use, that the tables have what the step wrote: later steps may see it
// while use goes on. Without this call, later steps see it when use has returned, or the writers
// have. It is called once at most, and then the writers write nothing.
func (b *Gathered) WriteBack(w plan.Written) error {
	b.written = true
	return b.planner.WriteBack(b.Step, w)
}

// buffers hold the rows of one step: one for each table, nil where there is none yet. rows, read
// and kept are the slices that Gathered lends.
type buffers struct {
	of   []kernels.Buffer
	at   []kernels.Buffer // by table: where the rows are, if some lie on the device
	came []parts
	rows []kernels.Tensor
	read []cachetier.Stats
	kept [][]byte
	own  []kernels.Buffer // by table: rows that this worker owns
	owns []kernels.Tensor // Gathered.Own
}

// parts has the tensors from which join makes the rows of type n: see kernels.Backend.RowsOf.
type parts struct {
	table, n      int
	hot, came, at kernels.Tensor
	from, to      kernels.Tensor // rows that stay: see kernels.Backend.KeepRows
	rows          int
}

// keep copies the bytes of each of n rows that stay on the host.
func (b *buffers) keep(t int, table Table, rows []byte, n int) {
	size, width := table.Cols*table.Type.Size(), table.KeepTo-table.KeepFrom
	kept := append(b.kept[t][:0], make([]byte, n*width)...)
	for i := range n {
		copy(kept[i*width:], rows[i*size+table.KeepFrom:i*size+table.KeepTo])
	}
	b.kept[t] = kept
}

// Pipeline runs ranges of steps. Use New.
type Pipeline struct {
	Config
	buffers []buffers
	staging *kernels.Staging // of gather
	places  []uint32         // of gather
	read    []byte           // of deal
	joined  [2][]kernels.Buffer
	joins   int // steps joined since New; the next one takes joined[joins%2]
	clock   clock
}

// New makes a pipeline that has no memory yet. Another number of Tables than the planner's panics,
// as does a table that keeps bytes of rows on the host and has rows on a device.
func New(c Config) *Pipeline {
	if len(c.Tables) != len(c.Planner.Tables) {
		panic(fmt.Sprintf("pipeline: rows of %d tables, and the planner has %d", len(c.Tables), len(c.Planner.Tables)))
	}
	for t, table := range c.Tables {
		if _, apart := c.Planner.Tables[t].Apart(); apart && table.KeepTo > table.KeepFrom {
			panic(fmt.Sprintf("pipeline: table %d keeps bytes on the host, and has rows apart from it", t))
		}
	}
	p := &Pipeline{Config: c, staging: kernels.NewStaging(c.Backend), buffers: make([]buffers, max(c.Buffers, 2))}
	for i := range p.buffers {
		p.buffers[i].own = make([]kernels.Buffer, len(c.Tables))
		p.buffers[i].of, p.buffers[i].at = make([]kernels.Buffer, len(c.Tables)), make([]kernels.Buffer, len(c.Tables))
	}
	for i := range p.joined {
		p.joined[i] = make([]kernels.Buffer, len(c.Tables))
	}
	return p
}

// Run takes steps through the stages. It calls use with each batch inside store.Guard, and then the
// writers, while the next batch is in use. It returns the first error, or the error of asked, after
// all its goroutines have ended. Steps that were used are written back before that, unless a writer
// fails.
func (p *Pipeline) Run(asked context.Context, steps Steps, use func(*Gathered) error, writers ...Writer) (err error) {
	defer p.ended(time.Now(), &err)
	g, ctx := errgroup.WithContext(asked) // the first error ends ctx, and so the other stages, whose errors say nothing
	var causes causes
	stage := func(work func() error) {
		g.Go(func() error { return causes.note(plan.Guarded(work)) })
	}
	p.Planner.Begin(steps)
	planned, loaded := make(chan *plan.Window), make(chan *plan.Window)
	// Steps that have their buffers wait in line for the next stage, so that a stage that is late
	// now and then holds up none before it.
	gathered, free := make(chan *Gathered, len(p.buffers)), make(chan *buffers, len(p.buffers))
	for i := range p.buffers {
		free <- &p.buffers[i]
	}
	// shared is stage where other workers have the same stage. It calls Left for a recovered panic,
	// too.
	shared := func(s Stage, work func() error) {
		g.Go(func() error { return p.left(s, causes.note(plan.Guarded(work))) })
	}
	shared(Draws, func() error {
		defer close(planned)
		return p.planAll(ctx, planned)
	})
	stage(func() error {
		defer close(loaded)
		return p.loadAll(ctx, planned, loaded)
	})
	shared(Gathers, func() error {
		defer close(gathered)
		n, err := p.gatherAll(ctx, loaded, gathered, free)
		if err == nil && n < steps.To-steps.From { // a stage before has failed, and its error may come later
			_ = p.left(Gathers, context.Canceled)
		}
		return err
	})
	done := func(b *Gathered) error { return p.finish(b, nil, free) }
	used := make(chan *Gathered, len(p.buffers))
	if len(writers) > 0 {
		failed := make(chan struct{})
		stage(func() error {
			defer close(failed)
			return p.writeAll(writers, used, free)
		})
		done = func(b *Gathered) error {
			select {
			case used <- b: // though ctx may have ended: what was used is written back
				return nil
			case <-failed:
				<-ctx.Done() // so that the writer's error is the first
				return ctx.Err()
			}
		}
	}
	stage(func() error {
		defer close(used)
		return p.useAll(ctx, steps, gathered, use, done)
	})
	if err = g.Wait(); errors.Is(err, context.Canceled) && asked.Err() == nil && causes.first != nil {
		return causes.first
	}
	return err
}

// causes has the first error of the stages that is not the end of a context. When a stage fails,
// other workers may leave before that stage's error ends the others here; then these get an error
// that only says so.
type causes struct {
	sync.Mutex
	first error
}

// note takes note of err, and returns it.
func (c *causes) note(err error) error {
	c.Lock()
	defer c.Unlock()
	if c.first == nil && err != nil && !errors.Is(err, context.Canceled) {
		c.first = err
	}
	return err
}

// Stage names a stage that exchanges with the same stage of other workers.
type Stage int

const (
	Draws Stage = iota
	Gathers
)

// left calls Left if err is set, and returns err.
func (p *Pipeline) left(s Stage, err error) error {
	if err != nil && p.Left != nil {
		p.Left(s, err)
	}
	return err
}

// ended adds the time since began to the clock. After an error it resets the Planner.
func (p *Pipeline) ended(began time.Time, err *error) {
	p.clock.running.Add(int64(time.Since(began)))
	if *err != nil { // there may be windows that were planned and never used
		p.Planner.Reset()
	}
}

// planAll asks for window after window.
func (p *Pipeline) planAll(ctx context.Context, out chan<- *plan.Window) error {
	for {
		w, err := p.Planner.Next(ctx)
		if w == nil || err != nil {
			return err
		}
		select {
		case out <- w:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// loadAll reads the rows of each window, in order.
func (p *Pipeline) loadAll(ctx context.Context, in <-chan *plan.Window, out chan<- *plan.Window) error {
	for w := range in {
		if err := p.load(ctx, w); err != nil {
			return err
		}
		select {
		case out <- w:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// load has the caches choose the rows that stay, then reads the rows of all tables at once. The
// rows of a table come as the window before releases slots, the last of them at its end.
func (p *Pipeline) load(ctx context.Context, w *plan.Window) error {
	if err := p.Planner.Keep(ctx, w); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, rows := range w.Rows {
		g.Go(func() error { return plan.Guarded(func() error { return rows.Load(ctx) }) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	seconds := 0.0
	for _, rows := range w.Rows {
		seconds = max(seconds, rows.ReadSeconds())
	}
	p.clock.load.Add(int64(seconds * 1e9))
	return nil
}

// gatherAll copies the rows of each step to a buffer of its own. It returns the number of steps.
func (p *Pipeline) gatherAll(
	ctx context.Context, in <-chan *plan.Window, out chan<- *Gathered, free <-chan *buffers,
) (n int, err error) {
	for w := range in {
		for i, s := range w.Steps {
			b := &Gathered{Drawn: s, planner: p.Planner}
			select {
			case b.buffers = <-free:
			case <-ctx.Done():
				return n, ctx.Err()
			}
			if err := p.gather(ctx, w, i, b); err != nil {
				return n, err
			}
			n++
			p.release(w, i)
			select {
			case out <- b:
			case <-ctx.Done():
				return n, ctx.Err()
			}
		}
	}
	return n, nil
}

// release gives up the rows of w if its i-th step, whose rows are copied, is the last.
func (p *Pipeline) release(w *plan.Window, i int) {
	if i == len(w.Steps)-1 {
		for _, rows := range w.Rows {
			rows.Release()
		}
	}
}

// gather copies the rows of the i-th step of w to the buffers of b. Rows that wait for earlier
// steps come last.
func (p *Pipeline) gather(ctx context.Context, w *plan.Window, i int, b *Gathered) error {
	inputs, own := b.Batch.Inputs(), b.buffers
	if len(own.rows) != len(inputs) {
		own.rows, own.read = make([]kernels.Tensor, len(inputs)), make([]cachetier.Stats, len(p.Tables))
		own.kept, own.owns = make([][]byte, len(p.Tables)), make([]kernels.Tensor, len(inputs))
	}
	b.Rows, b.Own, b.Read, b.Kept, own.came = own.rows, own.owns, own.read, own.kept, own.came[:0]
	for t, table := range p.Tables {
		if table.Lag == 0 {
			if err := p.gatherOf(ctx, w, i, b, t); err != nil {
				return err
			}
		}
	}
	for t, table := range p.Tables {
		if table.Lag == 0 {
			continue
		}
		began := time.Now()
		err := p.Planner.Written(ctx, b.Step-table.Lag)
		p.clock.stateWait.Add(int64(time.Since(began)))
		if err != nil {
			return err
		}
		if err := p.gatherOf(ctx, w, i, b, t); err != nil {
			return err
		}
	}
	return nil
}

// gatherOf is gather for one table.
func (p *Pipeline) gatherOf(ctx context.Context, w *plan.Window, i int, b *Gathered, t int) error {
	began, table, n := time.Now(), p.Tables[t], p.Planner.Types[t]
	defer func() {
		took := int64(time.Since(began))
		p.clock.gather.Add(took)
		if table.Lag > 0 {
			p.clock.rewritten.Add(took)
		}
	}()
	switch {
	case p.Late != nil && table.Lag > 0:
		p.Late(State)
	case p.Late != nil:
		p.Late(Gather)
	}
	rows := kernels.Tensor{Type: table.Type, Rows: len(b.Batch.Inputs()[n]), Cols: table.Cols}
	if p.Deal != nil && table.SentCols > 0 {
		rows.Cols = table.SentCols
	}
	if hot, apart := p.Planner.Tables[t].Apart(); apart {
		rows = p.gatherApart(w, i, b, parts{table: t, n: n, hot: hot, came: rows, rows: rows.Rows})
	}
	own, size := &b.buffers.of[t], rows.Len()
	kernels.GrowBuffer(p.Backend, own, table.Type, size, size+size/8)
	rows.Buf = *own
	b.Rows[n] = rows
	b.buffers.arrive(n, rows)
	if p.Deal != nil {
		if err := p.deal(ctx, w, i, b, t, rows); err != nil {
			return err
		}
	} else if table.KeepFrom < table.KeepTo || !w.Rows[t].GatherTo(ctx, i, rows) {
		if err := p.staging.Fill(rows, func(dst []byte) error {
			if err := w.Rows[t].Gather(ctx, i, dst); err != nil {
				return err
			}
			b.buffers.keep(t, table, dst, rows.Rows)
			return nil
		}); err != nil {
			return err
		}
	}
	b.Read[t] = p.Planner.Tables[t].Stats()
	return nil
}

// deal is gatherOf where workers own rows.
func (p *Pipeline) deal(ctx context.Context, w *plan.Window, i int, b *Gathered, t int, rows kernels.Tensor) error {
	n, table := p.Planner.Types[t], p.Tables[t]
	own := kernels.Tensor{Type: table.Type, Rows: len(b.Batch.Reads()[n]), Cols: table.Cols}
	size := own.Cols * own.Type.Size()
	p.read = slices.Grow(p.read[:0], own.Rows*size)[:own.Rows*size]
	if err := w.Rows[t].Gather(ctx, i, p.read); err != nil {
		return err
	}
	if table.SentCols > 0 {
		buffer := &b.buffers.own[t]
		kernels.GrowBuffer(p.Backend, buffer, own.Type, own.Len(), own.Len()+own.Len()/8)
		own.Buf = *buffer
		if err := p.staging.Fill(own, func(dst []byte) error {
			copy(dst, p.read)
			return nil
		}); err != nil {
			return err
		}
		b.Own[n] = own
	}
	return p.staging.Fill(rows, func(dst []byte) error {
		return p.Deal(ctx, b.Batch, n, size, rows.Cols*rows.Type.Size(), p.read, dst)
	})
}

// gatherApart uploads the places of a step's rows, if some lie on the device. It returns the shape
// of the others, which are to be gathered. join puts all together.
func (p *Pipeline) gatherApart(w *plan.Window, i int, b *Gathered, of parts) (came kernels.Tensor) {
	p.places = append(p.places[:0], make([]uint32, of.rows)...)
	of.came.Rows = w.Rows[of.table].Places(i, p.places)
	from, to := w.Rows[of.table].Keeps(i, p.places)
	at, n := &b.buffers.at[of.table], len(p.places)+len(from)+len(to)
	kernels.GrowBuffer(p.Backend, at, kernels.U32, n, n+n/8)
	all := kernels.Tensor{Buf: *at, Type: kernels.U32, Rows: n, Cols: 1}
	p.staging.JoinU32(all, p.places, from, to)
	n = of.rows + len(from)
	of.at, of.from, of.to = all.Slice(0, of.rows), all.Slice(of.rows, n), all.Slice(n, all.Rows)
	b.buffers.came = append(b.buffers.came, of)
	return of.came
}

// arrive sets the rows that came for type n, if others lie on the device.
func (b *buffers) arrive(n int, rows kernels.Tensor) {
	if i := len(b.came) - 1; i >= 0 && b.came[i].n == n {
		b.came[i].came = rows
	}
}

// join puts together the rows that came for a step and the rows that lie on the device, and keeps
// some of the rows that came. Its operations are the first of the step: they read the rows on the
// device before the step's stores displace any.
func (p *Pipeline) join(b *Gathered) {
	to := p.joined[p.joins%len(p.joined)]
	p.joins++
	for _, of := range b.buffers.came {
		x := kernels.Tensor{Type: of.came.Type, Rows: of.rows, Cols: of.came.Cols}
		kernels.GrowBuffer(p.Backend, &to[of.table], x.Type, x.Len(), x.Len()+x.Len()/8)
		x.Buf = to[of.table]
		p.Backend.RowsOf(x, of.hot, of.came, of.at)
		if of.from.Rows > 0 {
			p.Backend.KeepRows(of.hot, of.came, of.from, of.to)
		}
		b.Rows[of.n] = x
	}
}

// useAll calls use and then done with each batch, in order, and settles batches in between. Once
// every step was used it succeeds, even if ctx has ended meanwhile.
func (p *Pipeline) useAll(
	ctx context.Context, steps Steps, in <-chan *Gathered, use, done func(*Gathered) error,
) (err error) {
	var launched *Gathered // and not settled
	settle := func(next *Gathered) error {
		b := launched
		launched = next
		if b == nil {
			return nil
		}
		began := time.Now()
		if err := b.settle(); err != nil {
			return err
		}
		p.clock.use.Add(int64(time.Since(began)))
		return done(b)
	}
	defer func() {
		if err == nil || ctx.Err() != nil { // after another error a step may have changed nothing
			if failed := settle(nil); err == nil {
				err = failed
			}
		}
	}()
	for left := steps.To - steps.From; left > 0; left-- {
		b, ok, err := next(in, settle, &p.clock.wait)
		if err != nil {
			return err
		}
		if !ok || ctx.Err() != nil {
			return ctx.Err()
		}
		began := time.Now()
		p.join(b)
		if err := use(b); err != nil {
			return err
		}
		p.clock.use.Add(int64(time.Since(began)))
		if b.settle == nil {
			b.settle = func() error { return nil }
		}
		if err := settle(b); err != nil {
			return err
		}
		if !b.late {
			if err := settle(nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// next returns the next batch of in, which is closed when the stage before ends, for whatever
// reason. It settles the batch before if it has to wait, and adds the time it waits to clock.
func next(in <-chan *Gathered, settle func(*Gathered) error, clock *atomic.Int64) (b *Gathered, ok bool, err error) {
	select {
	case b, ok = <-in:
		return b, ok, nil
	default:
	}
	if err := settle(nil); err != nil {
		return nil, false, err
	}
	began := time.Now()
	b, ok = <-in
	clock.Add(int64(time.Since(began)))
	return b, ok, nil
}

// Close gives up the memory. A later Run allocates it again.
func (p *Pipeline) Close() {
	for _, step := range p.buffers {
		for t := range step.of {
			kernels.FreeBuffers(p.Backend, &step.of[t], &step.at[t], &step.own[t])
		}
	}
	for _, rows := range p.joined {
		for t := range rows {
			kernels.FreeBuffers(p.Backend, &rows[t])
		}
	}
	p.staging.Close()
}
