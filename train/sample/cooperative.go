package sample

import (
	"context"
	"fmt"
	"slices"
)

// Halo lists the rows that workers exchange between two layers, where each worker computes the
// nodes that it owns. A layer reads sources of other owners, too; their rows come from these
// workers. Lists are by type.
type Halo struct {
	// Own[t] has the places of the worker's own nodes among the sources. Row i of the layer below
	// is the row of source Own[t][i]. The layer below may compute more rows, which only others
	// read.
	Own [][]uint32
	// Send[t][q] has the rows of the layer below that go to worker q.
	Send [][][]uint32
	// Take[t][q] has the places of the sources whose rows come from worker q, in the order in which
	// q sends them.
	Take [][][]uint32
}

// begin empties h.
func (h *Halo) begin(types, workers int) {
	if len(h.Own) != types || types > 0 && len(h.Take[0]) != workers {
		*h = Halo{make([][]uint32, types), make([][][]uint32, types), make([][][]uint32, types)}
		for t := range h.Own {
			h.Send[t], h.Take[t] = make([][]uint32, workers), make([][]uint32, workers)
		}
	}
	for t := range h.Own {
		h.Own[t] = h.Own[t][:0]
		for q := range workers {
			h.Send[t][q], h.Take[t][q] = nil, h.Take[t][q][:0]
		}
	}
}

// len returns the numbers in h.
func (h *Halo) len() (n int) {
	for t := range h.Own {
		n += len(h.Own[t])
		for q := range h.Send[t] {
			n += len(h.Send[t][q]) + len(h.Take[t][q])
		}
	}
	return n
}

// SampleCooperative draws one batch of the seeds of all workers, in which each node is drawn from,
// and computed, by its owner alone: cooperative minibatching (Balin et al., algorithm 1). All
// workers call it at the same time, with the same number of batches, and the same batch seeds. It
// panics if the sampler compares lists or walks.
//
// After each hop but the last, a worker asks the owners of its sources to draw from them. So the
// destinations of a hop are the worker's own nodes: the ones that it has found, and then the ones
// that workers 0, 1, and so on ask for. Together the batches of all workers have the lists of the
// batch that [Sampler.Sample] draws for all seeds, each list once. The rows that the first layer
// reads come from their owners, as [Batch.Dealt] says. The rows between layers come as
// [Batch.Halos] says.
//
// A seed's owner draws without all edges that any worker leaves out of the seed's list.
func (s *Sampler) SampleCooperative(
	ctx context.Context, p *Parts, batches []*Batch, batchSeeds []BatchSeed, seeds [][][]uint32,
) error {
	s.checkParts(nil, batches)
	if err := s.countLoops(ctx); err != nil { // of its own nodes
		return err
	}
	for i := range s.drawers {
		s.drawers[i].last = finished{}
	}
	for i, b := range batches {
		s.drawers[0].begin(b, seeds[i])
		b.halos = resize(b.halos, len(s.Fanouts)+1)
		for l := range b.halos {
			b.halos[l].begin(len(s.schema.Types), p.Workers)
		}
	}
	if err := s.askSeeds(ctx, p, batches, batchSeeds, seeds); err != nil {
		return err
	}
	for hop := range s.Fanouts {
		if err := s.drawHop(ctx, batches, batchSeeds, hop); err != nil {
			return err
		}
		err := s.each(ctx, len(batches), func(d *drawer, i int) error {
			later := d.later
			d.later = true // other workers know the degrees
			// The indexes hold this hop's sources. The next hop has other destinations.
			defer func() { d.later, d.last = later, finished{} }()
			return d.finish(batches[i], hop)
		})
		if err == nil && hop < len(s.Fanouts)-1 {
			err = s.askSources(ctx, p, batches, hop)
		}
		if err != nil {
			return err
		}
	}
	if err := s.bring(ctx, batches); err != nil {
		return err
	}
	if s.GCN {
		if err := s.normalizeAll(ctx, p, batches); err != nil {
			return err
		}
	}
	return s.deal(ctx, p, batches)
}

// allTypes marks all types.
func (s *Sampler) allTypes() []bool { return slices.Repeat([]bool{true}, len(s.schema.Types)) }

