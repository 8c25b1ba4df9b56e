package infer

import (
	"context"
	"math/bits"
	"runtime"
	"runtime/debug"
	"slices"

	"golang.org/x/sync/errgroup"

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
	w      *windows
	layer  int
	typ    int
	nodes  []uint32
	chunks []int // where each chunk of them ends
	lists  []partLists
	block  int64 // bytes of sources that are read together

	to, from []uint32 // of some edges that are added: destination, and which of the rows at hand
	weight   []float32

	bytes    int64
	finished int // parts
}

// partLists are the edges of one relation.
type partLists struct {
	// edges have the source, and below it the number of the destination in the part; where edges have weights, their number in these lists.
	edges   []uint64
	dst     []uint32
	weight  []float32
	weighs  bool      // the edges have weights, which add up as they are
	inverse []float32 // of the length of each destination's list
	loop    []float32 // the weight of each destination's self loop, which ends its list; empty where there are none
	sums    kernels.Tensor
	memory  kernels.Buffer // of sums, of this part and of those that follow
}

// blockOf is how many bytes of sources are read together where sums are held in so much memory, and what is left of that beside those that
// are read ahead.
func blockOf(memory int64) (block, rest int64) {
	block = min(max(memory/blocksInMemory, leastBlock), mostBlock)
	return block, max(0, memory-aheadBlocks*block)
}

const (
	// The more is read together the less often the disk runs dry: BenchmarkEach.
	blocksInMemory = 32
	leastBlock     = 4 << 10
	mostBlock      = 16 << 20
)

