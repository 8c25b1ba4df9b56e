package sample

import (
	"encoding/binary"
	"errors"
	"math"
	"unsafe"
)

// A batch as bytes is a head, the ids of its nodes, and layer by layer from the seeds its blocks.
// The sources of a layer begin with the sources of the layer above it, so only the ids of the
// lowest layer are written, and each other layer is a count of them. Blocks have the number of
// neighbours of each destination in place of Start and End: a byte each, or a word each if one has
// more than 255. All else is words in the byte order of the machine, as they lie in memory.
// Reverses are made anew.
//
// A batch of SampleParts ends with its Dealt. So does one of SampleCooperative, and its Halos
// follow. There a layer computes other nodes than the layer above reads, so the ids of every layer
// are written.
//
// A batch between two hops has the layers that are drawn, the places of its edges if these bring
// something along, and the edges that it is drawn without. A complete batch has values and rows in
// place of these places and edges, which nobody reads any more.

// Flags in the head, beside the number of hops: a Dealt or Halos follow the blocks.
const (
	withDealt = 1 << 31
	withHalos = 1 << 30
)

// errUnpack is the error of Unpack for bytes that are no batch.
var errUnpack = errors.New("sample: bytes that are no batch of this sampler")

// Pack appends b, which s has drawn and no Expander changed, to dst as bytes, for Unpack of a
// Sampler with the same Config, of the same graph. Without is left out, as nothing reads it after a
// draw.
func (s *Sampler) Pack(dst []byte, b *Batch) []byte { return s.pack(dst, b, len(s.Fanouts)) }

// Unpack restores b from the bytes that Pack appended, and returns the bytes that follow them. It
// reuses b's memory. Bytes that Pack did not write are an error, unless they happen to be a batch;
// b is undefined then. Several goroutines may unpack different batches at once.
func (s *Sampler) Unpack(b *Batch, src []byte) (rest []byte, err error) {
	hops, rest, err := s.unpack(b, src)
	if err != nil || hops != len(s.Fanouts) {
		return nil, errUnpack
	}
	b.Without = nil
	for l := range b.Layers {
		s.reverse(&s.schema, b, l)
	}
	return rest, nil
}

// pack is Pack of a batch with so many hops drawn.
func (s *Sampler) pack(dst []byte, b *Batch, hops int) []byte {
	apart := b.halos != nil && hops == len(b.Layers)
	if b.expanded && (!apart || b.hasOrigins()) {
		panic("sample: Pack: a batch of an Expander")
	}
	begin := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0) // for its length
	head := hops
	if b.dealt != nil && hops == len(b.Layers) {
		head |= withDealt
	}
	if apart {
		dst = b.packNodesApart(appendWord(dst, head|withHalos))
	} else {
		dst = b.packNodes(appendWord(dst, head), hops)
	}
	for hop := range hops {
		layer := &b.Layers[len(b.Layers)-1-hop]
		for r := range layer.Blocks {
			dst = layer.Blocks[r].pack(dst, s.has(r, hops))
		}
	}
	if hops == len(b.Layers) {
		for _, rows := range b.edgeRows {
			dst = append(appendWord(dst, len(rows)), bytesOf(rows)...)
		}
		if head&withDealt != 0 {
			dst = b.dealt.pack(dst)
		}
		if apart {
			dst = b.packHalos(dst)
		}
	} else {
		dst = appendWord(dst, len(b.Without))
		for _, w := range b.Without {
			dst = append(appendWord(dst, len(w.Start)), bytesOf(w.Start)...)
			dst = append(appendWord(dst, len(w.Src)), bytesOf(w.Src)...)
		}
	}
	binary.NativeEndian.PutUint64(dst[begin:], uint64(len(dst)-begin))
	return dst
}

// packNodes appends the numbers of nodes of each layer, and the ids of the lowest one that is
// drawn.
func (b *Batch) packNodes(dst []byte, hops int) []byte {
	for t := range b.Seeds {
		dst = appendWord(dst, len(b.Seeds[t]))
	}
	for hop := range hops {
		layer := &b.Layers[len(b.Layers)-1-hop]
		for t := range layer.Nodes {
			dst = appendWord(dst, len(layer.Nodes[t].Src))
		}
	}
	for t, ids := range b.Seeds {
		if hops > 0 {
			ids = b.Layers[len(b.Layers)-hops].Nodes[t].Src
		}
		dst = append(dst, bytesOf(ids)...)
	}
	return dst
}

// pack appends d.
func (d *Dealt) pack(dst []byte) []byte {
	dst = appendWord(dst, len(d.Take[0])) // workers
	for t, rows := range d.Rows {
		dst = append(appendWord(dst, len(rows)), bytesOf(rows)...)
		for q, send := range d.Send[t] {
			dst = append(appendWord(dst, len(send)), bytesOf(send)...)
			dst = append(appendWord(dst, len(d.Take[t][q])), bytesOf(d.Take[t][q])...)
		}
	}
	return dst
}

// packed counts the weights, values, places and rows that each edge of a block has.
type packed struct{ weights, values, places, rows int }

