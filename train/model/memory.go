package model

import (
	"math"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/tape"
)

// The updaters. Products with memory and mail are taken once a node, and those with times once a
// row: W[mail ‖ φ] is the sum of the products with the two windows of W's columns.

// newUpdater declares the updater of m, and what adds features.
func (m *Temporal) newUpdater(d *declared) updater {
	if m.Kind == APAN {
		return newMailbox(m, d)
	}
	return newCell(m, d)
}

// cell is a GRU cell, of TGN, or an RNN cell, of JODIE: its input is the mail and how long ago the
// memory was written.
type cell struct {
	clock
	mail                 int // columns of it
	gru                  bool
	input, state         *tape.Var // (3·)D×(Mail+T), and (3·)D×D
	inputBias, stateBias *tape.Var
}

func newCell(m *Temporal, d *declared) *cell {
	c := &cell{mail: m.Mail(m.TemporalShape), gru: m.Kind == TGN}
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

// mailbox is attention of a memory over its node's mails, of APAN. Places of mails that have not
// come yet take part, as zeros.
type mailbox struct {
	clock
	mail                 int // columns of one
	mails, heads         int
	dropout, attnDropout float32

	query, key, value, mix                 *tape.Var
	queryBias, keyBias, valueBias, mixBias *tape.Var
	gain, shift                            *tape.Var
}

func newMailbox(m *Temporal, d *declared) *mailbox {
	b := &mailbox{
		mail: m.Mail(m.TemporalShape), mails: m.Mails, heads: m.Heads, dropout: float32(m.Dropout), attnDropout: float32(m.AttnDropout),
	}
	const name = "memory_updater."
	b.clock = m.clock(d, name+"time_enc.")
	b.query, b.queryBias = d.linear(name+"w_q.", m.Hidden, m.Hidden)
	b.key, b.keyBias = d.linear(name+"w_k.", m.Hidden, b.mail+m.Time)
	b.value, b.valueBias = d.linear(name+"w_v.", m.Hidden, b.mail+m.Time)
	b.gain, b.shift = d.layerNorm(name+"layer_norm.", m.Hidden)
	b.mix, b.mixBias = d.linear(name+"mlp.", m.Hidden, m.Hidden)
	return b
}

func (b *mailbox) forward(s moment) *tape.Var {
	t := s.t
	memory := t.Leaf(s.Memory)
	mails := t.Leaf(kernels.Tensor{Buf: s.Mail.Buf, Type: s.Mail.Type, Off: s.Mail.Off, Rows: s.Mail.Rows * b.mails, Cols: b.mail})
	age := b.encode(t, s.MailAge)
	of := func(w, bias *tape.Var) *tape.Var { // a row a position
		ofMail := t.Affine(bias, tape.Term{X: mails, W: t.Columns(w, 0, b.mail)})
		ofAge := t.Affine(nil, tape.Term{X: age, W: t.Columns(w, b.mail, age.Value.Cols)})
		return s.add(ofAge, ofMail, s.Slots.At)
	}
	q := s.gather(t.Affine(b.queryBias, tape.Term{X: memory, W: b.query}), s.Node)
	o := s.attend(1, s.Slots, q, of(b.key, b.keyBias), of(b.value, b.valueBias), b.heads, b.attnDropout)
	o = t.LayerNorm(s.add(o, memory, s.Node), b.gain, b.shift)
	return t.ReLU(s.dropout(2, t.Affine(b.mixBias, tape.Term{X: o, W: b.mix}), b.dropout))
}
