package stream

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/temporal"
	"github.com/gnnstore/gnnstore/train/temporal/staleness"
)

// trainer is the run.Workload that trains a core.
type trainer struct {
	*core
	savedState
	eval      evaluation
	publisher writer
	found     *run.AutoStaleness      // the decision on Auto; nil where a number was given
	stale     *staleness.Realised     // counts the nodes that training read out of date
	wrote     []uint32                // scratch of it
	audit     audit                   // of MitigateAudit
	scores    metric.Batches[float32] // of a batch of training
	read      []cachetier.Stats       // counters of the tables in training
	before    before
}

// before has the counters that a resumed run goes on from.
type before struct {
	tables    []cachetier.Stats
	stages    pipeline.Stats
	evaluated cachetier.Disk
	written   int64 // bytes of records
}

// newTrainer opens all that a run needs.
func newTrainer(ctx context.Context, ds *store.Dataset, o run.Options, h run.Hooks, in internal) (*trainer, error) {
	c, err := newCore(ctx, ds, o, h, in)
	if err != nil {
		return nil, err
	}
	return &trainer{core: c, eval: evaluation{core: c}, savedState: savedState{core: c}, publisher: writer{delay: in.delay}}, nil
}

// Run is train.Run for the stream of ds that o names.
func Run(
	ctx context.Context, ds *store.Dataset, openDir func() (*run.Dir, error), o run.Options, version string, h run.Hooks,
) (*run.Result, error) {
	return runWith(ctx, ds, openDir, o, version, h, internal{})
}

func runWith(
	ctx context.Context, ds *store.Dataset, openDir func() (*run.Dir, error), o run.Options, version string, h run.Hooks, in internal,
) (*run.Result, error) {
	open := func() (run.Workload, error) { return newTrainer(ctx, ds, o, h, in) }
	return run.Start(ctx, o, open, openDir, version)
}

// Find returns the stream of this name, or the only stream if name is empty.
func Find(ds *store.Dataset, name string) (*store.Events, error) {
	var names []string
	for i, s := range ds.Manifest().Streams {
		if s.Name == name || name == "" && len(ds.Manifest().Streams) == 1 {
			return ds.Events(i), nil
		}
		names = append(names, s.Name)
	}
	switch {
	case len(names) == 0:
		return nil, fmt.Errorf("%s: it has no stream of events, which networks for streams learn; gnnstore ingest events makes a dataset with one", ds.Path())
	case name == "":
		return nil, fmt.Errorf("%s: it has %d streams: say by {stream} which: %s", ds.Path(), len(names), strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("{stream} %s: %s has %s", name, ds.Path(), strings.Join(names, ", "))
}

// Place implements run.Workload: it decides the staleness, and has the state of nodes kept in the
// run directory.
func (t *trainer) Place(ctx context.Context) error {
	if err := t.decide(ctx, t.Dir.Record()); err != nil {
		return err
	}
	if t.tables.state != nil {
		t.tables.state.In(mutable.Place{
			FS: t.Dir.FS(), Dir: t.Dir.File(run.StateDir),
			Run: fmt.Sprintf("dataset %s, stream %s, seed %d, %s, records of %d bytes", t.Result.Seal, t.Stream, t.Seed, t.Kind, t.step.Record.Bytes()),
		})
	}
	t.LockMemory(t.tables.stacks)
	return nil
}

// decide finds the staleness of a run with Staleness Auto, from the record or by a rehearsal, and
// opens the tables anew for it.
func (t *trainer) decide(ctx context.Context, record *run.Record) (err error) {
	if t.Staleness == run.Auto {
		if record != nil {
			t.found = record.AutoStaleness
		}
		if t.found == nil {
			dir, done, serr := t.Dir.Scratch(run.RehearsalDir)
			if serr != nil {
				return serr
			}
			t.found, err = newRehearsal(t.core).find(ctx, mutable.Place{FS: t.Dir.FS(), Dir: dir})
			done()
		}
		if err != nil {
			return err
		}
		t.closeRows()
		t.lag, t.scratch = t.found.K, false
		if err := t.openRows(ctx); err != nil {
			return err
		}
		t.Result.Memory, t.Result.Stream.Staleness = run.MemoryOf(t.budget), t.staleness(t.found)
	}
	t.stale = staleness.NewRealised(t.lag)
	return nil
}

// Complete implements run.Workload.
func (t *trainer) Complete(o run.Options) run.Options { return o.FilledStream(t.events.Len()) }

// Describe implements run.Workload.
func (t *trainer) Describe(r *run.Record) {
	r.Memory, r.AutoStaleness = t.budget, t.found
	if t.Mitigate != 0 && t.Mitigate != 1 {
		r.BlendRule = temporal.BlendRule
	}
}

// Fresh implements run.Workload.
func (t *trainer) Fresh(ctx context.Context) error {
	if t.tables.state == nil {
		return nil
	}
	return t.tables.state.Begin(ctx)
}

// Started implements run.Workload.
func (t *trainer) Started() {}

// Ready implements run.Workload.
func (t *trainer) Ready(context.Context) error { return nil }

// Room implements run.Workload.
func (t *trainer) Room() error {
	if t.tables.state == nil {
		return nil
	}
	return mutable.Room(t.Dir.FS(), filepath.Dir(t.Dir.File(run.StateDir)), t.tables.state.Need())
}

// Stages implements run.Workload. Its times are of training alone: evaluation has other pipelines.
func (t *trainer) Stages() pipeline.Stats { return t.pipe.Stats() }

// Counter implements run.Workload.
func (t *trainer) Counter() func(r *run.Result) (pipeline.Stats, int) {
	done := slices.Clone(t.read)
	return func(r *run.Result) (stages pipeline.Stats, underWay int) {
		t.tables.report(r, done, t.before.tables)
		stages = t.pipe.Stats()
		r.Stages = stages.Add(t.before.stages)
		r.LimitingStage = r.Stages.Limiting()
		var lists *run.Topology
		if t.Fanouts[0] > 0 { // they are all read from disk
			a := t.draw.read()
			lists = &run.Topology{Tier: cachetier.Tier{RowsMissed: a.Rows}, Lists: t.events.Places(), Disk: a}
		}
		r.Topology, r.Window = lists, run.WindowOf(t.pipe.Planner)
		r.Latency, underWay = run.LatencyOf(t.tables.stacks)
		return stages, underWay
	}
}

// Report implements run.Workload.
func (t *trainer) Report(r *run.Result) {
	r.Evaluation.Disk = t.eval.read.Add(t.before.evaluated)
	stream := *r.Stream
	stream.Staleness.Realised = t.stale.Mean()
	stream.Mitigation.Audit = t.audit.sums.Of()
	if s := t.tables.state; s != nil {
		c := s.Counts()
		stream.State = &run.StateOf{
			Nodes: t.events.Places(), RecordBytes: t.step.Record.Bytes(), Touched: c.RowsTouched, BytesWritten: c.BytesWritten + t.before.written,
		}
	}
	r.Stream = &stream
}
