package stream

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
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// Evaluation takes the events of a part in order, as training does. The state moves on and the
// weights stay. Earlier events only update the state, which needs no neighbours and no scores.

// streamTag is for hashes of negatives.
const streamTag = 24

// negatives returns the negatives of a phase. In evaluation they are the same in all epochs.
func (t *trainer) negatives(phase, epoch int) temporal.Negatives {
	population := t.all
	if phase == training {
		population = t.known
	} else {
		epoch = 0
	}
	return temporal.Negatives{Population: population, Each: 1, Key: sample.Hash(t.Seed, streamTag, uint64(phase), uint64(epoch))}
}

// pass goes through a part with the weights as they are. each gets the scores of a batch, lent for
// the length of the call; it is nil if only state is computed.
func (t *trainer) pass(ctx context.Context, p *part, each func(b *temporal.Batch, out temporal.Out) error) error {
	if p.from >= p.to || p.stateOnly && t.tables.state == nil {
		return nil
	}
	pipe := t.replays
	if p.stateOnly {
		pipe = t.states
	}
	return t.through(ctx, pipe, p.steps(), p.step, func(in temporal.Input) error {
		out, err := t.step.Compute(in)
		if err == nil && each != nil {
			err = each(in.Batch, out)
		}
		return err
	})
}

// through calls use with the batch of each of the steps, in order. A batch sees the state that the
// batches before it left.
func (t *trainer) through(
	ctx context.Context, pipe *pipeline.Pipeline, steps int, step func(i int) temporal.Step, use func(in temporal.Input) error,
) error {
	if err := t.draw.begin(ctx, 0, step); err != nil {
		return t.set.About(err)
	}
	if t.tables.state != nil {
		t.tables.state.SetLag(1)
	}
	t.pipe.Close() // the memory has room for the buffers of one pipeline
	defer pipe.Close()
	if pipe == t.states { // it has a planner of its own: both would take Budget.Batches
		t.pipe.Planner.Trim()
		defer pipe.Planner.Trim()
	}
	before := cachetier.Sum(t.tables.stats()).Disk
	defer func() {
		t.counted.evaluated = t.counted.evaluated.Add(cachetier.Sum(t.tables.stats()).Disk.Sub(before))
	}()
	return pipe.Run(ctx, plan.Steps{To: steps}, func(b *pipeline.Gathered) error {
		if t.internal.late != nil {
			t.internal.late(pipeline.Step)
		}
		t.Peak.Look()
		t.heap.Follow()
		in := t.input(b)
		if err := use(in); err != nil {
			return fmt.Errorf("replay, event %d: %w", in.From, t.explain(err, in))
		}
		if t.follow != nil {
			t.follow(in.To)
		}
		return ctx.Err()
	})
}

// remembers reports whether a score depends on earlier events by more than neighbours.
func (t *trainer) remembers() bool { return t.tables.state != nil || t.PairFeatures }

// following has the batches from here on reported to Hooks.Pass, as progress of the pass what over
// all events.
func (t *trainer) following(what string, all int64) {
	if t.Hooks.Pass != nil {
		t.follow = func(done int64) { t.Hooks.Pass(what, done, all) }
	}
}

// measure returns the figures of a part. The state must be the state after the events before it. If
// ranked is set, it ranks events as well. each, if not nil, gets the scores of each batch. ok is
// false if there is nothing to measure.
func (t *trainer) measure(ctx context.Context, phase int, ranked bool, each func(*scores)) (v metric.Batched, ok bool, err error) {
	p := t.part(phase)
	if p.from >= p.to {
		return v, false, nil
	}
	var all metric.Batches[float32]
	take := func(s *scores) error {
		s.addTo(&all)
		if each == nil {
			return nil
		}
		return store.Guard(func() error {
			each(s)
			return nil
		})
	}
	if ranked {
		err = t.measureRanked(ctx, p, take)
	} else {
		err = t.pass(ctx, &p, func(b *temporal.Batch, out temporal.Out) error {
			return take(&scores{from: b.From, positives: out.Positives, negatives: out.Negatives})
		})
	}
	if err == nil {
		v, err = all.Value()
	}
	if errors.Is(err, metric.ErrUndefined) {
		t.Note("not measured: %v", err)
		return v, false, nil
	}
	return v, err == nil, err
}

