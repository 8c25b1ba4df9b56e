package stream

import (
	"context"
	"sync/atomic"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// drawer is a plan.Sampler of the events of a part.
type drawer struct {
	sampler *temporal.Sampler
	of      func(step int) temporal.Step
	late    func(stage string) // of tests
	near    atomic.Pointer[disk.Account]

	steps   []temporal.Step
	batches []*temporal.Batch
}

// begin sets the events of steps from now on. It is called before a range of steps, and from is the
// first of them.
func (d *drawer) begin(ctx context.Context, from int, of func(step int) temporal.Step) error {
	d.of = of
	first := int64(0)
	err := store.Guard(func() error {
		first = of(from).From
		return nil
	})
	if err != nil {
		return err
	}
	return d.sampler.Seek(ctx, first)
}

// New returns an empty *temporal.Batch.
func (d *drawer) New() plan.Batch { return new(temporal.Batch) }

// Draw draws the events of some steps.
func (d *drawer) Draw(ctx context.Context, _ *plan.Steps, from int, into []plan.Batch) error {
	d.steps, d.batches = d.steps[:0], d.batches[:0]
	err := store.Guard(func() error { // of steps that look at events
		for i, b := range into {
			if d.late != nil {
				d.late(pipeline.Sample)
			}
			d.steps, d.batches = append(d.steps, d.of(from+i)), append(d.batches, b.(*temporal.Batch))
		}
		return nil
	})
	if err == nil {
		err = d.sampler.Draw(ctx, d.steps, d.batches)
	}
	near := d.sampler.Stats().Near
	d.near.Store(&near)
	return err
}

// read returns the counters of reading neighbour lists, as of the last Draw. It may be called at
// any time.
func (d *drawer) read() (a disk.Account) {
	if near := d.near.Load(); near != nil {
		a = *near
	}
	return a
}

// Phases of negatives.
const (
	training = iota
	validation
	test
)

// part is a range of events that is taken in steps.
type part struct {
	from, to  int64
	batch     int64
	stateOnly bool
	lag       int64 // steps to the newest whose state is seen, where memories that are out of date are blended; or 0
	temporal.Negatives
}

// steps returns the number of batches of the part.
func (p *part) steps() int { return int((p.to - p.from + p.batch - 1) / p.batch) }

// step returns the events of step i.
func (p *part) step(i int) temporal.Step {
	from := p.from + int64(i)*p.batch
	s := temporal.Step{From: from, To: min(from+p.batch, p.to), StateOnly: p.stateOnly, Negatives: p.Negatives}
	if p.lag > 0 {
		s.Seen = max(p.from, from-(p.lag-1)*p.batch)
	}
	return s
}
