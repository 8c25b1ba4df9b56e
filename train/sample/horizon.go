package sample

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
)

// A horizon is a group of steps that are drawn together, more than fit in memory. A hop of it has
// two halves.
//
// The first half draws from the lists that are not resident, relation by relation. The lists that
// steps want have been noted as pairs: a node, and the number of the list, counted over the
// horizon. Range by range of nodes the pairs are sorted, the lists are read, and the neighbours
// that each step draws are sent to the part of the step. So the file is read in its order, and each
// list once.
//
// The second half goes part by part: its steps are unpacked, draw from resident lists, get the
// neighbours that were drawn for them, and are finished. Their sources are the next destinations:
// pairs are noted, and the steps are put away, into smaller parts, as they have become larger.
//
// A list that loses edges in a step is sent to it whole, since only the step knows the edges.

// Far reports whether SampleFar can draw with c: it needs a kind that chooses from one list at a
// time, and no weights of edges.
func (c *Config) Far() bool {
	return c.how().own == nil && !c.Weighted
}

// SampleFar draws n batches and calls done with them in order; from gives the batch seed, seeds and
// edges to leave out of each. Batches equal [Sampler.Sample]'s bit for bit, but for the reverse of
// their blocks: it has only its size. Callers pack so many batches, and Unpack makes the reverse.
// Each list that is not resident is read once a hop, however many batches want it; lists that lose
// edges ([Without]), values and rows are read once for each part of the batches, in a pass as
// Sample makes them.
//
// Bytes bounds what it takes: batches of a part half of it, at least one batch, and pairs and
// records a quarter each. What does not fit waits in room. If all fits, room is not used. For each
// range of nodes a buffer of 4 KiB comes on top, and for each part one of 2 KiB a goroutine that
// reads. What is read, and in which passes, depends on the batches and Bytes alone.
//
// from and done are called on this goroutine. What from returns is lent until it is called again;
// done's batch, until done returns. The error is one of Sample's, the room's or done's; then runs
// of the room may have records left. A Config that is not Far panics.
func (s *Sampler) SampleFar(
	ctx context.Context, room Room, n int, from func(i int) (BatchSeed, [][]uint32, []Without), done func(i int, b *Batch) error,
) error {
	if !s.Far() {
		panic("sample: SampleFar: LABOR-*, walks and weighted draws are drawn by Sample")
	}
	if err := s.countLoops(ctx); err != nil {
		return err
	}
	h := horizon{Sampler: s, pool: &recordPool{room: room, left: s.Bytes / 4}, steps: n}
	for i := range s.relations {
		h.all = append(h.all, &s.relations[i])
	}
	if err := h.begin(ctx, from, done); err != nil {
		return err
	}
	for hop := range s.Fanouts {
		h.hop = h.next
		h.prepare(hop + 1)
		h.keepBatches()
		for _, r := range h.all {
			if err := h.read(ctx, r, hop); err != nil {
				return err
			}
		}
		for _, p := range h.hop.parts {
			if err := h.resume(ctx, p, hop, done); err != nil {
				return err
			}
		}
	}
	return nil
}

// errRoom says that a room has changed its records.
var errRoom = errors.New("sample: a run gives records that were not appended to it")

// horizon is the state of a SampleFar.
type horizon struct {
	*Sampler
	pool       *recordPool
	steps      int
	all        []*relation
	batchSeeds []BatchSeed
	hop        stage // the hop that is drawn
	next       stage // the hop that is prepared

	draws   []draws // by step, for the relation that is read
	writers writers
}

// stage holds the notes on a hop that are made before it is drawn.
type stage struct {
	parts  []*part
	partOf []uint32   // by step
	first  [][]uint32 // by relation: each step's first list, and then the number of all lists
	queues []*queue   // by relation
}

// part is a range of steps that are in memory together.
type part struct {
	lo, hi int
	bytes  int64    // estimate for these steps
	steps  *waiting // each a number and a batch
	lists  *waiting // what was drawn for them: see writer
}

