package graph

import (
	"slices"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/run"
)

// Stages implements run.Workload.
func (t *trainer) Stages() pipeline.Stats { return t.tiers.Pipe.Stats() }

// Counter implements run.Workload.
func (t *trainer) Counter() func(r *run.Result) (pipeline.Stats, int) {
	trained, other := slices.Clone(t.trained), t.other
	return func(r *run.Result) (stages pipeline.Stats, underWay int) {
		r.SetTables(t.tiers, cachetier.Combine(nil, trained, t.before.tables, cachetier.Stats.Add))
		stages = t.tiers.Pipe.Stats().Sub(other)
		r.Stages = stages.Add(t.before.stages)
		r.LimitingStage = r.Stages.Limiting()
		r.Embeddings = run.EmbeddingsOf(t.tiers, t.before.learnt)
		r.Topology, r.Window = run.TopologyOf(t.tiers), run.WindowOf(t.tiers.Planner)
		r.Spill = run.SpillOf(t.tiers, t.before.spill)
		r.Latency, underWay = run.LatencyOf(t.tiers.Stacks)
		return stages, underWay
	}
}

// Report implements run.Workload.
func (t *trainer) Report(r *run.Result) {
	r.Evaluation.Disk = t.evaluated.Add(t.before.evaluated)
	r.History = t.reuse.report(t.data.Types)
}
