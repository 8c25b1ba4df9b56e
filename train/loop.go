package train

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
	tasks "github.com/gnnstore/gnnstore/train/task"
)

// run trains all epochs, tests the model that validation chose, and saves the last weights.
func (t *trainer) run(ctx context.Context) error {
	err := t.work(ctx)
	err = t.dir.CutShort(ctx, t.result, err, t.torn, func() error { return t.checkpointNow(ctx) })
	if !t.learns() || err == nil && t.result.Status != run.Interrupted { // else all learnt rows would be read for it
		t.result.ParamsXXH3, err = t.hash(context.WithoutCancel(ctx), err)
	}
	t.collect()
	if err == nil {
		err = t.dir.SaveWeights(run.LastFile, t.model.Download(), t.result.Meta(t.optim.Steps()))
	}
	return err
}

// work is run without its end: it trains, tests and compares with the baseline.
func (t *trainer) work(ctx context.Context) (err error) {
	defer kernels.RecoverMemory(&err)
	if err = t.warm(ctx); err == nil {
		err = t.epochs(ctx)
	}
	if err == nil {
		err = t.testBest(ctx)
	}
	if err == nil {
		err = t.compareBaseline(ctx)
	}
	if err == nil {
		err = t.data.Set.Unchanged()
	}
	return err
}

func (t *trainer) epochs(ctx context.Context) error {
	for n := len(t.result.Epochs) + 1; n <= t.ends.Most() && !t.ends.Enough(t.result); n++ {
		t.task.Begin(n)
		epoch, err := t.epoch(ctx, n)
		if err != nil {
			return err
		}
		if t.ends.Evaluates(n) {
			err = t.validate(ctx, &epoch)
		}
		if err != nil {
			return err // an epoch whose evaluation was interrupted is not whole: resuming evaluates it
		}
		if err := t.finish(ctx, epoch); err != nil {
			return err
		}
	}
	t.ends.End(t.result, t.optim.Steps())
	return nil
}

// epoch trains on all seeds once, or on the seeds that were left when the run was cut short.
func (t *trainer) epoch(ctx context.Context, n int) (run.Epoch, error) {
	steps := t.task.Steps()
	before := (n - 1) * steps // steps of the epochs before
	z := func(step int) sample.Z { return t.BatchSeeds().At(before + step) }
	started, stages := time.Now(), t.tiers.Pipe.Stats()
	seconds := t.partial.Seconds
	use := func(b *pipeline.Gathered) error {
		a, err := t.update(ctx, b, sample.StepSeed(t.Seed, n, b.Step), steps)
		if err != nil {
			return fmt.Errorf("epoch %d, step %d: %w", n, b.Step+1, err)
		}
		t.did = each(t.did, b.Read, t.read, cachetier.Stats.Sub)
		t.partial.Count(a, cachetier.Sum(t.did))
		t.partial.Seconds = seconds + time.Since(started).Seconds()
		t.read, t.trained = append(t.read[:0], b.Read...), each(t.trained, t.did, t.trained, cachetier.Stats.Add)
		if err := t.tell(ctx, n, steps, a.Mean()); err != nil {
			return err
		}
		if b.Step == steps-1 {
			return nil // the epoch is whole
		}
		return ctx.Err()
	}
	var err error
	for first := true; err == nil && (first || t.partial.Steps < steps); first = false {
		s := pipeline.Steps{From: t.partial.Steps, To: t.rest(steps), Z: z, Seeds: t.task.Seeds, Without: t.task.Without}
		if t.reuses() {
			s.Expand, s.Lag = func(from, n int) sample.Expander { return t.reuse.cache.Group(before+from, n) }, t.reuse.HistoryLag
		}
		err = t.tiers.Pipe.Run(ctx, s, use)
		if t.reuses() {
			t.reuse.cache.Rewind(t.optim.Steps()) // what was planned and did not run
		}
		if err == nil && t.learns() && t.checkpointDue(steps) {
			err = t.saveCheckpoint(ctx)
		}
	}
	return t.partial.Epoch(n, t.task.Kind(), t.task.Trained(t.partial.Tally), t.tiers.Pipe.Stats().Sub(stages).Limiting()), err
}

