package model

import (
	"github.com/gnnstore/gnnstore/train/tape"
)

// TGN is temporal graph networks (Rossi et al. 2020): memories by a GRU, and one layer of attention
// over the last neighbours.
const TGN Kind = "tgn"

var tgn = streamNetwork{
	kind: TGN, mails: 1, mostMails: 1,
	neighbors: true, attends: true, described: true, identified: true, stateless: true,
	update: func(m *Temporal, d *declared) updater { return newCell(m, d, true) },
	embed: func(m *Temporal, d *declared, f nodeFeatures) embedder {
		return newNeighborhood(m, d, f, embedding)
	},
}

// neighborhood is one layer of attention over neighbours. The key of a neighbour is a
// product with its h, the event's features and the time since. As W[h ‖ e ‖ φ] is a sum of three
// products, each is taken once a row, once an event, and once a position.
type neighborhood struct {
	nodeFeatures
	clock
	now                  *tape.Var // no time at all, 1×2
	width, event, heads  int       // columns of h, which may be none, and of features of events
	dropout, attnDropout float32

	query, key, value, mix                 *tape.Var
	queryBias, keyBias, valueBias, mixBias *tape.Var
	gain, shift                            *tape.Var
}

func newNeighborhood(m *Temporal, d *declared, f nodeFeatures, name string) *neighborhood {
	n := &neighborhood{
		nodeFeatures: f, now: m.constant(0, 0), width: m.Hidden, event: m.Event, heads: m.Heads,
		dropout: float32(m.Dropout), attnDropout: float32(m.AttnDropout),
	}
	if m.Stateless && f.columns == 0 {
		n.width = 0
	}
	n.clock = m.clock(d, name+"time_enc.")
	n.query, n.queryBias = d.linear(name+"w_q.", m.Hidden, n.width+m.Time)
	n.key, n.keyBias = d.linear(name+"w_k.", m.Hidden, n.width+m.Event+m.Time)
	n.value, n.valueBias = d.linear(name+"w_v.", m.Hidden, n.width+m.Event+m.Time)
	n.mix, n.mixBias = d.linear(name+"w_out.", m.Hidden, n.width+m.Hidden)
	n.gain, n.shift = d.layerNorm(name+"layer_norm.", m.Hidden)
	return n
}

func (n *neighborhood) forward(s moment, memory *tape.Var) *tape.Var {
	t, times := s.t, n.shifts.Value.Cols
	h := n.join(s, memory)
	// All roots share the time part of the query: the encoding of time 0.
	q := t.Affine(n.queryBias, tape.Term{X: n.encode(t, n.now.Value), W: t.Columns(n.query, n.width, times)})
	var own *tape.Var
	if h != nil {
		own = t.GatherRows(h, s.Root)
		q = t.Affine(q, tape.Term{X: own, W: t.Columns(n.query, 0, n.width)})
	} else {
		q = t.Repeat(q, s.Root.Rows)
	}
	since := n.encode(t, s.Since)
	of := func(w, bias *tape.Var) *tape.Var { // a row a position
		y := t.Affine(bias, tape.Term{X: since, W: t.Columns(w, n.width+n.event, times)})
		if h != nil {
			y = s.add(y, t.Affine(nil, tape.Term{X: h, W: t.Columns(w, 0, n.width)}), s.Near.At)
		}
		if n.event == 0 || y.Value.Rows == 0 {
			return y
		}
		events := t.Affine(nil, tape.Term{X: t.Factor(t.Leaf(s.Events)), W: t.Columns(w, n.width, n.event)})
		if s.Event.Rows > 0 {
			return s.add(y, events, s.Event)
		}
		return t.Sum(y, events)
	}
	o := s.attend(3, s.Near, q, of(n.key, n.keyBias), of(n.value, n.valueBias), n.heads, n.attnDropout)
	terms := []tape.Term{{X: o, W: t.Columns(n.mix, 0, o.Value.Cols)}}
	if h != nil {
		terms = append(terms, tape.Term{X: own, W: t.Columns(n.mix, o.Value.Cols, n.width)})
	}
	return t.LayerNorm(t.ReLU(s.dropout(4, t.Affine(n.mixBias, terms...), n.dropout)), n.gain, n.shift)
}
