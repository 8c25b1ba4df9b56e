package temporal

import (
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// maker holds the state with which one goroutine makes batches.
type maker struct {
	s                   *Sampler // as it is after lists are read
	nodes, events, rows table
	times               []float64 // by row: as the stream has it
	roots               []uint32  // by row: which root it is, or none
	last                []uint8   // by event: see ends
	mailed              table     // places that get mail
	mails               []mail    // what they get
}

// none is the root that a neighbour's row is.
const none = math.MaxUint32

// Whose last event in the batch it is.
const (
	ofSrc = 1 << iota
	ofDst
)

// make makes b what a step asks for. Those who ask in it are numbered from first on, of all steps'.
// What is damaged panics with a *store.SectionError.
func (m *maker) make(b *Batch, p *Step, first int) {
	e := m.s.events
	b.Reset()
	b.From, b.To = p.From, p.To
	if !p.StateOnly {
		b.Each = p.Each
	}
	src, dst := e.Ends(p.From, p.To)
	m.ends(src, dst)
	m.begin()
	before, asker := m.s.first, first
	for _, a := range p.Asks {
		b.Src = append(b.Src, m.root(b, a.Src, a.Time, e.Len(), asker))
		b.Dst = append(b.Dst, m.root(b, a.Dst, a.Time, e.Len(), asker+1))
		asker += 2
	}
	for i, t := range e.Times(p.From, p.To) {
		event := p.From + int64(i)
		if !(t >= before && t <= math.MaxFloat64) {
			panic(e.Corrupt(&e.Stream.Times, 8*event, "event %d has the time %v, and one before it %v", event, t, before))
		}
		before = t
		u, v := src[i], m.s.firstDst+dst[i]
		var rowU, rowV uint32
		switch {
		case !p.StateOnly:
			take := func(place uint32) (root uint32) {
				root = m.root(b, place, t, event, asker)
				asker++
				return root
			}
			b.Src, b.Dst = append(b.Src, take(u)), append(b.Dst, take(v))
			for j := range p.Each {
				b.Negatives = append(b.Negatives, take(p.Of(event, j)))
			}
			rowU, rowV = b.Roots[b.Src[i]], b.Roots[b.Dst[i]]
		case m.last[i] != 0:
			rowU, _ = m.row(b, u, t)
			rowV, _ = m.row(b, v, t)
		}
		if m.last[i]&ofSrc != 0 {
			b.Writes = append(b.Writes, Write{b.RowNode[rowU], rowU, rowV, m.event(b, uint32(event))})
		}
		if m.last[i]&ofDst != 0 {
			b.Writes = append(b.Writes, Write{b.RowNode[rowV], rowV, rowU, m.event(b, uint32(event))})
		}
	}
	if m.s.options.Deliver {
		m.deliver(b, src, dst, first)
	}
	b.size()
}

// begin forgets the batch before.
func (m *maker) begin() {
	m.nodes.begin()
	m.events.begin()
	m.rows.begin()
	m.times, m.roots = m.times[:0], m.roots[:0]
}

// ends finds the last event of each node, from the last event to the first. That of a node with
// itself is its destination's.
func (m *maker) ends(src, dst []store.NodeID) {
	m.nodes.begin()
	m.last = slices.Grow(m.last[:0], len(src))[:len(src)]
	for i := len(src) - 1; i >= 0; i-- {
		m.last[i] = 0
		if _, isNew := m.nodes.number(m.s.firstDst + dst[i]); isNew {
			m.last[i] |= ofDst
		}
		if _, isNew := m.nodes.number(src[i]); isNew {
			m.last[i] |= ofSrc
		}
	}
}

// root returns the root of the node at a place at time t. A new root asks for its neighbours. A row
// at that time that already exists is a root's: neighbours are earlier than their root, and roots
// come in the order of time.
func (m *maker) root(b *Batch, place uint32, t float64, event int64, asker int) uint32 {
	row, isNew := m.row(b, place, t)
	if !isNew {
		return m.roots[row]
	}
	root := uint32(len(b.Roots))
	m.roots[row] = root
	b.Roots = append(b.Roots, row)
	b.NearStart = append(b.NearStart, uint32(len(b.NearRow)))
	if !m.s.options.Deliver {
		m.neighbors(place, t, event, asker, func(neighbor uint32, h store.HalfEdge) {
			r, _ := m.row(b, neighbor, h.Time)
			b.NearRow = append(b.NearRow, r)
			b.NearEvent = append(b.NearEvent, m.event(b, h.Event))
			b.NearRoot = append(b.NearRoot, root)
			b.Since = append(b.Since, b.RowTime[row]-b.RowTime[r])
		})
	}
	b.NearEnd = append(b.NearEnd, uint32(len(b.NearRow)))
	return root
}

// neighbors calls do with each neighbour of the node at a place at the time of an event, the newest
// first, and the half-edge that leads to it.
func (m *maker) neighbors(place uint32, t float64, event int64, asker int, do func(place uint32, h store.HalfEdge)) {
	if m.s.counts == nil {
		return
	}
	other, others := uint32(0), m.s.events.Sources // of the nodes at the other end
	if place < m.s.firstDst {
		other, others = m.s.firstDst, m.s.events.Destinations
	}
	for _, w := range m.s.lists.of(asker) {
		for i := int(w.n) - 1; i >= 0; i-- {
			h := m.s.near[int(w.at)+i]
			if !(h.Time >= m.s.first && h.Time < t) || int64(h.Event) >= event || int64(h.Neighbor) >= others {
				m.damaged(w.lo+uint64(i), h, t, event)
			}
			do(other+h.Neighbor, h)
		}
	}
}

// damaged panics with what is wrong with half-edge i of the file.
func (m *maker) damaged(i uint64, h store.HalfEdge, t float64, event int64) {
	e := m.s.events
	panic(e.Corrupt(&e.Stream.Near, store.HalfEdgeBytes*int64(i),
		"half-edge %d is of event %d, at %v, with node %d; it is among those before event %d, at %v, and there are %d sources and %d destinations",
		i, h.Event, h.Time, h.Neighbor, event, t, e.Sources, e.Destinations))
}

// rowTag is 32 bits of a hash of a place and a time.
func rowTag(place uint32, t float64) uint32 {
	return uint32(sample.Fold(uint64(place), math.Float64bits(t)))
}

// row is the row of the node at a place at time t.
func (m *maker) row(b *Batch, place uint32, t float64) (row uint32, isNew bool) {
	t = positiveZero(t)
	tag := rowTag(place, t)
	slot := m.rows.start(tag)
	for ; ; slot++ {
		row, slot = m.rows.find(tag, slot)
		if row == m.rows.n {
			break
		}
		if m.times[row] == t && b.Nodes[b.RowNode[row]] == place {
			return row, false
		}
	}
	m.rows.put(tag, slot)
	node, isNew := m.nodes.number(place)
	if isNew {
		b.Nodes = append(b.Nodes, place)
	}
	b.RowNode, b.RowTime = append(b.RowNode, node), append(b.RowTime, m.s.scaled(t))
	m.times, m.roots = append(m.times, t), append(m.roots, none)
	return row, true
}

// event is where b has the features of an event.
func (m *maker) event(b *Batch, event uint32) uint32 {
	number, isNew := m.events.number(event)
	if isNew {
		b.Events = append(b.Events, event)
	}
	return number
}

func (m *maker) bytes() int64 {
	return 8*int64(len(m.nodes.slots)+len(m.events.slots)+len(m.rows.slots)+cap(m.times)) + 4*int64(cap(m.roots)) + int64(cap(m.last)) +
		8*int64(len(m.mailed.slots)) + 16*int64(cap(m.mails))
}
