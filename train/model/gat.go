package model

import (
	"fmt"

	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// GAT is graph attention (Veličković et al. 2018, equations 1 to 5): y = ‖_h Σ α_h·W_h·x_u + b over
// v and u → v. Hidden layers have Config.Heads heads side by side, the last one a single head, as
// the paper has it for Cora. A drawn neighbour's exponential is multiplied by its weight, see
// sample.Block: by how many neighbours it stands for.
const GAT Kind = "gat"

var gat = network{
	kind:     GAT,
	sampling: sample.Options{SelfLoops: true, RevEdges: true, RevInput: true},
	validate: validateHeads,
	newLayer: newGAT,
}

func validateHeads(c Config) error {
	if c.Heads < 1 || c.Heads > c.Hidden || c.Hidden%c.Heads != 0 {
		return fmt.Errorf("{heads} %d: it must divide {hidden} %d, the width of all together", c.Heads, c.Hidden)
	}
	return nil
}

type gatLayer struct {
	layer                        int
	attnDropout                  float32
	weight, attSrc, attDst, bias *tape.Var // attSrc, attDst: H×C
	ending
}

func newGAT(d *declared, c Config, at place) layer {
	heads := c.Heads
	if at.last {
		heads = 1
	}
	name := fmt.Sprintf("convs.%d.", at.layer)
	return &gatLayer{
		layer:       at.layer,
		attnDropout: float32(c.AttnDropout),
		weight:      d.glorot(name+"lin.weight", at.out, at.in[0]),
		attSrc:      d.glorot(name+"att_src", 1, heads, at.out/heads),
		attDst:      d.glorot(name+"att_dst", 1, heads, at.out/heads),
		bias:        d.constant(name+"bias", at.out, 0),
		ending:      d.ending(c, at),
	}
}

// attentionSlope is the slope of the paper's LeakyReLU.
const attentionSlope = 0.2

func (l *gatLayer) forward(s step, x Rows, g Graph) Rows {
	t, nodes, e := s.t, g.Nodes[0], g.Edges[0]
	if e.Given.Rows > 0 {
		return Rows{l.elu(t, t.Sum(t.Leaf(e.Given), t.Repeat(l.bias, e.Given.Rows)))}
	}
	rows := t.Affine(nil, tape.Term{X: t.Factor(x[0]), W: l.weight})
	src, dst := t.HeadDot(rows, l.attSrc), t.HeadDot(t.Head(rows, nodes.Dst), l.attDst)
	alpha := t.EdgeSoftmax(src, dst, e.Weight, e.Adjacency, attentionSlope)
	if s.key != 0 {
		key := sample.Hash(s.key, uint64(l.layer), 1)
		alpha = t.EdgeDropout(alpha, nodes.IDs, nodes.IDs.Slice(0, nodes.Dst), e.Adjacency, key, l.attnDropout)
	}
	return Rows{l.elu(t, t.WeightedSum(rows, alpha, l.bias, e.Adjacency))} // ELU as in the paper
}