// bySums calls do with what layer l makes of nodes of type t, a chunk at a time, from sums that it holds in so much memory. parts is how
// often it has read all sources.
func (w *windows) bySums(ctx context.Context, t int, nodes nodeSet, memory int64, do func(chunk []uint32, y kernels.Tensor) error) (parts int, err error) {
	p := &part{e: w.e, w: w, layer: w.layer, typ: t, lists: make([]partLists, len(w.e.data.Relations))}
	defer func() {
		for r := range p.lists {
			p.free(&p.lists[r])
		}
	}()
	p.block, memory = blockOf(memory)
	memory = min(memory, edgeBytes<<31) // edges of a part are counted in 32 bits
	err = w.e.chunks(nodes, t, w.layer, func(chunk []uint32) error {
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
	node := int64(0) // what one takes beside its edges
	for r := range p.lists {
		if p.into(r) {
			node += int64(4*p.e.sumColumns(p.layer, r) + 8)
		}
	}
	// The last chunk begins before the memory is full, and is held to its end.
	chunk := int64(p.e.most.edges)*p.e.edgeBytes() + int64(p.e.most.bytes/(4*p.e.chunkWidth(p.typ, p.layer))+1)*node
	held, all, edges := int64(0), int64(0), make([]int64, len(p.lists))
	for v := range nodes.from(first) {
		if held >= memory+chunk {
			break
		}
		held += node
		for r := range p.lists {
			if p.into(r) {
				n := int64(p.e.data.Relations[r].Degree(v))
				edges[r] += n
				all += p.e.edgeBytes() * n
				held += p.e.edgeBytes() * n
			}
		}
	}
	for r := range p.lists {
		if m := p.lists[r].memory; m != nil {
			all += 4 * int64(m.Len())
		}
	}
	if all > memory { // it is not the usual order of nodes, from many neighbours to few
		for r := range p.lists {
			p.free(&p.lists[r])
		}
	}
	fit := true
	for r, n := range edges {
		fit = fit && fits(p.lists[r].edges, n)
	}
	if fit {
		return
	}
	for r := range p.lists {
		list := &p.lists[r]
		list.edges, list.dst, list.weight = nil, nil, nil
	}
	if p.finished > 0 {
		debug.FreeOSMemory() // of the lists before, which are a good part of the memory, before there are others
	}
	for r, n := range edges {
		list := &p.lists[r]
		list.edges = make([]uint64, 0, n)
		if p.e.mayWeigh() {
			list.dst, list.weight = make([]uint32, 0, n), make([]float32, 0, n)
		}
	}
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

// What an edge takes while its part is held: both ends, and where it may have a weight that and its number.
const (
	edgeBytes        = 8
	weightedEdgeByte = 4 + 4
)

// edgeBytes is what an edge takes while its part is held.
func (e *Evaluator) edgeBytes() int64 {
	if e.mayWeigh() {
		return edgeBytes + weightedEdgeByte
	}
	return edgeBytes
}

// mayWeigh tells whether edges may have weights.
func (e *Evaluator) mayWeigh() bool { return e.Draws.Weighted || e.Draws.GCN }

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
		k, list := &b.Layers[0].Blocks[r], &p.lists[r]
		if len(k.Weight) > 0 {
			list.weigh()
		}
		list.add(k, inputs[p.e.data.Relations[r].Src], uint32(len(p.nodes)), len(chunk), p.e.Draws.SelfLoops)
		p.bytes += p.e.edgeBytes()*int64(len(k.Nbr)) + int64(len(chunk))*int64(4*p.e.sumColumns(p.layer, r)+8)
	}
	p.e.look()
	p.nodes = append(p.nodes, chunk...)
	p.chunks = append(p.chunks, len(p.nodes))
	return nil
}

// weigh has edges have weights; those so far weigh 1.
func (l *partLists) weigh() {
	if l.weighs {
		return
	}
	l.weighs = true
	for i, e := range l.edges {
		l.dst, l.weight = append(l.dst, uint32(e)), append(l.weight, 1)
		l.edges[i] = e>>32<<32 | uint64(i)
	}
}

// add takes note of the edges of k to n destinations, the first of which is number first of the part. ids are the sources.
func (l *partLists) add(k *sample.Block, ids []uint32, first uint32, n int, loops bool) {
	weight := func(at uint32) float32 {
		if len(k.Weight) > 0 {
			return k.Weight[at]
		}
		return 1
	}
	for i := range n {
		lo, hi := uint32(0), uint32(0)
		if len(k.Start) > 0 {
			lo, hi = k.Start[i], k.End[i]
		}
		l.inverse = append(l.inverse, 1/float32(max(hi-lo, 1)))
		if loops && hi > lo {
			hi--
			l.loop = append(l.loop, weight(hi))
		}
		dst := first + uint32(i)
		for at := lo; at < hi; at++ {
			low := dst
			if l.weighs {
				low = uint32(len(l.edges))
				l.dst, l.weight = append(l.dst, dst), append(l.weight, weight(at))
			}
			l.edges = append(l.edges, uint64(ids[k.Nbr[at]])<<32|uint64(low))
		}
	}
}

// finish adds up what the part needs, gives the rows of its nodes to do, and empties it.
func (p *part) finish(ctx context.Context, do func(chunk []uint32, y kernels.Tensor) error) error {
	defer func() {
		for r := range p.lists {
			list := &p.lists[r]
			*list = partLists{
				edges: list.edges[:0], dst: list.dst[:0], weight: list.weight[:0], inverse: list.inverse[:0], loop: list.loop[:0], weighs: list.weighs,
				memory: list.memory,
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
	return p.w.stream(ctx, p.typ, most, aheadBlocks*p.block, read, func(chunk []uint32, own kernels.Tensor) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		y, err := p.compute(ctx, lo, chunk, own)
		if err != nil {
			return err
		}
		lo += len(chunk)
		return do(chunk, y)
	})
}

// stream adds up the rows of relation r, source after source.
func (p *part) stream(ctx context.Context, r int) error {
	list, from := &p.lists[r], p.e.data.Relations[r].Src
	if len(list.edges) == 0 {
		return nil
	}
	sortEdges(list.edges) // equal sources as their lists have them
	rowBytes := 4 * int64(p.e.sumColumns(p.layer, r))
	if s := p.w.stacks[from]; s != nil {
		rowBytes = int64(s.RowBytes())
	}
	most := int(min(max(1, p.block/max(rowBytes, 1)), int64(len(list.edges))))
	unread, edges := list.edges, list.edges
	read := func(ids []uint32) []uint32 {
		for len(unread) > 0 {
			u := uint32(unread[0] >> 32)
			if n := len(ids); n == 0 || ids[n-1] != u {
				if n == most {
					break
				}
				ids = append(ids, u)
			}
			unread = unread[1:]
		}
		return ids
	}
	return p.w.stream(ctx, from, most, aheadBlocks*p.block, read, func(ids []uint32, rows kernels.Tensor) (err error) {
		edges, err = p.addBlock(ctx, list, from, edges, ids, rows)
		p.e.look()
		return err
	})
}

// addBlock adds sources, whose rows are those of rows, to the sums of their destinations. edges are sorted and begin with theirs; it returns
// the others.
func (p *part) addBlock(ctx context.Context, list *partLists, from int, edges []uint64, ids []uint32, rows kernels.Tensor) ([]uint64, error) {
	e, tape := p.e, p.e.step.Tape
	piece := max(1, e.most.bytes/(4*max(1, rows.Cols, e.step.Model.Hidden))) // as a chunk has them
	for lo := 0; lo < len(ids); lo += piece {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		hi := min(lo+piece, len(ids))
		some := kernels.Tensor{}
		if rows.Buf != nil {
			some = rows.Slice(lo, hi)
		}
		tape.Reset(false)
		x := make(model.Rows, len(e.data.Types))
		if err := e.leaf(ctx, p.layer, from, ids[lo:hi], some, x); err != nil {
			return nil, err
		}
		edges = p.addRows(list, edges, ids[lo:hi], e.step.Model.Sources(tape, p.layer, from, hi-lo, x[from]))
	}
	return edges, nil
}

// addRows is addBlock for rows as they add up.
func (p *part) addRows(list *partLists, edges []uint64, ids []uint32, rows kernels.Tensor) []uint64 {
	if list.sums.Buf == nil {
		list.sums = p.newSums(list, rows.Cols)
	}
	most := max(1, p.e.most.edges)
	p.to, p.from, p.weight = p.to[:0], p.from[:0], p.weight[:0]
	at := 0
	for len(edges) > 0 {
		u, low := uint32(edges[0]>>32), uint32(edges[0])
		for at < len(ids) && ids[at] != u {
			at++
		}
		if at == len(ids) {
			break
		}
		if list.weighs {
			p.weight = append(p.weight, list.weight[low])
			low = list.dst[low]
		}
		p.to, p.from = append(p.to, low), append(p.from, uint32(at))
		if edges = edges[1:]; len(p.to) == most {
			p.addEdges(list.sums, rows)
		}
	}
	p.addEdges(list.sums, rows)
	return edges
}

// newSums are sums of all destinations of the part, in the memory of the part before where that is large enough: the system takes its time
// to give memory anew.
func (p *part) newSums(list *partLists, cols int) kernels.Tensor {
	be, n := p.e.step.Tape.Backend(), len(p.nodes)*cols
	sums := kernels.Tensor{Buf: list.memory, Type: kernels.F32, Rows: len(p.nodes), Cols: cols}
	if list.memory != nil && list.memory.Len() >= n {
		be.Fill(sums, 0)
		return sums
	}
	p.free(list)
	list.memory = be.Alloc(kernels.F32, n)
	sums.Buf = list.memory
	return sums
}

// free gives up the memory of sums.
func (p *part) free(list *partLists) {
	if list.memory != nil {
		p.e.step.Tape.Backend().Free(list.memory)
		list.memory = nil
	}
}

// addEdges adds the edges that p.to, p.from and p.weight have, and empties these.
func (p *part) addEdges(sums, rows kernels.Tensor) {
	f, weight := p.e.step.Feed, kernels.Tensor{}
	if len(p.weight) > 0 {
		weight = f.UploadFloats(p.weight, 1)
	}
	ints := f.Ints(p.to, p.from)
	p.e.step.Tape.Backend().AddEdges(sums, rows, weight, ints[0], ints[1])
	p.to, p.from, p.weight = p.to[:0], p.from[:0], p.weight[:0]
}

// compute is the layer for a chunk of the part, from its lo-th node on. The sums are there, and own has the rows of its nodes.
func (p *part) compute(ctx context.Context, lo int, chunk []uint32, own kernels.Tensor) (kernels.Tensor, error) {
	e, l := p.e, p.layer
	if err := e.draw(ctx, &e.block, l, p.typ, chunk); err != nil {
		return kernels.Tensor{}, err
	}
	layer := &e.block.Layers[0]
	var means []kernels.Tensor
	if e.hub(l, p.typ, chunk) {
		var err error
		if means, err = e.meansOfRows(ctx, layer); err != nil {
			return kernels.Tensor{}, err
		}
		defer e.freeAll(means)
	}
	e.step.Tape.Reset(false)
	x := make(model.Rows, len(e.data.Types))
	if err := e.leaf(ctx, l, p.typ, chunk, own, x); err != nil {
		return kernels.Tensor{}, err
	}
	given := make([]kernels.Tensor, len(p.lists))
	for r := range p.lists {
		given[r] = p.given(r, lo, lo+len(chunk), x)
	}
	return e.layerGiven(ctx, l, p.typ, x, layer, given, means)
}

// given is what the layer reads of relation r's sums for nodes lo to hi, whose own rows x has.
func (p *part) given(r, lo, hi int, x model.Rows) kernels.Tensor {
	list, n := &p.lists[r], hi-lo
	be := p.e.step.Tape.Backend()
	if len(list.loop) > 0 {
		own := p.e.step.Model.Sources(p.e.step.Tape, p.layer, p.typ, n, x[p.typ])
		if list.sums.Buf == nil {
			list.sums = p.newSums(list, own.Cols)
		}
		for i := range n {
			p.to, p.from = append(p.to, uint32(lo+i)), append(p.from, uint32(i))
		}
		p.weight = append(p.weight, list.loop[lo:hi]...)
		p.addEdges(list.sums, own)
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

// sortEdges sorts edges where they are, 8 bits at a time, on several goroutines: hubs have low numbers, so a few buckets have most of them.
func sortEdges(edges []uint64) {
	if len(edges) == 0 {
		return
	}
	var sorting errgroup.Group
	sorting.SetLimit(runtime.GOMAXPROCS(0))
	sortBits(&sorting, edges, bits.Len64(slices.Max(edges)))
	_ = sorting.Wait() // which has no errors
}

const (
	radix     = 8 // bits
	fewEdges  = 1 << 7
	manyEdges = 1 << 16 // edges that another goroutine may sort
)

// sortBits sorts edges that are equal from this bit on.
func sortBits(sorting *errgroup.Group, edges []uint64, top int) {
	if len(edges) < fewEdges {
		slices.Sort(edges)
		return
	}
	shift := max(0, top-radix)
	var next, end [1 << radix]int
	bucket := func(e uint64) uint64 { return e >> shift & (1<<radix - 1) }
	for _, e := range edges {
		end[bucket(e)]++
	}
	for b, at := 0, 0; b < len(end); b++ {
		next[b], end[b], at = at, at+end[b], at+end[b]
	}
	for b := range next {
		for i := next[b]; i < end[b]; i = next[b] {
			e := edges[i]
			for of := bucket(e); of != uint64(b); of = bucket(e) {
				e, edges[next[of]] = edges[next[of]], e
				next[of]++
			}
			edges[i] = e
			next[b]++
		}
	}
	if shift == 0 {
		return
	}
	first := 0
	for _, last := range end {
		some := edges[first:last]
		first = last
		if len(some) < manyEdges || !sorting.TryGo(func() error { sortBits(sorting, some, shift); return nil }) {
			sortBits(sorting, some, shift)
		}
	}
}

// layerGiven is layer l for the destinations of drawn, of type t, whose own rows x has, from means or sums a relation. means are those of the rows
// that edges have in tables, by relation; nil: they are brought.
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
		g.Edges[r].Given = sum
	}
	if l == 0 {
		e.step.Label(&g, drawn)
	}
	return e.step.Model.Layer(e.step.Tape, l, x, g)[t].Value, nil
}
