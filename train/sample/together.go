package sample

import "encoding/binary"

// Together has one worker's work for a batch that workers draw together: see Sampler.Together.
type Together struct {
	Hops []TogetherHop // from the seeds on
	// Rows[t] lists the rows of input t that the worker reads, for all workers.
	Rows [][]uint32
	// Sent[t] counts the rows of input t that it sends to other workers, and Taken[t] the rows that
	// it gets from them.
	Sent, Taken []int
	// IDBytes is the length of the messages in which it asks other workers for nodes and rows. Not
	// counted are the edges that the batch is drawn without, and the degrees that GCN asks for.
	IDBytes int64
}

// TogetherHop has one worker's work at one hop. Counts are by type.
type TogetherHop struct {
	// Nodes[t] lists the worker's own nodes of type t. It draws from their lists, and computes
	// them.
	Nodes [][]uint32
	Edges int // that it draws
	// Sources counts the different nodes that its layer reads: Nodes, and the neighbours drawn.
	Sources []int
	// Taken counts the sources that other workers own: their rows come from these workers. Sent
	// counts the rows that it sends: a row of its own counts once for each other worker that reads
	// it.
	Taken, Sent []int
}

// Together returns the work that each worker would have in SampleCooperative. b is the batch that
// Sample drew for the seeds of all workers, and seeds[w] has worker w's. Nothing is drawn or
// exchanged. Together panics if the sampler compares lists or walks.
func (s *Sampler) Together(p *Parts, b *Batch, seeds [][][]uint32) []Together {
	s.checkParts(nil, nil)
	const prefix = 4 // the length of a text, or of a list in it
	all, others, types := make([]Together, p.Workers), int64(p.Workers-1), len(s.schema.Types)
	for w := range all {
		all[w].IDBytes = others * int64(prefix+binary.Size(BatchSeed{})+prefix*types)
		for t, ids := range seeds[w] {
			for _, v := range ids {
				if p.Owner(t, v) != w {
					all[w].IDBytes += 4
				}
			}
		}
	}
	for hop := range s.Fanouts {
		s.divide(p, &b.Layers[len(s.Fanouts)-1-hop], all)
		for w := range all {
			if hop < len(s.Fanouts)-1 {
				all[w].IDBytes += others * int64(prefix+prefix*types)
				for _, n := range all[w].Hops[hop].Taken {
					all[w].IDBytes += 4 * int64(n)
				}
			}
		}
	}
	s.divideRows(p, b, all)
	return all
}

// divide appends the hop of a layer to the work of each worker.
func (s *Sampler) divide(p *Parts, layer *Layer, all []Together) {
	types := len(s.schema.Types)
	hops := make([]TogetherHop, p.Workers)
	own := make([][][]uint32, p.Workers) // by worker and type: places of its destinations
	found := make([][]int, types)        // by place: 1 + the last worker that found the source
	for w := range hops {
		counts := func() []int { return make([]int, types) }
		hops[w] = TogetherHop{make([][]uint32, types), 0, counts(), counts(), counts()}
		own[w] = make([][]uint32, types)
	}
	for t := range found {
		found[t] = make([]int, len(layer.Nodes[t].Src))
		for n, v := range layer.Nodes[t].destinations() {
			w := p.Owner(t, v)
			own[w][t] = append(own[w][t], uint32(n))
			hops[w].Nodes[t] = append(hops[w].Nodes[t], v)
		}
	}
	for w := range hops {
		find := func(t int, places []uint32) {
			for _, n := range places {
				if found[t][n] == w+1 {
					continue
				}
				found[t][n] = w + 1
				hops[w].Sources[t]++
				if q := p.Owner(t, layer.Nodes[t].Src[n]); q != w {
					hops[w].Taken[t]++
					hops[q].Sent[t]++
				}
			}
		}
		for t, places := range own[w] {
			find(t, places)
		}
		for r, ends := range s.schema.Relations {
			block := &layer.Blocks[r]
			for _, i := range own[w][ends.Dst] {
				drawn := block.Nbr[block.Start[i]:block.End[i]]
				hops[w].Edges += len(drawn)
				find(ends.Src, drawn)
			}
		}
		all[w].Hops = append(all[w].Hops, hops[w])
	}
}

// divideRows fills the Rows of each worker, and counts the rows that workers send each other.
func (s *Sampler) divideRows(p *Parts, b *Batch, all []Together) {
	inputs, types, read := b.Inputs(), len(s.schema.Types), 0
	for w := range all {
		n := len(p.Reads)
		all[w].Rows, all[w].Sent, all[w].Taken = make([][]uint32, n), make([]int, n), make([]int, n)
	}
	for t, reads := range p.Reads {
		if !reads {
			continue
		}
		read++
		for _, v := range inputs[t] {
			q := p.Owner(t, v)
			all[q].Rows[t] = append(all[q].Rows[t], v)
		}
		if t >= types {
			s.countEdgeRows(p, b, t, all)
			continue
		}
		for w := range all {
			last := &all[w].Hops[len(s.Fanouts)-1]
			all[w].Sent[t], all[w].Taken[t] = last.Sent[t], last.Taken[t]
		}
	}
	for w := range all {
		all[w].IDBytes += int64(p.Workers-1) * 4 * int64(1+read)
		for _, n := range all[w].Taken {
			all[w].IDBytes += 4 * int64(n)
		}
	}
}

// countEdgeRows counts the rows of input t, a table of edges, that workers send each other. A
// worker needs the rows of the edges that it draws.
func (s *Sampler) countEdgeRows(p *Parts, b *Batch, t int, all []Together) {
	rows := b.edgeRows[t-len(s.schema.Types)]
	wanted := make([][]bool, p.Workers) // by place among the rows
	for l := range b.Layers {
		for r, ends := range s.schema.Relations {
			block := &b.Layers[l].Blocks[r]
			if len(block.Rows) == 0 || block.Table != t-len(s.schema.Types) {
				continue
			}
			for i, v := range b.Layers[l].Nodes[ends.Dst].destinations() {
				w := p.Owner(ends.Dst, v)
				if wanted[w] == nil {
					wanted[w] = make([]bool, len(rows))
				}
				for _, n := range block.Rows[block.Start[i]:block.End[i]] {
					wanted[w][n] = true
				}
			}
		}
	}
	for w := range wanted {
		for n, wants := range wanted[w] {
			if q := p.Owner(t, rows[n]); wants && q != w {
				all[w].Taken[t]++
				all[q].Sent[t]++
			}
		}
	}
}
