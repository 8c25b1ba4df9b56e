package infer

import (
	"context"
	"runtime/debug"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Rows or sums: a layer either holds the rows that a window of destinations reads, or the sums of a part of the destinations, to which it
// adds the rows of all sources as they pass, in ascending order. The first reads a source as often as windows want it, the second once for
// each part. Lists ascend, so both add up in the same order.

// part is destinations whose sums are held, and the edges to them.
type part struct {
	e      *Evaluator
	layer  int
	typ    int
	hidden hiddenRows
	nodes  []uint32
	chunks []int // where each chunk of them ends
	lists  []partLists
	order  []uint64 // of stream

	bytes    int64
	finished int // parts
}

// partLists are the edges of one relation.
type partLists struct {
	src, dst []uint32 // node, and number of the destination in the part
	weight   []float32
	weighs   bool      // the edges have weights, which add up as they are
	inverse  []float32 // of the length of each destination's list
	loop     []float32 // the weight of each destination's self loop, which ends its list; empty where there are none
	sums     kernels.Tensor
}

// bySums calls do with what layer l makes of nodes of type t, a chunk at a time, from sums that it holds in so much memory. parts is how
// often it has read all sources.
func (e *Evaluator) bySums(ctx context.Context, l, t int, nodes nodeSet, memory int64, hidden hiddenRows,
	do func(chunk []uint32, y kernels.Tensor) error) (parts int, err error) {
	p := &part{e: e, layer: l, typ: t, hidden: hidden, lists: make([]partLists, len(e.data.Relations))}
	memory = min(memory, edgeBytes<<31) // edges of a part are counted in 32 bits
	err = e.chunks(nodes, t, l, func(chunk []uint32) error {
		if len(p.nodes) == 0 {
			p.reserve(nodes, chunk[0], memory)
		}
		if err := p.add(ctx, chunk); err != nil {
			return err
		}
		if p.bytes < memory {
			return nil
		}
		return p.finish(ctx, do)
	})
	if err == nil && len(p.nodes) > 0 {
		err = p.finish(ctx, do)
	}
	return p.finished, err
}

// reserve makes room for the edges of the part that begins with node first, so that no list grows: hubs, which come first, have many more
// edges to a part than others.
func (p *part) reserve(nodes nodeSet, first uint32, memory int64) {
	held, edges := int64(0), make([]int64, len(p.lists))
	for v := range nodes.from(first) {
		if held >= memory+int64(p.e.most.edges)*edgeBytes { // and the rest of a chunk
			break
		}
		for r := range p.lists {
			if p.into(r) {
				n := int64(p.e.data.Relations[r].Degree(v))
				edges[r] += n
				held += edgeBytes*n + int64(4*p.e.sumColumns(p.layer, r)+8)
			}
		}
	}
	most, fit := int64(0), true
	for r, n := range edges {
		most, fit = max(most, n), fit && fits(p.lists[r].src, n)
	}
	if fit && fits(p.order, most) {
		return
	}
	for r := range p.lists {
		p.lists[r].src, p.lists[r].dst = nil, nil
	}
	p.order = nil
	if p.finished > 0 {
		debug.FreeOSMemory() // of the lists before, which are a good part of the memory, before there are others
	}
	for r, n := range edges {
		p.lists[r].src, p.lists[r].dst = make([]uint32, 0, n), make([]uint32, 0, n)
	}
	p.order = make([]uint64, 0, most)
}

// fits tells whether list has room for n, and not far too much.
func fits[T any](list []T, n int64) bool { return int64(cap(list)) >= n && int64(cap(list)) <= n+n/4 }

// edgesOf is how many edges relation r has to nodes.
func (e *Evaluator) edgesOf(r int, nodes nodeSet) (n int64) {
	rel := e.data.Relations[r]
	if nodes.count() == e.data.Types[rel.Dst].Nodes {
		return rel.Edges()
	}
	for v := range nodes.all {
		n += int64(rel.Degree(v))
	}
	return n
}

// into tells whether relation r is one that the layer draws from, to the type at hand.
func (p *part) into(r int) bool {
	return p.e.data.Relations[r].Dst == p.typ && p.e.reach.Relations[p.layer][r]
}

// sumColumns is how many columns sums of relation r have at most.
func (e *Evaluator) sumColumns(l, r int) int {
	return max(e.step.Model.Hidden, e.data.Types[e.data.Relations[r].Src].Dim()*(1-min(l, 1)))
}

// edgeBytes is what an edge takes while its part is held: both ends, its weight, and its place when they are sorted.
const edgeBytes = 4 + 4 + 4 + 8

// add takes note of the edges to a chunk.
func (p *part) add(ctx context.Context, chunk []uint32) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b := &p.e.block
	if err := p.e.draw(ctx, b, p.layer, p.typ, chunk); err != nil {
		return err
	}
	inputs := b.Inputs()
	for r := range p.lists {
		if !p.into(r) {
			continue
		}
		k, list, ids := &b.Layers[0].Blocks[r], &p.lists[r], inputs[p.e.data.Relations[r].Src]
		if len(k.Weight) > 0 && !list.weighs {
			list.weighs = true
			for range list.src {
				list.weight = append(list.weight, 1)
			}
		}
		weight := func(at uint32) float32 {
			if len(k.Weight) > 0 {
				return k.Weight[at]
			}
			return 1
		}
		for i := range chunk {
			lo, hi := uint32(0), uint32(0)
			if len(k.Start) > 0 {
				lo, hi = k.Start[i], k.End[i]
			}
			list.inverse = append(list.inverse, 1/float32(max(hi-lo, 1)))
			if p.e.Draws.SelfLoops && hi > lo {
				hi--
				list.loop = append(list.loop, weight(hi))
			}
			for at := lo; at < hi; at++ {
				list.src, list.dst = append(list.src, ids[k.Nbr[at]]), append(list.dst, uint32(len(p.nodes)+i))
				if list.weighs {
					list.weight = append(list.weight, weight(at))
				}
			}
			p.bytes += edgeBytes * int64(hi-lo)
		}
		p.bytes += int64(len(chunk)) * int64(4*p.e.sumColumns(p.layer, r)+8)
	}
	p.e.look()
	p.nodes = append(p.nodes, chunk...)
	p.chunks = append(p.chunks, len(p.nodes))
	return nil
}

