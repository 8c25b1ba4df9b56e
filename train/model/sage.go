package model

import (
	"fmt"

	"github.com/gnnstore/gnnstore/train/tape"
)

// SAGE is GraphSAGE with the mean aggregator (Hamilton et al. 2017, algorithm 1 with the mean of
// section 3.3): y = W_r·x_v + W_l·mean(x_u, u → v) + b. Where the sampler prefers some neighbours
// to others, the mean is weighted: see sample.Block.
const SAGE Kind = "sage"

var sage = network{kind: SAGE, sums: true, newLayer: newSAGE, labels: true}

type sageLayer struct {
	neighbor, self, bias *tape.Var
	ending
}

func newSAGE(d *declared, c Config, at place) layer {
	name := fmt.Sprintf("convs.%d.", at.layer)
	return &sageLayer{ // in order: PyTorch Geometric's lin_l is the neighbours', lin_r the node's own
		neighbor: d.glorot(name+"lin_l.weight", at.out, at.in[0]),
		bias:     d.constant(name+"lin_l.bias", at.out, 0),
		self:     d.glorot(name+"lin_r.weight", at.out, at.in[0]),
		ending:   d.ending(c, at),
	}
}

func (l *sageLayer) forward(s step, x Rows, g Graph) Rows {
	self := s.t.Factor(s.t.Head(x[0], g.Nodes[0].Dst))
	terms := []tape.Term{{X: self, W: l.self}, {X: mean(s.t, x[0], g.Edges[0]), W: l.neighbor}}
	return Rows{l.affineReLU(s.t, l.bias, append(terms, s.labels.terms(s.t, 0, g)...)...)}
}
