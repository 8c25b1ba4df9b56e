package stream

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
	p := run.Point{Result: *t.result, Steps: t.steps(), Updates: t.step.Optim.Steps(), Total: t.ends.Expected(t.result) * t.steps()}
	p.Result.PeakRSSBytes, p.Result.PeakFileBytes = t.peak.Bytes()
	stream := *p.Result.Stream
	p.Result.Stream = &stream
	stream.Staleness.Realised = t.stale.Mean()
	stream.Mitigation.Audit = t.audited.Of()
	done := slices.Clone(t.counted.tables)
	p.Count = func(r *run.Result) (pipeline.Stats, int) { return t.count(r, done) }
	return p
}

// count sets the counters of r; done has the counters of the tables in training. It returns the
// seconds of the stages since the process began, and the number of reads under way.
func (t *trainer) count(r *run.Result, done []cachetier.Stats) (stages pipeline.Stats, underWay int) {
	t.setTables(r, done)
	stages = t.pipe.Stats()
	r.Stages = stages.Add(t.before.stages)
	r.LimitingStage = r.Stages.Limiting()
	r.Topology, r.Window = t.lists(), run.WindowOf(t.pipe.Planner)
	r.Latency, underWay = run.LatencyOf(t.tables.stacks)
	return stages, underWay
}

// collect brings the result's counters up to the last step.
func (t *trainer) collect() {
	t.count(t.result, t.counted.tables)
	t.result.Evaluation.Disk = t.counted.evaluated.Add(t.before.evaluated)
	t.result.Stream.Staleness.Realised = t.stale.Mean()
	t.result.Stream.Mitigation.Audit = t.audited.Of()
	if s := t.tables.state; s != nil {
		c := s.Counts()
		t.result.Stream.State = &run.StateOf{
			Nodes: t.events.Places(), RecordBytes: t.step.Record.Bytes(), Touched: c.RowsTouched, BytesWritten: c.BytesWritten + t.before.written,
		}
	}
	t.peak.Look()
	t.result.PeakRSSBytes, t.result.PeakFileBytes = t.peak.Bytes()
}

// lists counts the neighbour lists that were read. Memory holds none of them. It returns nil if
// the network reads none.
func (t *trainer) lists() *run.Topology {
	if t.Fanouts[0] == 0 {
		return nil
	}
	a := t.draw.read()
	return &run.Topology{Tier: cachetier.Tier{RowsMissed: a.Rows}, Lists: t.events.Places(), Disk: a}
}

// setTables sets the counters of rows: together, and of each table.
func (t *trainer) setTables(r *run.Result, done []cachetier.Stats) {
	if len(done) == 0 { // no step was taken
		done = t.tables.stats()
		for i := range done {
			done[i] = done[i].Sub(done[i])
		}
	}
	all := each(done, t.before.tables, cachetier.Stats.Add)
	r.Stats, r.Tables = cachetier.Sum(all), nil
	if len(all) < 2 {
		return
	}
	for i := range all {
		name, kind := t.tableName(i)
		r.Tables = append(r.Tables, run.TableOf{Type: name, Kind: kind, Stats: all[i]})
	}
}

// tableName returns the name and the kind of the i-th table.
func (t *trainer) tableName(i int) (name, kind string) {
	switch kind = t.tables.kinds[i]; kind {
	case stateKind:
		return "state of nodes", kind
	case nodeKind:
		return t.events.Stream.Src + "/" + featureTable, kind
	}
	return t.Stream + "/" + featureTable, kind
}
