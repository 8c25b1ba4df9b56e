package sample

import (
	"context"
	"fmt"
	"slices"
)

// Halo lists the rows that workers exchange between two layers. Each worker has the rows of the
// nodes that it owns. Its next layer also reads nodes of other workers, which send their rows.
type Halo struct {
	// Live[t] lists this worker's own nodes of type t whose rows some worker reads. First come the
	// nodes that this worker reads itself, then those that workers 0, 1, and so on ask for. The row
	// of Live[t][i] is destination i of the layer below. With an [Expander], Frontier.Origin[i]
	// has the place of the row.
	Live [][]uint32
	// Own[t][i] is the place of Live[t][i] among the sources of this worker's layer. Own[t] ends
	// where the nodes begin that only other workers read.
	Own [][]uint32
	// Send[t][q] has the rows that go to worker q, as places in Live[t].
	Send [][][]uint32
	// Take[t][q] has the rows that come from worker q, in the order in which q sends them, as
	// places among the sources of this worker's layer.
	Take [][][]uint32
}

// begin empties h.
func (h *Halo) begin(types, workers int) {
	if len(h.Own) != types || types > 0 && len(h.Take[0]) != workers {
		*h = Halo{Live: make([][]uint32, types), Own: make([][]uint32, types)}
		h.Send, h.Take = make([][][]uint32, types), make([][][]uint32, types)
		for t := range h.Own {
			h.Send[t], h.Take[t] = make([][]uint32, workers), make([][]uint32, workers)
		}
	}
	for t := range h.Own {
		h.Live[t], h.Own[t] = h.Live[t][:0], h.Own[t][:0]
		for q := range workers {
			h.Send[t][q], h.Take[t][q] = nil, h.Take[t][q][:0]
		}
	}
}

// len counts the numbers in h.
func (h *Halo) len() (n int) {
	for t := range h.Own {
		n += len(h.Live[t]) + len(h.Own[t])
		for q := range h.Send[t] {
			n += len(h.Send[t][q]) + len(h.Take[t][q])
		}
	}
	return n
}

// Live returns the nodes of type t whose rows this worker has before layer l, from 1 on, reads
// them: Halos()[l].Live[t] in a cooperative batch, else the sources of layer l.
func (b *Batch) Live(l, t int) []uint32 {
	if b.halos != nil {
		return b.halos[l].Live[t]
	}
	return b.Layers[l].Nodes[t].Src
}

