package infer

import (
	"context"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Rows or sums: a layer either holds the rows that a window of destinations reads, or the sums of a
// part of the destinations, to which it adds the rows of all sources as they pass, in ascending
// order. The first reads a source as often as windows want it, the second once for each part. Lists
// ascend, so both add up in the same order.

// held is a layer whose sums are held, a part of its destinations at a time: the rows of all their
// sources are added to the sums, then the layer is computed from these, while a partMaker draws the
// next part.
type held struct {
	e     *Evaluator
	w     *windows
	layer int
	typ   int
	block int64 // bytes of sources that are read together
	made  *partMaker

	part     *part
	sums     []sums   // by relation
	rank     []uint32 // of the sources of a bin among those whose rows are at hand
	to, from []uint32 // of some edges that are added: destination, and which of the rows at hand
	weight   []float32
	finished int // parts
}

// sums are the sums of one relation, for all destinations of the part.
type sums struct {
	kernels.Tensor                // none before anything is added
	memory         kernels.Buffer // of this part's and of those that follow
}

// blockOf returns the bytes of sources that are read together, for sums in so many bytes of memory,
// and the bytes left beside the blocks read ahead and the slack of lists.
func blockOf(memory int64) (block, rest int64) {
	block = min(max(memory/blocksInMemory, leastBlock), mostBlock)
	return block, max(0, memory-(aheadBlocks+slackBlocks)*block)
}

const (
	// The more is read together the less often the disk runs dry: BenchmarkEach.
	blocksInMemory = 32
	leastBlock     = 4 << 10
	mostBlock      = 16 << 20
	slackBlocks    = 1 // for pages of edges that are not full
)

// bySums calls do with the rows that layer l makes of nodes of type t, a chunk at a time, from sums
// that it holds in memory bytes. parts is the number of times that it has read all sources.
func (w *windows) bySums(ctx context.Context, t int, nodes nodeSet, memory int64, do func(chunk []uint32, y kernels.Tensor) error) (parts int, err error) {
	h := &held{e: w.e, w: w, layer: w.layer, typ: t, sums: make([]sums, len(w.e.data.Relations))}
	h.block, memory = blockOf(memory)
	h.made = newPartMaker(h, memory)
	defer h.made.free()
	defer func() {
		for r := range h.sums {
			h.free(r)
		}
	}()
	ctx, stop := context.WithCancel(ctx)
	ready := make(chan *part)
	failed := h.made.start(ctx, nodes, ready)
	defer func() { // before memory is given up
		stop()
		if made := failed(); err == nil {
			err = made
		}
	}()
	for {
		select {
		case <-h.made.looks:
			w.e.look()
		case p, ok := <-ready:
			if !ok {
				return h.finished, nil
			}
			if err := h.finish(ctx, p, do); err != nil {
				return h.finished, err
			}
		}
	}
}

// finish adds up what p needs, and gives the rows of its nodes to do.
func (h *held) finish(ctx context.Context, p *part, do func(chunk []uint32, y kernels.Tensor) error) error {
	h.part = p
	for r := range h.sums {
		h.sums[r].Tensor = kernels.Tensor{}
		if err := h.stream(ctx, r); err != nil {
			return err
		}
	}
	h.made.added <- struct{}{} // the edges are of no use any more
	most, before := 0, 0
	for _, end := range p.chunks {
		most, before = max(most, end-before), end
	}
	lo, ahead := 0, 0 // of the chunk at hand, and of the one whose rows are read
	read := func(ids []uint32) []uint32 {
		if ahead == len(p.chunks) {
			return ids
		}
		from := 0
		if ahead > 0 {
			from = p.chunks[ahead-1]
		}
		ahead++
		return append(ids, p.nodes[from:p.chunks[ahead-1]]...)
	}
	err := h.w.stream(ctx, h.typ, most, aheadBlocks*h.block, read, func(chunk []uint32, own kernels.Tensor) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		y, err := h.compute(ctx, lo, chunk, own)
		if err != nil {
			return err
		}
		lo += len(chunk)
		select {
		case <-h.made.looks: // do looks
		default:
		}
		return do(chunk, y)
	})
	h.finished++
	close(p.done)
	return err
}

// together returns how many rows of relation r's sources are read together.
func (h *held) together(r int) int {
	rowBytes := 4 * int64(h.e.sumColumns(h.layer, r))
	if s := h.w.stacks[h.e.data.Relations[r].Src]; s != nil {
		rowBytes = int64(s.RowBytes())
	}
	return int(max(1, h.block/max(rowBytes, 1)))
}

