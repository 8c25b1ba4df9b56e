package model

import (
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/tape"
)

// edgeDecoder has the parameters that make logits of edges: the matrix of [z_u ‖ z_v ‖ e] in its
// three parts, and of PairMLP a second one.
type edgeDecoder struct {
	src, dst, edge, bias *tape.Var // edge is nil without numbers of edges
	weight2, bias2       *tape.Var // of PairMLP
}

// edgeDecoder declares the parameters. The hidden layer is as wide as the rows of the ends.
func (d *declared) edgeDecoder(kind Decoder, s *Shape) (p edgeDecoder) {
	name, out := "decoder.lin.", s.EdgeOut
	if kind == PairMLP {
		name, out = "decoder.lins.0.", s.Out
	}
	fans := out + 2*s.Out + s.EdgeIn // of the matrix as a whole
	p.src, p.dst = d.glorotOf(name+"src.weight", fans, out, s.Out), d.glorotOf(name+"dst.weight", fans, out, s.Out)
	if s.EdgeIn > 0 {
		p.edge = d.glorotOf(name+"edge.weight", fans, out, s.EdgeIn)
	}
	p.bias = d.constant(name+"bias", out, 0)
	if kind == PairMLP {
		p.weight2, p.bias2 = d.glorot("decoder.lins.1.weight", s.EdgeOut, out), d.constant("decoder.lins.1.bias", s.EdgeOut, 0)
	}
	return p
}

// Ends are edges on the backend.
type Ends struct {
	Src, Dst kernels.Tensor // U32, E×1: rows of their ends
	Given    kernels.Tensor // F32, E×Shape.EdgeIn: their numbers
}

// Edges is the logits of edges, E×Shape.EdgeOut, from rows of x to rows of y. Both need gradients
// where the tape records, and both have Out columns.
func (m *Model) Edges(t *tape.Tape, x, y *tape.Var, e Ends) *tape.Var {
	p := &m.decode.edge
	terms := []tape.Term{{X: t.GatherRows(x, e.Src), W: p.src}, {X: t.GatherRows(y, e.Dst), W: p.dst}}
	if p.edge != nil {
		terms = append(terms, tape.Term{X: t.Leaf(e.Given), W: p.edge})
	}
	if p.weight2 == nil {
		return t.Affine(p.bias, terms...)
	}
	return t.Affine(p.bias2, tape.Term{X: t.AffineReLU(p.bias, terms...), W: p.weight2})
}
