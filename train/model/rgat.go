package model

import (
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// RGAT is attention over several relations, R-GAT of the baselines of OGB-LSC (Hu et al. 2021): y =
// S_t·x_v + b_t + Σ_r ‖_h Σ α_rh·W_rh·x_u for v of type t, the sums being over the relations r to t
// and over u → v. Attention is GAT's within each relation, without self loops: of PyTorch
// Geometric's GATConv, which has one W_r for the scores of both ends where rows of both types have
// the same width, and else one for each.
//
// Where edges of r have values, ⟨a_rh, head h of E_r·e_uv⟩ is added to the score of u → v, as
// GATConv does with edge_dim: E_r is lin_edge.weight, and a_r att_edge. It comes to ⟨e_uv, Σ_c
// a_rhc·E_rhc⟩, which takes no row of all heads an edge.
//
// Hidden layers have Config.Heads heads side by side, the last one a single head, as GAT's.
const RGAT Kind = "rgat"

var rgat = network{
	kind:     RGAT,
	sampling: sample.Options{RevEdges: true, RevInput: true},
	validate: validateHeads,
	typed:    true,
	edges:    true,
	newLayer: newRGAT,
	labels:   true,
}

type rgatLayer struct {
	typed
	layer       int
	attnDropout float32
	attention   []attention // by relation
	heads       *heads      // nil where no edges have values
	skips       skips
}

// attention is the parameters of one relation. dst is src where one matrix serves both ends. edge
// and attEdge are nil where edges have no values.
type attention struct{ src, dst, attSrc, attDst, edge, attEdge *tape.Var }

// heads are the lists of a graph from the columns of a row to its heads: head h has the neighbours
// h·C … (h+1)·C.
type heads struct{ start, end, nbr, revStart, revDst *list }

func (d *declared) heads(n, width int) *heads {
	at := func(n, step, first int) *list {
		values := make([]uint32, n)
		for i := range values {
			values[i] = uint32(first + i*step)
		}
		return d.list(values)
	}
	owners := make([]uint32, n*width)
	for c := range owners {
		owners[c] = uint32(c / width)
	}
	return &heads{at(n, width, 0), at(n, width, width), at(n*width, 1, 0), at(n*width+1, 1, 0), d.list(owners)}
}

// sum returns for each head h the sum of C rows of x with weights a: row h is Σ_c a[h,c]·x[h·C+c].
// x is H·C×I, a is H×C, the result is H×I.
func (h *heads) sum(t *tape.Tape, x, a *tape.Var) *tape.Var {
	return t.WeightedSum(x, t.Reshape(a, a.Value.Len(), 1), nil, kernels.Adjacency{
		Start: h.start.Tensor, End: h.end.Tensor, Nbr: h.nbr.Tensor,
		RevStart: h.revStart.Tensor, RevDst: h.revDst.Tensor, RevEdge: h.nbr.Tensor,
	})
}

func newRGAT(d *declared, c Config, at place) layer {
	heads := c.Heads
	if at.last {
		heads = 1
	}
	l := &rgatLayer{typed: at.typed(), layer: at.layer, attnDropout: float32(c.AttnDropout)}
	l.attention = make([]attention, len(at.shape.Relations))
	for r, ends := range at.shape.Relations {
		if !at.draws(r) {
			continue
		}
		a, name := &l.attention[r], at.conv(r)
		if from, to := at.in[ends.Src], at.in[ends.Dst]; from == to {
			a.src = d.glorot(name+"lin.weight", at.out, from)
			a.dst = a.src
		} else {
			a.src = d.glorot(name+"lin_src.weight", at.out, from)
			a.dst = d.glorot(name+"lin_dst.weight", at.out, to)
		}
		a.attSrc = d.glorot(name+"att_src", 1, heads, at.out/heads)
		a.attDst = d.glorot(name+"att_dst", 1, heads, at.out/heads)
		if columns := at.edges(r); columns > 0 {
			a.edge = d.glorot(name+"lin_edge.weight", at.out, columns)
			a.attEdge = d.glorot(name+"att_edge", 1, heads, at.out/heads)
			if l.heads == nil {
				l.heads = d.heads(heads, at.out/heads)
			}
		}
	}
	l.skips = d.skips(at)
	l.endings = d.endings(c, at)
	return l
}

func (l *rgatLayer) forward(s step, x Rows, g Graph) Rows {
	x = x.convert(s.t)
	return l.each(g, func(t, dst int) *tape.Var {
		terms := []tape.Term{{X: s.t.Head(x[t], dst), W: l.skips.weight[t]}}
		own := s.t.Affine(l.skips.bias[t], append(terms, s.labels.terms(s.t, t, g)...)...)
		var sums []*tape.Var
		for _, r := range l.drawn(t, g) {
			sums = append(sums, l.attend(s, r, x, g))
		}
		return l.endings[t].elu(s.t, s.t.Sum(own, sums...))
	})
}

// attend returns the sum over relation r.
func (l *rgatLayer) attend(s step, r int, x Rows, g Graph) *tape.Var {
	t, a, e, ends := s.t, l.attention[r], g.Edges[r], l.relations[r]
	if e.Given.Rows > 0 {
		return t.Leaf(e.Given)
	}
	dst := g.Nodes[ends.Dst].Dst
	rows := t.Affine(nil, tape.Term{X: x[ends.Src], W: a.src})
	var own *tape.Var
	if ends.Src == ends.Dst {
		own = t.Head(rows, dst)
	} else {
		own = t.Affine(nil, tape.Term{X: t.Head(x[ends.Dst], dst), W: a.dst})
	}
	src, to := t.HeadDot(rows, a.attSrc), t.HeadDot(own, a.attDst)
	alpha := l.softmax(t, a, src, to, e)
	return t.WeightedSum(rows, l.dropAttention(s, l.layer, r, alpha, g, l.attnDropout), nil, e.Adjacency)
}

// softmax returns the attention of edges, from the scores of both ends.
func (l *rgatLayer) softmax(t *tape.Tape, a attention, src, dst *tape.Var, e Edges) *tape.Var {
	if a.edge == nil {
		return t.EdgeSoftmax(src, dst, e.Weight, e.Adjacency, attentionSlope)
	}
	edge := t.Leaf(e.GivenValues)
	if e.GivenValues.Rows == 0 {
		edge = l.scoreValues(t, a, e.valued(t))
	}
	return t.EdgeSoftmaxWith(src, dst, edge, e.Weight, e.Adjacency, e.own, attentionSlope)
}

// scoreValues returns the terms that edges' values add to their scores, a column a head.
func (l *rgatLayer) scoreValues(t *tape.Tape, a attention, values *tape.Var) *tape.Var {
	return t.Affine(nil, tape.Term{X: values, W: l.heads.sum(t, a.edge, a.attEdge)})
}
