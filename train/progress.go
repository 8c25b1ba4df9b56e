package train

import (
	"slices"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/run"
)

// serve lets hooks.Live look at the run until the function that it returns has been called.
func (t *trainer) serve() (stop func()) { return t.shown.Serve(t.hooks.Live, t.look) }

// look returns the run as others see it.
func (t *trainer) look() run.Point {
	p := run.Point{
		Result: *t.result, Steps: t.task.Steps(), Updates: t.optim.Steps(), Total: t.ends.Expected(t.result) * t.task.Steps(),
	}
	p.Result.PeakRSSBytes, p.Result.PeakFileBytes = t.peak.Bytes()
	p.Result.History = t.reuseReport()
	trained, other := slices.Clone(t.trained), t.other
	p.Count = func(r *run.Result) (pipeline.Stats, int) { return t.count(r, trained, other) }
	return p
}

// count sets the counters of r. trained has the counters of the tables in training, and other
// the seconds of the stages in everything else. It returns the seconds of the stages in training
// since the process began, and the number of reads under way.
func (t *trainer) count(r *run.Result, trained []cachetier.Stats, other pipeline.Stats) (stages pipeline.Stats, underWay int) {
	r.SetTables(t.tiers, each(nil, trained, t.before.tables, cachetier.Stats.Add))
	stages = t.tiers.Pipe.Stats().Sub(other)
	r.Stages = stages.Add(t.before.stages)
	r.LimitingStage = r.Stages.Limiting()
	r.Embeddings = run.EmbeddingsOf(t.tiers, t.before.learnt)
	r.Topology, r.Window = run.TopologyOf(t.tiers), run.WindowOf(t.tiers.Planner)
	r.Spill = run.SpillOf(t.tiers, t.before.spill)
	r.Latency, underWay = run.LatencyOf(t.tiers.Stacks)
	return stages, underWay
}

// collect sets the result's counters as of the last step.
func (t *trainer) collect() {
	t.count(t.result, t.trained, t.other)
	t.result.Evaluation.Disk = t.evaluated.Add(t.before.evaluated)
	t.result.History = t.reuseReport()
	t.peak.Look()
	t.result.PeakRSSBytes, t.result.PeakFileBytes = t.peak.Bytes()
}