// finish adds up what the part needs, gives the rows of its nodes to do, and empties it.
func (p *part) finish(ctx context.Context, do func(chunk []uint32, y kernels.Tensor) error) error {
	be := p.e.step.Tape.Backend()
	defer func() {
		for r := range p.lists {
			list := &p.lists[r]
			if list.sums.Buf != nil {
				be.Free(list.sums.Buf)
			}
			*list = partLists{
				src: list.src[:0], dst: list.dst[:0], weight: list.weight[:0], inverse: list.inverse[:0], loop: list.loop[:0], weighs: list.weighs,
			}
		}
		p.nodes, p.chunks, p.bytes = p.nodes[:0], p.chunks[:0], 0
		p.finished++
	}()
	for r := range p.lists {
		if err := p.stream(ctx, r); err != nil {
			return err
		}
	}
	lo := 0
	for _, hi := range p.chunks {
		y, err := p.compute(ctx, lo, hi)
		if err == nil {
			err = do(p.nodes[lo:hi], y)
		}
		if err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

// stream adds up the rows of relation r, source after source.
func (p *part) stream(ctx context.Context, r int) error {
	list, from := &p.lists[r], p.e.data.Relations[r].Src
	order := p.order[:0]
	for i, u := range list.src {
		order = append(order, uint64(u)<<32|uint64(i)) // equal sources as their lists have them
	}
	p.order = order
	slices.Sort(order)
	var ids, at []uint32 // sources of a batch, and of each of its edges the number of the source
	for len(order) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		ids, at = ids[:0], at[:0]
		n := 0
		for ; n < len(order) && n < p.e.most.part; n++ {
			if u := uint32(order[n] >> 32); len(ids) == 0 || ids[len(ids)-1] != u {
				ids = append(ids, u)
			}
			at = append(at, uint32(len(ids)-1))
		}
		p.e.step.Tape.Reset(false)
		x := make(model.Rows, len(p.e.data.Types))
		if err := p.e.bring(ctx, p.layer, from, ids, x, p.hidden); err != nil {
			return err
		}
		p.addRows(list, order[:n], at, p.e.step.Model.Sources(p.e.step.Tape, p.layer, from, len(ids), x[from]))
		order = order[n:]
		p.e.look()
	}
	return nil
}

// addRows adds the sources of edges to the sums of their destinations: at says which of rows is that of each.
func (p *part) addRows(list *partLists, edges []uint64, at []uint32, rows kernels.Tensor) {
	be := p.e.step.Tape.Backend()
	if list.sums.Buf == nil {
		list.sums = kernels.Tensor{Buf: be.Alloc(kernels.F32, len(p.nodes)*rows.Cols), Type: kernels.F32, Rows: len(p.nodes), Cols: rows.Cols}
	}
	order := make([]uint64, len(edges)) // by destination, and then by source
	for i, e := range edges {
		order[i] = uint64(list.dst[uint32(e)])<<32 | uint64(i)
	}
	slices.Sort(order)
	var touched []uint32
	for _, o := range order {
		if d := uint32(o >> 32); len(touched) == 0 || touched[len(touched)-1] != d {
			touched = append(touched, d)
		}
	}
	var l lists
	first, n := uint32(len(touched)), -1
	for _, o := range order {
		if n < 0 || touched[n] != uint32(o>>32) {
			n++
			l.begin(uint32(n)) // what is added up so far
		}
		i := uint32(o)
		weight := float32(1)
		if list.weighs {
			weight = list.weight[uint32(edges[i])]
		}
		l.add(first+at[i], weight)
	}
	p.e.addLists(&l, func(terms, ids kernels.Tensor) {
		be.GatherRows(terms.Slice(0, len(touched)), list.sums, ids)
		be.Convert(terms.Slice(len(touched), len(touched)+rows.Rows), rows)
	}, touched, rows.Rows, list.sums)
}

// lists are lists of terms and their weights, one behind the other.
type lists struct {
	start, nbr []uint32
	weight     []float32
}

// begin begins a list with a term that counts once.
func (l *lists) begin(term uint32) {
	l.start = append(l.start, uint32(len(l.nbr)))
	l.add(term, 1)
}

func (l *lists) add(term uint32, weight float32) {
	l.nbr, l.weight = append(l.nbr, term), append(l.weight, weight)
}

// addLists makes rows ids of sums what the lists of l come to, one a row. Terms are as many as ids, and then more.
func (e *Evaluator) addLists(l *lists, fill func(terms, ids kernels.Tensor), ids []uint32, more int, sums kernels.Tensor) {
	be := e.step.Tape.Backend()
	alloc := func(t kernels.DType, rows, cols int) kernels.Tensor {
		return kernels.Tensor{Buf: be.Alloc(t, rows*cols), Type: t, Rows: rows, Cols: cols}
	}
	n := len(ids)
	ints := alloc(kernels.U32, 2*n+1+len(l.nbr), 1)
	defer be.Free(ints.Buf)
	weights := alloc(kernels.F32, len(l.nbr), 1)
	defer be.Free(weights.Buf)
	terms := alloc(kernels.F32, n+more, sums.Cols)
	defer be.Free(terms.Buf)
	out := alloc(kernels.F32, n, sums.Cols)
	defer be.Free(out.Buf)
	be.UploadU32(ints, slices.Concat(ids, l.start, []uint32{uint32(len(l.nbr))}, l.nbr))
	be.UploadF32(weights, l.weight)
	fill(terms, ints.Slice(0, n))
	be.WeightedSum(out, terms, weights, kernels.Adjacency{
		Start: ints.Slice(n, 2*n), End: ints.Slice(n+1, 2*n+1), Nbr: ints.Slice(2*n+1, 2*n+1+len(l.nbr)),
	})
	be.ScatterRows(sums, out, ints.Slice(0, n))
}

// compute is the layer for nodes lo to hi of the part, whose sums are there.
func (p *part) compute(ctx context.Context, lo, hi int) (kernels.Tensor, error) {
	e, l, n := p.e, p.layer, hi-lo
	if err := e.draw(ctx, &e.block, l, p.typ, p.nodes[lo:hi]); err != nil {
		return kernels.Tensor{}, err
	}
	inputs := e.block.Inputs()
	e.step.Tape.Reset(false)
	x := make(model.Rows, len(inputs))
	if err := e.bring(ctx, l, p.typ, inputs[p.typ][:n], x, p.hidden); err != nil { // destinations come first
		return kernels.Tensor{}, err
	}
	given := make([]kernels.Tensor, len(p.lists))
	for r := range p.lists {
		given[r] = p.given(r, lo, hi, x)
	}
	return e.layerGiven(l, p.typ, x, &e.block.Layers[0], given), nil
}

// given is what the layer reads of relation r's sums for nodes lo to hi, whose own rows x has.
func (p *part) given(r, lo, hi int, x model.Rows) kernels.Tensor {
	list, n := &p.lists[r], hi-lo
	be := p.e.step.Tape.Backend()
	if len(list.loop) > 0 {
		own := p.e.step.Model.Sources(p.e.step.Tape, p.layer, p.typ, n, x[p.typ])
		if list.sums.Buf == nil {
			list.sums = kernels.Tensor{Buf: be.Alloc(kernels.F32, len(p.nodes)*own.Cols), Type: kernels.F32, Rows: len(p.nodes), Cols: own.Cols}
		}
		var l lists
		ids := make([]uint32, n)
		for i := range ids {
			ids[i] = uint32(lo + i)
			l.begin(uint32(i))
			l.add(uint32(n+i), list.loop[lo+i])
		}
		p.e.addLists(&l, func(terms, _ kernels.Tensor) {
			be.Convert(terms.Slice(0, n), list.sums.Slice(lo, hi))
			be.Convert(terms.Slice(n, 2*n), own)
		}, ids, n, list.sums)
	}
	if list.sums.Buf == nil {
		return kernels.Tensor{}
	}
	sums := list.sums.Slice(lo, hi)
	if !list.weighs {
		factors := kernels.Tensor{Buf: be.Alloc(kernels.F32, n), Type: kernels.F32, Rows: n, Cols: 1}
		defer be.Free(factors.Buf)
		be.UploadF32(factors, list.inverse[lo:hi])
		be.ScaleRows(sums, factors)
	}
	return sums
}

// layerGiven is layer l for the destinations of drawn, of type t, whose own rows x has, from means or sums a relation.
func (e *Evaluator) layerGiven(l, t int, x model.Rows, drawn *sample.Layer, given []kernels.Tensor) kernels.Tensor {
	g := e.step.Feed.Blocks(e.block.Layers)[0]
	for n := range g.Nodes { // of the others no row is read
		g.Nodes[n].IDs = g.Nodes[n].IDs.Slice(0, g.Nodes[n].Dst)
	}
	for r, sum := range given {
		g.Edges[r].Given = sum
	}
	if l == 0 {
		e.step.Label(&g, drawn)
	}
	return e.step.Model.Layer(e.step.Tape, l, x, g)[t].Value
}
