package model

import (
	"math"

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
	// ComplEx is Re Σ z_u·w·conj(z_v) with one learnt w a relation (Trouillon et al. 2016): the
	// first half of a row are the real parts, the second one the imaginary parts.
	ComplEx Decoder = "complex"
	// TransE is a margin minus Σ |z_u + w - z_v|, with one learnt w a relation (Bordes et al.
	// 2013).
	TransE Decoder = "transe"
	// RotatE is a margin minus Σ |z_u·w - z_v| over complex numbers, in the layout of ComplEx. Each
	// number of w has the absolute value 1, and a relation learns its phase (Sun et al. 2019).
	RotatE Decoder = "rotate"
	// PairMLP is w₂·ReLU(W₁(z_u ⊙ z_v) + b₁) + b₂, as OGB's examples have it. Of classes of edges
	// it is W₂·ReLU(W₁[z_u ‖ z_v ‖ e] + b₁) + b₂, e being numbers of the edge.
	PairMLP Decoder = "mlp"
	// Linear is W[z_u ‖ z_v ‖ e] + b, of classes of edges.
	Linear Decoder = "linear"
)

// Decoders lists the decoders of links, and EdgeDecoders the decoders of edge classes.
var (
	Decoders     = []Decoder{Dot, DistMult, ComplEx, TransE, RotatE, PairMLP}
	EdgeDecoders = []Decoder{PairMLP, Linear}
)

// decoder has the parameters of Config.Decoder.
type decoder struct {
	scale                          *tape.Var // a row a relation: of RotatE phases
	turn, real, imaginary          *tape.Var // constants of ComplEx: see turned
	turns                          turns
	weight1, bias1, weight2, bias2 *tape.Var // of PairMLP
	edge                           edgeDecoder
}

// PerRelation reports whether the decoder has parameters for each of several relations.
func (k Decoder) PerRelation() bool { return k == DistMult || k == ComplEx || k.Distance() }

// Complex reports whether rows hold complex numbers, and so have an even number of columns.
func (k Decoder) Complex() bool { return k == ComplEx || k == RotatE }

// Product reports whether a score is a product of two rows: see Model.Query.
func (k Decoder) Product() bool { return k != PairMLP && !k.Distance() }

// decoderDeviation is the standard deviation of a relation's parameters at the start, about 0.
// So all scores begin near 0, and no two relations are equal.
const decoderDeviation = 0.1

// decoder declares the decoder's parameters for links between rows of cols columns. DistMult of one
// relation begins as Dot.
func (d *declared) decoder(kind Decoder, relations, cols int) (p decoder) {
	relations = max(1, relations)
	switch {
	case kind == DistMult && relations == 1:
		p.scale = d.constant("decoder.weight", cols, 1)
	case kind == TransE:
		// Learnt rows begin with the same deviation.
		p.scale = d.uniform("decoder.weight", math.Sqrt(3/float64(cols)), relations, cols)
	case kind == RotatE:
		p.scale = d.uniform("decoder.phase", math.Pi, relations, cols/2)
	case kind.PerRelation():
		p.scale = d.normal("decoder.weight", decoderDeviation, relations, cols)
	}
	switch kind {
	case PairMLP:
		p.weight1, p.bias1 = d.glorot("decoder.lins.0.weight", cols, cols), d.constant("decoder.lins.0.bias", cols, 0)
		p.weight2, p.bias2 = d.glorot("decoder.lins.1.weight", 1, cols), d.constant("decoder.lins.1.bias", 1, 0)
	}
	return p
}

