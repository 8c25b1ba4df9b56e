package graph

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
	tasks "github.com/gnnstore/gnnstore/train/task"
)

// Begin implements run.Workload.
func (t *trainer) Begin(_ context.Context, epoch int) error {
	t.task.Begin(epoch)
	return nil
}

// Train implements run.Workload.
func (t *trainer) Train(ctx context.Context, s run.Span, done func(step.Tally, cachetier.Stats) error) error {
	steps := t.task.Steps()
	before := (s.Epoch - 1) * steps // steps of the epochs before
	batchSeed := func(step int) sample.BatchSeed { return t.BatchSeeds().At(before + step) }
	// finish ends a step that was launched.
	finish := func(b *pipeline.Gathered, l launched) error {
		a, err := t.settle(ctx, b, l, s.Epoch)
		if err != nil {
			return fmt.Errorf("epoch %d, step %d: %w", s.Epoch, b.Step+1, err)
		}
		t.did = cachetier.Combine(t.did, b.Read, t.read, cachetier.Stats.Sub)
		t.read, t.trained = append(t.read[:0], b.Read...), cachetier.Combine(t.trained, t.did, t.trained, cachetier.Stats.Add)
		t.tiers.FollowHeap()
		if err := done(a, cachetier.Sum(t.did)); err != nil {
			return err
		}
		if b.Step == steps-1 {
			return nil // the epoch is whole
		}
		return ctx.Err()
	}
	use := func(b *pipeline.Gathered) error {
		l, err := t.launch(ctx, b, s.Epoch)
		if err != nil {
			return fmt.Errorf("epoch %d, step %d: %w", s.Epoch, b.Step+1, err)
		}
		b.Settle(func() error { return finish(b, l) }, t.Backend.Behind() && !t.CheckpointAfter(s.Epoch, b.Step))
		return nil
	}
	all := pipeline.Steps{
		From: s.From, To: s.To, BatchSeed: batchSeed,
		Prepare: t.task.Prepare, Seeds: t.task.Seeds, Without: t.task.Without, Cooperative: t.tiers.Cooperative(),
	}
	if t.reuse.any() {
		t.reuse.plans(&all, before)
	}
	err := t.tiers.Pipe.Run(ctx, all, use)
	if t.reuse.any() {
		t.reuse.cache.Rewind(t.Updates()) // what was planned and did not run
	}
	return err
}

// Trained implements run.Workload.
func (t *trainer) Trained(a step.Tally) float64 { return t.task.Trained(a) }

// launched is a step that the backend may still be computing.
type launched struct {
	step.Launched
	update int         // its number
	shared *step.Tally // of all workers; nil where one worker trains
}

// launch begins a step.
func (t *trainer) launch(ctx context.Context, b *pipeline.Gathered, epoch int) (l launched, err error) {
	defer kernels.RecoverMemory(&err)
	batch, key := b.Batch.(*sample.Batch), sample.StepSeed(t.Seed, epoch, b.Step)
	in, now := step.InputOf(batch, b.Rows...), t.optim.Steps()
	in.Step, in.Key = b.Step, key|1
	if of, ok := t.task.(*tasks.Nodes); ok && t.Hooks.Group.Size() > 1 {
		in.Hidden = of.Whole(b.Step)
	}
	if t.reuse.any() {
		if err := t.reuse.audit.look(ctx, now, batch, in.Key); err != nil {
			return l, err
		}
		in.Held = t.reuse.input(now, t.tiers.Cooperative())
	}
	at := dist.At{Epoch: epoch, Step: b.Step}
	if in.Cooperation != nil {
		in.Half = t.HaloDtype == "f16"
		in.Swap = func(send [][]byte) ([][]byte, error) { return t.Hooks.Group.Exchange(ctx, at, send) }
	}
	if err := t.step.Compute(in); err != nil {
		return l, err
	}
	var reduce func(grads []kernels.Tensor) error
	if t.Hooks.Group.Size() > 1 {
		own, err := t.step.Computed()
		if err != nil {
			return l, t.explain(err, b)
		}
		reduce = func(grads []kernels.Tensor) (err error) {
			if l.shared, err = t.sums.reduce(ctx, at, own, grads); err != nil || !t.learnt.any() {
				return err
			}
			return t.learntSums.reduce(ctx, t, at, b)
		}
	}
	if err := t.step.Update(t.Rate(), reduce); err != nil {
		return l, err
	}
	l.Launched, l.update = t.step.Launched(), now
	return l, nil
}

// settle waits for a step, and gives the planner and the learnt rows what it has made.
func (t *trainer) settle(ctx context.Context, b *pipeline.Gathered, l launched, epoch int) (a step.Tally, err error) {
	defer kernels.RecoverMemory(&err)
	if a, err = l.Wait(); err != nil {
		return a, t.explain(err, b)
	}
	if l.shared != nil {
		a = *l.shared
	}
	if t.reuse.any() {
		sum := t.sumCounts(ctx, dist.At{Epoch: epoch, Step: b.Step})
		if err := t.reuse.writeBack(l.update, b.Batch.(*sample.Batch), sum); err != nil {
			return a, err
		}
	}
	if t.learnt.any() {
		t.Torn = true
		if err := t.tiers.WriteBack(b); err != nil {
			return a, err
		}
		t.Torn = false
	}
	return a, nil
}

