package stream

import (
	"context"
	"sort"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// Ranking compares the destination of an event with candidates that take its place, which came with
// the dataset or are drawn. An event may have a thousand, so a batch of events takes several steps:
// first steps that score pairs, the event's own and its candidates', by the state that the batches
// before left, and then one step that only updates the state. A pair gets the same score as in a
// step with events.

// scores has the scores of some consecutive events.
type scores struct {
	from                 int64 // the first
	positives, negatives []float32
	ranks                []rank // by event; nil where nothing is ranked
}

// rank counts the candidates of an event, of them the ones that score higher than its destination,
// and the ones that score the same.
type rank struct{ of, higher, same int }

// candidatesOf returns a function that appends to into the places of an event's candidates.
func candidatesOf(r run.Ranking, e *store.Events, of temporal.Negatives) func(event int64, into []uint32) []uint32 {
	if r.Given {
		first := uint32(e.Place(0))
		return func(event int64, into []uint32) []uint32 {
			for _, v := range e.Negatives(event) {
				into = append(into, first+v)
			}
			return into
		}
	}
	return func(event int64, into []uint32) []uint32 {
		for j := range r.Each {
			into = append(into, of.Of(event, j))
		}
		return into
	}
}

// rankedPart cuts a part whose events are ranked into steps.
type rankedPart struct {
	part
	ranking    run.Ranking
	events     *store.Events
	candidates func(event int64, into []uint32) []uint32
	most       int64   // pairs that a step asks for
	starts     []int64 // by batch: the number of its first step; and last, the number of steps
	state      bool    // batches end with a step of state
	scratch    []uint32
}

func newRankedPart(c *core, p part) *rankedPart {
	r := &rankedPart{
		part: p, ranking: c.ranking, events: c.events, candidates: candidatesOf(c.ranking, c.events, p.Negatives), most: max(1, 3*p.batch/2),
		state: c.remembers(),
	}
	steps := int64(0)
	for i := range p.steps() {
		r.starts = append(r.starts, steps)
		s := p.step(i)
		steps += (r.before(s.To) - r.before(s.From) + r.most - 1) / r.most
		if r.state {
			steps++
		}
	}
	r.starts = append(r.starts, steps)
	return r
}

// before returns the number of pairs of the events before one. Each event has its own pair, the
// pair with the one drawn destination, and its candidates.
func (r *rankedPart) before(event int64) int64 {
	own := event - r.from
	if r.ranking.Given {
		return 2*own + r.events.NegativesBefore(event) - r.events.NegativesBefore(r.from)
	}
	return (2 + int64(r.ranking.Each)) * own
}

// step returns the i-th step.
func (r *rankedPart) step(i int) temporal.Step {
	batch := sort.Search(len(r.starts), func(k int) bool { return r.starts[k] > int64(i) }) - 1
	s := r.part.step(batch)
	lo := r.before(s.From) + (int64(i)-r.starts[batch])*r.most
	hi := min(lo+r.most, r.before(s.To))
	if lo >= hi {
		return temporal.Step{From: s.From, To: s.To, StateOnly: true, Negatives: r.Negatives}
	}
	asks := temporal.Step{From: s.From, To: s.From, Asks: make([]temporal.Ask, 0, hi-lo)}
	if !r.state {
		asks.From, asks.To = r.from, r.from // no event is looked at
	}
	asks.Key = r.Key // of neighbours
	e := r.events
	event := s.From + int64(sort.Search(int(s.To-s.From), func(k int) bool { return r.before(s.From+int64(k)+1) > lo }))
	for ; lo < hi; event++ {
		src, dst := e.Ends(event, event+1)
		at := e.Times(event, event+1)[0]
		pairs := append(r.scratch[:0], uint32(e.Place(dst[0])), r.Of(event, 0))
		pairs = r.candidates(event, pairs)
		r.scratch = pairs
		first := lo - r.before(event)
		for _, v := range pairs[first:min(int64(len(pairs)), first+hi-lo)] {
			asks.Asks = append(asks.Asks, temporal.Ask{Src: src[0], Dst: v, Time: at})
		}
		lo += int64(len(pairs)) - first
	}
	return asks
}

// measureRanked is measure's pass over a part.
func (e *evaluation) measureRanked(ctx context.Context, p part, each func(*scores) error) error {
	var r *rankedPart
	if err := guarded(func() { r = newRankedPart(e.core, p) }); err != nil {
		return err
	}
	batch := scores{from: p.from}
	var now rank    // of the event at hand
	var own float32 // the score of its destination
	event, pair := p.from, int64(0)
	take := func(score float32) error {
		switch {
		case pair == 0:
			own, now = score, rank{}
			batch.positives = append(batch.positives, score)
		case pair == 1:
			batch.negatives = append(batch.negatives, score)
		case score > own:
			now.higher++
		case score == own:
			now.same++
		}
		pair++
		if pair < r.before(event+1)-r.before(event) {
			return nil
		}
		now.of = int(pair - 2)
		batch.ranks = append(batch.ranks, now)
		event, pair = event+1, 0
		if (event-p.from)%p.batch != 0 && event != p.to {
			return nil
		}
		err := each(&batch)
		batch = scores{from: event, positives: batch.positives[:0], negatives: batch.negatives[:0], ranks: batch.ranks[:0]}
		return err
	}
	return e.through(ctx, e.replays, int(r.starts[len(r.starts)-1]), r.step, func(in temporal.Input) error {
		out, err := e.step.Compute(in)
		if err != nil {
			return err
		}
		return store.Guard(func() error {
			for _, score := range out.Positives {
				if err := take(score); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// addTo adds scores to a measure.
func (s *scores) addTo(all *metric.Batches[float32]) {
	all.Add(s.positives, s.negatives)
	for _, r := range s.ranks {
		if r.of > 0 {
			all.Rank(r.higher, r.same)
		}
	}
}
