package pipeline

import (
	"time"

	"github.com/gnnstore/gnnstore/train/plan"
)

// Writer writes back the rows that a step has changed, and reports them by table. It may use the
// batch and its rows until the call returns. The next step is in use meanwhile.
type Writer interface {
	WriteBack(step int, b *Gathered) (plan.Written, error)
}

// writeAll calls the writers for each step, in order. Every step that was used is written back,
// even if the context of the run has ended meanwhile.
func (p *Pipeline) writeAll(writers []Writer, in <-chan *Gathered, free chan<- *buffers) error {
	for b := range in {
		if err := p.write(writers, b, free); err != nil {
			return err
		}
	}
	return nil
}

// write calls the writers for a step, unless the step has called Gathered.WriteBack.
func (p *Pipeline) write(writers []Writer, b *Gathered, free chan<- *buffers) error {
	began := time.Now()
	var all plan.Written
	for _, w := range writers {
		if b.written {
			break
		}
		written, err := w.WriteBack(b.Step, b)
		if err != nil {
			return err
		}
		all = all.Add(written)
	}
	p.clock.write.Add(int64(time.Since(began)))
	return p.finish(b, all, free)
}

// finish reports to the planner what the step wrote, and gives back its buffers and its batch.
func (p *Pipeline) finish(b *Gathered, w plan.Written, free chan<- *buffers) error {
	if !b.written {
		if err := p.Planner.WriteBack(b.Step, w); err != nil {
			return err
		}
	}
	free <- b.buffers
	p.Planner.Done(b.Drawn)
	return nil
}
