package stream

import (
	"context"
	"errors"
	"fmt"

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
	"github.com/gnnstore/gnnstore/train/step"
	"github.com/gnnstore/gnnstore/train/temporal"
	"github.com/gnnstore/gnnstore/train/tiers"
)

// internal has the settings of a core, beside its options, that plans, networks and tests need.
type internal struct {
	scratch bool  // of MakePlan
	fixed   bool  // nothing is learnt
	lenient bool  // evaluation ranks nothing if the stream has no candidates
	beside  int64 // bytes that the caller has in memory

	faults disk.Faults // of tests
	delay  delay       // of tests
}

// delay is called once a step in every stage, with the stage's name. nil: it is not.
type delay func(stage string)

func (d delay) at(stage string) {
	if d != nil {
		d(stage)
	}
}

// core is an open network with its stream, its feed and its memory. A trainer trains it, an
// evaluation measures it, and a rehearsal times its steps.
type core struct {
	run.Driver
	parts
	feed
	internal internal
	set      *store.Dataset
	features features
	ids      identities
	ranking  run.Ranking // the candidates of evaluation
	pairs    int64       // of PairFeatures: the different pairs of the stream
	step     *temporal.Stepper
	scratch  bool // the tables are for a rehearsal
	sizes    sizes
	heap     tiers.HeapLimit
	budget   plan.Budget
	engine   string
	costs    disk.Costs
}

