// Package pipeline samples and gathers batches ahead of the step that uses them.
//
//	issue ─▶ sample (several at once) ─▶ gather (one, in step order) ─▶ use (in step order)
//
// Each stage has an output type of its own: [Sampled] has blocks, [Gathered] has feature rows as well. The batches
// between issue and the end of use are bounded in bytes, and a batch that is alone is always let through, so that no
// budget hangs. Steps are issued, gathered and used in order: neither the number of samplers nor the budget changes a
// batch, an order or a counter of the tiers. [Stats] says how long each stage worked, and which one the others wait for.
//
// Memory: a Pipeline owns the batches and lends one to use for the length of the call; they are recycled, and given up
// in Close. Their rows are buffers of the backend, written where kernels.Backend.Host lends them. One Run at a time.
// Start at [Pipeline.Run].
package pipeline

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Config is what the stages work with.
type Config struct {
	// Samplers draw at once, each in a goroutine of its own.
	Samplers []Sampler
	// Stack is where feature rows come from: Cols elements of Type each.
	Stack *cachetier.Stack
	Type  kernels.DType
	Cols  int
	// Backend holds the rows. Gather calls its Alloc, Free and Host while use is at work with it.
	Backend kernels.Backend
	// Bytes bounds the batches in flight, blocks and rows. A batch that is alone may be larger.
	Bytes int64
}

// Sampler draws the blocks of a batch, as a sample.Sampler does.
type Sampler interface {
	Sample(b *sample.Batch, z uint64, seeds []uint32) error
}

// Steps are the steps [From, To), and what their batches are drawn from.
type Steps struct {
	From, To int
	Seeds    func(step int) []uint32 // valid until Run returns
	Z        func(step int) uint64
}

// Sampled is a batch whose blocks are drawn.
type Sampled struct {
	Step  int
	Batch *sample.Batch
}

// Gathered is a batch whose feature rows are there.
type Gathered struct {
	Sampled
	Rows kernels.Tensor // one for each of Batch.Inputs()
	// Read is what the tiers had done by then: for this batch and those before it, and for none after it.
	Read cachetier.Stats
}

// Pipeline runs ranges of steps. Use New.
type Pipeline struct {
	Config
	depth   int // batches in flight, at most
	largest int64
	slots   []*slot // all there are
	clock   clock
}

// New makes a pipeline that has no memory yet.
func New(c Config) *Pipeline {
	// A batch is in use, one waits for it, one is gathered, and each sampler draws one: more would only take memory.
	return &Pipeline{Config: c, depth: len(c.Samplers) + 3}
}

// slot is the memory of a batch, and the batch on its way through the stages.
type slot struct {
	Gathered
	seeds  []uint32
	z      uint64
	buffer kernels.Buffer // of Rows
	bytes  int64          // counted against the budget
	drawn  chan struct{}  // receives when Batch is drawn
}

// event tells the issuing stage what became of a batch.
type event struct {
	slot  *slot
	bytes int64 // its size, now that it is drawn
	used  bool  // it is free again
}

// Run takes steps through the stages, and calls use with each batch inside store.Guard. It returns the first error, or
// that of ctx, after all its goroutines have ended.
func (p *Pipeline) Run(ctx context.Context, steps Steps, use func(*Gathered) error) error {
	began := time.Now()
	defer func() { p.clock.running.Add(int64(time.Since(began))) }()
	g, ctx := errgroup.WithContext(ctx)
	stage := func(work func() error) {
		g.Go(func() (err error) {
			defer kernels.RecoverMemory(&err)
			return store.Guard(work)
		})
	}

	// There are at most depth batches, and two events of each, so none of these ever blocks its sender.
	toSample, inOrder, gathered := make(chan *slot, p.depth), make(chan *slot, p.depth), make(chan *slot, p.depth)
	events := make(chan event, 2*p.depth)
	stage(func() error {
		defer close(toSample)
		defer close(inOrder)
		return p.issueAll(ctx, steps, toSample, inOrder, events)
	})
	for _, s := range p.Samplers {
		stage(func() error { return p.sampleAll(ctx, s, toSample, events) })
	}
	stage(func() error {
		defer close(gathered)
		return p.gatherAll(ctx, inOrder, gathered)
	})
	stage(func() error { return p.useAll(ctx, steps, gathered, events, use) })
	return g.Wait()
}

