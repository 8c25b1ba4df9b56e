package model

import (
	"github.com/gnnstore/gnnstore/train/tape"
)

const (
	// TGN is temporal graph networks (Rossi et al. 2020): memories by a GRU, and one layer of
	// attention over the last neighbours.
	TGN Kind = "tgn"
	// JODIE (Kumar et al. 2019), with one RNN for all nodes: embeddings are memories that drift
	// with time. It reads no neighbours.
	JODIE Kind = "jodie"
	// APAN (Wang et al. 2021): nodes keep several mails, neighbours' among them, and a memory is
	// attention over these. It reads no neighbours.
	APAN Kind = "apan"
)

// newEmbedder declares the embedder of m, and the map of features where their rows are not as wide
// as memories.
func (m *Temporal) newEmbedder(d *declared) embedder {
	f := nodeFeatures{columns: m.Node}
	if m.Kind == APAN {
		f.columns = 0
	}
	if f.columns > 0 && f.columns != m.Hidden {
		f.weight, f.bias = d.linear("memory_updater.node_feat_map.", m.Hidden, f.columns)
	}
	const name = "layers.l0h0."
	if m.Kind == TGN {
		return newNeighborhood(m, d, f, name)
	}
	n := &normed{nodeFeatures: f}
	n.gain, n.shift = d.layerNorm(name+"norm.", m.Hidden)
	if m.Kind == JODIE {
		n.drift, n.driftBias = d.normal("layers.l0h0t.time_emb.weight", 1, m.Hidden, 1), d.normal("layers.l0h0t.time_emb.bias", 1, m.Hidden)
	}
	return n
}

// nodeFeatures are those of nodes, which embeddings read beside memories.
type nodeFeatures struct {
	columns      int       // 0: none
	weight, bias *tape.Var // nil: features are as wide as memories, and added as they are
}

// join is h of each row: its memory plus its node's features, either of which may be missing; nil
// without both.
func (f nodeFeatures) join(s moment, memory *tape.Var) *tape.Var {
	if f.columns == 0 {
		return memory
	}
	t, x := s.t, s.t.Leaf(s.Features)
	if f.weight != nil {
		x = t.Affine(f.bias, tape.Term{X: t.Convert(x), W: f.weight})
	}
	of := s.Node
	if s.Described.Rows > 0 {
		of = s.Described
	}
	h := s.gather(x, of)
	if memory != nil {
		h = t.Sum(h, memory)
	}
	return h
}

// normed is the norm of h, of APAN, and of JODIE times 1 + w·away + b.
type normed struct {
	nodeFeatures
	gain, shift      *tape.Var
	drift, driftBias *tape.Var // of JODIE: D×1 and 1×D
}

func (n *normed) forward(s moment, memory *tape.Var) *tape.Var {
	t := s.t
	h := t.LayerNorm(t.GatherRows(n.join(s, memory), s.Root), n.gain, n.shift)
	if n.drift == nil {
		return h
	}
	// A product of each element is a sum over one neighbour with a head a column.
	each := Pairs{Count: s.Count}.each(h.Value.Rows)
	drift := t.Affine(n.driftBias, tape.Term{X: t.Leaf(s.Away), W: n.drift})
	return t.Sum(t.WeightedSum(h, drift, nil, each), h)
}

// neighborhood is one layer of attention over neighbours, of TGN. The key of a neighbour is a
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
	// The query's part of the time is that of no time, which all roots share.
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
		events := t.Affine(nil, tape.Term{X: t.Convert(t.Leaf(s.Events)), W: t.Columns(w, n.width, n.event)})
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
