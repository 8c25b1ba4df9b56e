package temporal

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/metric"
)

// Heuristic scores a pair of nodes by its past events, without a network: what a network has to
// beat. A higher score says that an event of the pair is likelier.
type Heuristic int

const (
	PairSeen         Heuristic = iota // whether the pair had an event, from the same source to the same destination (EdgeBank, arXiv 2207.10128)
	PairTime                          // when its last one was
	DestinationTime                   // when the destination was one last
	DestinationCount                  // how many events the destination was one of
	heuristics                        // their number
)

// Heuristics are all of them.
var Heuristics = []Heuristic{PairSeen, PairTime, DestinationTime, DestinationCount}

// String is the name in results.
func (h Heuristic) String() string {
	return [heuristics]string{"pair_seen", "pair_time", "destination_time", "destination_count"}[h]
}

// Baselines measures all heuristics on steps of a stream, from the first to the last. Event after
// event, it scores the event and its negatives by all events of smaller numbers, including events
// of the same time, and then counts the event in.
//
// Memory: 8 bytes a node outside the Go heap, and the table of pairs; for each scored event and
// each of its negatives 16 bytes, and as many again for an event with a new node, and for a rank
// likewise, up to twice that while lists grow. One goroutine uses it.
type Baselines struct {
	// Candidates, where it is set, appends the places that an event's destination is ranked among
	// to into: metric.Batched.MRR is over them.
	Candidates func(event int64, into []uint32) []uint32

	e    *store.Events
	past past
	next int64 // the event that comes next
	all  [heuristics]scored
	new  [heuristics]scored // of events with a new node

	candidates []uint32 // of the event at hand
}

// NewBaselines begins before the first event. Where the pairs that have had an event take more than
// pairBytes, heuristics of pairs are left out from then on. Close it.
func NewBaselines(e *store.Events, pairBytes int64) (*Baselines, error) {
	if err := numbered(e); err != nil {
		return nil, err
	}
	b := &Baselines{e: e}
	if err := b.past.open(e.Places(), pairBytes); err != nil {
		return nil, err
	}
	return b, nil
}

// Close gives up the memory outside the Go heap.
func (b *Baselines) Close() { b.past.close() }

// Score is for a step that is behind those before it; the events between are counted in. The step
// has a negative of each event, and events. Where isNew is there, it says of each event whether one
// of its nodes is new, as one that had no event in training.
func (b *Baselines) Score(ctx context.Context, p *Step, isNew []bool) error {
	if p.From < b.next || p.To <= p.From || p.Each < 1 || isNew != nil && int64(len(isNew)) != p.To-p.From {
		panic(fmt.Sprintf("temporal: events %d to %d with %d negatives each and %d marks, behind event %d", p.From, p.To, p.Each, len(isNew), b.next))
	}
	err := store.Guard(func() error {
		if err := b.take(ctx, p.From, func(int64, uint32, uint32) {}); err != nil {
			return err
		}
		return b.take(ctx, p.To, func(event int64, src, dst uint32) {
			ofNew := isNew != nil && isNew[event-p.From]
			b.score(src, dst, true, ofNew)
			for j := range p.Each {
				b.score(src, p.Of(event, j), false, ofNew)
			}
			if b.Candidates != nil {
				b.rank(event, src, dst, ofNew)
			}
		})
	})
	for h := range heuristics {
		if b.leftOut(h) {
			b.all[h], b.new[h] = scored{}, scored{}
			continue
		}
		b.all[h].end()
		b.new[h].end()
	}
	return err
}

// score scores a pair by what has been.
func (b *Baselines) score(src, dst uint32, positive, ofNew bool) {
	for h, score := range b.past.scores(src, dst) {
		b.all[h].add(score, positive)
		if ofNew {
			b.new[h].add(score, positive)
		}
	}
}

// rank ranks the destination of an event among its candidates, if there are any.
func (b *Baselines) rank(event int64, src, dst uint32, ofNew bool) {
	if b.candidates = b.Candidates(event, b.candidates[:0]); len(b.candidates) == 0 {
		return
	}
	own := b.past.scores(src, dst)
	var higher, same [heuristics]int
	for _, other := range b.candidates {
		for h, score := range b.past.scores(src, other) {
			switch {
			case score > own[h]:
				higher[h]++
			case score == own[h]:
				same[h]++
			}
		}
	}
	for h := range b.all {
		b.all[h].batches.Rank(higher[h], same[h])
		if ofNew {
			b.new[h].batches.Rank(higher[h], same[h])
		}
	}
}

// take counts in the events up to to-1, each after visit saw the places of its ends.
func (b *Baselines) take(ctx context.Context, to int64, visit func(event int64, src, dst uint32)) error {
	return eachScan(ctx, &b.next, to, func(lo, hi int64) error {
		src, dst := b.e.Ends(lo, hi)
		for i, time := range b.e.Times(lo, hi) {
			u, v := src[i], uint32(b.e.Place(dst[i]))
			visit(lo+int64(i), u, v)
			if err := b.past.add(u, v, time); err != nil {
				return err
			}
		}
		return nil
	})
}

// Value measures heuristic h on all scored events, and on those with a new node. It is not ok where
// pairs took too much memory.
func (b *Baselines) Value(h Heuristic) (all, ofNew metric.Batched, ok bool) {
	all, _ = b.all[h].batches.Value() // without scored events: zeros
	ofNew, _ = b.new[h].batches.Value()
	return all, ofNew, !b.leftOut(h)
}

func (b *Baselines) leftOut(h Heuristic) bool {
	return b.past.full && (h == PairSeen || h == PairTime)
}

// scored is the scores of one heuristic.
type scored struct {
	positive, negative []uint32 // of the batch at hand
	batches            metric.Batches[uint32]
}

func (s *scored) add(score uint32, positive bool) {
	if positive {
		s.positive = append(s.positive, score)
	} else {
		s.negative = append(s.negative, score)
	}
}

// end ends the batch.
func (s *scored) end() {
	s.batches.Add(s.positive, s.negative)
	s.positive, s.negative = s.positive[:0], s.negative[:0]
}

// past is the state of the heuristics: the events up to now. It stores a time as its rank among the
// different times, from 1. Ranks compare as times do, exactly, and take 4 bytes.
type past struct {
	buf   *kernels.HostBuf
	last  []uint32 // by destination: the time of its last event; 0: none
	count []uint32 // its events
	pairs pairs    // the time of the last one
	full  bool     // there is no room for all pairs, and so there is none

	now  uint32
	time float64
}

func (p *past) open(places, pairBytes int64) (err error) {
	if p.buf, err = kernels.NewHostBuf(int(8 * places)); err != nil {
		return err
	}
	all := p.buf.Uint32s()
	p.last, p.count, p.pairs.limit = all[:places], all[places:], pairBytes
	return nil
}

func (p *past) close() {
	p.buf.Close()
	p.pairs.close()
}

// scores returns the scores of a pair now, by heuristic.
func (p *past) scores(src, dst uint32) [heuristics]uint32 {
	time := p.pairs.get(pairOf(src, dst))
	return [heuristics]uint32{PairSeen: min(time, 1), PairTime: time, DestinationTime: p.last[dst], DestinationCount: p.count[dst]}
}

// add counts in an event.
func (p *past) add(src, dst uint32, time float64) error {
	if p.now == 0 || time != p.time {
		p.now, p.time = p.now+1, time
	}
	p.last[dst] = p.now
	p.count[dst]++
	if p.full {
		return nil
	}
	ok, err := p.pairs.set(pairOf(src, dst), p.now)
	if !ok {
		p.full = true
		p.pairs.close()
	}
	return err
}
