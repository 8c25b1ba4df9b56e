package graph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/cachetier/spill"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/infer"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
	tasks "github.com/gnnstore/gnnstore/train/task"
	"github.com/gnnstore/gnnstore/train/tiers"
)

// internal has the settings of a trainer, beside its options, that networks and tests need.
type internal struct {
	faults disk.Faults             // of tests
	beside func(total int64) int64 // bytes that the caller takes of total; nil: none
	// known describes the dataset that a network was trained on; nil if it is used on that one.
	known *trainedOn
	fixed *fixed // the network learns no more; nil: it does
}

// Run is train.Run for a graph.
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
	if err := t.learnt.checkFiles(t.InitRows); err != nil {
		return nil, err
	}
	return t.Driver.Run(ctx, t, openDir, version)
}

// place puts the files of the tables and of the evaluator in the run directory.
func (t *trainer) place() {
	t.tiers.In(t.Dir.FS(), t.Dir.File(run.EmbeddingDir), fmt.Sprintf("dataset %s, seed %d", t.Result.Seal, t.Seed))
	t.eval.Dir, t.eval.FS = t.Dir.File(run.LayerDir), t.Dir.FS()
}

// Place implements run.Workload: it puts the files of the tables and of the evaluator in the run
// directory, and makes the disk space for rows of later windows.
func (t *trainer) Place(ctx context.Context) error {
	t.place()
	return t.spill(ctx)
}

// Room implements run.Workload.
func (t *trainer) Room() error { return t.tiers.Room() }

// Complete implements run.Workload.
func (t *trainer) Complete(o run.Options) run.Options { return o }

// Describe implements run.Workload.
func (t *trainer) Describe(r *run.Record) { r.AutoSettings = t.settled }

// Started implements run.Workload.
func (t *trainer) Started() { t.notes() }

// Fresh implements run.Workload: it initialises the learnt rows.
func (t *trainer) Fresh(ctx context.Context) error {
	return t.learnt.begin(ctx, t.Record.Options.InitRows) // a resumed run has the files only there
}

// Ready implements run.Workload.
func (t *trainer) Ready(ctx context.Context) error { return t.warm(ctx) }

// Retain implements run.Workload.
func (t *trainer) Retain(ctx context.Context) error {
	if !t.learnt.any() {
		return nil
	}
	return t.learnt.retain(ctx)
}

// Restore implements run.Workload. Learnt rows are restored by Resumed.
func (t *trainer) Restore(context.Context) error { return nil }

// Resumed implements run.Workload.
func (t *trainer) Resumed(ctx context.Context, names []string) error {
	if !t.learnt.any() {
		return nil
	}
	return t.learnt.resume(ctx, names)
}

// Hash implements run.Workload. If learnt rows cannot be read, it returns "", and that error unless
// failed is set. If a run with learnt rows failed or was cut short, Hash returns the hash as it
// was, since a new one would read all of these rows.
func (t *trainer) Hash(ctx context.Context, failed error) (string, error) {
	if t.learnt.any() && (failed != nil || t.Result.Status == run.Interrupted) {
		return t.Result.ParamsXXH3, failed
	}
	h := xxh3.New()
	t.model.AddTo(h)
	if err := t.learnt.addTo(ctx, h); err != nil {
		return "", cmp.Or(failed, err)
	}
	return fmt.Sprintf("%016x", h.Sum64()), failed
}

