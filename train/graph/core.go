package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/infer"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
	tasks "github.com/gnnstore/gnnstore/train/task"
	"github.com/gnnstore/gnnstore/train/tiers"
)

// internal has the settings of a core, beside its options, that networks and tests need.
type internal struct {
	// owner is for tests. It returns the owner of a node to learn, where seeds go by owners and
	// the dataset is no part.
	owner  func(v uint32) int
	faults disk.Faults // of tests
	// spillFaults is tiers.Tiers.SpillFaults.
	spillFaults func(write bool, at int64, size int) error
	beside      share // bytes that the caller takes of the memory
	// known describes the dataset that a network was trained on; nil if it is used on that one.
	known *trainedOn
	fixed *fixed // the network learns no more; nil: it does
	probe bool   // a Network may fit a linear probe
	// planned has the workers of a plan; nil: it is no plan, or of one worker.
	planned *planned
}

// share returns the bytes that the caller takes of a total. A nil share takes none.
type share func(total int64) int64

func (s share) of(total int64) int64 {
	if s == nil {
		return 0
	}
	return s(total)
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
	// Prepare is called before Seeds, once for each n steps that are drawn together, and again if
	// they are drawn again. It may exchange with other workers. The task keeps KeptBytes of memory
	// for each step until the step is computed.
	Prepare(ctx context.Context, from, n int) error
	KeptBytes() int64
	// Part begins a measurement of a part of the split. It returns the nodes to compute, by type,
	// or none if there is nothing to measure.
	Part(ctx context.Context, p tasks.Part) ([][]uint32, error)
	// Baseline measures an answer without a network on these nodes of the part that Part began
	// last. It returns nil if there is no such answer. Constant returns the network's answer if the
	// last measurement saw the same one everywhere, else "". Scale returns about the loss of an
	// untrained network.
	Baseline(ctx context.Context, nodes [][]uint32) (*tasks.Baseline, error)
	Constant() string
	Scale() (float64, error)

	// Attach gives the task its network, before the first step.
	Attach(s *step.Stepper)
	// Examples returns "nodes", "links" or "edges". Limit makes measurements use at most n links or
	// edges of a part, or with 0 all of them. Nodes are limited by the evaluator.
	Examples() string
	Limit(n int) error
	// Bytes returns the memory of an evaluation beside the rows of nodes, in a process that may
	// take memory bytes. FixedBytes returns the memory, beside rows, for predicting with a network
	// that learns no more, and if measures is set, for measuring it as well.
	Bytes(memory int64) int64
	FixedBytes(memory int64, measures bool) int64
}

// newTask makes the task from the data.
func (c *core) newTask() (err error) {
	o := tasks.Options{
		Metric: c.Metric, ClassWeights: c.ClassWeights, Batch: c.Batch, EpochSteps: c.EpochSteps, Seed: c.Seed, NoLayers: c.Layers == 0, NoMessages: !c.Reads(),
		MemoryBytes: c.MemoryBytes / int64(max(c.Hosted, 1)), Width: c.shape().Out, Share: c.share(), Deal: c.deal(),
		Workers: c.edgeWorkers(), Fixed: c.internal.fixed != nil, Unmeasured: c.internal.fixed.unmeasured(),
	}
	switch {
	case c.data.Links == nil:
		c.task, err = tasks.NewNodes(c.data, o)
		return err
	case c.data.EdgeLabel != nil:
		c.task, err = tasks.NewEdges(c.data, o, c.LinkOptions)
		return err
	}
	links, err := tasks.NewLinks(c.data, o, c.LinkOptions, c.Decoder)
	if err != nil {
		return err
	}
	c.task, c.LinkOptions = links, links.Options()
	return nil
}

// startReport begins a report of the measurements that follow, if the task makes reports. take ends
// the report and returns it, or nil if there is none.
func (c *core) startReport() (take func() *metric.Report) {
	t, ok := c.task.(interface {
		StartReport(memory int64)
		TakeReport() *metric.Report
	})
	if !ok {
		return func() *metric.Report { return nil }
	}
	t.StartReport(c.tiers.Total())
	return t.TakeReport
}

