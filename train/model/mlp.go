package model

import (
	"fmt"

	"github.com/gnnstore/gnnstore/train/tape"
)

// MLP is SAGE without neighbours: what the features are worth alone.
const MLP Kind = "mlp"

var mlp = network{kind: MLP, alone: true, typed: true, newLayer: newMLP}

type mlpLayer struct {
	target       int
	weight, bias *tape.Var
	ending
}

func newMLP(d *declared, c Config, at place) layer {
	name := fmt.Sprintf("lins.%d.", at.layer)
	return &mlpLayer{
		target: at.shape.Target,
		weight: d.glorot(name+"weight", at.out, at.in[at.shape.Target]),
		bias:   d.constant(name+"bias", at.out, 0),
		ending: d.ending(c, at),
	}
}

func (l *mlpLayer) forward(s step, x Rows, g Graph) Rows {
	self := s.t.Factor(s.t.Head(x[l.target], g.Nodes[l.target].Dst))
	y := make(Rows, len(x))
	y[l.target] = l.affineReLU(s.t, l.bias, tape.Term{X: self, W: l.weight})
	return y
}
