package stream

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
	"github.com/gnnstore/gnnstore/train/temporal"
	"github.com/gnnstore/gnnstore/train/temporal/staleness"
)

// rehearsed is the number of steps of a rehearsal. The cost of a step does not depend on values, so
// zeros serve as state.
const rehearsed = 40

// worth is the share of a step's time that a larger staleness must save: less could be chance.
const worth = 0.05

// touched returns the most nodes that get state: few in a rehearsal, else 0, which allows all.
func (t *trainer) touched() int {
	if t.scratch {
		return min(int(t.events.Places()), max(1, rehearsed*t.measured.nodes))
	}
	return 0
}

// staleness describes how old state is, as far as that is known before the first step.
func (t *trainer) staleness() run.StalenessOf {
	s := run.StalenessOf{K: t.lag, Auto: t.Staleness == run.Auto, Publish: t.Publish, Inflight: t.inflight()}
	if a := t.found; a != nil {
		s.Best, s.Most, s.Predicted = a.Best, a.Most, &a.Rehearsal
	}
	return s
}

// decide finds the staleness of a run with Staleness Auto, from the record or by a rehearsal, and
// opens the tables anew for it.
func (t *trainer) decide(ctx context.Context, record *run.Record) (err error) {
	if t.Staleness == run.Auto {
		if record != nil {
			t.found = record.AutoStaleness
		}
		if t.found == nil {
			dir, done, serr := t.Dir.Scratch("rehearsal")
			if serr != nil {
				return serr
			}
			t.found, err = t.find(ctx, mutable.Place{FS: t.Dir.FS(), Dir: dir})
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
		t.Result.Memory, t.Result.Stream.Staleness = run.MemoryOf(t.budget), t.staleness()
	}
	t.stale = staleness.NewRealised(t.lag)
	return nil
}

// find rehearses the run, with state at a place at. If the staleness is a number, it returns the
// costs at that. For Auto it returns the least staleness with which training hardly waits for
// state, or less if too many of the nodes read would be out of date, or if there is no memory for
// so many steps.
func (t *trainer) find(ctx context.Context, at mutable.Place) (*run.AutoStaleness, error) {
	costs, steps, err := t.rehearseSteps(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("rehearsal: %w", err)
	}
	a := &run.AutoStaleness{K: t.lag, Best: costs.Within(worth)}
	if t.Staleness != run.Auto {
		a.Rehearsal = t.rehearsal(costs, steps, a.K)
		return a, nil
	}
	fits := 0
	if a.Best > 1 {
		t.closeRows() // they hold all the memory
		o, err := t.overlap(ctx)
		if err != nil {
			return nil, err
		}
		a.Most = o.Most()
		a.K = min(a.Best, a.Most)
		if n := t.room(a.K); n < a.K {
			a.K, fits = n, n
		}
	}
	a.Rehearsal = t.rehearsal(costs, steps, a.K)
	a.Explain(fits)
	a.Reason = t.Text(a.Reason)
	return a, nil
}

// room returns the largest staleness, k at most, for whose steps there is memory.
func (t *trainer) room(k int) int {
	if t.Inflight > 0 {
		k = min(k, t.Inflight)
	}
	defer func(was int) { t.lag = was }(t.lag)
	for ; k > 1; k-- {
		t.lag = k
		if _, _, err := t.divide(); err == nil {
			break
		}
	}
	return max(k, 1)
}

// rehearsal returns the costs of the stages, and the time of a step that they predict at staleness
// k.
func (t *trainer) rehearsal(c staleness.Costs, steps, k int) run.Rehearsal {
	s := c.Stage
	r := run.Rehearsal{
		Steps: steps, Sample: s[staleness.Sample], Page: s[staleness.Page], Features: s[staleness.Features], State: s[staleness.State],
		Train: s[staleness.Train], Publish: s[staleness.Publish], Forward: c.Forward, Compute: c.Compute, Cores: c.Cores,
		Serial: c.Serial(), Plain: c.Period(1), Seconds: c.Period(k), Speedup: c.Speedup(k), InFlight: c.InFlight(),
	}
	if c.Early {
		r.Publish = c.Publication
	}
	return r
}

// rehearseSteps runs steps from the middle of the training part, with state at a place never
// written, and returns the cost of their stages. It changes nothing of the run but the tables,
// which the caller opens anew.
func (t *trainer) rehearseSteps(ctx context.Context, at mutable.Place) (c staleness.Costs, steps int, err error) {
	p := t.learning(1)
	steps = min(rehearsed, p.steps())
	from := (p.steps() - steps) / 2
	weights, moments, updates := t.step.Model.Download(), t.step.Optim.State(), t.step.Optim.Steps()
	defer func() {
		t.step.Model.Upload(weights)
		err = errors.Join(err, t.step.Optim.Restore(updates, moments))
	}()
	var writers []pipeline.Writer
	if s := t.tables.state; s != nil {
		at.Run = "rehearsal"
		s.In(at)
		if err := s.Begin(ctx); err != nil {
			return c, steps, err
		}
		if t.Publish == run.Late {
			writers = append(writers, &t.late)
			t.late.begin(2, t.publish)
		}
	}
	if err := t.draw.begin(ctx, from, p.step); err != nil {
		return c, steps, err
	}
	// Steps count from the second window on: before it caches are empty.
	var cold pipeline.Stats
	first, used, train, forward, publication := from, 0, 0.0, 0.0, 0.0
	processor := kernels.ProcessorSeconds()
	err = t.pipe.Alone(ctx, plan.Steps{From: from, To: from + steps}, func(b *pipeline.Gathered) error {
		if b.Step == from {
			if n, _ := t.pipe.Planner.Newest(); n < steps {
				first += n
			}
		}
		f, w, all, err := t.try(b)
		if b.Step >= first {
			used, train, forward, publication = used+1, train+all, forward+f, publication+w
		} else if b.Step == first-1 {
			cold = t.pipe.Stats()
		}
		return errors.Join(err, ctx.Err())
	}, writers...)
	if err != nil {
		return c, steps, err
	}
	c.Compute, c.Cores = (kernels.ProcessorSeconds()-processor)/float64(steps), runtime.GOMAXPROCS(0)
	all, n := t.pipe.Stats(), float64(used)
	warm := all.Sub(cold)
	c.Forward = forward / n
	c.Stage = [staleness.Stages]float64{
		staleness.Sample: (all.Sample + all.Plan) / float64(steps), staleness.Page: warm.Load / n, staleness.Features: (warm.Gather - warm.State) / n,
		staleness.State: warm.State / n, staleness.Train: train / n,
	}
	if c.Early = t.Publish != run.Late; c.Early {
		c.Publication = publication / n
	} else {
		c.Stage[staleness.Publish] = warm.Write / n
	}
	return c, steps, t.addReading(ctx, &c, first-from == 1)
}

// try is update for a rehearsal: its learning rate is 0. It returns the seconds until the new state
// was known, of its publication, and in all. It ignores a loss or a norm that is not finite, which
// the run will explain. State that is not finite is an error, since nothing was published.
func (t *trainer) try(b *pipeline.Gathered) (forward, publication, all float64, err error) {
	began := time.Now()
	if t.internal.late != nil {
		t.internal.late(pipeline.Step)
	}
	in := t.input(b)
	in.Key = sample.StepSeed(t.Seed, 1, b.Step) | 1
	publish := in.Publish
	if t.Publish == run.Late {
		publish = t.late.keep
	}
	if in.Publish != nil {
		in.Publish = func(places []uint32, records []byte) error {
			known := time.Now()
			forward = known.Sub(began).Seconds()
			defer func() { publication = time.Since(known).Seconds() }()
			return publish(places, records)
		}
	}
	out, err := t.step.Compute(in)
	if err == nil {
		t.scores.Reset()
		t.scores.Add(out.Positives, out.Negatives)
		_, _ = t.scores.Value()
		err = t.step.Update(0, nil)
	}
	var loss *step.LossError
	var norm *step.NormError
	if errors.As(err, &loss) || errors.As(err, &norm) {
		err = nil
	}
	return forward, publication, time.Since(began).Seconds(), t.explain(err, in)
}

// addReading raises the costs of stages to the time that reading should take by the measured costs
// of the disk, for tables that are larger than their caches: a rehearsal has no state on disk.
// single is true if windows have one step; they are read while they are gathered.
func (t *trainer) addReading(ctx context.Context, c *staleness.Costs, single bool) error {
	tables, _, err := t.forecast(ctx)
	var reading [staleness.Stages]float64
	for i, table := range tables {
		tier, stage := t.tables.stacks[i].Stats().Tiers, staleness.Page
		if tier.Device.CapacityBytes+tier.Host.CapacityBytes >= tier.Disk.UsedBytes {
			continue
		}
		if _, kind := t.tableName(i); single {
			stage = map[string]int{stateKind: staleness.State, eventKind: staleness.Features, nodeKind: staleness.Features}[kind]
		}
		reading[stage] += table.LoadSeconds
	}
	for stage, seconds := range reading {
		c.Stage[stage] = max(c.Stage[stage], seconds)
	}
	return err
}

// forecast draws two groups from the middle of the training part, and returns the reads of their
// windows from each table. The batches are valid until the next are drawn.
func (t *trainer) forecast(ctx context.Context) (tables []plan.Reading, drawn []plan.Drawn, err error) {
	p, planner := t.learning(1), t.pipe.Planner
	n := min(p.steps(), 2*max(1, t.budget.Group))
	from := (p.steps() - n) / 2
	if err := t.draw.begin(ctx, from, p.step); err != nil {
		return nil, nil, err
	}
	planner.Begin(plan.Steps{From: from, To: from + n})
	defer planner.Reset()
	for {
		g, err := planner.Draw(ctx, max(1, t.budget.Group))
		if err != nil {
			return nil, nil, err
		}
		if len(g) == 0 {
			break
		}
		drawn = append(drawn, g...)
	}
	forecasts, err := planner.Forecast()
	for i, f := range forecasts {
		name, _ := t.tableName(i)
		tables = append(tables, plan.ReadingOf(name, f, len(drawn)))
	}
	return tables, drawn, err
}

// overlap goes through the training part once, to find the nodes whose state each step reads and
// writes.
func (t *trainer) overlap(ctx context.Context) (*staleness.Overlap, error) {
	p := t.learning(1)
	if err := t.draw.begin(ctx, 0, p.step); err != nil {
		return nil, t.set.About(err)
	}
	o, all := staleness.NewOverlap(int(t.events.Places())), p.steps()
	steps, batches := make([]temporal.Step, min(all, max(1, t.budget.Group))), []*temporal.Batch(nil)
	for range steps {
		batches = append(batches, new(temporal.Batch))
	}
	var written []uint32
	for at := 0; at < all; at += len(steps) {
		n := min(len(steps), all-at)
		for i := range n {
			steps[i] = p.step(at + i)
		}
		if err := t.draw.sampler.Draw(ctx, steps[:n], batches[:n]); err != nil {
			return nil, t.set.About(err)
		}
		for _, b := range batches[:n] {
			written = b.Written(written[:0])
			o.Add(b.Nodes, written)
		}
	}
	return o, nil
}