// core is an open network with its data, the tiers that feed it and its evaluator. A trainer trains
// it, and a Network uses it.
type core struct {
	run.Driver
	internal internal
	data     *data.Data
	draws    sample.Config // of batches
	task     task
	tiers    *tiers.Tiers
	step     *step.Stepper
	model    *model.Model // of step, as is optim
	optim    *optim.Optimizer
	eval     *infer.Evaluator
	learnt   *learntRows
	labels   *data.Shown         // nil: labels are no input
	reuse    *reuse              // nil: Options.History is false
	settled  *run.AutoSettings   // nil: the defaults stay
	choice   *run.ParallelChoice // nil: there was no choice
	shared   []plan.Shared       // of a plan
	tracing  *int                // Seeds are the share of this worker; nil: of the run's own
	onDevice int64               // bytes of weights, gradients and moments in a device's own memory
	large    []string            // notes on columns of edges with large values
}

// opening is held while one of several workers of a process opens: it measures the disk, and how
// much the memory of the process grows in a step.
var opening sync.Mutex

// newCore opens the network and all that it needs. When ctx ends, opening stops, and so does what
// it opened. If training by one worker does not fit in memory, the error names options that fit.
func newCore(ctx context.Context, ds *store.Dataset, o run.Options, h run.Hooks, in internal) (*core, error) {
	c, err := openCore(ctx, ds, o, h, in)
	if err == nil {
		return c, nil
	}
	ofNetwork := in.beside != nil // it has the options of a trained run
	if run.Short(err) && !ofNetwork && h.Group.Size() == 1 {
		quiet := run.Hooks{Backend: h.Backend, Text: h.Text}
		err = run.Fitting(ctx, err, o, c.Options, func(o run.Options) error {
			if err := o.Validate(); err != nil {
				return err
			}
			other, err := openCore(ctx, ds, o, quiet, in)
			if err == nil {
				other.Close()
			}
			return err
		})
	}
	return nil, err
}

// openCore does the work of newCore; its errors name no options that fit. If it fails, it returns
// the closed core, whose Options are the ones that were in effect.
func openCore(ctx context.Context, ds *store.Dataset, o run.Options, h run.Hooks, in internal) (c *core, err error) {
	c = &core{Driver: run.Driver{Options: o.WithDefaults(), Hooks: h}, internal: in}
	unlock := func() {}
	n := h.Group.Hosted()
	if p := in.planned; p != nil {
		n = p.machine
	}
	if n > 1 {
		c.Hosted = n
		opening.Lock()
		unlock = sync.OnceFunc(opening.Unlock)
	}
	defer unlock()
	if err := c.OpenBackend(); err != nil {
		return c, err
	}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	defer kernels.RecoverMemory(&err)
	pass, err := c.openData(ctx, ds)
	if err != nil {
		return c, err
	}
	if c.Parallel == run.AutoParallel && c.data.OwnPart() != nil {
		c.Parallel = run.ByParts
	}
	if err := c.unlocked(func() error { return c.checkPart(ctx) }); err != nil {
		return c, err
	}
	err = store.Guard(func() (err error) {
		if err = c.newTask(); err == nil && c.LabelInput > 0 {
			c.labels, err = c.data.Shown()
		}
		return err
	})
	if err != nil {
		return c, err
	}
	if err := c.checkProbe(); err != nil {
		return c, err
	}
	c.recordChoices()
	if err := c.openStep(); err != nil {
		return c, err
	}
	err = c.openEvaluator(ctx)
	unlock()
	if err = c.agree(ctx, err); err != nil {
		return c, err
	}
	if err := c.checkWeighed(); err != nil {
		return c, err
	}
	if c.data.Links != nil && c.eval.Sampled() && c.EvalEdges == 0 {
		if err := c.task.Limit(c.EvalNodes); err != nil {
			return c, err
		}
	}
	c.learnt = &learntRows{run: &c.Driver, data: c.data, tiers: c.tiers, steps: c.task.Steps(), part: c.ownedPart()}
	c.Prepare(run.About{
		Dataset: ds, TrainedOn: func() ([]byte, error) { return json.Marshal(newTrainedOn(c.data)) },
		Weights: &c.model.Parameters, Optim: c.optim, Steps: c.task.Steps(), Pass: pass, Metric: c.task.Kind(),
		Validates: c.data.Validates(), Pauses: c.learnt.any(), Progress: progressKey, Own: c.ownKeys(),
		Evaluation: c.eval.Method(), Engine: c.tiers.Engine,
		Costs: c.tiers.Disk.Costs, Memory: c.tiers.Budget,
	})
	c.describeData()
	return c, nil
}