// issueAll gives out the steps in order, each with memory, as the budget allows. It alone does the accounting.
func (p *Pipeline) issueAll(ctx context.Context, steps Steps, toSample, inOrder chan<- *slot, events <-chan event) error {
	free := slices.Clone(p.slots) // the last used on top
	flying, bytes := 0, int64(0)
	for step := steps.From; step < steps.To; {
		// How large a batch is shows when it is drawn: until then it counts as the largest so far, and the first runs alone.
		if flying == 0 || flying < p.depth && p.largest > 0 && bytes+p.largest <= p.Bytes {
			if len(free) == 0 {
				free = append(free, p.newSlot())
			}
			s := free[len(free)-1]
			free = free[:len(free)-1]
			select {
			case <-s.drawn: // by a Run that was cut short
			default:
			}
			s.Step, s.seeds, s.z, s.bytes = step, steps.Seeds(step), steps.Z(step), p.largest
			flying, bytes = flying+1, bytes+s.bytes
			inOrder <- s
			toSample <- s
			step++
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-events:
			if !e.used {
				bytes += e.bytes - e.slot.bytes
				e.slot.bytes = e.bytes
				p.largest = max(p.largest, e.bytes)
				continue
			}
			flying, bytes = flying-1, bytes-e.slot.bytes
			if spare := int64(len(p.slots)-1) * p.largest; spare > 0 && spare+p.largest > p.Bytes {
				p.drop(e.slot) // batches have grown: what is kept for the next ones counts, too
				continue
			}
			free = append(free, e.slot)
		}
	}
	return nil
}

func (p *Pipeline) newSlot() *slot {
	s := &slot{Gathered: Gathered{Sampled: Sampled{Batch: new(sample.Batch)}}, drawn: make(chan struct{}, 1)}
	p.slots = append(p.slots, s)
	return s
}

func (p *Pipeline) drop(s *slot) {
	p.slots = slices.DeleteFunc(p.slots, func(t *slot) bool { return t == s })
	if s.buffer != nil {
		p.Backend.Free(s.buffer)
	}
}

// sampleAll draws the batches that it gets hold of.
func (p *Pipeline) sampleAll(ctx context.Context, sampler Sampler, in <-chan *slot, events chan<- event) error {
	for s := range in {
		if ctx.Err() != nil {
			return nil // the error is another stage's
		}
		began := time.Now()
		if err := sampler.Sample(s.Batch, s.z, s.seeds); err != nil {
			return err
		}
		p.clock.sample.Add(int64(time.Since(began)))
		events <- event{slot: s, bytes: s.Batch.Bytes() + int64(len(s.Batch.Inputs())*p.rowBytes())}
		s.drawn <- struct{}{} // from here on it is the next stage's
	}
	return nil
}

// gatherAll brings the rows of each batch, in step order.
func (p *Pipeline) gatherAll(ctx context.Context, in <-chan *slot, out chan<- *slot) error {
	for s := range in {
		select {
		case <-ctx.Done():
			return nil
		case <-s.drawn:
		}
		began := time.Now()
		if err := p.gather(s); err != nil {
			return err
		}
		p.clock.gather.Add(int64(time.Since(began)))
		out <- s
	}
	return nil
}

func (p *Pipeline) gather(s *slot) error {
	ids := s.Batch.Inputs()
	if n := len(ids) * p.Cols; s.buffer == nil || s.buffer.Len() < n {
		if s.buffer != nil {
			p.Backend.Free(s.buffer)
		}
		s.buffer = p.Backend.Alloc(p.Type, n+n/8)
	}
	s.Rows = kernels.Tensor{Buf: s.buffer, Type: p.Type, Rows: len(ids), Cols: p.Cols}
	dst, ok := p.Backend.Host(s.Rows)
	if !ok {
		panic("pipeline: the backend's memory cannot be addressed, and rows are gathered straight into it")
	}
	err := p.Stack.Gather(dst, ids)
	s.Read = p.Stack.Stats()
	return err
}

// useAll is the last stage. Steps that were all used are no failure, though ctx has ended meanwhile.
func (p *Pipeline) useAll(ctx context.Context, steps Steps, in <-chan *slot, events chan<- event, use func(*Gathered) error) error {
	for left := steps.To - steps.From; left > 0; left-- {
		began := time.Now()
		s, ok := <-in // closed when the stage before ends, for whatever reason
		started := time.Now()
		p.clock.wait.Add(int64(started.Sub(began)))
		if !ok || ctx.Err() != nil {
			return ctx.Err()
		}
		if err := use(&s.Gathered); err != nil {
			return err
		}
		p.clock.use.Add(int64(time.Since(started)))
		events <- event{slot: s, used: true}
	}
	return nil
}

func (p *Pipeline) rowBytes() int {
	if p.Type == kernels.F16 {
		return 2 * p.Cols
	}
	return 4 * p.Cols
}

// Close gives up the memory.
func (p *Pipeline) Close() {
	for len(p.slots) > 0 {
		p.drop(p.slots[0])
	}
}
