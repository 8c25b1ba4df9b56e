package stream

import (
	"slices"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/run"
)

// Stages implements run.Workload. Its times are of training alone: evaluation has other pipelines.
func (t *trainer) Stages() pipeline.Stats { return t.pipe.Stats() }

// Counter implements run.Workload.
func (t *trainer) Counter() func(r *run.Result) (pipeline.Stats, int) {
	done := slices.Clone(t.counted.tables)
	return func(r *run.Result) (stages pipeline.Stats, underWay int) {
		t.setTables(r, done)
		stages = t.pipe.Stats()
		r.Stages = stages.Add(t.before.stages)
		r.LimitingStage = r.Stages.Limiting()
		r.Topology, r.Window = t.lists(), run.WindowOf(t.pipe.Planner)
		r.Latency, underWay = run.LatencyOf(t.tables.stacks)
		return stages, underWay
	}
}

// Report implements run.Workload.
func (t *trainer) Report(r *run.Result) {
	r.Evaluation.Disk = t.counted.evaluated.Add(t.before.evaluated)
	stream := *r.Stream
	stream.Staleness.Realised = t.stale.Mean()
	stream.Mitigation.Audit = t.audited.Of()
	if s := t.tables.state; s != nil {
		c := s.Counts()
		stream.State = &run.StateOf{
			Nodes: t.events.Places(), RecordBytes: t.step.Record.Bytes(), Touched: c.RowsTouched, BytesWritten: c.BytesWritten + t.before.written,
		}
	}
	r.Stream = &stream
}

// lists returns the counters of neighbour lists, which are all read from disk. It returns nil if
// the network reads none.
func (t *trainer) lists() *run.Topology {
	if t.Fanouts[0] == 0 {
		return nil
	}
	a := t.draw.read()
	return &run.Topology{Tier: cachetier.Tier{RowsMissed: a.Rows}, Lists: t.events.Places(), Disk: a}
}

// setTables sets the counters of rows, in all and for each table.
func (t *trainer) setTables(r *run.Result, done []cachetier.Stats) {
	if len(done) == 0 { // no step was taken
		done = t.tables.stats()
		for i := range done {
			done[i] = done[i].Sub(done[i])
		}
	}
	all := cachetier.Combine(nil, done, t.before.tables, cachetier.Stats.Add)
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