// SampleCooperative draws batches of the seeds of all workers. Only a node's owner draws its
// neighbours and computes its row: cooperative minibatching (Balin et al., algorithm 1). All
// workers call it at the same time, with the same number of batches and the same batch seeds. It
// panics if the sampler walks. By LABOR-* each worker finds the probabilities for its own nodes.
//
// After each hop but the last, a worker asks the owners of its sources to draw from them. So at
// each hop a worker draws from its own nodes: first those that it has found itself, then those that
// workers 0, 1, and so on ask for. Together, the workers' batches have the lists of the batch that
// [Sampler.Sample] draws for all seeds, each list once. By LABOR-* the lists differ.
//
// The rows that the first layer reads come from their owners: see [Batch.Dealt]. The rows between
// layers do as well: see [Batch.Halos].
//
// Either all workers have an [Expander], or none has. After each hop but the last, e gets this
// worker's own nodes that some worker has found, and chooses the ones to draw from. The owner takes
// the rows of the others from its slots, and sends them to the workers that read them.
//
// If a worker leaves edges out of a seed's list, the seed's owner leaves them out for all workers.
func (s *Sampler) SampleCooperative(
	ctx context.Context, p *Parts, e Expander, batches []*Batch, batchSeeds []BatchSeed, seeds [][][]uint32,
) error {
	if s.how().walks {
		panic(fmt.Sprintf("sample: SampleCooperative: %s walks from list to list", s.Kind))
	}
	s.checkWithout(e, batches)
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
			if err == nil {
				err = s.descendCooperative(ctx, e, batches, hop)
			}
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

// askSeeds sends this worker's seeds to their owners. The seeds of each batch become the nodes that
// this worker owns among the seeds of all workers.
func (s *Sampler) askSeeds(
	ctx context.Context, p *Parts, batches []*Batch, batchSeeds []BatchSeed, seeds [][][]uint32,
) error {
	own := func(b *Batch, t int) []uint32 { return b.Seeds[t] }
	asked, err := s.ask(ctx, p, batches, batchSeeds, s.allTypes(), own)
	if err != nil {
		return err
	}
	return s.each(ctx, len(batches), func(d *drawer, i int) error {
		b, h := batches[i], &batches[i].halos[len(s.Fanouts)]
		for t := range s.schema.Types {
			d.merge(p, h, t, i, asked, seeds[i][t])
		}
		for q := range asked {
			if asked[q][i].batchSeed != batchSeeds[i] {
				return fmt.Errorf("worker %d draws a batch from another batch seed than worker %d", q, p.Rank)
			}
		}
		left := s.mergeWithout(i, asked)
		b.asked = resize(b.asked, len(h.Live))
		for t := range b.asked {
			b.asked[t] = append(b.asked[t][:0], seeds[i][t]...)
		}
		d.begin(b, h.Live)
		b.Without, b.expanded = left, true
		return nil
	})
}

// askSources sends the sources of a hop to their owners, and fills the halo of the hop's layer.
func (s *Sampler) askSources(ctx context.Context, p *Parts, batches []*Batch, hop int) error {
	at := len(s.Fanouts) - 1 - hop
	found := func(b *Batch, t int) []uint32 { return b.Layers[at].Nodes[t].Src }
	asked, err := s.ask(ctx, p, batches, nil, s.allTypes(), found)
	if err != nil {
		return err
	}
	return s.each(ctx, len(batches), func(d *drawer, i int) error {
		for t := range s.schema.Types {
			d.merge(p, &batches[i].halos[at], t, i, asked, found(batches[i], t))
		}
		return nil
	})
}

// descendCooperative begins the next hop. Its destinations are this worker's live nodes, or the
// live nodes that e chooses.
func (s *Sampler) descendCooperative(ctx context.Context, e Expander, batches []*Batch, hop int) (err error) {
	at := len(s.Fanouts) - 1 - hop
	next, origins := make([][][]uint32, len(batches)), make([][][]Origin, len(batches))
	for i, b := range batches {
		next[i], origins[i] = b.halos[at].Live, make([][]Origin, len(s.schema.Types))
	}
	if e != nil {
		live := next
		if next, origins, err = e.Expand(ctx, hop, live); err != nil {
			return err
		}
	}
	for i, b := range batches {
		for t, live := range b.halos[at].Live {
			f, further := &b.Layers[at].Nodes[t], live
			if from := origins[i][t]; from != nil {
				if len(from) != len(live) {
					panic(fmt.Sprintf("sample: Expand: %d nodes of type %d at hop %d, and %d origins", len(live), t, hop, len(from)))
				}
				f.Origin, further = append(f.Origin[:0], from...), next[i][t]
			}
			b.Layers[at-1].Nodes[t].start(further)
		}
	}
	return nil
}

// merge fills h for type t of batch i. The nodes that workers ask this one for become live; those
// that it asks itself for come first. sources are all nodes that this worker asks for, its own
// included. merge replaces each node in asked by its place in h.Live[t]; h.Send shares this memory.
func (d *drawer) merge(p *Parts, h *Halo, t, i int, asked [][]request, sources []uint32) {
	d.last = finished{} // its indexes are used here
	numbers := &d.indexes[t]
	numbers.begin(nil)
	// ask has checked that these nodes exist.
	h.Live[t], _ = numbers.number(asked[p.Rank][i].nodes[t], h.Live[t])
	for q := range asked {
		if q != p.Rank {
			h.Live[t], _ = numbers.number(asked[q][i].nodes[t], h.Live[t])
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
}

// mergeWithout returns the edges to this worker's own seeds that some worker leaves out of batch i.
// By now merge has replaced the nodes in asked by places among these seeds.
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

// leftOut returns, for each seed of a cooperative batch that loses edges of the first relation, how
// many. It returns nil for other batches.
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
