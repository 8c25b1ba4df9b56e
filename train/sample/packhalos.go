package sample

import "slices"

// hasOrigins reports whether an Expander has given origins to rows of b.
func (b *Batch) hasOrigins() bool {
	for l := range b.Layers {
		for t := range b.Layers[l].Nodes {
			if len(b.Layers[l].Nodes[t].Origin) > 0 {
				return true
			}
		}
	}
	return false
}

// packNodesApart appends the nodes of the layers of a cooperative batch, each layer by itself.
func (b *Batch) packNodesApart(dst []byte) []byte {
	for l := range b.Layers {
		for _, f := range b.Layers[l].Nodes {
			dst = append(appendWord(appendWord(dst, f.Dst), len(f.Src)), bytesOf(f.Src)...)
		}
	}
	return dst
}

// unpackNodesApart restores the nodes that packNodesApart appended, and the seeds of b.
func (s *Sampler) unpackNodesApart(u *unpacker, b *Batch) {
	for l := range b.Layers {
		for t, nodes := range s.schema.Types {
			f := &b.Layers[l].Nodes[t]
			f.Dst = u.word()
			f.Src, f.Origin = unpackInto(u, f.Src, u.word()), f.Origin[:0]
			if u.bad = u.bad || f.Dst > len(f.Src) || highest(f.Src) >= nodes; u.bad {
				return
			}
		}
	}
	for t := range b.Seeds {
		top := &b.Layers[len(b.Layers)-1].Nodes[t]
		b.Seeds[t], b.rows[t] = append(b.Seeds[t][:0], top.destinations()...), b.rows[t][:0]
	}
}

// packHalos appends the seeds that this worker asked for, and then the halos of b.
func (b *Batch) packHalos(dst []byte) []byte {
	dst = appendWord(dst, len(b.halos[0].Take[0])) // workers
	for _, ids := range b.asked {
		dst = append(appendWord(dst, len(ids)), bytesOf(ids)...)
	}
	for l := 1; l < len(b.halos); l++ {
		h := &b.halos[l]
		for t := range h.Own {
			for _, list := range slices.Concat([][]uint32{h.Live[t], h.Own[t]}, h.Send[t], h.Take[t]) {
				dst = append(appendWord(dst, len(list)), bytesOf(list)...)
			}
		}
	}
	return dst
}

// unpackHalos restores the seeds and the halos that packHalos appended.
func (s *Sampler) unpackHalos(u *unpacker, b *Batch) {
	workers := u.word()
	if u.bad = u.bad || workers < 1 || workers > len(u.src)/4; u.bad {
		return
	}
	b.asked = resize(b.asked, len(s.schema.Types))
	for t, nodes := range s.schema.Types {
		b.asked[t] = unpackInto(u, b.asked[t], u.word())
		u.bad = u.bad || highest(b.asked[t]) >= nodes
	}
	b.halos = resize(b.halos, len(b.Layers)+1)
	for l := range b.halos {
		b.halos[l].begin(len(s.schema.Types), workers)
		for t := 0; l > 0 && t < len(s.schema.Types) && !u.bad; t++ {
			sources := b.asked[t]
			if l < len(b.Layers) {
				sources = b.Layers[l].Nodes[t].Src
			}
			b.halos[l].unpack(u, t, s.schema.Types[t], len(sources))
			u.bad = u.bad || len(b.halos[l].Live[t]) != b.Layers[l-1].Nodes[t].Dst
		}
	}
}

// unpack restores h for type t. nodes is the number of nodes of the type in the graph, and sources
// the number that the layer above reads.
func (h *Halo) unpack(u *unpacker, t, nodes, sources int) {
	h.Live[t] = unpackInto(u, h.Live[t], u.word())
	h.Own[t] = unpackInto(u, h.Own[t], u.word())
	filled := len(h.Own[t])
	u.bad = u.bad || highest(h.Live[t]) >= nodes || highest(h.Own[t]) >= sources || filled > len(h.Live[t])
	for q := range h.Send[t] {
		h.Send[t][q] = unpackInto(u, h.Send[t][q], u.word())
		u.bad = u.bad || highest(h.Send[t][q]) >= len(h.Live[t])
	}
	for q := range h.Take[t] {
		h.Take[t][q] = unpackInto(u, h.Take[t][q], u.word())
		u.bad = u.bad || highest(h.Take[t][q]) >= sources
		filled += len(h.Take[t][q])
	}
	u.bad = u.bad || filled != sources
}