// rest returns the step before which the pipeline pauses next: the end of the epoch, or the next
// checkpoint if rows are learnt.
func (t *trainer) rest(steps int) int {
	if !t.learns() {
		return steps
	}
	return t.partial.Rest(steps, t.optim.Steps(), t.CheckpointEvery)
}

// checkpointDue reports whether it is time for a checkpoint within an epoch.
func (t *trainer) checkpointDue(steps int) bool {
	return t.partial.CheckpointDue(steps, t.optim.Steps(), t.CheckpointEvery)
}

// tell records a step, and checkpoints when it is time to, where the stages may go on meanwhile.
func (t *trainer) tell(ctx context.Context, epoch, steps int, loss float64) error {
	t.peak.Look()
	t.tiers.FollowHeap()
	step := t.partial.Steps
	if t.LogEvery > 0 && t.optim.Steps()%t.LogEvery == 0 {
		t.collect()
		m := &run.StepMetric{Epoch: epoch, Step: step, Updates: t.optim.Steps(), Loss: loss, Seconds: t.partial.Seconds}
		if err := t.dir.Append(run.Line{Step: m, SoFar: t.result.SoFar()}); err != nil {
			return err
		}
	}
	if !t.learns() && t.checkpointDue(steps) {
		if err := t.saveCheckpoint(ctx); err != nil {
			return err
		}
	}
	if t.hooks.Step != nil {
		t.hooks.Step(epoch, step, steps, loss)
	}
	t.shown.Step(epoch, step, loss)
	return nil
}

// update takes one step, in an epoch of this many steps.
func (t *trainer) update(ctx context.Context, b *pipeline.Gathered, key uint64, steps int) (a step.Tally, err error) {
	batch := b.Batch.(*sample.Batch)
	in, now := step.InputOf(batch, b.Rows...), t.optim.Steps()
	in.Step, in.Key = b.Step, key|1
	if t.reuses() {
		if err := t.reuse.audit.look(ctx, now, batch, in.Key); err != nil {
			return a, err
		}
		in.Held = t.reuse.input(now)
	}
	if a, err = t.step.Compute(in); err == nil {
		err = t.step.Update(t.Schedule.Rate(t.LR, now, t.ends.Most()*steps, steps), nil)
	}
	if err == nil && t.reuses() {
		t.reuse.writeBack(now, batch)
	}
	if err == nil && t.learns() {
		t.torn = true
		if err = t.tiers.WriteBack(b); err == nil {
			t.torn = false
		}
	}
	var loss *step.LossError
	var norm *step.NormError
	switch {
	case errors.As(err, &loss):
		err = t.explainLoss(loss.Loss, b)
	case errors.As(err, &norm):
		err = fmt.Errorf("%w; lower {lr}%s", norm, t.dir.LastGood())
	}
	return a, err
}

// explainLoss returns an error that names the cause of a loss that is not finite: the features, the
// weights, or too large a step.
func (t *trainer) explainLoss(loss float64, b *pipeline.Gathered) error {
	for n, rows := range b.Rows {
		if rows.Buf == nil {
			continue
		}
		row, col, v, ok := t.step.Feed.BadRow(rows)
		switch {
		case ok && n >= len(t.data.Types):
			return fmt.Errorf("the loss is %v, since column %d of row %d of %s, a table of edges, is %v; repair the features, "+
				"or leave them out%s", loss, col, b.Batch.Inputs()[n][row], t.data.Input(n).Name, v, t.dir.LastGood())
		case ok && t.model.LearntDim(n) > 0:
			return fmt.Errorf("the loss is %v, since the learnt row of node %s became %v in the step before; lower {lr}%s",
				loss, t.data.Name(n, b.Batch.Inputs()[n][row]), v, t.dir.LastGood())
		case ok:
			return fmt.Errorf("the loss is %v, since feature column %d of node %s is %v; repair the features, "+
				"or leave the node out%s", loss, col, t.data.Name(n, b.Batch.Inputs()[n][row]), v, t.dir.LastGood())
		}
	}
	return t.dir.ExplainOdd(&step.LossError{Loss: loss}, t.model.Download())
}

