package stream

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// Begin implements run.Workload. At the start of an epoch it clears the state, and computes it anew
// after the first WarmEvents events. Within an epoch it does nothing.
func (t *trainer) Begin(ctx context.Context, _ int) error {
	if t.Partial.Steps > 0 {
		return nil
	}
	if err := t.clear(ctx); err != nil {
		return err
	}
	t.following(run.WarmUpPass, t.WarmEvents)
	return t.pass(ctx, &part{to: t.WarmEvents, batch: int64(t.Batch), stateOnly: true}, nil)
}

// Train implements run.Workload.
func (t *trainer) Train(ctx context.Context, s run.Span, done func(step.Tally, cachetier.Stats) error) error {
	events := t.learning(s.Epoch)
	if err := t.draw.begin(ctx, s.From, events.step); err != nil {
		return t.set.About(err)
	}
	if t.tables.state != nil {
		t.tables.state.SetLag(t.lag)
	}
	if s.From == 0 {
		t.stale.Begin()
		t.audit.begin()
	}
	var did []cachetier.Stats
	before := t.tables.stats()
	use := func(b *pipeline.Gathered) error {
		a, err := t.update(b, s.Epoch)
		if err != nil {
			return fmt.Errorf("epoch %d, step %d: %w", s.Epoch, b.Step+1, err)
		}
		did = cachetier.Combine(did, b.Read, before, cachetier.Stats.Sub)
		before = append(before[:0], b.Read...)
		read := cachetier.Sum(did)
		if t.lag > 1 {
			batch := b.Batch.(*temporal.Batch)
			t.wrote = batch.Written(t.wrote[:0])
			t.stale.Add(batch.Nodes, t.wrote)
		}
		t.counted.tables = cachetier.Combine(nil, did, t.counted.tables, cachetier.Stats.Add)
		t.heap.Follow()
		return done(a, read) // once ctx has ended no step follows, but this one is written back
	}
	var writers []pipeline.Writer
	if t.tables.state != nil && t.Publish == run.Late {
		writers = append(writers, &t.late)
		t.late.begin(t.inflight()+1, t.publish)
	}
	err := t.pipe.Run(ctx, plan.Steps{From: s.From, To: s.To, Follows: s.From > 0}, use, writers...)
	t.Torn = t.Torn || t.late.behind()
	return err
}

// Trained implements run.Workload.
func (t *trainer) Trained(a step.Tally) float64 { return a.Measured / float64(max(a.Rows, 1)) }

// update takes one step.
func (t *trainer) update(b *pipeline.Gathered, epoch int) (a step.Tally, err error) {
	if t.internal.late != nil {
		t.internal.late(pipeline.Step)
	}
	in := t.input(b)
	in.Key = sample.StepSeed(t.Seed, epoch, b.Step) | 1
	switch {
	case t.tables.state == nil:
		in.Publish = nil
	case t.Publish == run.Late:
		in.Publish = t.late.keep
	}
	t.Torn = true
	out, err := t.step.Compute(in)
	if err == nil {
		err = t.step.Update(t.Rate(), nil)
	}
	t.Torn = err != nil
	if err != nil {
		return a, t.explain(err, in)
	}
	if t.Mitigate > 0 {
		m := &t.Result.Stream.Mitigation
		m.Roots, m.Blended = m.Roots+int64(len(in.Roots)), m.Blended+int64(len(in.Blended))
		if t.MitigateAudit > 0 {
			t.audit.look(in, t.step, t.lag, t.MitigateAudit, &t.audited)
		}
	}
	t.scores.Reset()
	t.scores.Add(out.Positives, out.Negatives)
	if t.Metric == metric.MRR { // among the one negative that there is
		for i, score := range out.Positives {
			t.scores.RankAmong(score, out.Negatives[i:i+1])
		}
	}
	v, err := t.scores.Value()
	n := float64(len(out.Positives))
	return step.Tally{Loss: out.Loss * n, Weight: n, Measured: t.value(v), Rows: 1}, err
}

