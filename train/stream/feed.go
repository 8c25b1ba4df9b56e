package stream

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// feed brings batches to steps: it draws events, reads the rows of their tables, and has a pipeline
// for each kind of pass. The memory has room for the buffers of one pipeline.
type feed struct {
	draw    *drawer
	tables  tables
	pipe    *pipeline.Pipeline // of training
	replays *pipeline.Pipeline // of evaluation
	states  *pipeline.Pipeline // of events that only update the state
}

// openPipelines opens the pipelines. batches and training lack what f knows: the sampler and the
// tables.
func (f *feed) openPipelines(batches plan.Config, training pipeline.Config) {
	batches.Sampler, batches.Tables = f.draw, f.tables.stacks
	for _, kind := range f.tables.kinds {
		batches.Types = append(batches.Types, inputOf[kind])
	}
	training.Planner, training.Tables = plan.NewPlanner(batches), f.tables.rows
	f.pipe = pipeline.New(training)
	fresh := slices.Clone(f.tables.rows)
	for i := range fresh {
		fresh[i].Lag = min(fresh[i].Lag, 1)
	}
	other := training
	other.Tables, other.Buffers = fresh, 0
	f.replays = pipeline.New(other)
	// Batches of state alone are much smaller than others, so that more of them are drawn and read
	// together.
	batches = training.Planner.Config
	batches.BatchBytes, batches.BatchRows = 0, nil
	other.Planner = plan.NewPlanner(batches)
	f.states = pipeline.New(other)
}

// instead runs steps on pipe, in place of the pipeline of training. Each step sees the state that
// all steps before it left.
func (f *feed) instead(ctx context.Context, pipe *pipeline.Pipeline, steps int, use func(b *pipeline.Gathered) error) error {
	if f.tables.state != nil {
		f.tables.state.SetLag(1)
	}
	f.pipe.Close()
	defer pipe.Close()
	if pipe == f.states { // it has a planner of its own: both would take Budget.Batches
		f.pipe.Planner.Trim()
		defer pipe.Planner.Trim()
	}
	return pipe.Run(ctx, plan.Steps{To: steps}, use)
}

// closeRows closes the tables and pipelines, so that they may be opened anew.
func (f *feed) closeRows() {
	f.closeTables()
	f.pipe, f.replays, f.states = nil, nil, nil
	f.tables = tables{}
}

// closeTables frees the memory of rows; no steps can follow. Counters stay.
func (f *feed) closeTables() {
	for _, p := range []*pipeline.Pipeline{f.pipe, f.replays, f.states} {
		if p != nil {
			p.Close()
		}
	}
	f.tables.close()
}

// drawer is a plan.Sampler of the events of a part.
type drawer struct {
	sampler *temporal.Sampler
	of      func(step int) temporal.Step
	delay   delay // of tests
	near    atomic.Pointer[disk.Account]

	steps   []temporal.Step
	batches []*temporal.Batch
}

// begin sets the events of steps from now on. It is called before a range of steps, and from is the
// first of them.
func (d *drawer) begin(ctx context.Context, from int, of func(step int) temporal.Step) error {
	d.of = of
	first := int64(0)
	if err := guarded(func() { first = of(from).From }); err != nil {
		return err
	}
	return d.sampler.Seek(ctx, first)
}

// New returns an empty *temporal.Batch.
func (d *drawer) New() plan.Batch { return new(temporal.Batch) }

// Draw draws the events of some steps.
func (d *drawer) Draw(ctx context.Context, _ *plan.Steps, from int, into []plan.Batch) error {
	d.steps, d.batches = d.steps[:0], d.batches[:0]
	err := guarded(func() { // steps may look at events
		for i, b := range into {
			d.delay.at(pipeline.Sample)
			d.steps, d.batches = append(d.steps, d.of(from+i)), append(d.batches, b.(*temporal.Batch))
		}
	})
	if err == nil {
		err = d.sampler.Draw(ctx, d.steps, d.batches)
	}
	near := d.sampler.Stats().Near
	d.near.Store(&near)
	return err
}

// read returns the counters of reading neighbour lists, as of the last Draw. It may be called at
// any time.
func (d *drawer) read() (a disk.Account) {
	if near := d.near.Load(); near != nil {
		a = *near
	}
	return a
}

// looks is the number of batches among which large finds the largest.
const looks = 8

// large returns the largest of some batches spread over a part: early ones have few neighbours.
func (d *drawer) large(ctx context.Context, p part) (*temporal.Batch, error) {
	largest, b := new(temporal.Batch), new(temporal.Batch)
	n := min(looks, p.steps())
	for i := range n {
		at := (2*i + 1) * p.steps() / (2 * n)
		err := d.begin(ctx, at, p.step)
		if err == nil {
			err = d.sampler.Draw(ctx, []temporal.Step{p.step(at)}, []*temporal.Batch{b})
		}
		if err != nil {
			return nil, err
		}
		if sizeOf(b) > sizeOf(largest) {
			largest, b = b, largest
		}
	}
	return largest, nil
}

// sizeOf returns a size that the memory of a step grows with.
func sizeOf(b *temporal.Batch) int { return len(b.RowNode) + len(b.NearRow) }

// writer publishes the changes of steps in order, each after its step.
type writer struct {
	publish    func(places []uint32, changes []byte) error
	delay      delay // of tests
	full, free chan *kept
	failed     bool
}

// kept has the changes that a step will publish.
type kept struct {
	places  []uint32
	changes []byte
}

// begin drops the changes that an earlier range left. The writer keeps the changes of at most this
// many steps.
func (w *writer) begin(steps int, publish func(places []uint32, changes []byte) error) {
	w.publish, w.full, w.free, w.failed = publish, make(chan *kept, steps), make(chan *kept, steps), false
	for range steps {
		w.free <- new(kept)
	}
}

// keep copies the changes of a step for WriteBack, and waits for room if all places are taken.
func (w *writer) keep(places []uint32, changes []byte) error {
	k := <-w.free
	k.places, k.changes = append(k.places[:0], places...), append(k.changes[:0], changes...)
	w.full <- k
	return nil
}

// WriteBack publishes the changes that keep kept for the next step.
func (w *writer) WriteBack(int, *pipeline.Gathered) (plan.Written, error) {
	k := <-w.full
	w.delay.at(pipeline.Write)
	err := w.publish(k.places, k.changes)
	w.failed = err != nil
	w.free <- k
	return nil, err
}

// behind reports, after a range, whether the state of a step that updated the weights is unwritten.
func (w *writer) behind() bool { return w.failed || len(w.full) > 0 }
