package sample

import (
	"context"
	"encoding/binary"
	"math/bits"
	"sync"
)

// queue holds, as pairs, the lists of one relation that are not resident and that the steps of a
// horizon want at a hop. Pairs are in memory until they are too many. Then they go to runs by
// ranges of nodes; each range should have few enough for memory.
type queue struct {
	*recordPool
	nodes nodeRange
	most  int // pairs in memory
	pairs []pair
	// total estimates the number of all pairs. It is called when memory is full.
	total func() int

	runs   []*waiting // by range; nil while all are in memory
	ranges []nodeRange
	full   [][]pair // pairs for a run that are not appended yet
	rangeOf
}

// rangeOf finds the range of a node, by its first bits.
type rangeOf struct {
	shift int
	table []uint8
}

const (
	// maxRanges is the most ranges that pairs are split into at a time. Each has a run, and the
	// room may keep a buffer for it.
	maxRanges = 128
	// pairsAtOnce are appended to a run together.
	pairsAtOnce = 512
)

// add adds a pair.
func (q *queue) add(p pair) error {
	if q.runs == nil {
		if len(q.pairs) < q.most || q.nodes.hi-q.nodes.lo <= 1 {
			q.pairs = append(q.pairs, p)
			return nil
		}
		if err := q.part(); err != nil {
			return err
		}
	}
	return q.put(p)
}

// put adds a pair to the run of its range.
func (q *queue) put(p pair) error {
	k := q.table[(uint64(p.node())-q.nodes.lo)>>q.shift]
	q.full[k] = append(q.full[k], p)
	if len(q.full[k]) < pairsAtOnce {
		return nil
	}
	return q.flush(int(k))
}

func (q *queue) flush(k int) error {
	err := q.runs[k].append(bytesOf(q.full[k]))
	q.full[k] = q.full[k][:0]
	return err
}

// part cuts the nodes into ranges, and moves the pairs in memory to the runs of their ranges.
func (q *queue) part() error {
	q.cut()
	for range q.ranges {
		q.runs, q.full = append(q.runs, q.newRun()), append(q.full, make([]pair, 0, pairsAtOnce))
	}
	pairs := q.pairs
	q.pairs = nil
	for _, p := range pairs {
		if err := q.put(p); err != nil {
			return err
		}
	}
	q.pairs = pairs[:0]
	return nil
}

// cut sets ranges. By the pairs in memory, each range gets about as many, and fewer than fit in
// memory; without pairs, each gets as many nodes. There are at least two ranges, so that splitting
// again comes to an end.
func (q *queue) cut() {
	const countBits = 16
	width := q.nodes.hi - q.nodes.lo
	q.shift = max(0, bits.Len64(width-1)-countBits)
	counts, all := make([]int, (width-1)>>q.shift+1), len(q.pairs)
	for _, p := range q.pairs {
		counts[(uint64(p.node())-q.nodes.lo)>>q.shift]++
	}
	if all == 0 {
		for c := range counts {
			counts[c] = 1
		}
		all = len(counts)
	}
	most := max(1, q.most*3/4) // later pairs may lie elsewhere
	share := all / min(max(2, q.total()/most+1), maxRanges)
	q.table = make([]uint8, len(counts))
	n, begin := 0, 0
	for c, count := range counts {
		if c > begin && n+count > share && len(q.ranges) < maxRanges-1 {
			q.ranges = append(q.ranges, nodeRange{q.nodes.lo + uint64(begin)<<q.shift, q.nodes.lo + uint64(c)<<q.shift})
			n, begin = 0, c
		}
		n += count
		q.table[c] = uint8(len(q.ranges))
	}
	q.ranges = append(q.ranges, nodeRange{q.nodes.lo + uint64(begin)<<q.shift, q.nodes.hi})
}

// each calls pass with all pairs of range after range, in the order of nodes, and leaves the queue
// empty. Pairs are lent until pass returns.
func (q *queue) each(ctx context.Context, s *Sampler, pass func(r nodeRange, pairs []pair) error) error {
	if q.runs == nil {
		if len(q.pairs) == 0 {
			return nil
		}
		return pass(q.nodes, q.pairs)
	}
	for k, r := range q.ranges {
		if err := q.flush(k); err != nil {
			return err
		}
		total := int(q.runs[k].bytes / 8)
		sub := queue{recordPool: q.recordPool, nodes: r, most: q.most, pairs: q.pairs[:0], total: func() int { return total }}
		if total > q.most && r.hi-r.lo > 1 { // not by the pairs that come first, since the room decides which come first
			if err := sub.part(); err != nil {
				return err
			}
		}
		var mu sync.Mutex
		err := q.runs[k].each(ctx, s, func(records []byte) error {
			mu.Lock()
			defer mu.Unlock()
			for ; len(records) >= 8; records = records[8:] {
				p := pair(binary.NativeEndian.Uint64(records))
				if v := uint64(p.node()); v < r.lo || v >= r.hi {
					return errRoom
				}
				if err := sub.add(p); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			err = sub.each(ctx, s, pass)
		}
		if err != nil {
			return err
		}
		q.pairs = sub.pairs
	}
	return nil
}
