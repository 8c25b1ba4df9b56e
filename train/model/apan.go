package model

import (
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/tape"
)

// APAN (Wang et al. 2021): nodes keep several mails, neighbours' among them, and a memory is
// attention over these. It reads no neighbours.
const APAN Kind = "apan"

var apan = streamNetwork{
	kind: APAN, mails: 10, mostMails: 255, delivers: true, attends: true,
	update: func(m *Temporal, d *declared) updater { return newMailbox(m, d) },
	embed: func(m *Temporal, d *declared, f nodeFeatures) embedder {
		return newNormed(m, d, f)
	},
}

// mailbox is attention of a memory over its node's mails. Places of mails that have not
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
		mail: m.Mail(m.TemporalShape), mails: m.Mails, heads: m.Heads,
		dropout: float32(m.Dropout), attnDropout: float32(m.AttnDropout),
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