// Pairs are pairs of nodes to score, as lists on the backend: each of Q nodes has some partners,
// which are rows of a table of P.
type Pairs struct {
	Nodes kernels.Tensor // U32, Q×1: rows of the nodes
	// Relations has the relation of the pairs of each node: U32, Q×1. It has no rows where there is
	// one relation.
	Relations kernels.Tensor
	// Reversed means that links go from the partners to the nodes.
	Reversed bool
	// Lists has for each of the nodes its partners, and the reverse. The lists lie one behind the
	// other, without gaps.
	Lists kernels.Adjacency
	// Owner has the node of each pair: U32, a row for each position of Lists.Nbr.
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

// product returns the products of elements of a and b, which have a row for each node. It is a
// WeightedSum in which each element is a head with one neighbour.
func (p Pairs) product(t *tape.Tape, a, b *tape.Var) *tape.Var {
	return t.WeightedSum(a, b, nil, p.each(p.Nodes.Rows))
}

// Bilinear returns rows whose products with partners' rows are the scores, up to their last bits:
// see Query. It returns nil where scores are no such products.
func (m *Model) Bilinear(t *tape.Tape, x *tape.Var, p Pairs) *tape.Var {
	if !m.Decoder.Product() {
		return nil
	}
	return m.Query(t, x, p)
}

// Score returns a score for each pair, in the order of its lists: of nodes, which are rows of x,
// and partners, rows of y. Both need gradients where the tape records, and both have Out columns.
func (m *Model) Score(t *tape.Tape, x, y *tape.Var, p Pairs) *tape.Var {
	if m.Decoder == PairMLP {
		q := t.GatherRows(x, p.Nodes)
		g := p.each(p.Owner.Rows)
		g.Nbr, g.RevStart, g.RevDst, g.RevEdge = p.Lists.Nbr, p.Lists.RevStart, p.Lists.RevEdge, p.Lists.RevEdge
		both := t.WeightedSum(y, t.GatherRows(q, p.Owner), nil, g)
		hidden := t.AffineReLU(m.decode.bias1, tape.Term{X: both, W: m.decode.weight1})
		return t.Affine(m.decode.bias2, tape.Term{X: hidden, W: m.decode.weight2})
	}
	if d := m.Distance(); d != nil {
		return t.EdgeDistance(m.Query(t, x, p), y, *d, p.Lists)
	}
	return t.EdgeDot(m.Query(t, x, p), y, 1, p.Lists, 1)
}

// Query returns a row for each node. The score of a pair is the product of this row and the
// partner's row or, if there is a Distance, depends on the distance between the two. PairMLP has no
// such rows.
func (m *Model) Query(t *tape.Tape, x *tape.Var, p Pairs) *tape.Var {
	q := t.GatherRows(x, p.Nodes)
	if !m.Decoder.PerRelation() {
		return q
	}
	if m.Decoder == RotatE {
		return m.turned(t, q, p)
	}
	w := m.RelationRows(t, p)
	switch {
	case m.Decoder == DistMult:
		return p.product(t, q, w)
	case m.Decoder == TransE && p.Reversed:
		return t.Sum(q, t.Times(w, -1))
	case m.Decoder == TransE:
		return t.Sum(q, w)
	}
	turned := t.Affine(nil, tape.Term{X: q, W: m.decode.turn, Across: p.Reversed})
	real, imaginary := t.Affine(nil, tape.Term{X: w, W: m.decode.real}), t.Affine(nil, tape.Term{X: w, W: m.decode.imaginary})
	return t.Sum(p.product(t, q, real), p.product(t, turned, imaginary))
}

// RelationRows returns a row for each node of p: the decoder's row of the relation of its pairs.
func (m *Model) RelationRows(t *tape.Tape, p Pairs) *tape.Var {
	return p.ofRelations(t, m.decode.scale)
}

// ofRelations returns a row for each node of p: the row in table of the relation of its pairs.
func (p Pairs) ofRelations(t *tape.Tape, table *tape.Var) *tape.Var {
	if p.Relations.Rows == 0 {
		return t.Repeat(table, p.Nodes.Rows)
	}
	return t.GatherRows(table, p.Relations)
}

// allocate makes the constants of ComplEx and RotatE. In ComplEx, rows x have cols columns. Then
// x·turnᵀ is i·x, and x·turn is -i·x. x·realᵀ has the real parts of x in both halves, and
// x·imaginaryᵀ the imaginary parts.
func (p *decoder) allocate(be kernels.Backend, kind Decoder, cols int) {
	if kind == RotatE {
		p.turns.allocate(be, p.scale.Value.Len())
	}
	if kind != ComplEx {
		return
	}
	matrix := func(at func(row int) (col int, v float32)) *tape.Var {
		host := make([]float32, cols*cols)
		for row := range cols {
			col, v := at(row)
			host[row*cols+col] = v
		}
		x := kernels.NewTensor(be, kernels.F32, cols, cols)
		be.UploadF32(x, host)
		return (&tape.Tape{}).Leaf(x)
	}
	half := cols / 2
	p.turn = matrix(func(row int) (int, float32) {
		if row < half {
			return row + half, -1
		}
		return row - half, 1
	})
	p.real = matrix(func(row int) (int, float32) { return row % half, 1 })
	p.imaginary = matrix(func(row int) (int, float32) { return half + row%half, 1 })
}

func (p *decoder) free(be kernels.Backend) {
	for _, x := range []*tape.Var{p.turn, p.real, p.imaginary} {
		if x != nil {
			be.Free(x.Value.Buf)
		}
	}
	p.turns.free(be)
}