// newCore opens the network and all that it needs. If training does not fit in memory, the error
// names options that fit.
func newCore(ctx context.Context, ds *store.Dataset, o run.Options, h run.Hooks, in internal) (*core, error) {
	c, err := openCore(ctx, ds, o, h, in)
	if err == nil {
		return c, nil
	}
	if run.Short(err) && !in.fixed {
		quiet := run.Hooks{Backend: h.Backend, Text: h.Text, RandomPartners: h.RandomPartners}
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
// the closed core, whose Options are the ones that were in effect; it returns nil if the stream is
// not found.
func openCore(ctx context.Context, ds *store.Dataset, o run.Options, h run.Hooks, in internal) (c *core, err error) {
	events, err := Find(ds, o.Stream)
	if err != nil {
		return nil, err
	}
	c = &core{Driver: run.Driver{Options: o.FilledStream(events.Len()), Hooks: h}, internal: in, set: ds, ids: identitiesOf(ds, events)}
	c.Stream = events.Stream.Name
	c.Cache.DeviceBytes = max(0, c.Cache.DeviceBytes) // not NoDevice
	c.parts = parts{options: &c.Options, events: events, split: events.Stream.Split, lag: max(c.Staleness, 1)}
	c.scratch = in.scratch || c.Staleness == run.Auto
	if c.Metric == "" {
		c.Metric = metric.AP
	}
	if err := c.OpenBackend(); err != nil {
		return c, err
	}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	defer kernels.RecoverMemory(&err)
	if err := c.settleBatch(); err != nil {
		return c, err
	}
	if err := errors.Join(c.fits(ds.Path()), c.settleRanking()); err != nil {
		return c, err
	}
	if err := store.Guard(c.populations); err != nil {
		return c, err
	}
	if err := c.open(ctx); err != nil {
		return c, err
	}
	way := c.Eval
	if way == "" || way == "auto" {
		way = run.Replay
	}
	c.Prepare(run.About{
		Dataset: ds, Weights: &c.step.Model.Parameters, Optim: c.step.Optim, Steps: c.steps(), Pass: c.steps(), Metric: c.Metric,
		Validates: c.validates(), Pauses: true, Progress: progressKey, Evaluation: way, Engine: c.engine, Costs: c.costs, Memory: c.budget,
	})
	c.Result.Stream = &run.StreamOf{
		Name: c.Stream, Src: events.Stream.Src, Dst: events.Stream.Dst, Events: events.Len(), Train: c.split.Train, Valid: c.split.Valid, Test: c.split.Test, Negatives: c.NegativePopulation,
		TrainNegatives: len(c.known), EvalNegatives: len(c.all), RankedAmong: c.ranking.String(), TimeScale: events.Stream.TimeScale,
		NodeColumns: c.features.shape(&c.Options).Node, Staleness: c.staleness(nil), Mitigation: run.MitigationOf{Keep: c.Mitigate},
	}
	return c, nil
}

// settleRanking sets the candidates that events are ranked among.
func (c *core) settleRanking() error {
	if c.Eval == run.NoEvaluation {
		return nil
	}
	r, err := c.Ranking(c.events.HasNegatives())
	if err == nil {
		c.ranking = r
	} else if !c.internal.lenient {
		return fmt.Errorf("%s, stream %s: %w", c.set.Path(), c.Stream, err)
	}
	return nil
}

// settleIdentity chooses the number of identity columns if it is Auto, and refuses them if nodes
// have features.
func (c *core) settleIdentity() error {
	s, fits := c.events.Stream, c.features.nodes == nil
	if c.Identity == run.Auto {
		c.Identity = 0
		if fits && s.Src == s.Dst && c.Kind.Identified() {
			c.Identity = c.Hidden
			c.Note("nodes have no features: %d random columns by their ids tell them apart; {identity} 0 leaves them out", c.Identity)
		}
	}
	if c.Identity > 0 && !fits {
		return fmt.Errorf("%s: {identity} %d: nodes of stream %s have features, which networks read instead; leave it out, or ingest the stream with {features} none",
			c.set.Path(), c.Identity, c.Stream)
	}
	return nil
}

// open opens the sampler and the step, measures batches, splits the memory by them, and opens the
// rest.
func (c *core) open(ctx context.Context) (err error) {
	if c.sizes.total, err = tiers.Memory(c.MemoryBytes); err != nil {
		return err
	}
	left := ""
	if c.features, left = findFeatures(c.set, c.events.Stream, c.Kind); left != "" {
		c.Note("%s", left)
	}
	if err := c.settleIdentity(); err != nil {
		return err
	}
	config, shape := c.Temporal(), c.features.shape(&c.Options)
	weights := func(hidden int) int64 {
		o := c.Options
		o.Hidden = hidden
		return o.Temporal().Weights(c.features.shape(&o))
	}
	if err := c.CheckMemory(weights, !c.internal.fixed); err != nil {
		return err
	}
	if err := c.openSampler(ctx, temporal.RecordOf(config, shape).Bytes()); err != nil {
		return c.set.About(err)
	}
	c.openStep(config, shape)
	if err := c.measure(ctx); err != nil {
		return err
	}
	c.heap.Budget = c.sizes.total
	return c.openRows(ctx)
}

// openSampler opens the sampler, and chooses how files are read. stateBytes is the size of a node's
// state.
func (c *core) openSampler(ctx context.Context, stateBytes int) (err error) {
	m := &c.sizes
	m.files = []int64{c.events.Len() * 32, c.events.Places() * int64(stateBytes)}
	for _, f := range []*store.Features{c.features.events, c.features.nodes} {
		if f != nil {
			m.files = append(m.files, int64(f.Rows())*int64(f.RowBytes()))
		}
	}
	all := int64(0)
	for _, bytes := range m.files {
		all += bytes
	}
	d := disk.Options{Kind: c.Cache.Engine, Depth: tiers.ReadersWithin(c.Cache.Readers, m.total), Costs: c.Cache.Costs, Faults: c.internal.faults}
	if all > m.total/2 {
		d.Direct, d.Probe = true, true
	}
	if c.PairFeatures {
		if c.pairs, err = temporal.CountPairs(ctx, c.events, max(m.total/8, 1<<20)); err != nil {
			if damaged := new(store.SectionError); !errors.As(err, &damaged) {
				err = fmt.Errorf("{pair_features}: %w", err)
			}
			return err
		}
	}
	sampler, err := temporal.NewSampler(ctx, c.events, temporal.SamplerOptions{
		Fanout: c.Fanouts[0], Uniform: c.Sampler == run.UniformNeighbors, Deliver: c.Kind.DeliversMail(), Blend: c.Mitigate > 0,
		RandomPartners: c.Hooks.RandomPartners, Pairs: c.PairFeatures, Workers: c.Workers, Disk: d,
	})
	if err != nil {
		return err
	}
	c.draw = &drawer{sampler: sampler, delay: c.internal.delay}
	kind, why := sampler.Engine()
	c.engine, c.costs = fmt.Sprintf("%s (%s)", kind, why), sampler.Costs()
	if d.Direct && kind != "" {
		d.Kind = kind
	}
	d.Costs, d.Probe = c.costs, false
	m.disk = d
	return nil
}

// openStep makes the network and its step.
func (c *core) openStep(config model.TemporalConfig, shape model.TemporalShape) {
	before := c.Backend.Bytes()
	if c.internal.fixed {
		c.step = temporal.NewFixedStepper(c.Backend, model.NewFixedTemporal(c.Backend, config, shape))
	} else {
		c.step = temporal.NewStepper(c.Backend, model.NewTemporal(c.Backend, config, shape, c.Seed), c.Optim)
		c.step.Keep, c.step.Remember = c.Mitigate, c.MitigateAudit > 0
	}
	use := c.Backend.Bytes().Sub(before)
	c.sizes.weights, c.sizes.onDevice = use.Host+use.Device, use.Device
	if c.internal.fixed {
		c.sizes.weights *= 4 // a checkpoint has the weights more than once
	}
	if c.Identity > 0 {
		c.step.TellApart(c.ids.of)
	}
}

// measure runs a dry step on a large batch of training, and of evaluation, and sets c.sizes.
func (c *core) measure(ctx context.Context) error {
	p := c.learning(1)
	b, err := c.draw.large(ctx, p)
	if err != nil {
		return c.set.About(err)
	}
	before := c.Backend.Bytes()
	key := uint64(1)
	if c.internal.fixed {
		key = 0
	}
	if err := c.measureStep(b, key); err != nil {
		return err
	}
	if p.from, p.to = p.to, c.events.Len(); c.Eval != run.NoEvaluation && p.from < p.to {
		evaluated, err := c.draw.large(ctx, p)
		if err != nil {
			return c.set.About(err)
		}
		if err := c.measureStep(evaluated, 0); err != nil {
			return err
		}
		if sizeOf(evaluated) > sizeOf(b) {
			b = evaluated
		}
	}
	m := &c.sizes
	drawing, makers := c.draw.sampler.Scratch()
	use := c.Backend.Bytes().Sub(before)
	m.step, m.batch, m.scratch = use.Host, b.Bytes(), drawing
	m.onDevice += use.Device
	m.makers = makers * int64(max(1, c.Workers))
	m.nodes, m.events, m.writes = len(b.Nodes), len(b.Events), max(len(b.Writes), len(b.Mails))
	return nil
}

// measureStep runs a batch through a step that computes nothing. That maps the step's memory
// without using it, so that it can be counted before it has to fit. A key of 0 means evaluation.
func (c *core) measureStep(b *temporal.Batch, key uint64) error {
	c.Backend.SetDry(true)
	defer c.Backend.SetDry(false)
	in := temporal.Input{Batch: b, Key: key}
	zeros := func(dtype kernels.DType, rows, cols int) kernels.Tensor {
		x := kernels.Tensor{Type: dtype, Rows: rows, Cols: cols}
		x.Buf = c.Backend.Alloc(dtype, x.Len())
		return x
	}
	if cols := c.step.Record.Cols(); cols > 0 {
		in.State = zeros(kernels.F32, len(b.Nodes), cols)
		defer c.Backend.Free(in.State.Buf)
	}
	if f := c.features.events; f != nil {
		in.Features = zeros(elemOf(f), len(b.Events), f.Dim())
		defer c.Backend.Free(in.Features.Buf)
	}
	if f := c.features.nodes; f != nil {
		in.NodeFeatures = zeros(elemOf(f), len(b.Nodes), f.Dim())
		defer c.Backend.Free(in.NodeFeatures.Buf)
	}
	return c.step.Rehearse(in)
}

// openRows splits the memory for the current staleness, and opens the tables and pipelines.
func (c *core) openRows(ctx context.Context) error {
	demand, budget, err := c.divide()
	if err != nil {
		return c.set.About(err)
	}
	c.budget = budget
	if err := c.draw.sampler.OpenPairs(c.pairs); err != nil {
		return fmt.Errorf("%s: {pair_features}: %w", c.set.Path(), err)
	}
	parts, d := demand.Divide(budget), c.sizes.disk
	cache := c.Cache
	cache.Lookahead, cache.Engine, cache.Readers, cache.Direct, cache.Costs, cache.Faults = c.Lookahead, d.Kind, d.Depth, d.Direct, d.Costs, d.Faults
	var inputs []int
	next := func() cachetier.Options {
		i := len(inputs)
		inputs = append(inputs, demand.Rows[i].Inputs)
		cache.DeviceBytes, cache.HostBytes = parts.Device[i], parts.Host[i]
		return cache
	}
	state := mutable.Options{Rows: int(c.events.Places()), Kept: c.KeepCheckpoints, Lag: c.lag}
	if c.scratch { // few nodes get state
		state.Touched = min(state.Rows, max(1, rehearsed*c.sizes.nodes))
	}
	onHost := c.Backend.Behind() // reading them there would wait
	if err := c.tables.open(ctx, c.step.Record, state, onHost, c.features, c.events.Stream, next); err != nil {
		return err
	}
	if c.Fanouts[0] == 0 && len(c.tables.stacks) > 0 { // no lists are read
		kind, why := c.tables.stacks[0].Engine()
		c.engine = fmt.Sprintf("%s (%s)", kind, why)
	}
	batches := plan.Config{
		Parallel: c.Workers, Bytes: budget.Batches, Group: c.Window, Ahead: c.Lookahead, BatchBytes: demand.Batches.Bytes, BatchRows: inputs,
	}
	c.openPipelines(batches, pipeline.Config{Backend: c.Backend, Buffers: c.inflight(), Late: c.internal.delay})
	return nil
}

// Close gives up all that was opened.
func (c *core) Close() {
	c.closeRows()
	if c.draw != nil {
		c.draw.sampler.Close()
	}
	if c.step != nil {
		c.step.Close()
	}
	c.CloseBackend()
	c.heap.Close()
}

// inflight returns the number of steps whose rows are in memory at a time.
func (c *core) inflight() int {
	if c.Inflight > 0 {
		return max(c.Inflight, 2)
	}
	return c.lag + 2
}

// staleness describes how old state is, as far as that is known before the first step. found is the
// decision on Auto, or nil.
func (c *core) staleness(found *run.AutoStaleness) run.StalenessOf {
	s := run.StalenessOf{K: c.lag, Auto: c.Staleness == run.Auto, Publish: c.Publish, Inflight: c.inflight()}
	if found != nil {
		s.Best, s.Most, s.Predicted = found.Best, found.Most, &found.Rehearsal
	}
	return s
}

// validates reports whether there is a validation part to choose a model by.
func (c *core) validates() bool { return c.Eval != run.NoEvaluation && c.split.Valid > 0 }

// remembers reports whether a score depends on earlier events by more than neighbours.
func (c *core) remembers() bool { return c.tables.state != nil || c.PairFeatures }

// explain adds the cause to the error of a loss or a node state that is not finite: the features,
// the weights, or too large a step. It returns other errors as they are.
func (c *core) explain(err error, in temporal.Input) error {
	var loss *step.LossError
	var norm *step.NormError
	var state *temporal.StateError
	switch {
	case errors.As(err, &norm):
		return fmt.Errorf("%w; lower {lr}%s", norm, c.Dir.LastGood())
	case errors.As(err, &loss):
		err = loss
	case errors.As(err, &state):
		err = state
	default:
		return err
	}
	for _, of := range []struct {
		kernels.Tensor
		what string
		ids  []uint32
		say  func(id uint32) int64
	}{
		{in.Features, "event", in.Events, func(id uint32) int64 { return int64(id) }},
		{in.NodeFeatures, "node", in.Nodes, func(id uint32) int64 { return c.ids.src.Original(id) }},
	} {
		if of.Buf == nil {
			continue
		}
		if row, col, v, ok := oddIn(c.Backend, of.Tensor); ok {
			return fmt.Errorf("%w, since column %d of the features of %s %d is %v; repair the features, or leave the %s out%s", err, col, of.what,
				of.say(of.ids[row]), v, of.what, c.Dir.LastGood())
		}
	}
	return c.Dir.ExplainOdd(err, c.step.Model.Download())
}

// oddIn returns the first value of x that is not finite.
func oddIn(be kernels.Backend, x kernels.Tensor) (row, col int, v float32, ok bool) {
	wide := kernels.Tensor{Buf: be.Alloc(kernels.F32, x.Len()), Type: kernels.F32, Rows: x.Rows, Cols: x.Cols}
	defer be.Free(wide.Buf)
	values := make([]float32, x.Len())
	be.Convert(wide, x)
	be.DownloadF32(values, wide)
	i := step.NotFinite(values)
	if i < 0 {
		return 0, 0, 0, false
	}
	return i / x.Cols, i % x.Cols, values[i], true
}
