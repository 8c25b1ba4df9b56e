package infer

import (
	"context"
	"sync"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// drawnChunk is a chunk, and what a layer reads for it unless it is a hub.
type drawnChunk struct {
	nodes []uint32
	batch sample.Batch
}

// drawn is chunks with what layer l reads for each, which is drawn while the chunk before is used.
// What do gets is valid until it returns.
func (e *Evaluator) drawn(ctx context.Context, nodes nodeSet, t, l int, do func(c *drawnChunk) error) (err error) {
	free, ready := make(chan *drawnChunk, len(e.ahead)), make(chan *drawnChunk)
	for i := range e.ahead {
		free <- &e.ahead[i]
	}
	ctx, stop := context.WithCancel(ctx)
	var drawing sync.WaitGroup
	var failed error
	defer func() {
		stop()
		drawing.Wait()
		if err == nil {
			err = failed
		}
	}()
	drawing.Go(func() {
		defer close(ready)
		failed = store.Guard(func() error {
			return e.chunks(nodes, t, l, func(chunk []uint32) error { return e.drawAhead(ctx, t, l, chunk, free, ready) })
		})
	})
	for c := range ready {
		if err := do(c); err != nil {
			return err
		}
		free <- c
	}
	return nil
}

func (e *Evaluator) drawAhead(ctx context.Context, t, l int, chunk []uint32, free <-chan *drawnChunk, ready chan<- *drawnChunk) error {
	var c *drawnChunk
	select {
	case c = <-free:
	case <-ctx.Done():
		return ctx.Err()
	}
	c.nodes = append(c.nodes[:0], chunk...)
	if !e.hub(l, t, c.nodes) {
		if err := e.draw(ctx, &c.batch, l, t, c.nodes); err != nil {
			return err
		}
	}
	select {
	case ready <- c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// draw makes b all that layer l reads for nodes of type t.
func (e *Evaluator) draw(ctx context.Context, b *sample.Batch, l, t int, nodes []uint32) error {
	err := e.drawBy(ctx, e.full[l], b, t, nodes)
	if err == nil && e.owners != nil && e.Draws.GCN {
		err = e.owners.degrees(ctx, e.full[l], b)
	}
	return err
}

// drawNone is draw without edges, for a layer that has its sums and reads no more of edges: see
// readsEdges.
func (e *Evaluator) drawNone(ctx context.Context, b *sample.Batch, _, t int, nodes []uint32) error {
	return e.drawBy(ctx, e.none, b, t, nodes)
}

func (e *Evaluator) drawBy(ctx context.Context, s *sample.Sampler, b *sample.Batch, t int, nodes []uint32) error {
	seeds := make([][]uint32, len(e.data.Types))
	seeds[t] = nodes
	e.draws.Lock()
	defer e.draws.Unlock()
	if err := s.SampleOne(ctx, b, sample.BatchSeed{}, seeds...); err != nil {
		return e.data.Place(err)
	}
	return nil
}

// readsEdges reports whether layer l reads more of edges than the sums of their sources' rows:
// values of edges, or labels of sources.
func (e *Evaluator) readsEdges(l int) bool {
	if l == 0 && e.step.Shown != nil {
		return true
	}
	for r := range e.data.Relations {
		if rel := &e.data.Relations[r]; e.reach.Relations[l][r] && len(rel.Brought()) > 0 {
			return true
		}
	}
	return false
}
