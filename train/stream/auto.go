package stream

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/metric"
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

// rehearsal runs some steps of a run, to find the cost of their stages before the run begins.
type rehearsal struct {
	*core
	publisher writer
	scores    metric.Batches[float32]
}

func newRehearsal(c *core) *rehearsal {
	return &rehearsal{core: c, publisher: writer{delay: c.internal.delay}}
}

// find rehearses the run. Its state lies in the place at. If the staleness is a number, it returns
// the costs at that. For Auto it returns the least staleness with which training hardly waits for
// state, or less if too many of the nodes read would be out of date, or if there is no memory for
// so many steps.
func (r *rehearsal) find(ctx context.Context, at mutable.Place) (*run.AutoStaleness, error) {
	costs, steps, err := r.costs(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("rehearsal: %w", err)
	}
	a := &run.AutoStaleness{K: r.lag, Best: costs.Within(worth)}
	if r.Staleness != run.Auto {
		a.Rehearsal = rehearsalOf(costs, steps, a.K)
		return a, nil
	}
	fits := 0
	if a.Best > 1 {
		r.closeRows() // they hold all the memory
		o, err := r.overlap(ctx)
		if err != nil {
			return nil, err
		}
		a.Most = o.Most()
		a.K = min(a.Best, a.Most)
		if n := r.room(a.K); n < a.K {
			a.K, fits = n, n
		}
	}
	a.Rehearsal = rehearsalOf(costs, steps, a.K)
	a.Explain(fits)
	a.Reason = r.Text(a.Reason)
	return a, nil
}

// room returns the largest staleness, k at most, for whose steps there is memory.
func (r *rehearsal) room(k int) int {
	if r.Inflight > 0 {
		k = min(k, r.Inflight)
	}
	defer func(was int) { r.lag = was }(r.lag)
	for ; k > 1; k-- {
		r.lag = k
		if _, _, err := r.divide(); err == nil {
			break
		}
	}
	return max(k, 1)
}