// has counts the weights, values, places and rows of an edge of relation r, in a batch with hops
// drawn.
func (s *Sampler) has(r, hops int) (p packed) {
	if s.weighs() || s.GCN {
		p.weights = 1
	}
	switch relation := &s.relations[r]; {
	case hops == len(s.Fanouts):
		p.values = relation.columns
		if relation.rows != nil {
			p.rows = 1
		}
	case relation.brings():
		p.places = 1
	}
	return p
}

// pack appends b.
func (b *Block) pack(dst []byte, has packed) []byte {
	edges, wide, end := len(b.Nbr), 0, uint32(0)
	for i, start := range b.Start {
		if start != end {
			panic("sample: Pack: a block with gaps between its lists")
		}
		if end = b.End[i]; end-start > math.MaxUint8 {
			wide = 1
		}
	}
	if int(end) != edges || len(b.Weight) != edges*has.weights || len(b.Values) != edges*has.values || len(b.Rows) != edges*has.rows {
		panic("sample: Pack: a batch that another Sampler has drawn")
	}
	dst = appendWord(appendWord(dst, edges), wide)
	for i, start := range b.Start {
		if n := b.End[i] - start; wide == 0 {
			dst = append(dst, byte(n))
		} else {
			dst = binary.NativeEndian.AppendUint32(dst, n)
		}
	}
	dst = append(append(append(dst, bytesOf(b.Nbr)...), bytesOf(b.Weight)...), bytesOf(b.Values)...)
	return append(append(dst, bytesOf(b.places[:edges*has.places])...), bytesOf(b.Rows)...)
}

// unpack restores b from the bytes that pack appended, without any reverse, and returns the number
// of hops that are drawn. The next layer has its destinations.
func (s *Sampler) unpack(b *Batch, src []byte) (hops int, rest []byte, err error) {
	if len(src) < 8 {
		return 0, nil, errUnpack
	}
	size := binary.NativeEndian.Uint64(src)
	if size < 8 || size > uint64(len(src)) {
		return 0, nil, errUnpack
	}
	u := unpacker{src: src[8:size]}
	head := u.word()
	hops = head &^ (withDealt | withHalos)
	apart := head&withHalos != 0
	s.drawers[0].shape(b)
	b.expanded = apart
	if hops > len(b.Layers) || apart && (hops < len(b.Layers) || head&withDealt == 0) {
		return 0, nil, errUnpack
	}
	if apart {
		s.unpackNodesApart(&u, b)
	} else {
		b.halos = nil
		s.unpackNodes(&u, b, hops)
	}
	for hop := 0; hop < hops && !u.bad; hop++ {
		layer := &b.Layers[len(b.Layers)-1-hop]
		for i := range s.relations {
			r, block := &s.relations[i], &layer.Blocks[i]
			block.columns, block.brings, block.Table = r.columns, r.brings(), r.table
			u.block(block, s.has(i, hops), layer.Nodes[r.Dst].Dst, len(layer.Nodes[r.Src].Src))
		}
	}
	if hops == len(b.Layers) {
		for k := range b.edgeRows {
			b.edgeRows[k] = unpackInto(&u, b.edgeRows[k], u.word())
		}
		s.checkRows(&u, b)
		s.unpackDealt(&u, b, head&withDealt != 0)
		if apart && !u.bad {
			s.unpackHalos(&u, b)
		}
	} else {
		u.bad = u.bad || head&withDealt != 0
		for k := range b.edgeRows {
			b.edgeRows[k] = b.edgeRows[k][:0]
		}
		s.unpackWithout(&u, b)
	}
	if u.bad || len(u.src) > 0 {
		return 0, nil, errUnpack
	}
	return hops, src[size:], nil
}

// unpackNodes fills the seeds of b, and the nodes of the layers of so many hops and of the next.
func (s *Sampler) unpackNodes(u *unpacker, b *Batch, hops int) {
	types := len(s.schema.Types)
	if u.bad = u.bad || len(u.src)/4 < (hops+1)*types; u.bad {
		return
	}
	counts := u.src // of seeds, and then of sources, hop by hop
	count := func(n, t int) int { return int(binary.NativeEndian.Uint32(counts[4*(n*types+t):])) }
	u.src = u.src[4*(hops+1)*types:]
	for t, nodes := range s.schema.Types {
		ids := &b.Seeds[t]
		if hops > 0 {
			ids = &b.Layers[len(b.Layers)-hops].Nodes[t].Src
		}
		*ids = unpackInto(u, *ids, count(hops, t))
		for hop := range hops {
			u.bad = u.bad || count(hop, t) > count(hop+1, t)
		}
		if u.bad = u.bad || highest(*ids) >= nodes; u.bad {
			return
		}
		b.rows[t] = b.rows[t][:0]
		if hops > 0 {
			b.Seeds[t] = append(b.Seeds[t][:0], (*ids)[:count(0, t)]...)
		}
		for hop := range hops {
			f := &b.Layers[len(b.Layers)-1-hop].Nodes[t]
			if hop < hops-1 {
				f.Src = append(f.Src[:0], (*ids)[:count(hop+1, t)]...)
			}
			f.Dst, f.Origin = count(hop, t), f.Origin[:0]
		}
		if hops < len(b.Layers) {
			b.Layers[len(b.Layers)-1-hops].Nodes[t].start(*ids)
		}
	}
}