// askSeeds gives each batch the seeds that this worker owns of all workers' seeds.
func (s *Sampler) askSeeds(
	ctx context.Context, p *Parts, batches []*Batch, batchSeeds []BatchSeed, seeds [][][]uint32,
) error {
	asked, err := s.ask(ctx, p, batches, batchSeeds, s.allTypes(), func(b *Batch, t int) []uint32 { return b.Seeds[t] })
	if err != nil {
		return err
	}
	return s.each(ctx, len(batches), func(d *drawer, i int) error {
		b, h := batches[i], &batches[i].halos[len(s.Fanouts)]
		own := make([][]uint32, len(s.schema.Types))
		for t := range own {
			own[t] = d.merge(p, h, t, i, asked, seeds[i][t])
		}
		for q := range asked {
			if asked[q][i].batchSeed != batchSeeds[i] {
				return fmt.Errorf("worker %d draws a batch from another batch seed than worker %d", q, p.Rank)
			}
		}
		left := s.mergeWithout(i, asked)
		b.asked = resize(b.asked, len(own))
		for t := range own {
			b.asked[t] = append(b.asked[t][:0], seeds[i][t]...)
		}
		d.begin(b, own)
		b.Without, b.expanded = left, true
		return nil
	})
}

// askSources asks the owners of the sources of a hop to draw from them, and makes the nodes that
// this worker is asked for the destinations of the next hop.
func (s *Sampler) askSources(ctx context.Context, p *Parts, batches []*Batch, hop int) error {
	at := len(s.Fanouts) - 1 - hop
	found := func(b *Batch, t int) []uint32 { return b.Layers[at].Nodes[t].Src }
	asked, err := s.ask(ctx, p, batches, nil, s.allTypes(), found)
	if err != nil {
		return err
	}
	return s.each(ctx, len(batches), func(d *drawer, i int) error {
		for t := range s.schema.Types {
			own := d.merge(p, &batches[i].halos[at], t, i, asked, found(batches[i], t))
			batches[i].Layers[at-1].Nodes[t].start(own)
		}
		return nil
	})
}

// merge returns the nodes of type t that workers ask this one for, in batch i: first what it asks
// itself for, then what others ask for, in the order of workers. sources are all nodes that this
// worker asks for. merge fills h with the rows to exchange. It turns the nodes in asked into places
// in the result.
func (d *drawer) merge(p *Parts, h *Halo, t, i int, asked [][]request, sources []uint32) (own []uint32) {
	d.last = finished{} // its indexes are used here
	numbers := &d.indexes[t]
	numbers.begin(nil)
	own, _ = numbers.number(asked[p.Rank][i].nodes[t], nil) // ask has checked that these nodes exist
	for q := range asked {
		if q != p.Rank {
			own, _ = numbers.number(asked[q][i].nodes[t], own)
			h.Send[t][q] = asked[q][i].nodes[t]
		}
	}
	for n, v := range sources {
		if q := p.Owner(t, v); q == p.Rank {
			h.Own[t] = append(h.Own[t], uint32(n))
		} else {
			h.Take[t][q] = append(h.Take[t][q], uint32(n))
		}
	}
	return own
}

// mergeWithout returns the edges to this worker's own seeds that any worker leaves out of batch i.
// merge has turned the nodes in asked into places of these seeds.
func (s *Sampler) mergeWithout(i int, asked [][]request) []Without {
	var all []Without
	for r, ends := range s.schema.Relations {
		var pairs []uint64
		seeds := 0
		for q := range asked {
			a := &asked[q][i]
			if a.without == nil {
				continue
			}
			for n, seed := range a.nodes[ends.Dst] {
				for _, u := range a.without[r].Of(n) {
					pairs = append(pairs, uint64(seed)<<32|uint64(u))
					seeds = max(seeds, int(seed)+1)
				}
			}
		}
		if len(pairs) > 0 && all == nil {
			all = make([]Without, len(s.schema.Relations))
		}
		if len(pairs) > 0 {
			all[r].Fill(seeds, pairs)
		}
	}
	return all
}

// leftOut counts the edges that are left out of a seed's list, and the self loops among them.
type leftOut struct{ edges, selves int }

// leftOut returns the seeds of a cooperative batch that lose edges of the first relation.
func (s *Sampler) leftOut(b *Batch) map[uint32]leftOut {
	if b.halos == nil || len(b.Without) == 0 {
		return nil
	}
	all := map[uint32]leftOut{}
	for l := range b.Layers {
		block, nodes := &b.Layers[l].Blocks[0], &b.Layers[l].Nodes[s.relations[0].Dst]
		for n, edges := range block.lost {
			if v := nodes.Src[n]; edges > 0 {
				left := leftOut{edges: int(edges)}
				if slices.Contains(b.Without[0].Of(n), v) {
					_, left.selves = s.drawers[0].degree(n, v)
				}
				all[v] = left
			}
		}
	}
	return all
}