// unlocked calls exchange, which waits for other workers, while one of this process may open.
func (c *core) unlocked(exchange func() error) error {
	if c.Hosted > 1 {
		opening.Unlock()
		defer opening.Lock()
	}
	return exchange()
}

// openData opens the data and settles the options that depend on it. It refuses options that do not
// fit the data. If an epoch is shorter than a pass over all examples, pass is the steps of that
// pass, else 0.
func (c *core) openData(ctx context.Context, ds *store.Dataset) (pass int, err error) {
	wanted, hidden := dataOptions(c.Options), c.Hidden
	c.internal.known.complete(&wanted)
	wanted.Gather = c.gatherOpening(ctx, ds)
	if c.data, err = data.Open(ds, wanted); err != nil {
		return 0, err
	}
	pass = c.settle()
	if c.Hidden != hidden { // by default learnt rows have Hidden columns
		if err = c.data.FindInputs(c.Inputs, c.Hidden); err != nil {
			return 0, err
		}
	}
	if err = errors.Join(c.data.CheckInputs(c.Inputs, c.Hidden), c.CheckLearnt(c.data.Learns())); err != nil {
		return 0, err
	}
	used := c.used()
	if c.draws, err = drawsOf(c.data, &c.Options, used); err != nil {
		return 0, err
	}
	return pass, checkLabels(c.data, &c.Options, c.shape(), used)
}

// recordChoices sets Metric, Target and Split to the values in effect. They go on record: a resumed
// run is compared with them.
func (c *core) recordChoices() {
	c.Metric = c.task.Kind()
	links := c.data.Links
	switch {
	case links != nil && len(links.All) > 1:
		c.Target = ""
	case links != nil:
		r := c.data.Relations[links.Relation].Relation
		c.Target = strings.Join([]string{r.Src, r.Name, r.Dst}, ",")
	case len(c.data.Types) > 1:
		c.Target = c.data.Types[c.data.Target].Name
	}
	if links == nil {
		c.Split = c.data.Split
	}
}

// openStep makes the network and its step.
func (c *core) openStep() error {
	weights := func(hidden int) int64 {
		o := c.Options
		o.Hidden = hidden
		return o.Config.Weights(shapeOf(c.data, &o, &c.draws))
	}
	if err := c.CheckMemory(weights, c.internal.fixed == nil); err != nil {
		return err
	}
	before := c.Backend.Bytes().Device
	if c.internal.fixed != nil {
		c.step = step.NewFixed(c.Backend, model.NewFixed(c.Backend, c.Config, c.shape()), c.task)
	} else {
		c.step = step.New(c.Backend, model.New(c.Backend, c.Config, c.shape(), c.Seed), c.task, c.Optim)
	}
	c.onDevice = c.Backend.Bytes().Device - before
	c.model, c.optim = c.step.Model, c.step.Optim
	if c.labels != nil {
		c.step.Shown = c.labels
	}
	c.task.Attach(c.step)
	return nil
}

