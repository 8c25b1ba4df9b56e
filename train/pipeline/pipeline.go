// Package pipeline brings batches to the step that uses them: drawn, planned, read and gathered ahead of it.
//
//	draw a group of steps, plan its windows ─▶ load a window ─▶ gather a step ─▶ use a step
//
// A group is the steps that are drawn together, hop by hop, so that the neighbour lists of all of them are read in one
// pass of the file; a window is the steps, of one group, whose feature rows are read in one pass. How many steps make a
// group follows from the batches drawn before and from the budgets, never from timing: neither that nor the number of
// samplers changes a batch, an order or a counter of the tiers. [Stats] says how long each stage worked, and which one the
// others wait for.
//
// Memory: a Pipeline owns the batches and lends one to use for the length of the call; they are recycled, and given up
// in Close. Their rows are buffers of the backend, two of them: one in use, one being gathered. They are gathered by a
// kernels.Staging, which for a backend that the host cannot write to is memory for the rows of one more batch. A budget that is too small for one batch lets that one through, so that none hangs. One Run at a
// time.
//
// Start at [Pipeline.Run], then drawAll, where all is decided.
package pipeline

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Config is what the stages work with.
type Config struct {
	// Sampler draws groups of batches, and Parallel is how many it draws at once.
	Sampler  Sampler
	Parallel int
	// Stack is where feature rows come from: Cols elements of Type each.
	Stack *cachetier.Stack
	Type  kernels.DType
	Cols  int
	// Backend holds the rows. Gather allocates, fills and frees buffers of it while use computes with it.
	Backend kernels.Backend
	// Bytes bounds the blocks in flight. A batch that is alone may be larger.
	Bytes int64
	// Group is how many steps are drawn together, where Bytes allows. Default 0: as many as a window of the stack takes.
	Group int
	// BatchBytes and BatchRows are what a batch is known to take: the bytes of its blocks and the different rows that it reads. With
	// them the first group is as large as the others. Default 0: the first groups are a single step, which shows them.
	BatchBytes int64
	BatchRows  int
	// Ahead is how many groups are drawn before the one that is planned: what the stack's policy knows of the future.
	Ahead int
}

// Sampler draws several batches, as a sample.Sampler does.
type Sampler interface {
	Sample(ctx context.Context, batches []*sample.Batch, z []sample.Z, seeds [][][]uint32) error
}

// Steps are the steps [From, To), and what their batches are drawn from.
type Steps struct {
	From, To int
	Seeds    func(step int) [][]uint32 // by type; valid until Run returns
	Z        func(step int) sample.Z
}

// Sampled is a batch whose blocks are drawn.
type Sampled struct {
	Step  int
	Batch *sample.Batch
}

// Gathered is a batch whose feature rows are there.
type Gathered struct {
	Sampled
	Rows kernels.Tensor // one for each of Batch.Inputs()[0]
	// Read is what the tiers had done by then: for this batch and those before it, and for none after it.
	Read cachetier.Stats

	buffer kernels.Buffer // of Rows
}

// window is steps whose rows are read together.
type window struct {
	*cachetier.Window
	steps []Sampled
}

// Pipeline runs ranges of steps. Use New.
type Pipeline struct {
	Config
	flight  flight
	size    sizing
	free    []*sample.Batch   // under flight's lock
	buffers [2]kernels.Buffer // of rows; nil where there is none yet
	staging *kernels.Staging  // of gather
	clock   clock
}

// New makes a pipeline that has no memory yet.
func New(c Config) *Pipeline {
	p := &Pipeline{Config: c, staging: kernels.NewStaging(c.Backend)}
	if c.BatchRows > 0 && c.BatchBytes > 0 {
		p.size = sizing{largest: c.BatchBytes, steps: 1, rows: c.BatchRows}
	}
	p.flight.init()
	return p
}