// stream adds up the rows of relation r, source after source.
func (h *held) stream(ctx context.Context, r int) error {
	l, from := &h.made.edges[r], h.e.data.Relations[r].Src
	if l.count == 0 {
		return nil
	}
	most := min(h.together(r), l.count)
	of := sources{l: l}
	read := func(ids []uint32) []uint32 { return of.next(ids, most) }
	return h.w.stream(ctx, from, most, aheadBlocks*h.block, read, func(ids []uint32, rows kernels.Tensor) error {
		err := h.addBlock(ctx, r, ids, rows)
		h.e.look()
		return err
	})
}

// addBlock adds sources of relation r to the sums of their destinations. rows has the row of each
// of ids.
func (h *held) addBlock(ctx context.Context, r int, ids []uint32, rows kernels.Tensor) error {
	e, tape, from := h.e, h.e.step.Tape, h.e.data.Relations[r].Src
	if rows.Buf != nil && rows.Type == kernels.F16 && !e.step.Model.Encodes(h.layer) { // they are widened as they are added
		h.addRows(r, ids, rows)
		return ctx.Err()
	}
	piece := max(1, e.most.bytes/(4*max(1, rows.Cols, e.step.Model.Hidden))) // as a chunk has them
	for lo := 0; lo < len(ids); lo += piece {
		if err := ctx.Err(); err != nil {
			return err
		}
		hi := min(lo+piece, len(ids))
		some := kernels.Tensor{}
		if rows.Buf != nil {
			some = rows.Slice(lo, hi)
		}
		tape.Reset(false)
		x := make(model.Rows, len(e.data.Types))
		if err := e.leaf(ctx, h.layer, from, ids[lo:hi], some, x); err != nil {
			return err
		}
		h.addRows(r, ids[lo:hi], e.step.Model.Sources(tape, h.layer, from, hi-lo, x[from]))
	}
	return nil
}

// addRows is addBlock for rows as they add up, in float16 or float32.
func (h *held) addRows(r int, ids []uint32, rows kernels.Tensor) {
	h.room(r, rows.Cols)
	l := &h.made.edges[r]
	mask := uint32(1)<<l.shift - 1
	if len(h.rank) <= int(mask) {
		h.rank = make([]uint32, mask+1)
	}
	h.clearEdges()
	first, last := ids[0], ids[len(ids)-1]
	at := 0
	for b := first >> l.shift; b <= last>>l.shift; b++ {
		for ; at < len(ids) && ids[at]>>l.shift == b; at++ {
			h.rank[ids[at]&mask] = uint32(at)
		}
		for edges, weight := range l.of(int(b)) {
			h.takeEdges(edges, weight, h.rank[:mask+1], first, last)
			if len(h.to) >= addTogether {
				h.addEdges(r, rows)
			}
		}
	}
	h.addEdges(r, rows)
}

// addTogether is about how many edges are added together: their lists stay in a cache of 512 KiB.
const addTogether = 1 << 15

// takeEdges appends edges from sources first to last to h.to, h.from and h.weight, with rank as the
// row numbers of these sources. Other sources' rows are in other blocks.
func (h *held) takeEdges(edges []uint64, weight []float32, rank []uint32, first, last uint32) {
	n, mask, most := len(h.to), uint32(len(rank)-1), last-first
	h.to, h.from = slices.Grow(h.to, len(edges)), slices.Grow(h.from, len(edges))
	to, from := h.to[:n+len(edges)], h.from[:n+len(edges)]
	if len(weight) > 0 {
		h.weight = slices.Grow(h.weight, len(edges))
		by, n := h.weight[:n+len(edges)], n
		for i, e := range edges {
			by[n] = weight[i]
			if uint32(e>>32)-first <= most {
				n++
			}
		}
		h.weight = by[:n]
	}
	for _, e := range edges { // no branch depends on e
		u := uint32(e >> 32)
		to[n], from[n] = uint32(e), rank[u&mask]
		if u-first <= most {
			n++
		}
	}
	h.to, h.from = to[:n], from[:n]
}

// room makes sums of relation r for all destinations of the part, unless they are there, in the
// memory of the part before where that is large enough: the system takes its time to give memory
// anew.
func (h *held) room(r, cols int) {
	s := &h.sums[r]
	if s.Buf != nil {
		return
	}
	be, n := h.e.step.Tape.Backend(), len(h.part.nodes)*cols
	s.Tensor = kernels.Tensor{Buf: s.memory, Type: kernels.F32, Rows: len(h.part.nodes), Cols: cols}
	if s.memory != nil && s.memory.Len() >= n {
		be.Fill(s.Tensor, 0)
		return
	}
	h.free(r)
	s.memory = be.Alloc(kernels.F32, n)
	s.Buf = s.memory
}

