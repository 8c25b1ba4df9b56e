package sample

import (
	"encoding/binary"
	"errors"
	"math"
)

// Asks has what a worker asks an owner of nodes for, for one batch: see Sampler.Asks.
type Asks struct {
	// Lists[hop][t] has the nodes of type t whose neighbours the owner draws at a hop.
	Lists [][][]uint32
	// Rows[t] has the rows of input t that the owner reads.
	Rows [][]uint32
	// Edges counts the neighbours that the owner draws.
	Edges int64
	// IDBytes is the length of the texts that the owner gets, and ListBytes the length of the texts
	// that it sends back. They leave two things out: edges that the batch is drawn without (8 bytes
	// each, and 4 a seed), and drawn loops, which a batch does not keep, with Config.SelfLoops.
	IDBytes, ListBytes int64
}

// Asks returns what SampleParts would have this worker ask each owner for, itself included, to draw
// b. b was drawn, by Sample. Exchange is not called.
func (s *Sampler) Asks(p *Parts, b *Batch) []Asks {
	asks := make([]Asks, p.Workers)
	byOwner := func(t int, nodes []uint32) [][]uint32 {
		of := make([][]uint32, p.Workers)
		for _, v := range nodes {
			q := p.Owner(t, v)
			of[q] = append(of[q], v)
		}
		return of
	}
	const prefix = 4 // the length of a text, or of a list in it
	for hop := range s.Fanouts {
		layer, types := &b.Layers[len(s.Fanouts)-1-hop], s.drawnTypes(hop)
		lists := make([][][]uint32, p.Workers) // by owner and type
		for q := range asks {
			lists[q] = make([][]uint32, len(types))
			asks[q].IDBytes += prefix + int64(binary.Size(BatchSeed{}))
			asks[q].ListBytes += prefix
		}
		for t, drawn := range types {
			if !drawn {
				continue
			}
			for q, nodes := range byOwner(t, layer.Nodes[t].destinations()) {
				lists[q][t] = nodes
				asks[q].IDBytes += prefix + 4*int64(len(nodes))
			}
		}
		for r, ends := range s.schema.Relations {
			if s.FanoutOf(hop, r) != 0 {
				s.addDrawn(p, asks, &layer.Blocks[r], ends.Dst, layer.Nodes[ends.Dst].destinations())
			}
		}
		for q := range asks {
			asks[q].Lists = append(asks[q].Lists, lists[q])
		}
	}
	if s.GCN {
		src := s.relations[0].Src
		for q, nodes := range byOwner(src, b.Layers[0].Nodes[src].Src) {
			asks[q].IDBytes += 2*prefix + 4*int64(len(nodes))
			asks[q].ListBytes += prefix + 8*int64(len(nodes))
		}
	}
	for q := range asks {
		asks[q].Rows = make([][]uint32, len(p.Reads))
		asks[q].IDBytes += prefix
	}
	for t, reads := range p.Reads {
		if !reads {
			continue
		}
		for q, rows := range byOwner(t, b.Inputs()[t]) {
			asks[q].Rows[t] = rows
			asks[q].IDBytes += prefix + 4*int64(len(rows))
		}
	}
	return asks
}

// addDrawn adds what owners draw for a block to asks: see Block.appendDrawn.
func (s *Sampler) addDrawn(p *Parts, asks []Asks, block *Block, t int, destinations []uint32) {
	each := int64(4) // bytes of an edge
	if s.weighs() {
		each += 4
	}
	each += 4 * int64(block.columns)
	if len(block.Rows) > 0 {
		each += 4
	}
	lists, edges, most := make([]int64, p.Workers), make([]int64, p.Workers), make([]uint32, p.Workers)
	for i, v := range destinations {
		q, n := p.Owner(t, v), block.End[i]-block.Start[i]
		if s.SelfLoops {
			n-- // nobody sends the loop
		}
		lists[q], edges[q], most[q] = lists[q]+1, edges[q]+int64(n), max(most[q], n)
	}
	for q := range asks {
		count := int64(1) // bytes of a list's length
		if most[q] > math.MaxUint8 {
			count = 4
		}
		asks[q].Edges += edges[q]
		asks[q].ListBytes += 1 + count*lists[q] + each*edges[q] + 4
	}
}

// Append appends a to dst, in a form that Read reads.
func (a *Asks) Append(dst []byte) []byte {
	dst = appendNumber(appendNumber(dst, len(a.Lists)), len(a.Rows))
	for _, lists := range a.Lists {
		dst = appendLists(appendNumber(dst, len(lists)), lists)
	}
	dst = appendLists(dst, a.Rows)
	for _, n := range []int64{a.Edges, a.IDBytes, a.ListBytes} {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(n))
	}
	return dst
}

// Read sets a to what Append has appended, and returns the rest of src.
func (a *Asks) Read(src []byte) (rest []byte, err error) {
	m := &message{text: src}
	hops, inputs := m.number(4), m.number(4)
	for range min(hops, len(m.text)) {
		a.Lists = append(a.Lists, m.lists(m.number(4)))
	}
	a.Rows = m.lists(inputs)
	for _, n := range []*int64{&a.Edges, &a.IDBytes, &a.ListBytes} {
		low := m.number(4)
		*n = int64(m.number(4))<<32 | int64(low)
	}
	if m.short {
		return nil, errors.New("the message is too short")
	}
	return m.text, nil
}

// appendLists appends each of lists with its length.
func appendLists(dst []byte, lists [][]uint32) []byte {
	for _, l := range lists {
		dst = appendNumbers(appendNumber(dst, len(l)), l)
	}
	return dst
}

// lists reads so many lists.
func (m *message) lists(n int) [][]uint32 {
	all := make([][]uint32, min(n, len(m.text)))
	for i := range all {
		k := m.number(4)
		if k > len(m.text)/4 {
			m.short = true
			return all
		}
		all[i] = make([]uint32, k)
		m.numbers(all[i])
	}
	return all
}
