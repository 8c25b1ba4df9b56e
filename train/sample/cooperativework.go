package sample

// CooperativeWork counts what one worker does for a batch that SampleCooperative draws.
type CooperativeWork struct {
	Lists [][]int64 // that it draws, by hop and type
	Edges int64     // that it draws
	Reads []int64   // rows of each input that it reads
	// IDs counts the nodes and rows that it asks other workers for, and Answers those that others
	// ask it for. Degrees are the bytes of GCN's degrees that it sends, and Asked those that it
	// gets.
	IDs, Answers, Degrees, Asked int64
	// RowsSent and RowsCome count rows of each input. HiddenSent[l] and HiddenCome[l] count rows
	// that layer l reads of the layer below, from 1 on. Of the seeds nothing counts.
	RowsSent, RowsCome     []int64
	HiddenSent, HiddenCome []int64
}

// CooperativeWork returns what SampleCooperative would have each worker do. b has the seeds of all
// workers, and was drawn by Sample. Exchange is not called.
func (s *Sampler) CooperativeWork(p *Parts, b *Batch) []CooperativeWork {
	works := make([]CooperativeWork, p.Workers)
	for q := range works {
		w, inputs, layers := &works[q], len(p.Reads), len(b.Layers)
		w.Reads, w.RowsSent, w.RowsCome = make([]int64, inputs), make([]int64, inputs), make([]int64, inputs)
		w.HiddenSent, w.HiddenCome = make([]int64, layers), make([]int64, layers)
	}
	for hop := range s.Fanouts {
		l := len(s.Fanouts) - 1 - hop
		layer, drawn := &b.Layers[l], s.drawnTypes(hop)
		for q := range works {
			works[q].Lists = append(works[q].Lists, make([]int64, len(s.schema.Types)))
		}
		owners := make([][]int, len(layer.Nodes)) // of the sources, by type
		for t := range layer.Nodes {
			for i, v := range layer.Nodes[t].Src {
				q := p.Owner(t, v)
				if owners[t] = append(owners[t], q); i < layer.Nodes[t].Dst && drawn[t] {
					works[q].Lists[hop][t]++
				}
			}
		}
		for t := range layer.Nodes {
			s.countSources(works, layer, t, l, owners, l > 0 || p.Reads[t])
		}
		for r, ends := range s.schema.Relations {
			for i := range layer.Blocks[r].Start {
				works[owners[ends.Dst][i]].Edges += int64(layer.Blocks[r].End[i] - layer.Blocks[r].Start[i])
			}
		}
	}
	s.countEdgeRows(p, works, b)
	return works
}

// countSources counts the sources of type t that each worker has in layer l, and whose rows come
// from other workers. owners has the owners of the layer's sources. moves reports whether rows are
// exchanged.
func (s *Sampler) countSources(works []CooperativeWork, layer *Layer, t, l int, owners [][]int, moves bool) {
	sources := len(layer.Nodes[t].Src)
	found := make([]bool, len(works)*sources) // by worker and source
	for i := range layer.Nodes[t].Dst {
		found[owners[t][i]*sources+i] = true
	}
	for r, ends := range s.schema.Relations {
		if ends.Src != t {
			continue
		}
		block := &layer.Blocks[r]
		for i := range block.Start {
			of := found[owners[ends.Dst][i]*sources:][:sources]
			for _, n := range block.drawn(i) {
				of[n] = true
			}
		}
	}
	for q := range works {
		w := &works[q]
		for n, has := range found[q*sources : (q+1)*sources] {
			owner := owners[t][n]
			if !has || owner == q {
				continue
			}
			if s.GCN {
				w.IDs, works[owner].Answers = w.IDs+1, works[owner].Answers+1
				w.Asked, works[owner].Degrees = w.Asked+16, works[owner].Degrees+16
			}
			if !moves {
				continue
			}
			w.IDs, works[owner].Answers = w.IDs+1, works[owner].Answers+1
			if l == 0 {
				w.RowsCome[t]++
				works[owner].RowsSent[t]++
			} else {
				w.HiddenCome[l]++
				works[owner].HiddenSent[l]++
			}
		}
	}
	if l == 0 && moves {
		for _, q := range owners[t] {
			works[q].Reads[t]++
		}
	}
}

// countEdgeRows counts the rows of tables of edges that each worker reads and exchanges.
func (s *Sampler) countEdgeRows(p *Parts, works []CooperativeWork, b *Batch) {
	types := len(s.schema.Types)
	found := make([]map[uint32]bool, len(b.edgeRows)) // by table: worker·rows + row
	for k := range found {
		found[k] = map[uint32]bool{}
		for _, v := range b.edgeRows[k] {
			if p.Reads[types+k] {
				works[p.Owner(types+k, v)].Reads[types+k]++
			}
		}
	}
	for l := range b.Layers {
		for r, ends := range s.schema.Relations {
			block, dst := &b.Layers[l].Blocks[r], b.Layers[l].Nodes[ends.Dst].destinations()
			if len(block.Rows) == 0 || !p.Reads[types+block.Table] {
				continue
			}
			k, rows := block.Table, uint32(len(b.edgeRows[block.Table]))
			for i, v := range dst {
				q := p.Owner(ends.Dst, v)
				for _, row := range block.Rows[block.Start[i]:block.End[i]] {
					key := uint32(q)*rows + row
					owner := p.Owner(types+k, b.edgeRows[k][row])
					if found[k][key] || owner == q {
						continue
					}
					found[k][key] = true
					works[q].IDs, works[owner].Answers = works[q].IDs+1, works[owner].Answers+1
					works[q].RowsCome[types+k]++
					works[owner].RowsSent[types+k]++
				}
			}
		}
	}
}