// explain adds the cause to an error of a step.
func (t *trainer) explain(err error, b *pipeline.Gathered) error {
	var loss *step.LossError
	var norm *step.NormError
	switch {
	case errors.As(err, &loss):
		return t.explainLoss(loss.Loss, b)
	case errors.As(err, &norm):
		return fmt.Errorf("%w; lower {lr}%s", norm, t.Dir.LastGood())
	}
	return err
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
				"or leave them out%s", loss, col, b.Batch.Inputs()[n][row], t.data.Input(n).Name, v, t.Dir.LastGood())
		case ok && t.model.LearntDim(n) > 0:
			return fmt.Errorf("the loss is %v, since the learnt row of node %s became %v in the step before; lower {lr}%s",
				loss, t.data.Name(n, b.Batch.Inputs()[n][row]), v, t.Dir.LastGood())
		case ok:
			return fmt.Errorf("the loss is %v, since feature column %d of node %s is %v; repair the features, "+
				"or leave the node out%s", loss, col, t.data.Name(n, b.Batch.Inputs()[n][row]), v, t.Dir.LastGood())
		}
	}
	return t.Dir.ExplainOdd(&step.LossError{Loss: loss}, t.model.Download())
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
	t.evaluated = t.evaluated.Add(cachetier.Sum(cachetier.Combine(nil, read, t.read, cachetier.Stats.Sub)).Disk).Add(t.eval.DiskRead().Sub(hidden))
	t.read, t.other = read, t.other.Add(t.tiers.Pipe.Stats().Sub(stages))
	if errors.Is(err, metric.ErrUndefined) {
		t.Note("not measured: %v", err)
		return 0, false, nil
	}
	return v, ok, err
}

// Validate implements run.Workload.
func (t *trainer) Validate(ctx context.Context, e *run.Epoch) error {
	start := time.Now()
	defer func() { t.Result.Evaluation.Seconds += time.Since(start).Seconds() }()
	constant := "" // of the test part
	if t.EvalTest == run.TestEpoch {
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
	if t.Ends.Measured(t.Result, e) {
		t.Best, t.Result.Constant = t.model.Download(), constant
	}
	return nil
}

// Test implements run.Workload. It also compares the network with an answer without one.
func (t *trainer) Test(ctx context.Context) error {
	if err := t.testBest(ctx); err != nil {
		return err
	}
	return t.compareBaseline(ctx)
}

// testBest measures the test set with the weights that validation chose, or with the last ones,
// which it leaves in place.
func (t *trainer) testBest(ctx context.Context) (failed error) {
	if len(t.Result.Epochs) == 0 || t.Result.Best.TestAcc != nil {
		return nil
	}
	start := time.Now()
	last := t.model.Download()
	if t.Best != nil {
		t.model.Upload(t.Best)
		defer t.model.Upload(last)
	}
	if t.Best != nil && t.learnt.any() && t.learnt.now().Best != int64(t.optim.Steps()) {
		back, err := t.learnt.showBest(ctx)
		if err != nil {
			return err
		}
		defer func() { failed = errors.Join(failed, back()) }()
	}
	take := t.startReport()
	acc, ok, err := t.measure(ctx, tasks.Test)
	report := take()
	if err != nil || !ok {
		return err
	}
	t.Result.Constant, t.Result.Report = t.task.Constant(), report
	t.Result.Best.TestAcc = &acc
	if within := t.rankedWithin(); within != nil {
		links := *t.Result.Links // others may be reading the old one
		links.RankedWithin = within
		t.Result.Links = &links
	}
	if n := t.Result.Best.Epoch; n > 0 {
		t.Result.Epochs[n-1].TestAcc = &acc
	}
	t.Result.Evaluation.Seconds += time.Since(start).Seconds()
	return nil
}

// rankedWithin returns the shares of links that the last measurement ranked among the first, as in
// run.LinksOf; nil if there are none.
func (c *core) rankedWithin() map[string]float64 {
	if links, ok := c.task.(*tasks.Links); ok {
		return links.RankedWithin()
	}
	return nil
}

// Remark implements run.Workload.
func (t *trainer) Remark(e run.Epoch) {
	t.NoteLarge(e, func() (float64, error) {
		if e.TooLarge(1) == "" {
			return 1, nil // labels need not be read for this
		}
		scale, err := t.task.Scale()
		return max(scale, 1), err
	})
	if text := t.reuse.starvation(t.data.Types); text != "" {
		t.Note("%s", text)
	}
}

// AtRest implements run.Workload: it saves the list of rows in the host cache.
func (t *trainer) AtRest() {
	if !t.tiers.Lasting() || cachetier.Sum(t.trained).InputRows == 0 { // the file from before is as good
		return
	}
	if err := saveResident(t.Dir, t.tiers.Stacks); err != nil {
		t.Note("%v; a run that is resumed begins with a cold host cache", err)
	}
}