// openEvaluator opens the evaluator, and the tiers that it shares the memory with.
func (c *core) openEvaluator(ctx context.Context) (err error) {
	auto := c.EvalBytes == run.Auto
	if auto {
		own, err := c.Options.Part()
		if err != nil {
			return err
		}
		if c.EvalBytes = 2 << 30; own.MemoryBytes > 0 {
			c.EvalBytes = max(own.MemoryBytes/8, exactBytes)
		}
		room, apart, err := kernels.RoomOf(c.Backend)
		if err != nil {
			return err
		}
		if apart {
			c.EvalBytes = min(c.EvalBytes, room/8)
		}
	}
	nodes := c.EvalNodes
	if c.data.Links != nil {
		nodes = math.MaxInt
	}
	eval := infer.Options{
		Draws: c.draws, Bytes: c.EvalBytes, Way: wayOf(c.Eval), Nodes: nodes, Batch: c.Batch, Seed: c.Seed, Look: c.Peak.Look,
		LayerDtype: elemOf(c.LayerDtype), Workers: c.workers(), Owned: c.ownedPart(),
	}
	if c.internal.fixed != nil {
		err = c.openFixed(ctx, eval)
	} else {
		c.eval = infer.New(c.data, c.step, c.task, eval)
		if c.ownedPart() != nil && !c.eval.Sampled() && c.eval.PartBytes() > c.EvalBytes {
			return c.data.Set.About(fmt.Errorf("{eval} full: the hidden rows of a worker's own nodes take %s, in memory, and {eval_bytes} is %s; give more, or take {eval} sampled",
				kernels.FormatBytes(c.eval.PartBytes()), kernels.FormatBytes(c.EvalBytes)))
		}
		err = c.openTiers(ctx, auto)
	}
	return err
}

// describeData puts the relations, edges or links of the data in the result.
func (c *core) describeData() {
	if len(c.data.Relations) > 1 {
		c.Result.Relations = relationsOf(c.data, &c.draws, c.tiers.Reach)
	}
	l := c.data.Links
	if l == nil {
		return
	}
	if label := c.data.EdgeLabel; label != nil {
		r := c.data.Relations[l.Relation]
		c.Result.Edges = &run.EdgesOf{
			Relation: r.Relation.Key(), Label: c.EdgeLabel, Classes: label.Classes, Train: c.data.AllEdges(l.Relation),
			Valid: l.Valid.Len(), Test: l.Test.Len(), Decoder: string(c.Decoder),
		}
		return
	}
	valid, test := l.Held()
	var keys []string
	edges := int64(0)
	for _, of := range l.All {
		r := c.data.Relations[of.Relation]
		keys, edges = append(keys, r.Relation.Key()), edges+c.data.AllEdges(of.Relation)
	}
	c.Result.Links = &run.LinksOf{
		Relation: strings.Join(keys, ", "), Train: edges, Valid: valid, Test: test,
		Decoder: string(c.Decoder), Negatives: c.Negatives, EvalNegatives: c.EvalNegatives,
	}
}

// dataOptions returns the options of opening the dataset for a run of o.
func dataOptions(o run.Options) data.Options {
	return data.Options{
		Split: o.Split, Weighted: o.Sampling().Weighted, Target: o.Target, Links: o.Links() || o.Edges(), EdgeLabel: o.EdgeLabel, Relation: o.Relation, Inputs: o.Inputs, Hidden: o.Hidden,
		EdgeInputs: o.EdgeInputs, Together: o.Layers == 0,
	}
}

// exactBytes is the least memory that full-neighbour evaluation gets, if training leaves so much.
// With it, a small budget does not evaluate a small graph on samples. It holds hidden rows of some
// 8,000 nodes with two layers of 128 columns.
const exactBytes = 8 << 20

