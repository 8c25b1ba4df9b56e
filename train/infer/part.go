package infer

import (
	"context"
	"slices"
	"sync"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/sample"
)

// part is destinations whose sums are held.
type part struct {
	nodes  []uint32
	chunks []int      // where each chunk of them ends
	lists  []partList // by relation
	bytes  int64
	done   chan struct{} // closed when the layer is computed for it
}

// partList has the data of one relation in a part, beside its edges.
type partList struct {
	inverse []float32 // of the length of each destination's list
	loop    []float32 // the weight of each destination's self loop, which ends its list; empty where there are none
	weighs  bool      // the edges have weights, which add up as they are
}

// partMaker draws parts, one after the other, on a goroutine of its own: a part while the layer is
// computed for the one before, from the memory of whose edges it makes its own.
type partMaker struct {
	h      *held
	memory int64      // of a part's edges and sums
	edges  []edgeList // by relation: of the part that is drawn, or added up
	batch  *sample.Batch
	parts  [2]part // the current one, and the one before
	n      int     // number of parts drawn
	room   int     // number of destinations that sums have memory for

	added chan struct{} // has an element while the edges are nobody's
	looks chan struct{} // gets one after each chunk
}

func newPartMaker(h *held, memory int64) *partMaker {
	e := h.e
	m := &partMaker{h: h, memory: memory, edges: make([]edgeList, len(e.data.Relations)), batch: &e.ahead[0].batch}
	m.added, m.looks = make(chan struct{}, 1), make(chan struct{}, 1)
	m.added <- struct{}{}
	relations := int64(0)
	for r := range m.edges {
		if m.into(r) {
			relations++
		}
	}
	for r := range m.edges {
		if m.into(r) {
			m.edges[r] = newEdgeList(e.data.Types[e.data.Relations[r].Src].Nodes, h.together(r), slackBlocks*h.block/relations, e.mayWeigh())
		}
	}
	return m
}

func (m *partMaker) free() {
	for r := range m.edges {
		m.edges[r].free()
	}
}

// start sends parts of nodes to ready, which it closes behind the last one. failed waits for the
// end of that, and returns its error.
func (m *partMaker) start(ctx context.Context, nodes nodeSet, ready chan<- *part) (failed func() error) {
	var making sync.WaitGroup
	var err error
	making.Go(func() {
		defer close(ready)
		err = store.Guard(func() error { return m.run(ctx, nodes, ready) })
	})
	return func() error {
		making.Wait()
		return err
	}
}

func (m *partMaker) run(ctx context.Context, nodes nodeSet, ready chan<- *part) error {
	var p *part
	send := func() error {
		m.room = max(m.room, len(p.nodes))
		select {
		case ready <- p:
		case <-ctx.Done():
			return ctx.Err()
		}
		p = nil
		return nil
	}
	err := m.h.e.chunks(nodes, m.h.typ, m.h.layer, func(chunk []uint32) (err error) {
		if p == nil {
			if p, err = m.begin(ctx, nodes, chunk[0]); err != nil {
				return err
			}
		}
		if err := m.add(ctx, p, chunk); err != nil {
			return err
		}
		if p.bytes < m.memory {
			return nil
		}
		return send()
	})
	if err == nil && p != nil {
		err = send()
	}
	return err
}