// free gives up the memory of sums.
func (h *held) free(r int) {
	kernels.FreeBuffers(h.e.step.Tape.Backend(), &h.sums[r].memory)
}

// addEdges adds the edges that h.to, h.from and h.weight have, and empties these.
func (h *held) addEdges(r int, rows kernels.Tensor) {
	f, weight := h.e.step.Feed, kernels.Tensor{}
	if len(h.weight) > 0 {
		weight = f.UploadFloats(h.weight, 1)
	}
	ints := f.Ints(h.to, h.from)
	h.e.step.Tape.Backend().AddEdges(h.sums[r].Tensor, rows, weight, ints[0], ints[1])
	h.clearEdges()
}

func (h *held) clearEdges() { h.to, h.from, h.weight = h.to[:0], h.from[:0], h.weight[:0] }

// compute is the layer for a chunk of the part, from its lo-th node on. The sums are there, and own
// has the rows of its nodes.
func (h *held) compute(ctx context.Context, lo int, chunk []uint32, own kernels.Tensor) (kernels.Tensor, error) {
	e, l := h.e, h.layer
	draw := e.draw
	if !e.readsEdges(l) {
		draw = e.drawNone
	}
	if err := draw(ctx, &e.block, l, h.typ, chunk); err != nil {
		return kernels.Tensor{}, err
	}
	layer := &e.block.Layers[0]
	var means []kernels.Tensor
	if e.hub(l, h.typ, chunk) {
		var err error
		if means, err = e.meansOfRows(ctx, layer); err != nil {
			return kernels.Tensor{}, err
		}
		defer e.freeAll(means)
	}
	e.step.Tape.Reset(false)
	x := make(model.Rows, len(e.data.Types))
	if err := e.leaf(ctx, l, h.typ, chunk, own, x); err != nil {
		return kernels.Tensor{}, err
	}
	given := make([]kernels.Tensor, len(h.sums))
	for r := range h.sums {
		if h.made.into(r) && (len(h.part.lists[r].loop) > 0 || e.hasEdges(r, chunk)) {
			given[r] = h.given(r, lo, lo+len(chunk), x)
		}
	}
	return e.layerGiven(ctx, l, h.typ, x, layer, given, means)
}

// given returns the layer's Edges.Given of relation r for nodes lo to hi, from the sums. x has
// their own rows.
func (h *held) given(r, lo, hi int, x model.Rows) kernels.Tensor {
	list, n := &h.part.lists[r], hi-lo
	be := h.e.step.Tape.Backend()
	if len(list.loop) > 0 {
		own := h.e.step.Model.Sources(h.e.step.Tape, h.layer, h.typ, n, x[h.typ])
		h.room(r, own.Cols)
		for i := range n {
			h.to, h.from = append(h.to, uint32(lo+i)), append(h.from, uint32(i))
		}
		h.weight = append(h.weight, list.loop[lo:hi]...)
		h.addEdges(r, own)
	}
	if h.sums[r].Buf == nil {
		return kernels.Tensor{}
	}
	sums := h.sums[r].Slice(lo, hi)
	if !list.weighs {
		factors := kernels.NewTensor(be, kernels.F32, n, 1)
		defer be.Free(factors.Buf)
		be.UploadF32(factors, list.inverse[lo:hi])
		be.ScaleRows(sums, factors)
	}
	return sums
}

// layerGiven computes layer l for the destinations of drawn, of type t, from means or sums a
// relation. x has their own rows. means has the means of the table rows of edges, by relation; if
// nil, the rows are brought.
func (e *Evaluator) layerGiven(
	ctx context.Context, l, t int, x model.Rows, drawn *sample.Layer, given, means []kernels.Tensor,
) (y kernels.Tensor, err error) {
	var g model.Graph
	if means != nil {
		g = e.graphWithoutRows(&e.block)
	} else if g, err = e.graph(ctx, &e.block); err != nil {
		return y, err
	}
	for r, mean := range means {
		g.Edges[r].GivenValues = mean
	}
	for n := range g.Nodes { // of the others no row is read
		g.Nodes[n].IDs = g.Nodes[n].IDs.Slice(0, g.Nodes[n].Dst)
	}
	for r, sum := range given {
		if sum.Rows > 0 { // a network that reads no neighbours has no blocks for edges
			g.Edges[r].Given = sum
		}
	}
	if l == 0 {
		e.step.Label(&g, drawn)
	}
	return e.step.Model.Layer(e.step.Tape, l, x, g)[t].Value, nil
}
