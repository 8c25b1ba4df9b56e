package stream

import (
	"context"
	"fmt"
	"math"
	"time"

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
	t.eval.following(run.WarmUpPass, t.WarmEvents)
	return t.eval.restart(ctx, t.WarmEvents)
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
		t.read = cachetier.Combine(nil, did, t.read, cachetier.Stats.Add)
		t.heap.Follow()
		return done(a, read) // not ctx.Err(): this step is still written back, and no step follows
	}
	var writers []pipeline.Writer
	if t.tables.state != nil && t.Publish == run.Late {
		writers = append(writers, &t.publisher)
		t.publisher.begin(t.inflight()+1, t.tables.publish)
	}
	err := t.pipe.Run(ctx, plan.Steps{From: s.From, To: s.To, Follows: s.From > 0}, use, writers...)
	t.Torn = t.Torn || t.publisher.behind()
	return err
}

// Trained implements run.Workload.
func (t *trainer) Trained(a step.Tally) float64 { return a.Measured / float64(max(a.Rows, 1)) }

// update takes one step.
func (t *trainer) update(b *pipeline.Gathered, epoch int) (a step.Tally, err error) {
	defer kernels.RecoverMemory(&err)
	t.internal.delay.at(pipeline.Step)
	in := t.tables.input(b)
	in.Key = sample.StepSeed(t.Seed, epoch, b.Step) | 1
	if t.tables.state != nil && t.Publish == run.Late {
		in.Publish = t.publisher.keep
	}
	t.Torn = true
	var out temporal.Out
	err = t.step.Launch(in)
	if err == nil {
		err = t.step.Update(t.Rate(), nil)
	}
	if err == nil {
		out, err = t.step.Wait()
	}
	t.Torn = err != nil
	if err != nil {
		return a, t.explain(err, in)
	}
	if t.Mitigate > 0 {
		m := &t.Result.Stream.Mitigation
		m.Roots, m.Blended = m.Roots+int64(len(in.Roots)), m.Blended+int64(len(in.Blended))
		if t.MitigateAudit > 0 {
			t.audit.look(in, t.step, t.lag, t.MitigateAudit)
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
	return step.Tally{Loss: out.Loss * n, Weight: n, Measured: run.OfBatched(t.Metric, v), Rows: 1}, err
}

// Validate implements run.Workload.
func (t *trainer) Validate(ctx context.Context, e *run.Epoch) (err error) {
	if !t.validates() {
		return nil
	}
	start := time.Now()
	defer func() { t.Result.Evaluation.Seconds += time.Since(start).Seconds() }()
	if err := t.Checkpoint(ctx); err != nil { // evaluation changes the state from here on
		return err
	}
	live := t.Eval == run.LiveState
	if live {
		t.eval.following(run.JudgePass, t.events.Len())
		err = t.eval.pass(ctx, t.stateOf(t.learning(e.Epoch).to, t.split.Train), nil)
	} else {
		t.eval.following(run.JudgePass, t.split.Train+t.split.Valid)
		err = t.eval.restart(ctx, t.split.Train)
	}
	if err != nil {
		return err
	}
	ranked := t.Metric == metric.MRR // else the final replay alone ranks: it takes as long as many epochs
	v, ok, err := t.eval.measure(ctx, validation, ranked, nil)
	if err != nil || !ok {
		return err
	}
	now := run.OfBatched(t.Metric, v)
	e.ValidAcc = &now
	if !t.Ends.Measured(t.Result, e) {
		return nil
	}
	t.Best = t.step.Model.Download()
	if !live {
		return nil
	}
	tested, ok, err := t.eval.measure(ctx, test, ranked, nil)
	if err != nil || !ok {
		return err
	}
	of := run.OfBatched(t.Metric, tested)
	e.TestAcc, t.Result.Best.TestAcc = &of, &of
	r := &run.ReplayOf{Valid: &v, Test: &tested, Seconds: time.Since(start).Seconds()}
	if l := t.Result.Stream.Live; l != nil {
		r.Seconds += l.Seconds
	}
	t.Result.Stream.Live = r
	return nil
}

// Test implements run.Workload: it goes through the whole stream with the weights that validation
// chose, or the last ones. The last weights are in place afterwards.
func (t *trainer) Test(ctx context.Context) error {
	if t.Eval == run.NoEvaluation || len(t.Result.Epochs) == 0 || t.Result.Stream.Replay != nil {
		return nil
	}
	start := time.Now()
	t.eval.following(run.ReplayPass, t.events.Len())
	if t.Best != nil {
		last := t.step.Model.Download()
		t.step.Model.Upload(t.Best)
		defer func() { t.step.Model.Upload(last) }()
	}
	r, err := t.eval.replayed(ctx)
	if err != nil {
		return err
	}
	t.Collect()
	t.closeTables() // heuristics come last, and take the memory of the tables
	beside, err := t.eval.baselines(ctx)
	if err != nil {
		return err
	}
	if r.Test != nil && t.Eval != run.LiveState {
		now := run.OfBatched(t.Metric, *r.Test)
		t.Result.Best.TestAcc = &now
		if n := t.Result.Best.Epoch; n > 0 {
			t.Result.Epochs[n-1].TestAcc = &now
		}
	}
	t.Result.Stream.Replay, t.Result.Stream.Heuristics = r, beside
	t.Result.Stream.Compare(t.Metric)
	t.Result.Evaluation.Seconds += time.Since(start).Seconds()
	return nil
}

// Remark implements run.Workload.
func (t *trainer) Remark(e run.Epoch) {
	t.NoteLarge(e, func() (float64, error) { return math.Ln2, nil }) // the loss of a coin
}

// AtRest implements run.Workload.
func (t *trainer) AtRest() {}