// Run takes steps through the stages, and calls use with each batch inside store.Guard. It returns the first error, or
// that of ctx, after all its goroutines have ended.
func (p *Pipeline) Run(ctx context.Context, steps Steps, use func(*Gathered) error) (err error) {
	began := time.Now()
	defer func() {
		p.clock.running.Add(int64(time.Since(began)))
		if err != nil { // there may be windows that were planned and never used
			p.Stack.Reset()
			p.flight.bytes = 0
		}
	}()
	g, ctx := errgroup.WithContext(ctx) // the first error ends ctx, and so the other stages, whose errors say nothing
	stage := func(work func() error) {
		g.Go(func() error { return guarded(work) })
	}
	planned, loaded := make(chan *window), make(chan *window)
	gathered, buffers := make(chan *Gathered), make(chan kernels.Buffer, len(p.buffers))
	for _, b := range p.buffers {
		buffers <- b
	}
	stage(func() error {
		defer close(planned)
		return p.drawAll(ctx, steps, planned)
	})
	stage(func() error {
		defer close(loaded)
		return p.loadAll(ctx, planned, loaded)
	})
	stage(func() error {
		defer close(gathered)
		return p.gatherAll(ctx, loaded, gathered, buffers)
	})
	stage(func() error { return p.useAll(ctx, steps, gathered, buffers, use) })
	return g.Wait()
}

// guarded runs work and turns out-of-memory and mapping panics into errors.
func guarded(work func() error) (err error) {
	defer kernels.RecoverMemory(&err)
	return store.Guard(work)
}

