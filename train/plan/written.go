package plan

import (
	"context"
	"fmt"
	"sync"
)

// Written is the rows that a step wrote, a list a table; nil where it wrote none.
type Written [][]uint32

// Add returns the rows of w and more, table by table. It may use the memory of w.
func (w Written) Add(more Written) Written {
	for len(w) < len(more) {
		w = append(w, nil)
	}
	for t, rows := range more {
		w[t] = append(w[t], rows...)
	}
	return w
}

// writes tracks how far steps are written back. It has a lock of its own, as flight has.
type writes struct {
	sync.Mutex
	next    int // the first step that is not written back
	changed *sync.Cond
}

func (w *writes) begin(step int) {
	w.Lock()
	defer w.Unlock()
	w.next = step
}

// WriteBack records that a step is over, and what it wrote. It is called once for each step of a
// range, in order, even for a step that wrote nothing. It is the only way that a used step affects
// the plan: from here on the rows of the step may give way to others, in the tables whose rows are
// rewritten. The caller stores the rows first: see cachetier.Stack.Write.
func (p *Planner) WriteBack(step int, w Written) error {
	if len(w) > len(p.Tables) {
		return fmt.Errorf("plan: step %d wrote to %d tables, and there are %d", step, len(w), len(p.Tables))
	}
	p.writes.Lock()
	defer p.writes.Unlock()
	if step != p.writes.next {
		return fmt.Errorf("plan: step %d is written back where step %d is next", step, p.writes.next)
	}
	for _, t := range p.Tables {
		t.Passed()
	}
	p.writes.next++
	p.writes.changed.Broadcast()
	return nil
}

// Written waits until a step of the range is written back, or returns the error of ctx when that
// ends first. Steps before the range count as written back.
func (p *Planner) Written(ctx context.Context, step int) error {
	w := &p.writes
	w.Lock()
	defer w.Unlock()
	if step < w.next {
		return nil
	}
	stop := context.AfterFunc(ctx, func() {
		w.Lock() // so that nobody is between looking at ctx and waiting
		defer w.Unlock()
		w.changed.Broadcast()
	})
	defer stop()
	for step >= w.next {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.changed.Wait()
	}
	return nil
}
