package infer

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
)

// edgeRows brings rows of table of edges number k.
func (e *Evaluator) edgeRows(ctx context.Context, k int, ids []uint32) (kernels.Tensor, error) {
	n, t := len(e.data.Types)+k, &e.data.EdgeTables[k]
	if e.owners != nil {
		return e.owners.fill(ctx, n, ids, t.DType(), t.Dim())
	}
	return e.step.Feed.Gather(ctx, n, e.edges[k], t.DType(), ids)
}

// edgesAttached is table of edges number k as Attach gave it, or nil.
func (e *Evaluator) edgesAttached(k int) *cachetier.Stack {
	if n := len(e.data.Types) + k; n < len(e.tables) {
		return e.tables[n]
	}
	return nil
}

// openEdges has the tables of edges be read that layers draw from, until closed.
func (e *Evaluator) openEdges(ctx context.Context) (closed func(), err error) {
	e.edges = make([]*cachetier.Stack, len(e.data.EdgeTables))
	var own []*cachetier.Stack
	closed = func() {
		for _, s := range own {
			stats := s.Stats()
			e.read = e.read.Add(stats.Disk).Add(stats.Warmup)
			s.Close()
		}
		e.edges = nil
	}
	for k, read := range e.data.DrawnTables(e.reach.Drawn()) {
		t := &e.data.EdgeTables[k]
		e.edges[k] = e.edgesAttached(k)
		if read && t.Nodes > 0 && e.edges[k] == nil {
			o := e.Tables
			o.DeviceBytes, o.StaticBytes, o.HostBytes, o.Prewarm = 0, 0, 0, false
			if e.edges[k], err = cachetier.Open(ctx, t.Features, o); err != nil {
				closed()
				return nil, fmt.Errorf("the rows of %s: %w", t.Name, err)
			}
			own = append(own, e.edges[k])
		}
	}
	return closed, nil
}
