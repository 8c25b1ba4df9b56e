package stream

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/temporal"
	"github.com/gnnstore/gnnstore/train/temporal/staleness"
	"github.com/gnnstore/gnnstore/train/tiers"
)

// internal has the settings of a trainer, beside its options, that plans, networks and tests need.
type internal struct {
	scratch bool  // of MakePlan
	fixed   bool  // nothing is learnt
	lenient bool  // evaluation ranks nothing if the stream has no candidates
	beside  int64 // bytes that the caller has in memory

	faults disk.Faults        // of tests
	late   func(stage string) // of tests: called once a step in every stage, with the stage's name
}

// trainer is the state of a run.
type trainer struct {
	run.Driver
	internal internal
	set      *store.Dataset
	events   *store.Events
	split    store.StreamSplit
	be       kernels.Backend
	sizing   *kernels.Sizing // wraps be; computes nothing while a step's memory is measured

	known, all []uint32    // populations of negatives: of training, and of evaluation
	ranking    run.Ranking // the candidates of evaluation
	pairs      int64       // of PairFeatures: the different pairs of the stream
	draw       *drawer
	step       *temporal.Stepper
	lag        int                 // the staleness in force: 1 while Auto is not decided
	found      *run.AutoStaleness  // the decision on Auto; nil where a number was given
	stale      *staleness.Realised // counts the nodes that training read out of date
	wrote      []uint32            // scratch of it
	audit      audit               // of MitigateAudit
	audited    run.MitigationSums  // sums of audit
	measured   measured
	tables     tables
	pipe       *pipeline.Pipeline // of training
	replays    *pipeline.Pipeline // of evaluation
	states     *pipeline.Pipeline // of events that only update the state
	late       writer
	scratch    bool // the tables are for a rehearsal
	heap       tiers.HeapLimit
	budget     plan.Budget
	held       int64 // bytes of it that are held though tables are closed
	engine     string
	costs      disk.Costs

	scores  metric.Batches[float32] // of a batch of training
	mark    marks                   // of the state in the newest checkpoint
	undone  []cachetier.Undo        // of the checkpoint that was loaded; Restore takes them
	counted counted                 // counters of the tables and stages
	before  counted                 // the same at the checkpoint that was loaded
	follow  func(done int64)        // gets the number of events done in a pass
}

// tables has the tables whose rows steps read. Each may be missing.
type tables struct {
	state    *mutable.Table     // records of nodes, by place
	features *cachetier.Stack   // of events
	file     *store.Features    // of events
	ofNodes  *cachetier.Stack   // features, by place
	nodeFile *store.Features    // of nodes
	stacks   []*cachetier.Stack // all tables that are there
	kinds    []string           // of each of stacks
}

// Kinds of tables.
const (
	stateKind = "state"
	eventKind = "events"
	nodeKind  = "nodes"
)

// Types of rows, as temporal.Batch.Inputs has them.
var inputOf = map[string]int{stateKind: 0, eventKind: 1, nodeKind: 2}

// add adds a table of a kind.
func (t *tables) add(s *cachetier.Stack, kind string) {
	t.stacks, t.kinds = append(t.stacks, s), append(t.kinds, kind)
}

// find finds the features that a network of a kind reads. If node features are left out, it returns
// the reason.
func (t *tables) find(set *store.Dataset, s *store.Stream, kind model.Kind) (left string) {
	t.file, _ = set.StreamTable(s.Name, featureTable)
	for i, table := range set.Manifest().Tables {
		if table.Name != featureTable || table.NodeType != s.Src && table.NodeType != s.Dst {
			continue
		}
		switch {
		case !kind.ReadsNodes():
			return fmt.Sprintf("features of nodes are not read: %s has no use for them", kind)
		case s.Src != s.Dst: // places are of two tables then
			return fmt.Sprintf("features of nodes are not read: events join two types, %s and %s, and networks for streams read those of one", s.Src, s.Dst)
		}
		t.nodeFile = set.Features(i)
	}
	return ""
}

// counted has the counters of tables and stages, for training and for evaluation.
type counted struct {
	tables    []cachetier.Stats
	stages    pipeline.Stats
	evaluated cachetier.Disk
	written   int64 // bytes of records
}

// Run is train.Run for the stream of ds that o names.
func Run(
	ctx context.Context, ds *store.Dataset, openDir func() (*run.Dir, error), o run.Options, version string, h run.Hooks,
) (*run.Result, error) {
	return runWith(ctx, ds, openDir, o, version, h, internal{})
}