// part returns the part of a phase, validation or test.
func (t *trainer) part(phase int) part {
	p := part{from: t.split.Train, to: t.split.Train + t.split.Valid, batch: int64(t.Batch), Negatives: t.negatives(phase, 0)}
	if phase == test {
		p.from, p.to = p.to, t.events.Len()
	}
	return p
}

// value returns the run's metric.
func (t *trainer) value(v metric.Batched) float64 { return run.OfBatched(t.Metric, v) }

// Validate implements run.Workload.
func (t *trainer) Validate(ctx context.Context, e *run.Epoch) error {
	if !t.validates() {
		return nil
	}
	start := time.Now()
	defer func() { t.Result.Evaluation.Seconds += time.Since(start).Seconds() }()
	if err := t.Checkpoint(ctx); err != nil { // evaluation changes the state from here on
		return err
	}
	live := t.Eval == run.LiveState
	last := t.split.Train + t.split.Valid
	if live {
		last = t.events.Len()
	}
	t.following(run.JudgePass, last)
	before := part{from: t.learning(e.Epoch).to, to: t.split.Train, batch: int64(t.Batch), stateOnly: true}
	if !live {
		before.from = 0
		if err := t.clear(ctx); err != nil {
			return err
		}
	}
	if err := t.pass(ctx, &before, nil); err != nil {
		return err
	}
	ranked := t.Metric == metric.MRR // else only the final replay ranks: it takes as long as many epochs
	v, ok, err := t.measure(ctx, validation, ranked, nil)
	if err != nil || !ok {
		return err
	}
	now := t.value(v)
	e.ValidAcc = &now
	if !t.Ends.Measured(t.Result, e) {
		return nil
	}
	t.Best = t.step.Model.Download()
	if !live {
		return nil
	}
	tested, ok, err := t.measure(ctx, test, ranked, nil)
	if err != nil || !ok {
		return err
	}
	of := t.value(tested)
	e.TestAcc, t.Result.Best.TestAcc = &of, &of
	r := &run.ReplayOf{Valid: &v, Test: &tested, Seconds: time.Since(start).Seconds()}
	if l := t.Result.Stream.Live; l != nil {
		r.Seconds += l.Seconds
	}
	t.Result.Stream.Live = r
	return nil
}

// clear resets the state of all nodes to the state before their first event.
func (t *trainer) clear(ctx context.Context) error {
	if t.tables.state == nil {
		return nil
	}
	return t.tables.state.Clear(ctx)
}

