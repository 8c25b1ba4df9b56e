package model

import (
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/tape"
)

// Decoder names how the rows of two nodes make the score of a link from one to the other.
type Decoder string

const (
	// Dot is their product, ⟨z_u, z_v⟩: the decoder of GAE (Kipf and Welling 2016).
	Dot Decoder = "dot"
	// DistMult is Σ z_u·w·z_v with one learnt w (Yang et al. 2015).
	DistMult Decoder = "distmult"
	// PairMLP is w₂·ReLU(W₁(z_u ⊙ z_v) + b₁) + b₂, as OGB's examples have it. Of classes of edges it is W₂·ReLU(W₁[z_u ‖ z_v ‖ e] + b₁) + b₂,
	// e being numbers of the edge.
	PairMLP Decoder = "mlp"
	// Linear is W[z_u ‖ z_v ‖ e] + b, of classes of edges.
	Linear Decoder = "linear"
)

// Decoders lists those of links, and EdgeDecoders those of classes of edges.
var (
	Decoders     = []Decoder{Dot, DistMult, PairMLP}
	EdgeDecoders = []Decoder{PairMLP, Linear}
)

// decoder has the parameters of Config.Decoder.
type decoder struct {
	scale                          *tape.Var // of DistMult
	weight1, bias1, weight2, bias2 *tape.Var // of PairMLP
	edge                           edgeDecoder
}

// decoder declares the parameters of links between rows of so many columns. DistMult begins as Dot.
func (d *declared) decoder(kind Decoder, cols int) (p decoder) {
	switch kind {
	case DistMult:
		p.scale = d.constant("decoder.weight", cols, 1)
	case PairMLP:
		p.weight1, p.bias1 = d.glorot("decoder.lins.0.weight", cols, cols), d.constant("decoder.lins.0.bias", cols, 0)
		p.weight2, p.bias2 = d.glorot("decoder.lins.1.weight", 1, cols), d.constant("decoder.lins.1.bias", 1, 0)
	}
	return p
}

// Pairs are pairs of nodes to score, as lists on the backend: each of Q nodes has some partners, which are rows of a table of P.
type Pairs struct {
	Nodes kernels.Tensor // U32, Q×1: rows of the nodes
	// Lists has for each of the nodes its partners, and the reverse. The lists lie one behind the other, without gaps.
	Lists kernels.Adjacency
	// Owner is which of the nodes each pair is of: U32, a row for each position of Lists.Nbr.
	Owner kernels.Tensor
	// Count is 0, 1, 2 and so on, U32: one more than there are pairs, and than there are nodes.
	Count kernels.Tensor
}

// each is n lists of one element each: row i alone.
func (p Pairs) each(n int) kernels.Adjacency {
	own := p.Count.Slice(0, n)
	return kernels.Adjacency{
		Start: own, End: p.Count.Slice(1, n+1), Nbr: own, RevStart: p.Count.Slice(0, n+1), RevDst: own, RevEdge: own,
	}
}

// Bilinear is rows whose products with those of partners are scores, but for their last bits: the rows of x that p.Nodes names, with columns
// weighed as the decoder does. It is nil where scores are no such products.
func (m *Model) Bilinear(t *tape.Tape, x *tape.Var, p Pairs) *tape.Var {
	switch m.Decoder {
	case Dot:
		return t.GatherRows(x, p.Nodes)
	case DistMult:
		return m.weighed(t, t.GatherRows(x, p.Nodes), p)
	}
	return nil
}

// weighed is q with its columns times those of DistMult: a product of each element, as a sum over one neighbour with a head a column.
func (m *Model) weighed(t *tape.Tape, q *tape.Var, p Pairs) *tape.Var {
	return t.WeightedSum(q, t.Repeat(m.decode.scale, p.Nodes.Rows), nil, p.each(p.Nodes.Rows))
}

// Score is a score for each pair, in the order of its lists: of nodes, which are rows of x, and partners, rows of y. Both need
// gradients where the tape records, and both have Out columns.
func (m *Model) Score(t *tape.Tape, x, y *tape.Var, p Pairs) *tape.Var {
	q := t.GatherRows(x, p.Nodes)
	switch m.Decoder {
	case DistMult:
		q = m.weighed(t, q, p)
	case PairMLP:
		g := p.each(p.Owner.Rows)
		g.Nbr, g.RevStart, g.RevDst, g.RevEdge = p.Lists.Nbr, p.Lists.RevStart, p.Lists.RevEdge, p.Lists.RevEdge
		both := t.WeightedSum(y, t.GatherRows(q, p.Owner), nil, g)
		hidden := t.AffineReLU(m.decode.bias1, tape.Term{X: both, W: m.decode.weight1})
		return t.Affine(m.decode.bias2, tape.Term{X: hidden, W: m.decode.weight2})
	}
	return t.EdgeDot(q, y, 1, p.Lists, 1)
}