func runWith(
	ctx context.Context, ds *store.Dataset, openDir func() (*run.Dir, error), o run.Options, version string, h run.Hooks, in internal,
) (_ *run.Result, err error) {
	defer kernels.RecoverMemory(&err)
	if err := o.Validate(); err != nil {
		return nil, err
	}
	t, err := newTrainer(ctx, ds, o, h, in)
	if run.Ended(ctx, err) {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	defer t.close()
	return t.Driver.Run(ctx, t, openDir, version)
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

// newTrainer opens all that a run needs.
func newTrainer(ctx context.Context, ds *store.Dataset, o run.Options, h run.Hooks, in internal) (_ *trainer, err error) {
	events, err := Find(ds, o.Stream)
	if err != nil {
		return nil, err
	}
	t := &trainer{
		Driver: run.Driver{Options: o.FilledStream(events.Len()), Hooks: h}, internal: in,
		set: ds, events: events, split: events.Stream.Split, be: h.Backend, late: writer{late: in.late},
	}
	t.Stream, t.lag = events.Stream.Name, max(t.Staleness, 1)
	t.scratch = in.scratch || t.Staleness == run.Auto
	if t.Metric == "" {
		t.Metric = metric.AP
	}
	if t.be == nil {
		if t.be, err = kernels.Open(kernels.Options{Set: kernels.Set(o.Kernels)}); err != nil {
			return nil, fmt.Errorf("{kernels}: %w", err)
		}
	}
	t.sizing = &kernels.Sizing{Backend: t.be}
	t.be = t.sizing
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	defer kernels.RecoverMemory(&err)
	if err := t.settleBatch(); err != nil {
		return nil, err
	}
	if err := errors.Join(t.fits(), t.settleRanking()); err != nil {
		return nil, err
	}
	if err := store.Guard(t.populations); err != nil {
		return nil, err
	}
	if err := t.open(ctx); err != nil {
		return nil, err
	}
	t.Prepare(run.About{
		Dataset: ds, Backend: t.be, Weights: &t.step.Model.Parameters, Optim: t.step.Optim, Steps: t.steps(), Pass: t.steps(), Metric: t.Metric,
		Validates: t.validates(), Pauses: true, Progress: progressKey, Evaluation: t.evaluation(), Engine: t.engine, Costs: t.costs, Memory: t.budget,
	})
	t.Result.Stream = &run.StreamOf{
		Name: t.Stream, Src: events.Stream.Src, Dst: events.Stream.Dst, Events: events.Len(), Train: t.split.Train, Valid: t.split.Valid, Test: t.split.Test, Negatives: t.NegativePopulation,
		TrainNegatives: len(t.known), EvalNegatives: len(t.all), RankedAmong: t.ranking.String(), TimeScale: events.Stream.TimeScale,
		NodeColumns: t.shape().Node, Staleness: t.staleness(), Mitigation: run.MitigationOf{Keep: t.Mitigate},
	}
	return t, nil
}

// fits returns an error if the options do not fit the stream.
func (t *trainer) fits() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s, stream %s: %w", t.set.Path(), t.Stream, fmt.Errorf(format, args...))
	}
	switch {
	case t.split.Train == 0:
		return fail("none of its %d events is to learn from; ingest it with a split that has some", t.split.Valid+t.split.Test)
	case t.WarmEvents >= t.split.Train:
		return fail("{warm_events} %d: it has %d events to learn from, which would all be before the first step", t.WarmEvents, t.split.Train)
	case t.lag > t.steps():
		return fail("{staleness} %d: an epoch has %d steps, and the last one would see nothing of the first", t.lag, t.steps())
	}
	return nil
}

// populations makes the lists of negatives.
func (t *trainer) populations() (err error) {
	if t.NegativePopulation == run.AllNodes {
		t.known = temporal.AllNodes(t.events)
		t.all = t.known
		return nil
	}
	if t.known, err = temporal.Destinations(t.events, 0, t.split.Train); err == nil {
		t.all, err = temporal.Destinations(t.events, 0, t.events.Len())
	}
	return err
}

// steps returns the number of training steps of an epoch, without its warm-up.
func (t *trainer) steps() int {
	batch := int64(t.Batch)
	n := int((t.split.Train - t.WarmEvents + batch - 1) / batch)
	if t.EpochSteps > 0 {
		n = min(n, t.EpochSteps)
	}
	return n
}

// validates reports whether there is a validation part to choose a model by.
func (t *trainer) validates() bool { return t.Eval != run.NoEvaluation && t.split.Valid > 0 }

// evaluation returns the way of evaluation; run.Replay is the default.
func (t *trainer) evaluation() string {
	if t.Eval == "" || t.Eval == "auto" {
		return run.Replay
	}
	return t.Eval
}

// inflight returns the number of steps whose rows are in memory at a time.
func (t *trainer) inflight() int {
	if t.Inflight > 0 {
		return max(t.Inflight, 2)
	}
	return t.lag + 2
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
	return nil
}

// Complete implements run.Workload.
func (t *trainer) Complete(o run.Options) run.Options { return o.FilledStream(t.events.Len()) }

// Describe implements run.Workload.
func (t *trainer) Describe(r *run.Record) {
	r.Memory, r.AutoStaleness, r.BlendRule = t.budget, t.found, t.blendRule()
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

// blendRule returns the number of the rule by which memories are blended, or 0 if none are.
func (t *trainer) blendRule() int {
	if t.Mitigate == 0 || t.Mitigate == 1 {
		return 0
	}
	return temporal.BlendRule
}

// Room implements run.Workload.
func (t *trainer) Room() error {
	if t.tables.state == nil {
		return nil
	}
	return mutable.Room(t.Dir.FS(), filepath.Dir(t.Dir.File(run.StateDir)), t.tables.state.Need())
}

// shape returns the shape of the network, as the data and the options determine it.
func (t *trainer) shape() (s model.TemporalShape) {
	if t.tables.file != nil {
		s.Event = t.tables.file.Dim()
	}
	if t.tables.nodeFile != nil {
		s.Node = t.tables.nodeFile.Dim()
	} else {
		s.Node = t.Identity
	}
	if t.PairFeatures {
		s.Pair = temporal.PairColumns
	}
	return s
}

func (t *trainer) close() {
	t.closeRows()
	if t.draw != nil {
		t.draw.sampler.Close()
	}
	if t.step != nil {
		t.step.Close()
	}
	t.heap.Close()
}