// Test implements run.Workload: it goes through the whole stream with the weights that validation
// chose, or the last ones. The last weights are in place afterwards.
func (t *trainer) Test(ctx context.Context) error {
	if t.Eval == run.NoEvaluation || len(t.Result.Epochs) == 0 || t.Result.Stream.Replay != nil {
		return nil
	}
	start := time.Now()
	t.following(run.ReplayPass, t.events.Len())
	if t.Best != nil {
		last := t.step.Model.Download()
		t.step.Model.Upload(t.Best)
		defer func() { t.step.Model.Upload(last) }()
	}
	r, err := t.replayed(ctx)
	if err != nil {
		return err
	}
	t.Collect()
	t.closeTables() // heuristics come last, and take the memory of the tables
	beside, err := t.baselines(ctx)
	if err != nil {
		return err
	}
	if r.Test != nil && t.Eval != run.LiveState {
		now := t.value(*r.Test)
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

// replayed measures the whole stream with the current weights.
func (t *trainer) replayed(ctx context.Context) (r *run.ReplayOf, err error) {
	start := time.Now()
	if err := t.clear(ctx); err != nil {
		return nil, err
	}
	if err := t.pass(ctx, &part{to: t.split.Train, batch: int64(t.Batch), stateOnly: true}, nil); err != nil {
		return nil, err
	}
	r = new(run.ReplayOf)
	if v, ok, err := t.measure(ctx, validation, t.ranking.Ranks(), nil); err != nil {
		return nil, err
	} else if ok {
		r.Valid = &v
	}
	fresh, err := t.newNodes()
	if err != nil {
		return nil, err
	}
	var ofNew metric.Batches[float32]
	var some scores
	v, ok, err := t.measure(ctx, test, t.ranking.Ranks(), func(s *scores) {
		src, dst := t.events.Ends(s.from, s.from+int64(len(s.positives)))
		some = scores{positives: some.positives[:0], negatives: some.negatives[:0], ranks: some.ranks[:0]}
		for i := range src {
			if fresh.has(src[i]) && fresh.has(uint32(t.events.Place(dst[i]))) {
				continue
			}
			some.positives, some.negatives = append(some.positives, s.positives[i]), append(some.negatives, s.negatives[i])
			if s.ranks != nil {
				some.ranks = append(some.ranks, s.ranks[i])
			}
		}
		some.addTo(&ofNew)
	})
	if err != nil {
		return nil, err
	}
	if ok {
		r.Test = &v
		if v, err := ofNew.Value(); err == nil {
			r.New = &v
		}
	}
	r.Seconds = time.Since(start).Seconds()
	return r, nil
}

// seen is the set of nodes that training events have, a bit a place.
type seen []uint64

// newNodes returns the set of nodes that training events have; the nodes not in it are new.
func (t *trainer) newNodes() (set seen, err error) {
	set = make(seen, t.events.Places()/64+1)
	err = store.Guard(func() error {
		for lo := int64(0); lo < t.split.Train; lo += 1 << 16 {
			src, dst := t.events.Ends(lo, min(lo+1<<16, t.split.Train))
			for i := range src {
				v := t.events.Place(dst[i])
				set[src[i]/64] |= 1 << (src[i] % 64)
				set[v/64] |= 1 << (v % 64)
			}
		}
		return nil
	})
	return set, err
}

func (s seen) has(place uint32) bool { return s[place/64]>>(place%64)&1 == 1 }

// baselineBytes is the memory of heuristics for a scored event: 4 scores of 4 bytes for two pairs,
// in lists that are copied while they grow.
const baselineBytes = 4 * 4 * 2 * 9 / 4

// baselineRanks is their memory for its ranks.
const baselineRanks = 4 * 4 * 9 / 4

// baselines measures the heuristics, which need no network, on the test part with the same
// negatives. It returns nothing, with a note, if the memory has no room for them.
func (t *trainer) baselines(ctx context.Context) (all []run.HeuristicOf, err error) {
	p := t.part(test)
	if p.from >= p.to {
		return nil, nil
	}
	need := 8*t.events.Places() + baselineBytes*(p.to-p.from)
	if t.ranking.Ranks() {
		need += baselineRanks * (p.to - p.from)
	}
	room := t.budget.Total - t.held - need
	if t.tables.state != nil || t.tables.features != nil || t.tables.ofNodes != nil {
		room -= t.budget.Host + t.budget.Batches
	}
	if room < 0 {
		t.Note("heuristics are left out: their scores take %s, and there is room for %s", kernels.FormatBytes(need), kernels.FormatBytes(room+need))
		return nil, nil
	}
	b, err := temporal.NewBaselines(t.events, room)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if t.ranking.Ranks() {
		b.Candidates = t.candidates(p.Negatives)
	}
	err = store.Guard(func() error {
		for i := range p.steps() {
			s := p.step(i)
			if err := b.Score(ctx, &s, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, h := range temporal.Heuristics {
		v, _, ok := b.Value(h)
		if !ok {
			t.Note("heuristics of pairs are left out: the pairs of the stream take more than %s", kernels.FormatBytes(room))
			break
		}
		all = append(all, run.HeuristicOf{Name: h.String(), Batched: v})
	}
	return all, nil
}
