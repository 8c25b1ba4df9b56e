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
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// evaluation takes the events of a part in order, as training does. The state moves on and the
// weights stay. Earlier events only update the state, which needs no neighbours and no scores.
type evaluation struct {
	*core
	follow func(done int64) // gets the number of events done in a pass; nil: nobody asks
	read   cachetier.Disk   // by all passes
}

// pass goes through a part with the weights as they are. each gets the scores of a batch, lent for
// the length of the call; it is nil if only state is computed.
func (e *evaluation) pass(ctx context.Context, p *part, each func(b *temporal.Batch, out temporal.Out) error) error {
	if p.from >= p.to || p.stateOnly && e.tables.state == nil {
		return nil
	}
	pipe := e.replays
	if p.stateOnly {
		pipe = e.states
	}
	return e.through(ctx, pipe, p.steps(), p.step, func(in temporal.Input) error {
		out, err := e.step.Compute(in)
		if err == nil && each != nil {
			err = each(in.Batch, out)
		}
		return err
	})
}

// through calls use with the batch of each of the steps, in order. A batch sees the state that the
// batches before it left.
func (e *evaluation) through(
	ctx context.Context, pipe *pipeline.Pipeline, steps int, step func(i int) temporal.Step, use func(in temporal.Input) error,
) error {
	if err := e.draw.begin(ctx, 0, step); err != nil {
		return e.set.About(err)
	}
	before := cachetier.Sum(e.tables.stats()).Disk
	defer func() { e.read = e.read.Add(cachetier.Sum(e.tables.stats()).Disk.Sub(before)) }()
	return e.instead(ctx, pipe, steps, func(b *pipeline.Gathered) error {
		e.internal.delay.at(pipeline.Step)
		e.Peak.Look()
		e.heap.Follow()
		in := e.tables.input(b)
		if err := use(in); err != nil {
			return fmt.Errorf("replay, event %d: %w", in.From, e.explain(err, in))
		}
		if e.follow != nil {
			e.follow(in.To)
		}
		return ctx.Err()
	})
}

// restart computes the state anew, of the events before event to.
func (e *evaluation) restart(ctx context.Context, to int64) error {
	if err := e.tables.clear(ctx); err != nil {
		return err
	}
	return e.pass(ctx, e.stateOf(0, to), nil)
}

// following has the batches from here on reported to Hooks.Pass, as progress of the pass what over
// all events.
func (e *evaluation) following(what string, all int64) {
	if e.Hooks.Pass != nil {
		e.follow = func(done int64) { e.Hooks.Pass(what, done, all) }
	}
}

// measure returns the figures of a part. The state must be the state after the events before it. If
// ranked is set, it ranks events as well. each, if not nil, gets the scores of each batch. ok is
// false if there is nothing to measure.
func (e *evaluation) measure(ctx context.Context, phase int, ranked bool, each func(*scores)) (v metric.Batched, ok bool, err error) {
	p := e.part(phase)
	if p.from >= p.to {
		return v, false, nil
	}
	var all metric.Batches[float32]
	take := func(s *scores) error {
		s.addTo(&all)
		if each == nil {
			return nil
		}
		return guarded(func() { each(s) })
	}
	if ranked {
		err = e.measureRanked(ctx, p, take)
	} else {
		err = e.pass(ctx, &p, func(b *temporal.Batch, out temporal.Out) error {
			return take(&scores{from: b.From, positives: out.Positives, negatives: out.Negatives})
		})
	}
	if err == nil {
		v, err = all.Value()
	}
	if errors.Is(err, metric.ErrUndefined) {
		e.Note("not measured: %v", err)
		return v, false, nil
	}
	return v, err == nil, err
}

// replayed measures the whole stream with the current weights.
func (e *evaluation) replayed(ctx context.Context) (r *run.ReplayOf, err error) {
	start := time.Now()
	if err := e.restart(ctx, e.split.Train); err != nil {
		return nil, err
	}
	r = new(run.ReplayOf)
	if v, ok, err := e.measure(ctx, validation, e.ranking.Ranks(), nil); err != nil {
		return nil, err
	} else if ok {
		r.Valid = &v
	}
	old, err := seenNodes(e.events, e.split.Train)
	if err != nil {
		return nil, err
	}
	var ofNew metric.Batches[float32]
	var some scores
	v, ok, err := e.measure(ctx, test, e.ranking.Ranks(), func(s *scores) {
		src, dst := e.events.Ends(s.from, s.from+int64(len(s.positives)))
		some = scores{positives: some.positives[:0], negatives: some.negatives[:0], ranks: some.ranks[:0]}
		for i := range src {
			if old.has(src[i]) && old.has(uint32(e.events.Place(dst[i]))) {
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

// seenNodes returns the set of nodes in the first train events.
func seenNodes(e *store.Events, train int64) (set seen, err error) {
	set = make(seen, e.Places()/64+1)
	err = guarded(func() {
		for lo := int64(0); lo < train; lo += 1 << 16 {
			src, dst := e.Ends(lo, min(lo+1<<16, train))
			for i := range src {
				v := e.Place(dst[i])
				set[src[i]/64] |= 1 << (src[i] % 64)
				set[v/64] |= 1 << (v % 64)
			}
		}
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
func (e *evaluation) baselines(ctx context.Context) (all []run.HeuristicOf, err error) {
	p := e.part(test)
	if p.from >= p.to {
		return nil, nil
	}
	need := 8*e.events.Places() + baselineBytes*(p.to-p.from)
	if e.ranking.Ranks() {
		need += baselineRanks * (p.to - p.from)
	}
	room := e.budget.Total - e.restBytes() - e.sizes.stepBytes() - need
	if e.tables.state != nil || e.tables.events != nil || e.tables.nodes != nil {
		room -= e.budget.Host + e.budget.Batches
	}
	if room < 0 {
		e.Note("heuristics are left out: their scores take %s, and there is room for %s", kernels.FormatBytes(need), kernels.FormatBytes(room+need))
		return nil, nil
	}
	b, err := temporal.NewBaselines(e.events, room)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if e.ranking.Ranks() {
		b.Candidates = candidatesOf(e.ranking, e.events, p.Negatives)
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
			e.Note("heuristics of pairs are left out: the pairs of the stream take more than %s", kernels.FormatBytes(room))
			break
		}
		all = append(all, run.HeuristicOf{Name: h.String(), Batched: v})
	}
	return all, nil
}