// begin makes batches of the seeds of all steps.
func (h *horizon) begin(
	ctx context.Context, from func(i int) (BatchSeed, [][]uint32, []Without), done func(i int, b *Batch) error,
) error {
	h.prepare(0)
	b := h.batches(1)[0]
	for i := range h.steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		batchSeed, seeds, without := from(i)
		h.batchSeeds = append(h.batchSeeds, batchSeed)
		b.Without = resize(b.Without, len(without))
		for r, w := range without {
			own := &b.Without[r]
			own.Start, own.Src = append(own.Start[:0], w.Start...), append(own.Src[:0], w.Src...)
		}
		h.checkWithout(nil, []*Batch{b})
		d := &h.drawers[0]
		d.begin(b, seeds)
		if len(h.Fanouts) == 0 {
			if err := done(i, b); err != nil {
				return err
			}
			continue
		}
		if err := h.admit(b, i, 0); err != nil {
			return err
		}
		if err := h.putAway(d, b, i, 0); err != nil {
			return err
		}
	}
	return nil
}

// batches returns n batches of the sampler's own, which it reuses.
func (s *Sampler) batches(n int) []*Batch {
	for len(s.own) < n {
		s.own = append(s.own, new(Batch))
	}
	return s.own[:n]
}

// keepBatches gives up the sampler's own batches that no part of the hop needs.
func (h *horizon) keepBatches() {
	n := 0
	for _, p := range h.hop.parts {
		n = max(n, p.hi-p.lo)
	}
	n = min(n, len(h.own))
	clear(h.own[n:])
	h.own = h.own[:n]
}

// prepare sets next to an empty stage for a hop.
func (h *horizon) prepare(hop int) {
	h.next = stage{}
	if hop == len(h.Fanouts) {
		return
	}
	drawn := 0
	for _, r := range h.all {
		if h.FanoutOf(hop, r.number) != 0 {
			drawn++
		}
	}
	most := int(h.Bytes / 4 / pairBytes / int64(max(1, drawn)))
	for _, r := range h.all {
		h.next.first = append(h.next.first, append(make([]uint32, 0, h.steps+1), 0))
		q := &queue{recordPool: h.pool, most: max(1, most), nodes: nodeRange{uint64(r.resident), uint64(r.topo.Nodes())}}
		q.total = func() int { return len(q.pairs) * h.steps / max(1, len(h.next.partOf)) }
		h.next.queues = append(h.next.queues, q)
	}
}

// admit notes the lists that b, which is step i, wants at a hop, and puts it into a part. Steps are
// admitted in their order.
func (h *horizon) admit(b *Batch, i, hop int) error {
	layer := &b.Layers[len(b.Layers)-1-hop]
	for _, r := range h.all {
		dst, without := layer.Nodes[r.Dst].destinations(), b.without(r.number)
		first := h.next.first[r.number][i]
		if int64(first)+int64(len(dst)) > math.MaxInt32 {
			return fmt.Errorf("sample: more than 2,147,483,647 lists of a relation at a hop: draw fewer than %d batches together", h.steps)
		}
		h.next.first[r.number] = append(h.next.first[r.number], first+uint32(len(dst)))
		if h.FanoutOf(hop, r.number) == 0 {
			continue
		}
		q := h.next.queues[r.number]
		for n, v := range dst {
			if v < r.resident {
				continue
			}
			list := first + uint32(n)
			if len(without.Of(n)) > 0 {
				list |= wholeList
			}
			if err := q.add(pair(v)<<32 | pair(list)); err != nil {
				return err
			}
		}
	}
	bytes, last := h.bytesAt(b, hop), len(h.next.parts)-1
	if last < 0 || h.next.parts[last].bytes+bytes > h.Bytes/2 {
		h.next.parts = append(h.next.parts, &part{lo: i, steps: h.pool.newRun(), lists: h.pool.newRun()})
		last++
	}
	p := h.next.parts[last]
	p.hi, p.bytes = i+1, p.bytes+bytes
	h.next.partOf = append(h.next.partOf, uint32(last))
	return nil
}

// bytesAt estimates the bytes of b once a hop is drawn. It is too high where lists are shorter than
// the fanout.
func (h *horizon) bytesAt(b *Batch, hop int) int64 {
	at, last := len(b.Layers)-1-hop, hop == len(h.Fanouts)-1
	words := 0
	for _, w := range b.Without {
		words += len(w.Start) + len(w.Src)
	}
	for l := at; l < len(b.Layers); l++ {
		for t := range b.Layers[l].Nodes {
			words += len(b.Layers[l].Nodes[t].Src)
		}
	}
	for _, r := range h.all {
		for l := at + 1; l < len(b.Layers); l++ {
			k := &b.Layers[l].Blocks[r.number]
			words += len(k.Start) + len(k.End) + len(k.Nbr) + len(k.Weight) + len(k.places)
			if last { // they have their reverse
				words += 2*len(k.Nbr) + len(b.Layers[l].Nodes[r.Src].Src)
			}
		}
		dst, k, edges := b.Layers[at].Nodes[r.Dst].destinations(), h.FanoutOf(hop, r.number), 0
		if k == All {
			for _, v := range dst {
				edges += r.topo.Degree(v)
			}
		} else {
			edges = len(dst) * h.room(math.MaxInt, k)
		}
		each := 2 // a neighbour, and a source
		if h.GCN {
			each++
		}
		if r.brings() {
			each++
		}
		if last {
			each += r.columns
			if r.rows != nil {
				each += 2
			}
		}
		words += 2*len(dst) + edges*each + int(h.heldBytes(r, b, dst)/4)
	}
	return 4 * int64(withSpare(words))
}