// task is the learning task of a run: its seeds, its loss and its metric.
type task interface {
	step.Task
	infer.Task
	Kind() metric.Kind
	// Trained returns the metric of the batches that were trained on.
	Trained(a step.Tally) float64
	// Steps returns the number of steps of an epoch. Begin orders the seeds of an epoch, counted
	// from 1. Seeds returns the seeds of a step of it, by type, valid until the next Begin. Without
	// returns the edges that a step's batch is drawn without, or nil. Seeds and Without may be
	// called while Loss runs on another goroutine.
	Steps() int
	Begin(epoch int)
	Seeds(step int) [][]uint32
	Without(step int) []sample.Without
	// Part begins a measurement of a part of the split. It returns the nodes to compute, by type,
	// or none if there is nothing to measure.
	Part(ctx context.Context, p tasks.Part) ([][]uint32, error)
	// Baseline measures an answer without a network on these nodes of the part that Part began
	// last. It returns nil if there is no such answer. Constant returns the network's answer if the
	// last measurement saw the same one everywhere, else "". Scale returns about the loss of an
	// untrained network.
	Baseline(nodes [][]uint32) (*tasks.Baseline, error)
	Constant() string
	Scale() (float64, error)

	// Attach gives the task its network, before the first step.
	Attach(s *step.Stepper)
	// Examples returns "nodes", "links" or "edges". Limit makes measurements use at most n links or
	// edges of a part, or with 0 all of them. Nodes are limited by the evaluator.
	Examples() string
	Limit(n int) error
	// Bytes returns the memory of an evaluation beside the rows of nodes. FixedBytes returns the
	// memory, beside rows, for predicting with a network that learns no more, and if measures is
	// set, for measuring it as well.
	Bytes() int64
	FixedBytes(measures bool) int64
}

// newTask makes t's task from the data.
func (t *trainer) newTask() (err error) {
	o := tasks.Options{
		Metric: t.Metric, ClassWeights: t.ClassWeights, Batch: t.Batch, EpochSteps: t.EpochSteps, Seed: t.Seed, NoLayers: t.Layers == 0,
		MemoryBytes: t.MemoryBytes, Width: t.shape().Out, Fixed: t.internal.fixed != nil, Unmeasured: t.internal.fixed.unmeasured(),
	}
	switch {
	case t.data.Links == nil:
		t.task, err = tasks.NewNodes(t.data, o)
		return err
	case t.data.EdgeLabel != nil:
		t.task, err = tasks.NewEdges(t.data, o, t.LinkOptions)
		return err
	}
	links, err := tasks.NewLinks(t.data, o, t.LinkOptions, t.Decoder)
	if err != nil {
		return err
	}
	t.task, t.LinkOptions = links, links.Options()
	return nil
}

// trainer is the state of a run.
type trainer struct {
	run.Driver
	internal internal
	data     *data.Data
	draws    sample.Config // of batches
	task     task
	be       kernels.Backend
	sizing   *kernels.Sizing // wraps be; computes nothing while a step's memory is measured
	tiers    *tiers.Tiers
	step     *step.Stepper
	model    *model.Model // of step, as is optim
	optim    *optim.Optimizer
	eval     *infer.Evaluator
	learnt   *learntRows
	labels   *data.Shown // nil: labels are no input
	reuse    *reuse      // nil: Options.History is false

	settled   *run.AutoSettings // nil: the defaults stay
	read      []cachetier.Stats // counters of each table's tiers when last looked at
	trained   []cachetier.Stats // the part of them that training steps caused
	did       []cachetier.Stats // the part that the newest step caused
	other     pipeline.Stats    // what the stages did for evaluation
	evaluated cachetier.Disk    // reading for evaluation
	before    before
	large     []string // columns of edges with large values
}

// before has the counters that a resumed run goes on from.
type before struct {
	tables    []cachetier.Stats
	stages    pipeline.Stats
	evaluated cachetier.Disk
	learnt    []run.EmbeddingOf
	spill     *spill.Stats
}