// rehearsalOf returns the costs of the stages, and the time of a step that they predict at
// staleness k.
func rehearsalOf(c staleness.Costs, steps, k int) run.Rehearsal {
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

// costs runs steps from the middle of the training part, with state at a place never written, and
// returns the cost of their stages. It changes nothing of the run but the tables, which the caller
// opens anew.
func (r *rehearsal) costs(ctx context.Context, at mutable.Place) (c staleness.Costs, steps int, err error) {
	p := r.learning(1)
	steps = min(rehearsed, p.steps())
	from := (p.steps() - steps) / 2
	weights, moments, updates := r.step.Model.Download(), r.step.Optim.State(), r.step.Optim.Steps()
	defer func() {
		r.step.Model.Upload(weights)
		err = errors.Join(err, r.step.Optim.Restore(updates, moments))
	}()
	var writers []pipeline.Writer
	if s := r.tables.state; s != nil {
		at.Run = "rehearsal"
		s.In(at)
		if err := s.Begin(ctx); err != nil {
			return c, steps, err
		}
		if r.Publish == run.Late {
			writers = append(writers, &r.publisher)
			r.publisher.begin(2, r.tables.publish)
		}
	}
	if err := r.draw.begin(ctx, from, p.step); err != nil {
		return c, steps, err
	}
	// Steps count from the second window on: before it caches are empty.
	var cold pipeline.Stats
	first, used, train, forward, publication := from, 0, 0.0, 0.0, 0.0
	processor := kernels.ProcessorSeconds()
	err = r.pipe.Alone(ctx, plan.Steps{From: from, To: from + steps}, func(b *pipeline.Gathered) error {
		if b.Step == from {
			if n, _ := r.pipe.Planner.Newest(); n < steps {
				first += n
			}
		}
		f, w, all, err := r.try(b)
		if b.Step >= first {
			used, train, forward, publication = used+1, train+all, forward+f, publication+w
		} else if b.Step == first-1 {
			cold = r.pipe.Stats()
		}
		return errors.Join(err, ctx.Err())
	}, writers...)
	if err != nil {
		return c, steps, err
	}
	c.Compute, c.Cores = (kernels.ProcessorSeconds()-processor)/float64(steps), runtime.GOMAXPROCS(0)
	all, n := r.pipe.Stats(), float64(used)
	warm := all.Sub(cold)
	c.Forward = forward / n
	c.Stage = [staleness.Stages]float64{
		staleness.Sample: (all.Sample + all.Plan) / float64(steps), staleness.Page: warm.Load / n, staleness.Features: (warm.Gather - warm.State) / n,
		staleness.State: warm.State / n, staleness.Train: train / n,
	}
	if c.Early = r.Publish != run.Late; c.Early {
		c.Publication = publication / n
	} else {
		c.Stage[staleness.Publish] = warm.Write / n
	}
	return c, steps, r.addReading(ctx, &c, first-from == 1)
}

// try is update for a rehearsal: its learning rate is 0. It returns the seconds until the new state
// was known, of its publication, and in all. It ignores a loss or a norm that is not finite, which
// the run will explain. State that is not finite is an error, since nothing was published.
func (r *rehearsal) try(b *pipeline.Gathered) (forward, publication, all float64, err error) {
	began := time.Now()
	r.internal.delay.at(pipeline.Step)
	in := r.tables.input(b)
	in.Key = sample.StepSeed(r.Seed, 1, b.Step) | 1
	publish := in.Publish
	if r.Publish == run.Late {
		publish = r.publisher.keep
	}
	if in.Publish != nil {
		in.Publish = func(places []uint32, records []byte) error {
			known := time.Now()
			forward = known.Sub(began).Seconds()
			defer func() { publication = time.Since(known).Seconds() }()
			return publish(places, records)
		}
	}
	err = r.step.Launch(in)
	if err == nil {
		err = r.step.Update(0, nil)
	}
	if err == nil {
		var out temporal.Out
		out, err = r.step.Wait()
		r.scores.Reset()
		r.scores.Add(out.Positives, out.Negatives)
		_, _ = r.scores.Value()
	}
	var loss *step.LossError
	var norm *step.NormError
	if errors.As(err, &loss) || errors.As(err, &norm) {
		err = nil
	}
	return forward, publication, time.Since(began).Seconds(), r.explain(err, in)
}

// addReading raises the costs of stages to the time that reading should take by the measured costs
// of the disk, for tables that are larger than their caches: a rehearsal has no state on disk.
// single is true if windows have one step; they are read while they are gathered.
func (r *rehearsal) addReading(ctx context.Context, c *staleness.Costs, single bool) error {
	tables, _, err := r.forecast(ctx)
	var reading [staleness.Stages]float64
	for i, table := range tables {
		tier, stage := r.tables.stacks[i].Stats().Tiers, staleness.Page
		if tier.Device.CapacityBytes+tier.Host.CapacityBytes >= tier.Disk.UsedBytes {
			continue
		}
		if single {
			stage = map[string]int{stateKind: staleness.State, eventKind: staleness.Features, nodeKind: staleness.Features}[r.tables.kinds[i]]
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
func (r *rehearsal) forecast(ctx context.Context) (tables []plan.Reading, drawn []plan.Drawn, err error) {
	p, planner := r.learning(1), r.pipe.Planner
	n := min(p.steps(), 2*max(1, r.budget.Group))
	from := (p.steps() - n) / 2
	if err := r.draw.begin(ctx, from, p.step); err != nil {
		return nil, nil, err
	}
	planner.Begin(plan.Steps{From: from, To: from + n})
	defer planner.Reset()
	for {
		g, err := planner.Draw(ctx, max(1, r.budget.Group))
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
		tables = append(tables, plan.ReadingOf(r.tables.names[i], f, len(drawn)))
	}
	return tables, drawn, err
}

// overlap goes through the training part once, to find the nodes whose state each step reads and
// writes.
func (r *rehearsal) overlap(ctx context.Context) (*staleness.Overlap, error) {
	p := r.learning(1)
	if err := r.draw.begin(ctx, 0, p.step); err != nil {
		return nil, r.set.About(err)
	}
	o, all := staleness.NewOverlap(int(r.events.Places())), p.steps()
	steps, batches := make([]temporal.Step, min(all, max(1, r.budget.Group))), []*temporal.Batch(nil)
	for range steps {
		batches = append(batches, new(temporal.Batch))
	}
	var written []uint32
	for at := 0; at < all; at += len(steps) {
		n := min(len(steps), all-at)
		for i := range n {
			steps[i] = p.step(at + i)
		}
		if err := r.draw.sampler.Draw(ctx, steps[:n], batches[:n]); err != nil {
			return nil, r.set.About(err)
		}
		for _, b := range batches[:n] {
			written = b.Written(written[:0])
			o.Add(b.Nodes, written)
		}
	}
	return o, nil
}