// begin begins the part of nodes from the first on, when the edges of the one before are added up.
func (m *partMaker) begin(ctx context.Context, nodes nodeSet, first uint32) (*part, error) {
	select {
	case <-m.added:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p := &m.parts[m.n%2]
	m.n++
	p.nodes, p.chunks, p.bytes, p.done = p.nodes[:0], p.chunks[:0], 0, make(chan struct{})
	if p.lists == nil {
		p.lists = make([]partList, len(m.edges))
	}
	for r := range p.lists {
		list := &p.lists[r]
		list.inverse, list.loop = list.inverse[:0], list.loop[:0]
		m.edges[r].clear()
	}
	return p, m.reserve(ctx, nodes, first)
}

// reserve makes room for the edges of the part that begins with node first, so that no list grows:
// hubs, which come first, have many more edges to a part than others.
func (m *partMaker) reserve(ctx context.Context, nodes nodeSet, first uint32) error {
	e := m.h.e
	node := e.sumBytes(m.h.layer, m.h.typ)
	// The last chunk begins before the memory is full, and is held to its end.
	chunk := int64(e.most.edges)*e.edgeBytes() + int64(e.most.bytes/(4*e.chunkWidth(m.h.typ, m.h.layer))+1)*node
	held, all, edges := int64(0), int64(0), make([]int, len(m.edges))
	for v := range nodes.from(first) {
		if held >= m.memory+chunk {
			break
		}
		held += node
		for r := range m.edges {
			if m.into(r) {
				n := e.data.Relations[r].Degree(v)
				edges[r] += n
				all += m.edges[r].bytes(n)
				held += m.edges[r].bytes(n)
			}
		}
	}
	if m.room > 0 && all+int64(m.room)*node > m.memory+2*chunk { // the order of nodes is not from many neighbours to few, as usual
		select {
		case <-m.parts[m.n%2].done: // and nobody uses the sums
		case <-ctx.Done():
			return ctx.Err()
		}
		for r := range m.edges {
			m.h.free(r)
		}
		m.room = 0
	}
	fit := true
	for r, n := range edges {
		fit = fit && (n == 0 || m.edges[r].fits(n))
	}
	if fit {
		return nil
	}
	m.free()
	for r, n := range edges {
		if n > 0 {
			if err := m.edges[r].grow(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// into reports whether the layer draws from relation r, to the type at hand.
func (m *partMaker) into(r int) bool {
	return m.h.e.data.Relations[r].Dst == m.h.typ && m.h.e.reach.Relations[m.h.layer][r]
}

// add takes note of the edges to a chunk.
func (m *partMaker) add(ctx context.Context, p *part, chunk []uint32) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e := m.h.e
	drawn := e.mayWeigh() || e.Draws.SelfLoops // else lists are read as they are stored
	if drawn {
		if err := e.draw(ctx, m.batch, m.h.layer, m.h.typ, chunk); err != nil {
			return err
		}
	}
	for r := range m.edges {
		if !m.into(r) {
			continue
		}
		l, before := &m.edges[r], m.edges[r].count
		var err error
		if drawn {
			ids := m.batch.Inputs()[e.data.Relations[r].Src]
			err = p.lists[r].add(l, &m.batch.Layers[0].Blocks[r], ids, uint32(len(p.nodes)), len(chunk), e.Draws.SelfLoops)
		} else {
			err = p.lists[r].addLists(l, &e.data.Relations[r], e.data.Types[e.data.Relations[r].Src].Nodes, uint32(len(p.nodes)), chunk)
		}
		if err != nil {
			return err
		}
		p.bytes += l.bytes(l.count - before)
	}
	p.bytes += int64(len(chunk)) * e.sumBytes(m.h.layer, m.h.typ)
	p.nodes = append(p.nodes, chunk...)
	p.chunks = append(p.chunks, len(p.nodes))
	select {
	case m.looks <- struct{}{}: // lists were read
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// add stores the edges of k to n destinations. The first of these is number first of the part. ids
// are the sources.
func (p *partList) add(l *edgeList, k *sample.Block, ids []uint32, first uint32, n int, loops bool) error {
	if err := l.room(len(k.Nbr)); err != nil {
		return err
	}
	if len(k.Weight) > 0 {
		l.weigh()
	}
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
		p.inverse = append(p.inverse, 1/float32(max(hi-lo, 1)))
		if loops && hi > lo {
			hi--
			p.loop = append(p.loop, weight(hi))
		}
		for at := lo; at < hi; at++ {
			l.add(ids[k.Nbr[at]], first+uint32(i), weight(at))
		}
	}
	p.weighs = l.weighs
	return nil
}

// addLists stores the whole lists of a chunk. The first of its nodes is number first of the part.
// Sources are below nodes.
func (p *partList) addLists(l *edgeList, r *data.Relation, nodes int, first uint32, chunk []uint32) error {
	edges := 0
	for _, v := range chunk {
		edges += r.Degree(v)
	}
	if err := l.room(edges); err != nil {
		return err
	}
	for i, v := range chunk {
		list := r.Neighbors(v)
		for _, u := range list {
			if int(u) >= nodes {
				return r.CorruptNeighbor(v, u)
			}
			l.add(u, first+uint32(i), 1)
		}
		p.inverse = append(p.inverse, 1/float32(max(len(list), 1)))
	}
	p.weighs = false
	return nil
}

// edgesOf returns the number of edges of relation r to nodes.
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

// hasEdges reports whether relation r has edges to any of nodes.
func (e *Evaluator) hasEdges(r int, nodes []uint32) bool {
	return slices.ContainsFunc(nodes, func(v uint32) bool { return e.data.Relations[r].Degree(v) > 0 })
}

// sumColumns returns the most columns that sums of relation r have.
func (e *Evaluator) sumColumns(l, r int) int {
	return max(e.step.Model.Hidden, e.data.Types[e.data.Relations[r].Src].Dim()*(1-min(l, 1)))
}

// sumBytes returns the bytes of a node of type t, beside its edges, while layer l holds its sums.
// It counts the sums, and for both the current part and the next one its number and partList.
func (e *Evaluator) sumBytes(l, t int) int64 {
	bytes := int64(2 * 4)
	for r, rel := range e.data.Relations {
		if rel.Dst == t && e.reach.Relations[l][r] {
			bytes += int64(4*e.sumColumns(l, r) + 2*(4+4))
		}
	}
	return bytes
}

// edgeBytes returns the bytes of an edge while its part is held.
func (e *Evaluator) edgeBytes() int64 {
	if e.mayWeigh() {
		return edgeBytes + weightBytes
	}
	return edgeBytes
}

// mayWeigh reports whether edges may have weights.
func (e *Evaluator) mayWeigh() bool { return e.Draws.Weighted || e.Draws.GCN }
