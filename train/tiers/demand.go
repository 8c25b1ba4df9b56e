package tiers

import (
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Measure is what the first batch was found to take.
type Measure struct {
	Batch *sample.Batch
	Step  int64 // bytes of a step on it, its feature rows apart
	// Beside is the bytes that a run takes beside its tiers: weights, evaluation.
	Beside int64
}

// demand is what each part needs.
func (t *Tiers) demand(m Measure) plan.Demand {
	f, g, b := t.data.Features, t.data.Graph, m.Batch
	scratch, shared := t.Sampler.Scratch(b)
	rows := plan.Rows{
		Count: int64(f.Rows()), Bytes: int64(f.RowBytes()), Index: policy.Config{Kind: t.Cache.Policy}.SlotBytes(), Inputs: len(b.Inputs()[0]),
	}
	lists := plan.Lists{
		Nodes: int64(g.Nodes()), Offsets: topology.LeastBytes(g), Bytes: topology.ListBytes(g, t.data.Weights),
	}
	for l := range b.Layers {
		lists.Wanted = append(lists.Wanted, int64(b.Layers[l].Nodes[0].Dst))
	}
	window := t.Window
	if window == 0 {
		window = plan.MaxWindow
	}
	seeds := int64(4 * (len(t.data.Train)*3 + len(t.data.Valid)*2 + len(t.data.Test)*2))
	return plan.Demand{
		Fixed: programBytes + shared + seeds + m.Beside + t.data.SumBytes() + 2*min(engineBytes, rows.Count*rows.Bytes+lists.Bytes),
		Step:  m.Step*stepMargin/100 + 2*int64(rows.Inputs)*rows.Bytes*stepMargin/100,
		Batches: plan.Batches{
			Bytes: b.Bytes(), Scratch: scratch, Groups: plan.InFlight + t.Lookahead, Parallel: t.Workers, Window: window,
		},
		Rows: []plan.Rows{rows}, Lists: []plan.Lists{lists}, Disk: t.Topology.Costs(),
	}
}

const (
	engineBytes  = 24 << 20 // of the buffers of a disk.Reader
	programBytes = 48 << 20 // the program and its heap beside what is counted
	stepMargin   = 112      // percent of the first batch that others may take
)