// relationsOf returns the size and the fanouts of each relation: without layers none is drawn from.
func relationsOf(d *data.Data, draws *sample.Config, reach sample.Reach) (all []run.RelationOf) {
	for i, r := range d.Relations {
		rel := run.RelationOf{Key: r.Relation.Key(), Edges: d.AllEdges(i), Fanout: []int{}}
		for hop := range draws.Fanouts {
			fanout := 0
			if layer := len(draws.Fanouts) - 1 - hop; reach.Relations[layer][i] {
				fanout = draws.FanoutOf(hop, i)
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
func (c *core) openTiers(ctx context.Context, anyEvaluation bool) (err error) {
	most := mutable.MaxKept - 1
	if c.owned() {
		most--
	}
	if c.KeepCheckpoints > most && c.data.Learns() {
		return fmt.Errorf("{keep_checkpoints} %d: at most %d where rows are learnt", c.KeepCheckpoints, most)
	}
	c.Parts = c.parts()
	c.tiers, err = tiers.New(ctx, c.data, c.draws, c.learning(), c.Backend, c.Options.Options, c.internal.faults)
	if err != nil {
		return err
	}
	c.tiers.SpillFaults = c.internal.spillFaults
	c.task.Begin(1)
	var taken kernels.Use
	b, m, err := c.measureFirst(ctx, &taken)
	if err != nil {
		return err
	}
	ways := c.measures(m, anyEvaluation)
	if err := c.chooseParallel(ctx, b, ways); err != nil {
		return err
	}
	if c.choice != nil && c.tiers.Cooperative() { // the first batch was drawn independently
		if _, m, err = c.measureFirst(ctx, &taken); err != nil {
			return err
		}
	}
	if c.internal.planned != nil {
		if c.shared, err = c.comparePlanned(ctx, b, ways); err != nil {
			return err
		}
	}
	err = c.tiers.Open(ctx, m)
	var short *plan.NotEnough
	// smaller chunks give the same figures
	if errors.As(err, &short) && anyEvaluation && !c.eval.Sampled() {
		o := c.eval.Options
		o.ChunkBytes = leastChunk
		c.eval = infer.New(c.data, c.step, c.task, o)
		err = c.tiers.Open(ctx, m)
	}
	if errors.As(err, &short) && anyEvaluation {
		c.EvalBytes, c.eval.Bytes = 0, 0
		err = c.tiers.Open(ctx, m)
	}
	if err != nil {
		if errors.As(err, &short) && m.History > 0 {
			err = fmt.Errorf("%w; %s of it is for hidden rows of earlier steps: {history_bytes} makes that less", err, kernels.FormatBytes(m.History))
		}
		return err
	}
	if err := c.reuse.open(c.tiers.Region); err != nil {
		return err
	}
	c.eval.Attach(c.tiers.Tables(), c.tiers.Pipe)
	d := c.tiers.Disk
	c.eval.Tables = cachetier.Options{Engine: d.Kind, Readers: d.Depth, Direct: d.Direct, Costs: d.Costs, Faults: d.Faults}
	return c.openAudit(ctx)
}

// measureFirst draws the first batch, takes it through a step that computes nothing, and measures
// both. It adds the memory that the step takes from the backend to taken. Memory that an earlier
// call took is still there, so the Measure has all of taken.
func (c *core) measureFirst(ctx context.Context, taken *kernels.Use) (*sample.Batch, tiers.Measure, error) {
	b, err := c.batch(ctx, 0)
	if err != nil {
		return nil, tiers.Measure{}, err
	}
	c.large = largeValues(c.data, b)
	if err := c.planReuse(ctx); err != nil {
		return nil, tiers.Measure{}, err
	}
	if c.tiers.EpochSteps = c.task.Steps(); c.reuse.any() {
		c.tiers.EpochSteps = 0 // draws depend on earlier steps
	}
	before := c.Backend.Bytes()
	c.Backend.SetDry(true) // compute nothing: the run may still be refused for lack of the memory
	err = c.rehearse(b, 0)
	c.Backend.SetDry(false)
	if err != nil {
		return nil, tiers.Measure{}, err
	}
	drawn := *b // as a batch that uses hidden rows again: with the origin of each row
	drawn.Layers, _ = c.reuse.rehearsal(b)
	after := c.Backend.Bytes()
	taken.Host, taken.Device = taken.Host+after.Host-before.Host, taken.Device+after.Device-before.Device
	m := tiers.Measure{
		Batch: &drawn, Step: taken.Host + c.step.LabelBytes() + c.haloBytes(b), OnDevice: c.onDevice + taken.Device,
		Beside: c.besideTiers, Kept: c.task.KeptBytes(), History: c.reuse.memory(), Slots: c.reuse.slotBytes(), Evaluation: min(c.EvalBytes, c.eval.HiddenBytes()),
	}
	changed, err := c.keepRest(ctx, m)
	if err == nil && changed {
		drawn.Layers, _ = c.reuse.rehearsal(b)
		m.History, m.Slots = c.reuse.memory(), c.reuse.slotBytes()
	}
	return b, m, err
}

// measures returns m, and then the measures by which Open is tried again if the memory is too
// little: see openTiers.
func (c *core) measures(m tiers.Measure, anyEvaluation bool) []tiers.Measure {
	all := []tiers.Measure{m}
	if !anyEvaluation || c.internal.fixed != nil {
		return all
	}
	full, o := c.eval.MemoryBytes(), c.eval.Options
	less := func() {
		e, saved := m, full-infer.New(c.data, c.step, c.task, o).MemoryBytes()
		e.Beside = func(total int64) int64 { return m.Beside(total) - saved }
		all = append(all, e)
	}
	if !c.eval.Sampled() {
		o.ChunkBytes = leastChunk
		less()
	}
	o.Bytes = 0
	less()
	return all
}

// learning returns the options of keeping learnt rows.
func (c *core) learning() tiers.Learning {
	// One more than the kept checkpoints: the epoch that was the best when the oldest of them was
	// made.
	l := tiers.Learning{Rule: c.Optim.Rows.Rule(), Seed: c.Seed, Kept: c.KeepCheckpoints + 1, Steps: c.task.Steps(), Given: map[string]bool{}}
	if c.owned() { // and one that worker 0 may not have written yet
		l.Kept++
	}
	for name := range c.InitRows {
		l.Given[name] = true
	}
	if c.Epochs != run.Auto {
		l.Whole = c.Epochs * c.task.Steps()
	}
	if c.CheckpointEvery > 0 {
		l.Steps = min(l.Steps, c.CheckpointEvery)
	}
	return l
}

// batch draws the batch of a step of the first epoch.
func (c *core) batch(ctx context.Context, step int) (b *sample.Batch, err error) {
	draw := func() error {
		return store.Guard(func() (err error) {
			if err := c.task.Prepare(ctx, step, 1); err != nil {
				return err
			}
			b, err = c.tiers.First(ctx, c.BatchSeeds().At(step), c.task.Seeds(step), c.task.Without(step))
			return err
		})
	}
	if c.data.OwnPart() != nil || c.tiers.Cooperative() {
		err = c.unlocked(draw)
	} else {
		err = draw()
	}
	return b, err
}

// besideTiers returns the bytes that the tiers and batches do not count: weights with their
// gradients, moments and copies, and evaluation. The process may take total bytes.
func (c *core) besideTiers(total int64) int64 {
	// A weight has its value, its gradient and two moments, and beside them the best epoch's, and a
	// checkpoint while it is built.
	each := int64(4*4 + 12)
	if c.onDevice > 0 {
		each = 12
	}
	if c.Hooks.Group.Size() > 1 || c.internal.planned != nil {
		each += 32 // copies for the sum over workers, here and at the exchange
	}
	bytes := each*c.Config.Weights(c.shape()) + c.eval.MemoryBytes() + c.task.Bytes(total) + c.internal.beside.of(total) + c.probeBytes()
	if c.labels != nil {
		bytes += c.labels.Bytes()
	}
	return bytes
}

// shape returns the shape of the network, as the data and the options determine it.
func (c *core) shape() model.Shape { return shapeOf(c.data, &c.Options, &c.draws) }

// Close gives up all that was opened.
func (c *core) Close() {
	if c.reuse != nil {
		c.reuse.close()
	}
	if c.tiers != nil {
		c.tiers.Close()
	}
	if c.step != nil {
		c.step.Close()
	}
	c.CloseBackend()
}

// place puts the files of the tables in a directory, of this worker, and the evaluator's in the run
// directory.
func (c *core) place(dir string) {
	c.tiers.In(c.Dir.FS(), filepath.Join(dir, run.EmbeddingDir), fmt.Sprintf("dataset %s, seed %d", c.Result.Seal, c.Seed))
	c.eval.Dir, c.eval.FS = c.Dir.File(run.LayerDir), c.Dir.FS()
}
