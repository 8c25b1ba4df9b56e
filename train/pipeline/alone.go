package pipeline

import (
	"context"
	"time"

	"github.com/gnnstore/gnnstore/train/plan"
)

// Alone is Run with one stage at work at a time, so that no stage waits for another or takes its
// processors. Stats then has the time that each stage needs. Steps see the same rows as in Run.
func (p *Pipeline) Alone(ctx context.Context, steps Steps, use func(*Gathered) error, writers ...Writer) (err error) {
	defer p.ended(time.Now(), &err)
	return plan.Guarded(func() error {
		p.Planner.Begin(steps)
		free := make(chan *buffers, 1)
		free <- &p.buffers[0]
		for {
			w, err := p.Planner.Next(ctx)
			if w == nil || err != nil {
				return err
			}
			if err := p.load(ctx, w); err != nil {
				return err
			}
			for i := range w.Steps {
				if err := p.alone(ctx, w, i, free, use, writers); err != nil {
					return err
				}
			}
		}
	})
}

// alone takes the i-th step of w through the stages behind loading.
func (p *Pipeline) alone(ctx context.Context, w *plan.Window, i int, free chan *buffers, use func(*Gathered) error, writers []Writer) error {
	b := &Gathered{Drawn: w.Steps[i], planner: p.Planner, buffers: <-free}
	if err := p.gather(ctx, w, i, b); err != nil {
		return err
	}
	p.release(w, i)
	began := time.Now()
	p.join(b)
	if err := use(b); err != nil {
		return err
	}
	p.clock.use.Add(int64(time.Since(began)))
	return p.write(writers, b, free)
}