// newTrainer opens all that a run needs. ctx cuts it short, and later cuts short what it opened.
func newTrainer(ctx context.Context, ds *store.Dataset, o run.Options, h run.Hooks, in internal) (_ *trainer, err error) {
	o = o.WithDefaults()
	t := &trainer{Driver: run.Driver{Options: o, Hooks: h}, internal: in, be: h.Backend}
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
	wanted := dataOptions(o)
	in.known.complete(&wanted)
	if t.data, err = data.Open(ds, wanted); err != nil {
		return nil, err
	}
	whole := t.settle()
	if t.Hidden != o.Hidden { // by default learnt rows have Hidden columns
		if err = t.data.FindInputs(t.Inputs, t.Hidden); err != nil {
			return nil, err
		}
	}
	if err = t.data.CheckInputs(t.Inputs, t.Hidden); err != nil {
		return nil, err
	}
	o = t.Options
	used := t.used()
	if t.draws, err = drawsOf(t.data, &t.Options, used); err != nil {
		return nil, err
	}
	if err := checkLabels(t.data, &t.Options, t.shape(), used); err != nil {
		return nil, err
	}
	err = store.Guard(func() (err error) {
		if err = t.newTask(); err == nil && t.LabelInput > 0 {
			t.labels, err = t.data.Shown()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	t.Metric = t.task.Kind() // as it is called when a resumed run is asked for it; as are these
	switch {
	case t.data.Links != nil && len(t.data.Links.All) > 1:
		t.Target = ""
	case t.data.Links != nil:
		r := t.data.Relations[t.data.Links.Relation].Relation
		t.Target = strings.Join([]string{r.Src, r.Name, r.Dst}, ",")
	case len(t.data.Types) > 1:
		t.Target = t.data.Types[t.data.Target].Name
	}
	if t.data.Links == nil {
		t.Split = t.data.Split
	}
	if err := checkModel(&t.Options, t.shape()); err != nil {
		return nil, err
	}
	if in.fixed != nil {
		t.step = step.NewFixed(t.be, model.NewFixed(t.be, o.Config, t.shape()), t.task)
	} else {
		t.step = step.New(t.be, model.New(t.be, o.Config, t.shape(), o.Seed), t.task, o.Optim)
	}
	t.model, t.optim = t.step.Model, t.step.Optim
	if t.labels != nil {
		t.step.Shown = t.labels
	}
	t.task.Attach(t.step)
	evalNodes := o.EvalNodes
	if t.data.Links != nil {
		evalNodes = math.MaxInt
	}
	if t.EvalBytes == run.Auto {
		t.EvalBytes = 2 << 30
		if t.MemoryBytes > 0 {
			t.EvalBytes = max(t.MemoryBytes/8, exactBytes)
		}
	}
	eval := infer.Options{
		Draws: t.draws, Bytes: t.EvalBytes, Way: wayOf(o.Eval), Nodes: evalNodes, Batch: o.Batch, Seed: o.Seed, Look: t.Peak.Look,
		LayerDtype: elemOf(o.LayerDtype),
	}
	if in.fixed != nil {
		err = t.openFixed(ctx, eval)
	} else {
		t.eval = infer.New(t.data, t.step, t.task, eval)
		err = t.openTiers(ctx, o.EvalBytes == run.Auto)
	}
	if err != nil {
		return nil, err
	}
	if t.data.Links != nil && t.eval.Sampled() && t.EvalEdges == 0 {
		if err := t.task.Limit(o.EvalNodes); err != nil {
			return nil, err
		}
	}
	t.learnt = &learntRows{run: &t.Driver, data: t.data, tiers: t.tiers, steps: t.task.Steps()}
	t.Prepare(run.About{
		Dataset: ds, Backend: t.be, Weights: &t.model.Parameters, Optim: t.optim, Steps: t.task.Steps(), Pass: whole, Metric: t.task.Kind(),
		Validates: t.data.Validates(), Pauses: t.learnt.any(), Progress: progressKey, Evaluation: t.eval.Method(), Engine: t.tiers.Engine,
		Costs: t.tiers.Disk.Costs, Memory: t.tiers.Budget,
	})
	if len(t.data.Relations) > 1 {
		t.Result.Relations = t.relations()
	}
	if l, label := t.data.Links, t.data.EdgeLabel; label != nil {
		r := t.data.Relations[l.Relation]
		t.Result.Edges = &run.EdgesOf{
			Relation: r.Relation.Key(), Label: t.EdgeLabel, Classes: label.Classes, Train: r.Edges(), Valid: l.Valid.Len(), Test: l.Test.Len(),
			Decoder: string(t.Decoder),
		}
	} else if l != nil {
		valid, test := l.Held()
		var keys []string
		edges := int64(0)
		for _, of := range l.All {
			r := t.data.Relations[of.Relation]
			keys, edges = append(keys, r.Relation.Key()), edges+r.Edges()
		}
		t.Result.Links = &run.LinksOf{
			Relation: strings.Join(keys, ", "), Train: edges, Valid: valid, Test: test,
			Decoder: string(t.Decoder), Negatives: t.Negatives, EvalNegatives: t.EvalNegatives,
		}
	}
	return t, nil
}

// dataOptions returns the options of opening the dataset for a run of o.
func dataOptions(o run.Options) data.Options {
	return data.Options{
		Split: o.Split, Weighted: o.Sampling().Weighted, Target: o.Target, Links: o.Links() || o.Edges(), EdgeLabel: o.EdgeLabel, Relation: o.Relation, Inputs: o.Inputs, Hidden: o.Hidden,
		EdgeInputs: o.EdgeInputs, Together: o.Layers == 0,
	}
}

// exactBytes is room that evaluation over all neighbours always has if training leaves it, so that
// a small budget does not evaluate a small graph on samples. It holds hidden rows of some 8,000
// nodes with two layers of 128 columns.
const exactBytes = 8 << 20

// relations returns the size and the fanouts of each relation.
func (t *trainer) relations() (all []run.RelationOf) {
	for i, r := range t.data.Relations {
		if t.Layers == 0 { // nothing is drawn
			all = append(all, run.RelationOf{Key: r.Relation.Key(), Edges: r.Edges(), Fanout: []int{}})
			continue
		}
		rel := run.RelationOf{Key: r.Relation.Key(), Edges: r.Edges()}
		for hop := range t.draws.Fanouts {
			fanout := 0
			if layer := len(t.draws.Fanouts) - 1 - hop; t.tiers.Reach.Relations[layer][i] {
				fanout = t.draws.FanoutOf(hop, i)
			}
			rel.Fanout = append(rel.Fanout, fanout)
		}
		all = append(all, rel)
	}
	return all
}

// openTiers measures the first batch and opens the tiers by it. If that leaves no room for
// full-neighbour evaluation and anyEvaluation allows it, evaluation takes smaller chunks, and if
// that is not enough, gets no memory for hidden rows.
func (t *trainer) openTiers(ctx context.Context, anyEvaluation bool) (err error) {
	if most := mutable.MaxKept - 1; t.KeepCheckpoints > most && t.data.Learns() {
		return fmt.Errorf("{keep_checkpoints} %d: at most %d where rows are learnt", t.KeepCheckpoints, most)
	}
	t.tiers, err = tiers.New(ctx, t.data, t.draws, t.learning(), t.be, t.Options.Options, t.internal.faults)
	if err != nil {
		return err
	}
	t.task.Begin(1)
	b, err := t.batch(ctx, 0)
	if err != nil {
		return err
	}
	t.large = t.largeValues(b)
	if err := t.planReuse(ctx); err != nil {
		return err
	}
	if !t.reuses() { // else draws depend on earlier steps
		t.tiers.EpochSteps = t.task.Steps()
	}
	before := t.be.Bytes()
	t.sizing.Dry = true // else a step would take memory that is not there before the run is refused
	err = t.rehearse(b, 0)
	t.sizing.Dry = false
	if err != nil {
		return err
	}
	drawn := *b // with the origins of batches that use rows again
	drawn.Layers, _ = t.reuse.rehearsal(b)
	m := tiers.Measure{
		Batch: &drawn, Step: t.be.Bytes().Host - before.Host + t.step.LabelBytes(), Beside: t.besideTiers(), History: t.reuse.bytes(), Slots: t.reuse.slotBytes(),
	}
	if t.keepRest(m) {
		drawn.Layers, _ = t.reuse.rehearsal(b)
		m.History, m.Slots = t.reuse.bytes(), t.reuse.slotBytes()
	}
	err = t.tiers.Open(ctx, m)
	var short *plan.NotEnough
	// the same figures, a few rows at a time
	if errors.As(err, &short) && anyEvaluation && !t.eval.Sampled() {
		o := t.eval.Options
		o.ChunkBytes = leastChunk
		t.eval = infer.New(t.data, t.step, t.task, o)
		m.Beside = t.besideTiers()
		err = t.tiers.Open(ctx, m)
	}
	if errors.As(err, &short) && anyEvaluation {
		t.EvalBytes, t.eval.Bytes = 0, 0
		m.Beside = t.besideTiers()
		err = t.tiers.Open(ctx, m)
	}
	if err != nil {
		if errors.As(err, &short) && m.History > 0 {
			err = fmt.Errorf("%w; %s of it is for hidden rows of earlier steps: {history_bytes} makes that less", err, kernels.FormatBytes(m.History))
		}
		return err
	}
	if err := t.reuse.open(t.tiers.Region); err != nil {
		return err
	}
	t.read, t.trained = t.tiers.Stats(), make([]cachetier.Stats, len(t.tiers.Stacks))
	t.eval.Attach(t.tiers.Tables(), t.tiers.Pipe)
	d := t.tiers.Disk
	t.eval.Tables = cachetier.Options{Engine: d.Kind, Readers: d.Depth, Direct: d.Direct, Costs: d.Costs, Faults: d.Faults}
	return t.openAudit(ctx)
}

// spill makes the disk space for rows of later windows. If there is none, a note says why.
func (t *trainer) spill(ctx context.Context) error {
	if t.reuses() && t.SpillBytes > 0 {
		t.Note("what is drawn depends on hidden rows of earlier steps: rows are read by windows, without a spill")
	}
	why, err := t.tiers.Spill(ctx, t.Dir.Path())
	if why != "" {
		t.Note("%s", why)
	}
	return err
}

// learning returns the options of keeping learnt rows.
func (t *trainer) learning() tiers.Learning {
	// One more than the kept checkpoints: the epoch that was the best when the oldest of them was
	// made.
	l := tiers.Learning{Rule: t.Optim.Rows.Rule(), Seed: t.Seed, Kept: t.KeepCheckpoints + 1, Steps: t.task.Steps(), Given: map[string]bool{}}
	for name := range t.InitRows {
		l.Given[name] = true
	}
	if t.Epochs != run.Auto {
		l.Whole = t.Epochs * t.task.Steps()
	}
	if t.CheckpointEvery > 0 {
		l.Steps = min(l.Steps, t.CheckpointEvery)
	}
	return l
}

// batch draws the batch of a step of the first epoch.
func (t *trainer) batch(ctx context.Context, step int) (b *sample.Batch, err error) {
	err = store.Guard(func() error {
		b, err = t.tiers.First(ctx, t.BatchSeeds().At(step), t.task.Seeds(step), t.task.Without(step))
		return err
	})
	return b, err
}

// besideTiers returns the bytes that the tiers and batches do not count: weights with their
// gradients, moments and copies, and evaluation.
func (t *trainer) besideTiers() int64 {
	// A weight has its value, its gradient and two moments, and beside them the best epoch's, and a
	// checkpoint while it is built.
	bytes := (4*4+12)*t.Config.Weights(t.shape()) + t.eval.MemoryBytes() + t.task.Bytes()
	if t.labels != nil {
		bytes += t.labels.Bytes()
	}
	return bytes
}

// shape returns the shape of the network, as the data and the options determine it.
func (t *trainer) shape() model.Shape { return shapeOf(t.data, &t.Options, &t.draws) }

func (t *trainer) close() {
	if t.reuse != nil {
		t.reuse.close()
	}
	if t.tiers != nil {
		t.tiers.Close()
	}
	if t.step != nil {
		t.step.Close()
	}
}