// drawAll draws groups in order, as the budget allows, and plans their windows. How far it draws ahead of the planning is a
// matter of bytes, not of how far the other stages are.
func (p *Pipeline) drawAll(ctx context.Context, steps Steps, out chan<- *window) error {
	var drawn []group // of the oldest what is not planned yet
	for next := steps.From; next < steps.To || len(drawn) > 0; {
		n := min(p.groupSteps(), steps.To-next)
		if held, more := bytesOf(drawn), int64(n)*p.size.largest; n > 0 && len(drawn) <= p.Ahead && p.fitsAhead(held, more) {
			// What is not planned cannot be used up.
			if err := p.flight.wait(ctx, held, more, p.Bytes); err != nil {
				return err
			}
			g, err := p.draw(ctx, steps, next, n)
			if err != nil {
				return err
			}
			drawn = append(drawn, g)
			next += n
			continue
		}
		began := time.Now()
		planned, err := p.Stack.Next(ctx, p.Stack.Fit())
		if err != nil {
			return err
		}
		w := &window{Window: planned}
		p.clock.plan.Add(int64(time.Since(began)))
		p.size.note(w.Window)
		p.clock.steps.Store(int64(w.Window.Steps()))
		p.clock.rows.Store(int64(w.Rows()))
		w.steps, drawn[0] = drawn[0][:w.Steps()], drawn[0][w.Steps():]
		if len(drawn[0]) == 0 {
			drawn = drawn[1:]
		}
		select {
		case out <- w:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// draw draws the n steps from first on, and has the stack expect their rows.
func (p *Pipeline) draw(ctx context.Context, steps Steps, first, n int) (group, error) {
	began := time.Now()
	g := make(group, n)
	batches, z, seeds := make([]*sample.Batch, n), make([]sample.Z, n), make([][][]uint32, n)
	for i := range g {
		g[i] = Sampled{first + i, p.takeBatch()}
		batches[i], z[i], seeds[i] = g[i].Batch, steps.Z(first+i), steps.Seeds(first+i)
	}
	if err := p.Sampler.Sample(ctx, batches, z, seeds); err != nil {
		return nil, err
	}
	p.clock.sample.Add(int64(time.Since(began)))
	began = time.Now()
	ids := make([][]uint32, n)
	for i, b := range batches {
		ids[i] = b.Inputs()[0]
		p.flight.add(b.Bytes())
		p.size.largest = max(p.size.largest, b.Bytes())
	}
	p.Stack.Expect(ids)
	p.clock.plan.Add(int64(time.Since(began)))
	return g, nil
}

// loadAll reads the rows of each window, in order.
func (p *Pipeline) loadAll(ctx context.Context, in <-chan *window, out chan<- *window) error {
	for w := range in {
		if err := w.Load(ctx); err != nil {
			return err
		}
		p.clock.load.Add(int64(w.ReadSeconds() * 1e9))
		select {
		case out <- w:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// gatherAll copies the rows of each step to a buffer of its own.
func (p *Pipeline) gatherAll(ctx context.Context, in <-chan *window, out chan<- *Gathered, buffers <-chan kernels.Buffer) error {
	for w := range in {
		for i, s := range w.steps {
			b := &Gathered{Sampled: s}
			select {
			case b.buffer = <-buffers:
			case <-ctx.Done():
				return ctx.Err()
			}
			began := time.Now()
			if err := p.gather(ctx, w, i, b); err != nil {
				return err
			}
			p.clock.gather.Add(int64(time.Since(began)))
			if i == len(w.steps)-1 {
				w.Release()
			}
			select {
			case out <- b:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

func (p *Pipeline) gather(ctx context.Context, w *window, i int, b *Gathered) error {
	rows := len(b.Batch.Inputs()[0])
	if n := rows * p.Cols; b.buffer == nil || b.buffer.Len() < n {
		b.buffer = p.growBuffer(b.buffer, n+n/8)
	}
	b.Rows = kernels.Tensor{Buf: b.buffer, Type: p.Type, Rows: rows, Cols: p.Cols}
	err := p.staging.Fill(b.Rows, func(dst []byte) error { return w.Gather(ctx, i, dst) })
	b.Read = p.Stack.Stats()
	return err
}

// growBuffer puts a buffer of n elements in the place of old among p.buffers.
func (p *Pipeline) growBuffer(old kernels.Buffer, n int) kernels.Buffer {
	for i := range p.buffers {
		if p.buffers[i] != old {
			continue
		}
		if old != nil {
			p.buffers[i] = nil // before Alloc may fail
			p.Backend.Free(old)
		}
		p.buffers[i] = p.Backend.Alloc(p.Type, n)
		return p.buffers[i]
	}
	panic("pipeline: a buffer of nobody")
}

// useAll is the last stage. When every step was used it succeeds, even if ctx has ended meanwhile.
func (p *Pipeline) useAll(ctx context.Context, steps Steps, in <-chan *Gathered, buffers chan<- kernels.Buffer, use func(*Gathered) error) error {
	for left := steps.To - steps.From; left > 0; left-- {
		began := time.Now()
		b, ok := <-in // closed when the stage before ends, for whatever reason
		started := time.Now()
		p.clock.wait.Add(int64(started.Sub(began)))
		if !ok || ctx.Err() != nil {
			return ctx.Err()
		}
		if err := use(b); err != nil {
			return err
		}
		p.clock.use.Add(int64(time.Since(started)))
		buffers <- b.buffer
		p.giveBatch(b.Batch)
	}
	return nil
}

func (p *Pipeline) takeBatch() *sample.Batch {
	p.flight.Lock()
	defer p.flight.Unlock()
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		return b
	}
	return new(sample.Batch)
}

// giveBatch takes b out of flight and keeps its memory for the next.
func (p *Pipeline) giveBatch(b *sample.Batch) {
	p.flight.add(-b.Bytes())
	p.flight.Lock()
	defer p.flight.Unlock()
	p.free = append(p.free, b)
}

// Close gives up the memory.
func (p *Pipeline) Close() {
	for i, b := range p.buffers {
		if b != nil {
			p.Backend.Free(b)
			p.buffers[i] = nil
		}
	}
	p.staging.Close()
	p.free = nil
}