// unpackWithout fills b.Without.
func (s *Sampler) unpackWithout(u *unpacker, b *Batch) {
	n := u.word()
	if u.bad = u.bad || n != 0 && n != len(s.relations); u.bad {
		return
	}
	b.Without = resize(b.Without, n)
	for r := range b.Without {
		w, seeds := &b.Without[r], len(b.Seeds[s.relations[r].Dst])
		w.Start = unpackInto(u, w.Start, u.word())
		w.Src = unpackInto(u, w.Src, u.word())
		end := uint32(0)
		for _, start := range w.Start {
			u.bad = u.bad || start < end
			end = start
		}
		u.bad = u.bad || len(w.Start) > seeds+1 || int64(end) > int64(len(w.Src))
	}
}

// checkRows finds edges with rows that their table does not have.
func (s *Sampler) checkRows(u *unpacker, b *Batch) {
	for l := range b.Layers {
		for r := range b.Layers[l].Blocks {
			if k := &b.Layers[l].Blocks[r]; len(k.Rows) > 0 && !u.bad {
				u.bad = highest(k.Rows) >= len(b.edgeRows[k.Table])
			}
		}
	}
}

// unpackDealt restores the Dealt of b, or sets it to nil if the bytes have none.
func (s *Sampler) unpackDealt(u *unpacker, b *Batch, has bool) {
	if u.bad || !has {
		b.dealt = nil
		return
	}
	inputs, workers := b.Inputs(), u.word()
	if u.bad = u.bad || workers < 1 || workers > len(u.src)/(2*4*len(inputs)); u.bad {
		return
	}
	if b.dealt == nil {
		b.dealt = new(Dealt)
	}
	d := b.dealt
	d.shape(len(inputs), workers)
	for t, rows := range inputs {
		d.Rows[t] = unpackInto(u, d.Rows[t], u.word())
		u.bad = u.bad || highest(d.Rows[t]) >= s.inputRows(t)
		for q := range workers {
			d.Send[t][q] = unpackInto(u, d.Send[t][q], u.word())
			d.Take[t][q] = unpackInto(u, d.Take[t][q], u.word())
			u.bad = u.bad || highest(d.Send[t][q]) >= len(d.Rows[t]) || highest(d.Take[t][q]) >= len(rows)
		}
	}
}

// unpacker reads packed bytes, until something is bad.
type unpacker struct {
	src []byte
	bad bool
}

// word returns the next word, or 0 if there is none.
func (u *unpacker) word() int {
	if len(u.src) < 4 {
		u.bad = true
		return 0
	}
	n := binary.NativeEndian.Uint32(u.src)
	u.src = u.src[4:]
	return int(n)
}

// block fills b, of so many destinations and sources.
func (u *unpacker) block(b *Block, has packed, dst, sources int) {
	edges, wide := u.word(), u.word()
	width := 1
	if wide != 0 {
		width = 4
	}
	if u.bad = u.bad || len(u.src)/width < dst; u.bad {
		return
	}
	b.start(dst)
	b.RevStart, b.RevDst, b.RevEdge, b.lost = b.RevStart[:0], b.RevDst[:0], b.RevEdge[:0], b.lost[:0]
	end := 0
	for i := range b.Start {
		b.Start[i] = uint32(end)
		if width == 1 {
			end += int(u.src[i])
		} else {
			end += int(binary.NativeEndian.Uint32(u.src[4*i:]))
		}
		b.End[i] = uint32(end)
	}
	u.src = u.src[width*dst:]
	if u.bad = end != edges; u.bad {
		return
	}
	b.Nbr = unpackInto(u, b.Nbr, edges)
	b.Weight = unpackInto(u, b.Weight, edges*has.weights)
	b.Values = unpackInto(u, b.Values, edges*has.values)
	b.places = unpackInto(u, b.places, edges*has.places)
	b.Rows = unpackInto(u, b.Rows, edges*has.rows)
	u.bad = u.bad || highest(b.Nbr) >= sources
}

// unpackInto fills dst, which may grow, with the next n words.
func unpackInto[T uint32 | float32](u *unpacker, dst []T, n int) []T {
	if u.bad = u.bad || n > len(u.src)/4; u.bad {
		return dst[:0]
	}
	dst = resize(dst, n)
	u.src = u.src[copy(bytesOf(dst), u.src):]
	return dst
}

// highest returns the highest of ids, or -1 without any.
func highest(ids []uint32) int {
	if len(ids) == 0 {
		return -1
	}
	top := uint32(0)
	for _, id := range ids {
		top = max(top, id)
	}
	return int(top)
}

func appendWord(dst []byte, n int) []byte {
	if n > math.MaxUint32 {
		panic("sample: Pack: more than 4,294,967,295 nodes or edges")
	}
	return binary.NativeEndian.AppendUint32(dst, uint32(n))
}

// bytesOf views words as bytes.
func bytesOf[T uint32 | float32 | pair](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}
