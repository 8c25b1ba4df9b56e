package model

import (
	"github.com/gnnstore/gnnstore/train/tape"
)

// JODIE (Kumar et al. 2019), with one RNN for all nodes: embeddings are memories that drift with
// time. It reads no neighbours.
const JODIE Kind = "jodie"

var jodie = streamNetwork{
	kind: JODIE, mails: 1, mostMails: 1, drifts: true, described: true,
	update: func(m *Temporal, d *declared) updater { return newCell(m, d, false) },
	embed: func(m *Temporal, d *declared, f nodeFeatures) embedder {
		n := newNormed(m, d, f)
		return &drifting{
			normed: n,
			drift:  d.normal("layers.l0h0t.time_emb.weight", 1, m.Hidden, 1),
			bias:   d.normal("layers.l0h0t.time_emb.bias", 1, m.Hidden),
		}
	},
}

// drifting is the norm of h times 1 + w·away + b.
type drifting struct {
	*normed
	drift, bias *tape.Var // D×1 and 1×D
}

func (n *drifting) forward(s moment, memory *tape.Var) *tape.Var {
	t := s.t
	h := n.normed.forward(s, memory)
	// A product of each element is a sum over one neighbour with a head a column.
	each := Pairs{Count: s.Count}.each(h.Value.Rows)
	drift := t.Affine(n.bias, tape.Term{X: t.Leaf(s.Away), W: n.drift})
	return t.Sum(t.WeightedSum(h, drift, nil, each), h)
}