// putAway packs b, which is step i with so many hops drawn, into its next part.
func (h *horizon) putAway(d *drawer, b *Batch, i, hops int) error {
	d.bytes = h.pack(appendWord(d.bytes[:0], i), b, hops)
	return h.next.parts[h.next.partOf[i]].steps.append(d.bytes)
}

// resume draws a hop of the steps of p, and calls done with them if it is the last.
func (h *horizon) resume(ctx context.Context, p *part, hop int, done func(i int, b *Batch) error) error {
	batches := h.batches(p.hi - p.lo)
	if err := h.takeUp(ctx, p, batches, hop); err != nil {
		return err
	}
	jobs, n := h.Sampler.begin(h.all, batches, h.batchSeeds[p.lo:p.hi], hop), len(batches)
	for k := range h.all {
		of := jobs[k*n : (k+1)*n]
		hits, misses, err := h.Sampler.all(ctx, of, func(d *drawer, j *job) (hits, misses int, err error) { return d.fill(ctx, j) })
		if err != nil {
			return err
		}
		for i := range of {
			misses += int64(len(of[i].held))
			of[i].makeHeld(false)
		}
		of[0].topo.Count(hits, misses)
	}
	err := p.lists.each(ctx, h.Sampler, func(packets []byte) error { return h.place(p, jobs, packets) })
	if err == nil {
		err = h.each(ctx, len(jobs), func(d *drawer, i int) error { return d.chooseHeld(&jobs[i]) })
	}
	if err != nil {
		return err
	}
	if hop < len(h.Fanouts)-1 {
		return h.descend(ctx, p, batches, hop)
	}
	err = h.each(ctx, n, func(d *drawer, i int) error {
		err := d.join(batches[i], hop)
		for l := 0; l < len(batches[i].Layers) && err == nil; l++ {
			d.reverseRoom(&d.schema, batches[i], l)
		}
		return err
	})
	if err == nil {
		err = h.bring(ctx, batches)
	}
	for i := 0; i < n && err == nil; i++ {
		err = done(p.lo+i, batches[i])
	}
	return err
}

// takeUp unpacks the steps of p, as they were put away, into batches.
func (h *horizon) takeUp(ctx context.Context, p *part, batches []*Batch, hop int) error {
	var came atomic.Int64
	taken := make([]atomic.Bool, len(batches)) // a damaged record may name another step
	err := p.steps.each(ctx, h.Sampler, func(records []byte) error {
		for len(records) > 0 {
			u := unpacker{src: records}
			i := u.word()
			if i < p.lo || i >= p.hi || taken[i-p.lo].Swap(true) {
				return errRoom
			}
			hops, rest, err := h.unpack(batches[i-p.lo], u.src)
			if err != nil || hops != hop {
				return errRoom
			}
			records = rest
			came.Add(1)
		}
		return nil
	})
	if err == nil && came.Load() != int64(len(batches)) {
		err = errRoom
	}
	for i := range h.drawers {
		h.drawers[i].last = finished{} // these batches held other steps
	}
	return err
}

// descend finishes a hop of batches, which are the steps of p, and notes their next hop.
func (h *horizon) descend(ctx context.Context, p *part, batches []*Batch, hop int) error {
	err := h.each(ctx, len(batches), func(d *drawer, i int) error {
		err := d.join(batches[i], hop)
		if err == nil {
			d.descend(batches[i], hop)
		}
		return err
	})
	for i := 0; i < len(batches) && err == nil; i++ {
		if err = ctx.Err(); err == nil {
			err = h.admit(batches[i], p.lo+i, hop+1)
		}
	}
	if err != nil {
		return err
	}
	return h.each(ctx, len(batches), func(d *drawer, i int) error { return h.putAway(d, batches[i], p.lo+i, hop+1) })
}