// measure evaluates a part of the split; ok is false where there is nothing to measure.
func (t *trainer) measure(ctx context.Context, part tasks.Part) (v float64, ok bool, err error) {
	stages, hidden := t.tiers.Pipe.Stats(), t.eval.DiskRead()
	var nodes [][]uint32
	err = store.Guard(func() error {
		nodes, err = t.task.Part(ctx, part)
		return err
	})
	if err == nil {
		v, ok, err = t.eval.Measure(ctx, nodes)
	}
	read := t.tiers.Stats()
	t.evaluated = t.evaluated.Add(cachetier.Sum(each(nil, read, t.read, cachetier.Stats.Sub)).Disk).Add(t.eval.DiskRead().Sub(hidden))
	t.read, t.other = read, t.other.Add(t.tiers.Pipe.Stats().Sub(stages))
	if errors.Is(err, metric.ErrUndefined) {
		t.note("not measured: %v", err)
		return 0, false, nil
	}
	return v, ok, err
}

// validate measures the epoch and remembers its weights when they are the best so far.
func (t *trainer) validate(ctx context.Context, e *run.Epoch) error {
	start := time.Now()
	defer func() { t.result.Evaluation.Seconds += time.Since(start).Seconds() }()
	constant := "" // of the test part
	if t.EvalTest == "epoch" {
		acc, ok, err := t.measure(ctx, tasks.Test)
		if err != nil {
			return err
		}
		if ok {
			e.TestAcc, constant = &acc, t.task.Constant()
		}
	}
	acc, ok, err := t.measure(ctx, tasks.Valid)
	if err != nil || !ok {
		return err
	}
	e.ValidAcc = &acc
	if t.ends.Measured(t.result, e) {
		t.best, t.result.Constant = t.model.Download(), constant
	}
	return nil
}

// testBest measures the test set with the weights that validation chose, or with the last ones,
// which it leaves in place.
func (t *trainer) testBest(ctx context.Context) (failed error) {
	if len(t.result.Epochs) == 0 || t.result.Best.TestAcc != nil {
		return nil
	}
	start := time.Now()
	last := t.model.Download()
	if t.best != nil {
		t.model.Upload(t.best)
		defer t.model.Upload(last)
	}
	if t.best != nil && t.learns() && t.keptNow().Best != int64(t.optim.Steps()) {
		back, err := t.showBest(ctx)
		if err != nil {
			return err
		}
		defer func() { failed = errors.Join(failed, back()) }()
	}
	acc, ok, err := t.measure(ctx, tasks.Test)
	if err != nil || !ok {
		return err
	}
	t.result.Constant = t.task.Constant()
	t.result.Best.TestAcc = &acc
	if n := t.result.Best.Epoch; n > 0 {
		t.result.Epochs[n-1].TestAcc = &acc
	}
	t.result.Evaluation.Seconds += time.Since(start).Seconds()
	return nil
}

// finish adds the epoch to the result and to the run directory: first to its metrics, then to a
// checkpoint that counts on them.
func (t *trainer) finish(ctx context.Context, e run.Epoch) error {
	t.result.Epochs = append(t.result.Epochs, e)
	t.result.Losses = append(t.result.Losses, e.Loss)
	t.explainLarge(e)
	t.partial = run.Partial{}
	t.collect()
	t.shown.Refresh()
	t.sayStarved()
	if err := t.dir.Append(run.Line{Epoch: &e, SoFar: t.result.SoFar()}); err != nil {
		return err
	}
	if t.result.Best.Epoch == e.Epoch {
		if err := t.dir.SaveWeights(run.BestFile, t.best, t.result.Meta(t.optim.Steps())); err != nil {
			return err
		}
	}
	if err := t.saveCheckpoint(ctx); err != nil {
		return err
	}
	t.saveResident()
	if t.hooks.Epoch != nil { // last: who is told of an epoch may rely on its record
		t.hooks.Epoch(e)
	}
	return nil
}

// checkpointNow writes a checkpoint unless the newest one is of this very step.
func (t *trainer) checkpointNow(ctx context.Context) error {
	if t.saved == t.optim.Steps() {
		return nil
	}
	t.saveResident()
	return t.saveCheckpoint(context.WithoutCancel(ctx))
}
