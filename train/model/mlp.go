package model

import (
	"fmt"

	"github.com/gnnstore/gnnstore/train/tape"
)

// MLP is SAGE without neighbours: what the features are worth alone.
const MLP Kind = "mlp"

var mlp = network{kind: MLP, alone: true, newLayer: newMLP}

type mlpLayer struct {
	weight, bias *tape.Var
	ending
}

func newMLP(d *declared, c Config, at place) layer {
	name := fmt.Sprintf("lins.%d.", at.layer)
	return &mlpLayer{
		weight: d.glorot(name+"weight", at.out, at.in[0]),
		bias:   d.constant(name+"bias", at.out, 0),
		ending: d.ending(c, at),
	}
}

func (l *mlpLayer) forward(s step, x Rows, g Graph) Rows {
	self := s.t.Convert(s.t.Head(x[0], g.Nodes[0].Dst))
	return Rows{l.affineReLU(s.t, l.bias, tape.Term{X: self, W: l.weight})}
}
