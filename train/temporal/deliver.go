package temporal

import (
	"github.com/gnnstore/gnnstore/store"
)

// mail is the mail that counts for a node, among the events looked at so far. It comes from the
// source of an event, or with ofDst from its destination.
type mail struct {
	place, event uint32 // the event in the batch
	ofDst        bool
	own          bool // the node is that end
}

// deliver sends mail to the ends of events and to their neighbours (APAN, SIGMOD 2021; combined by
// "last", as TGL has it). A node gets one mail a batch: the latest. Among mails of the same time,
// its own wins over a neighbour's, and then the later event's wins. An event from a node to itself
// leaves the destination's mail. Askers are numbered from first on, across all steps.
func (m *maker) deliver(b *Batch, src, dst []store.NodeID, first int) {
	times := m.s.events.Times(b.From, b.To)
	m.mailed.begin()
	m.mails = m.mails[:0]
	get := func(x mail) {
		number, isNew := m.mailed.number(x.place)
		if isNew {
			m.mails = append(m.mails, x)
			return
		}
		if old := &m.mails[number]; x.own || !old.own || times[x.event] > times[old.event] {
			*old = x
		}
	}
	for i, t := range times {
		for end, place := range [2]uint32{src[i], m.s.firstDst + dst[i]} {
			m.neighbors(place, t, b.From+int64(i), first+2*i+end, func(neighbor uint32, _ store.HalfEdge) {
				get(mail{neighbor, uint32(i), end == 1, false})
			})
			get(mail{place, uint32(i), end == 1, true})
		}
	}
	for _, x := range m.mails {
		t := times[x.event]
		node, isNew := m.nodes.number(x.place)
		if isNew {
			b.Nodes = append(b.Nodes, x.place)
		}
		row, _ := m.row(b, src[x.event], t)
		other, _ := m.row(b, m.s.firstDst+dst[x.event], t)
		if x.ofDst {
			row, other = other, row
		}
		b.Mails = append(b.Mails, Write{node, row, other, m.event(b, uint32(b.From)+x.event)})
	}
}
