package model

import (
	"fmt"

	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// GCN is the graph convolution of Kipf and Welling 2017, equation 2, on the in-degrees of the whole
// graph: y = W·Σ x_u/√(d̂_u·d̂_v) + b, the sum being over v and u → v. See sample.Options.GCN for
// d̂ and for sampling.
const GCN Kind = "gcn"

var gcn = network{
	kind:     GCN,
	sampling: sample.Options{SelfLoops: true, GCN: true, RevEdges: true},
	newLayer: newGCN,
	labels:   true,
	sums:     true,
}

type gcnLayer struct {
	weight, bias *tape.Var
	ending
}

func newGCN(d *declared, c Config, at place) layer {
	name := fmt.Sprintf("convs.%d.", at.layer)
	return &gcnLayer{
		weight: d.glorot(name+"lin.weight", at.out, at.in[0]),
		bias:   d.constant(name+"bias", at.out, 0),
		ending: d.ending(c, at),
	}
}

// forward multiplies by the weights after the sum, not before: there are fewer destinations than
// sources, and features are read as they are stored.
func (l *gcnLayer) forward(s step, x Rows, g Graph) Rows {
	terms := []tape.Term{{X: mean(s.t, x[0], g.Edges[0]), W: l.weight}} // by weights that do not add up to 1
	return Rows{l.affineReLU(s.t, l.bias, append(terms, s.labels.terms(s.t, 0, g)...)...)}
}
