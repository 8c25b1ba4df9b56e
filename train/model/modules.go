package model

import (
	"math"

	"github.com/gnnstore/gnnstore/train/tape"
)

// Modules that several networks for streams have. Products with memory and mail are taken once a
// node, and those with times once a row: W[mail ‖ φ] is the sum of the products with the two
// windows of W's columns.

// cell is a GRU cell or an RNN cell. Its input is the mail and how long ago the memory was written.
type cell struct {
	clock
	mail                 int // columns of it
	gru                  bool
	input, state         *tape.Var // (3·)D×(Mail+T), and (3·)D×D
	inputBias, stateBias *tape.Var
}

func newCell(m *Temporal, d *declared, gru bool) *cell {
	c := &cell{mail: m.Mail(m.TemporalShape), gru: gru}
	out, a := m.Hidden, 1/math.Sqrt(float64(m.Hidden))
	if c.gru {
		out *= 3
	}
	const name = "memory_updater."
	c.input, c.state = d.uniform(name+"updater.weight_ih", a, out, c.mail+m.Time), d.uniform(name+"updater.weight_hh", a, out, m.Hidden)
	c.inputBias, c.stateBias = d.uniform(name+"updater.bias_ih", a, out), d.uniform(name+"updater.bias_hh", a, out)
	c.clock = m.clock(d, name+"time_enc.")
	return c
}

func (c *cell) forward(s moment) *tape.Var {
	t, mail, memory := s.t, s.t.Leaf(s.Mail), s.t.Leaf(s.Memory)
	ofMail := tape.Term{X: mail, W: t.Columns(c.input, 0, c.mail)}
	ofAge := tape.Term{X: c.encode(t, s.Age), W: t.Columns(c.input, c.mail, c.shifts.Value.Cols)}
	ofMemory := tape.Term{X: memory, W: c.state}
	if !c.gru {
		nodes := t.Affine(c.inputBias, ofMail, ofMemory)
		return t.Tanh(s.add(t.Affine(c.stateBias, ofAge), nodes, s.Node))
	}
	x := s.add(t.Affine(nil, ofAge), t.Affine(c.inputBias, ofMail), s.Node)
	h := s.gather(t.Affine(c.stateBias, ofMemory), s.Node)
	return t.GRUCell(x, h, t.GatherRows(memory, s.Node))
}

// nodeFeatures maps the features of nodes, which embeddings read beside memories.
type nodeFeatures struct {
	columns      int       // 0: none
	weight, bias *tape.Var // nil: features are as wide as memories, and added as they are
}

// join returns h of each row: its memory plus its node's features. Either may be missing. Without
// both it returns nil.
func (f nodeFeatures) join(s moment, memory *tape.Var) *tape.Var {
	if f.columns == 0 {
		return memory
	}
	t, x := s.t, s.t.Leaf(s.Features)
	if f.weight != nil {
		x = t.Affine(f.bias, tape.Term{X: t.Factor(x), W: f.weight})
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

// newFeatures declares the map of node features, if their rows are not as wide as memories.
func newFeatures(m *Temporal, d *declared, columns int) nodeFeatures {
	f := nodeFeatures{columns: columns}
	if f.columns > 0 && f.columns != m.Hidden {
		f.weight, f.bias = d.linear("memory_updater.node_feat_map.", m.Hidden, f.columns)
	}
	return f
}

// embedding begins the names of an embedder's parameters.
const embedding = "layers.l0h0."

// normed returns the norm of h.
type normed struct {
	nodeFeatures
	gain, shift *tape.Var
}

func newNormed(m *Temporal, d *declared, f nodeFeatures) *normed {
	n := &normed{nodeFeatures: f}
	n.gain, n.shift = d.layerNorm(embedding+"norm.", m.Hidden)
	return n
}

func (n *normed) forward(s moment, memory *tape.Var) *tape.Var {
	return s.t.LayerNorm(s.t.GatherRows(n.join(s, memory), s.Root), n.gain, n.shift)
}