// input returns a batch with its rows. Its Publish writes new state at once.
func (t *trainer) input(b *pipeline.Gathered) temporal.Input {
	in := temporal.Input{Batch: b.Batch.(*temporal.Batch)}
	if t.tables.state != nil {
		in.State = b.Rows[inputOf[stateKind]]
		in.Publish = func(places []uint32, changes []byte) error {
			if err := t.publish(places, changes); err != nil {
				return err
			}
			return b.WriteBack(nil)
		}
	}
	if t.tables.features != nil {
		in.Features = b.Rows[inputOf[eventKind]]
	}
	if t.tables.ofNodes != nil {
		in.NodeFeatures = b.Rows[inputOf[nodeKind]]
	}
	return in
}

// publish writes the changed records of the next step that is to be written back.
func (t *trainer) publish(places []uint32, changes []byte) error {
	r, n := t.step.Record, t.step.Record.ChangeBytes()
	if r.Whole() {
		return t.tables.state.Write(places, changes)
	}
	return t.tables.state.Update(places, func(i int, record []byte) { r.Apply(record, changes[i*n:][:n]) })
}

// explain adds the cause to the error of a loss or a node state that is not finite: the features,
// the weights, or too large a step. It returns other errors as they are.
func (t *trainer) explain(err error, in temporal.Input) error {
	var loss *step.LossError
	var norm *step.NormError
	var state *temporal.StateError
	switch {
	case errors.As(err, &norm):
		return fmt.Errorf("%w; lower {lr}%s", norm, t.Dir.LastGood())
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
		{in.NodeFeatures, "node", in.Nodes, func(id uint32) int64 { return t.original(id) }},
	} {
		if of.Buf == nil {
			continue
		}
		if row, col, v, ok := t.oddIn(of.Tensor); ok {
			return fmt.Errorf("%w, since column %d of the features of %s %d is %v; repair the features, or leave the %s out%s", err, col, of.what,
				of.say(of.ids[row]), v, of.what, t.Dir.LastGood())
		}
	}
	return t.Dir.ExplainOdd(err, t.step.Model.Download())
}

// oddIn returns the first value of x that is not finite.
func (t *trainer) oddIn(x kernels.Tensor) (row, col int, v float32, ok bool) {
	wide := kernels.Tensor{Buf: t.be.Alloc(kernels.F32, x.Len()), Type: kernels.F32, Rows: x.Rows, Cols: x.Cols}
	defer t.be.Free(wide.Buf)
	values := make([]float32, x.Len())
	t.be.Convert(wide, x)
	t.be.DownloadF32(values, wide)
	i := step.NotFinite(values)
	if i < 0 {
		return 0, 0, 0, false
	}
	return i / x.Cols, i % x.Cols, values[i], true
}

// original returns the users' id of the node at a place, in a stream whose nodes are of one type.
func (t *trainer) original(place uint32) int64 {
	return t.nodeIDs(t.events.Stream.Src).Original(place)
}

// writer publishes the changes of steps in order, each after its step.
type writer struct {
	publish    func(places []uint32, changes []byte) error
	late       func(stage string) // of tests
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
	if w.late != nil {
		w.late(pipeline.Write)
	}
	err := w.publish(k.places, k.changes)
	w.failed = err != nil
	w.free <- k
	return nil, err
}

// behind reports, after a range, whether the state of a step that updated the weights is unwritten.
func (w *writer) behind() bool { return w.failed || len(w.full) > 0 }

// Remark implements run.Workload.
func (t *trainer) Remark(e run.Epoch) {
	t.NoteLarge(e, func() (float64, error) { return math.Ln2, nil }) // the loss of a coin
}

// AtRest implements run.Workload.
func (t *trainer) AtRest() {}

func (t *tables) stats() (all []cachetier.Stats) {
	for _, s := range t.stacks {
		all = append(all, s.Stats())
	}
	return all
}
