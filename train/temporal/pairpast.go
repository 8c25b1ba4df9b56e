package temporal

import (
	"context"
	"fmt"
	"math"
	"math/bits"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// PairColumns is the number of pair features: whether the pair had an event (from the same source
// to the same destination), the time since the last one, the number of them, and the same three for
// its destination. They count all events before the batch, including events of the same time. A
// time becomes log(1+t)/10, and a count log(1+n)/10. The scores of [Heuristics] know the same, and
// the events of the batch as well.
const PairColumns = 6

// CountPairs counts the different pairs of source and destination among all events. Its tables take
// at most limit bytes, so it may read the events several times.
func CountPairs(ctx context.Context, e *store.Events, limit int64) (n int64, err error) {
	if err := numbered(e); err != nil {
		return 0, err
	}
	err = store.Guard(func() error {
		for parts := uint64(1); ; parts *= 2 {
			n = 0
			fits := true
			for part := uint64(0); part < parts && fits; part++ {
				if fits, err = countPart(ctx, e, limit, part, parts, &n); err != nil {
					return err
				}
			}
			if fits {
				return nil
			}
		}
	})
	return n, err
}

// countPart adds the pairs of one part to n; a pair's hash decides its part. It returns false if
// they exceed the limit.
func countPart(ctx context.Context, e *store.Events, limit int64, part, parts uint64, n *int64) (fits bool, err error) {
	p := pairs{limit: limit}
	defer p.close()
	for lo := int64(0); lo < e.Len(); lo += scan {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		src, dst := e.Ends(lo, min(lo+scan, e.Len()))
		for i := range src {
			pair := pairOf(src[i], dst[i])
			if sample.Fold(1, pair)%parts != part {
				continue
			}
			if ok, err := p.set(pair, 1); !ok || err != nil {
				return false, err
			}
		}
	}
	*n += int64(p.used)
	return true, nil
}

// PairBytes is the memory that a Sampler takes for this many different pairs of a stream.
func PairBytes(e *store.Events, pairs int64) int64 {
	return pastBytes*pairSlots(pairs) + destinationBytes*e.Destinations
}

const (
	pastBytes        = 20 // a slot: the pair, the time of its last event, and how many it had
	destinationBytes = 12 // the same without the pair
)

// pairSlots adds a third of free slots, so that a pair is found after few probes.
func pairSlots(pairs int64) int64 { return pairs + pairs/3 + 1 }

// pairPast has the counts and times of pairs and destinations over the events before one. It
// depends on the stream and that event alone, and a scan makes it again, so checkpoints do not need
// it.
type pairPast struct {
	memory *kernels.HostBuf
	done   int64 // events counted so far

	keys    []uint64 // by slot; a slot is free if its count is 0
	last    []float64
	counts  []uint32
	lastOf  []float64 // by destination
	countOf []uint32
}

// open allocates room for the pairs.
func (p *pairPast) open(e *store.Events, pairs int64) (err error) {
	slots, nodes := pairSlots(pairs), e.Destinations
	if p.memory, err = kernels.NewHostBuf(int((PairBytes(e, pairs) + 7) &^ 7)); err != nil {
		return fmt.Errorf("what is known of %d pairs: %w", pairs, err)
	}
	words, numbers, all := p.memory.Uint64s(), p.memory.Float64s(), p.memory.Uint32s()
	p.keys, p.last, p.lastOf = words[:slots], numbers[slots:2*slots], numbers[2*slots:2*slots+nodes]
	rest := all[2*(2*slots+nodes):]
	p.counts, p.countOf = rest[:slots], rest[slots:slots+nodes]
	return nil
}

func (p *pairPast) close() {
	if p.memory != nil {
		p.memory.Close()
		*p = pairPast{}
	}
}

// find returns the slot of a pair, or the free slot where it belongs.
func (p *pairPast) find(pair uint64) int {
	high, _ := bits.Mul64(sample.Fold(0, pair), uint64(len(p.keys)))
	at := int(high)
	for p.counts[at] != 0 && p.keys[at] != pair {
		if at++; at == len(p.keys) {
			at = 0
		}
	}
	return at
}

// seek counts the events before event, and no others. scaled scales a time as batches do.
func (p *pairPast) seek(ctx context.Context, e *store.Events, event int64, scaled func(t float64) float64) error {
	if event < p.done {
		clear(p.counts) // in a free slot, nothing else is read
		clear(p.countOf)
		p.done = 0
	}
	return eachScan(ctx, &p.done, event, func(lo, hi int64) error {
		src, dst := e.Ends(lo, hi)
		for i, t := range e.Times(lo, hi) {
			v, now := dst[i], scaled(t)
			at := p.find(pairOf(src[i], v))
			p.keys[at], p.last[at], p.lastOf[v] = pairOf(src[i], v), now, now
			// counts stay at the largest number
			p.counts[at], p.countOf[v] = max(p.counts[at]+1, p.counts[at]), max(p.countOf[v]+1, p.countOf[v])
		}
		return nil
	})
}

// append appends the features of a pair at time t. The source may be a node that is no event's
// source.
func (p *pairPast) append(columns []float32, src, dst uint32, t float64) []float32 {
	at := p.find(pairOf(src, dst))
	columns = appendPast(columns, p.counts[at], t-p.last[at])
	return appendPast(columns, p.countOf[dst], t-p.lastOf[dst])
}

// appendPast appends three of the PairColumns.
func appendPast(columns []float32, count uint32, since float64) []float32 {
	if count == 0 {
		return append(columns, 0, 0, 0)
	}
	return append(columns, 1, float32(math.Log1p(max(since, 0))/10), float32(math.Log1p(float64(count))/10))
}

// OpenPairs makes room for this many different pairs, which CountPairs counts. Before that, a
// Sampler with SamplerOptions.Pairs knows of no events.
func (s *Sampler) OpenPairs(pairs int64) error {
	if !s.options.Pairs || s.past.memory != nil {
		return nil
	}
	s.next = -1
	return s.past.open(s.events, pairs)
}

// know fills in the pair features of the pairs that batches score.
func (s *Sampler) know(ctx context.Context, steps []Step, into []*Batch) error {
	for i, b := range into {
		pairs := len(b.Src) + len(b.Negatives)
		if pairs > 0 && s.past.memory != nil {
			if err := s.past.seek(ctx, s.events, steps[i].From, s.scaled); err != nil {
				return err
			}
		}
		place := func(root uint32) uint32 { return b.Nodes[b.RowNode[b.Roots[root]]] }
		for k := range pairs {
			src, dst := 0, uint32(0)
			if src = k; k < len(b.Src) {
				dst = b.Dst[k]
			} else {
				src, dst = (k-len(b.Src))/b.Each, b.Negatives[k-len(b.Src)]
			}
			u, v, t := place(b.Src[src]), place(dst), b.RowTime[b.Roots[b.Src[src]]]
			if s.past.memory == nil || v < s.firstDst { // no event has this destination
				b.Pairs = append(b.Pairs, make([]float32, PairColumns)...)
				continue
			}
			b.Pairs = s.past.append(b.Pairs, u, v-s.firstDst, t)
		}
		b.size()
	}
	return nil
}
