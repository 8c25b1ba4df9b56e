package model

import (
	"github.com/gnnstore/gnnstore/train/tape"
)

// Labels are the labels of training nodes that the first layer of a network with Config.LabelInput
// reads: lists as Edges are, but of classes instead of sources, and all with weights. The caller
// leaves out the labels of the seeds.
//
// They add a term to y, what the first layer makes before norm and activation:
//
//	y_v += Z_0·L_v + Σ_r Z_r·mean_r(L_u, u → v)
//
// L_u is the sum of the rows of a learnt table (classes × LabelInput) for the classes that u shows,
// one or several, and 0 where it shows none. The sum runs over the relations from the labelled
// type. Its means count sources as the means of features do. Z_0 is for nodes of the labelled type.
// GCN's sum has a node itself among its sources, so it has no Z_0. Neither has a network whose
// first layer is the last, since the nodes that it makes show nothing.
//
// Parameters are labels.weight, the table, and Z: labels.own.weight and
// labels.<SRC___REL___DST>.weight.
type Labels struct {
	Own Edges   // of destinations of the labelled type: the classes of each
	Of  []Edges // by relation: the classes of each destination's sources
}

// labelInput has the parameters that a network needs to read Labels.
type labelInput struct {
	target    int
	relations []Relation
	table     *tape.Var
	own       *tape.Var   // Z_0, or nil
	of        []*tape.Var // Z_r; nil of relations that the first layer does not draw from, or that come from another type
	across    bool        // Z has a row for each input
}

func (d *declared) labelInput(n network, c Config, s *Shape) *labelInput {
	at := place{shape: s}
	l := &labelInput{target: s.Target, relations: s.Relations, of: make([]*tape.Var, len(s.Relations)), across: n.across}
	out := c.Hidden
	if c.Layers == 1 {
		out = s.Out
	}
	matrix := func(of string) *tape.Var {
		if n.across {
			return d.glorot("labels."+of+".weight", c.LabelInput, out)
		}
		return d.glorot("labels."+of+".weight", out, c.LabelInput)
	}
	l.table = d.glorot("labels.weight", s.Out, c.LabelInput)
	if c.Layers > 1 && !n.sampling.SelfLoops && at.makes(s.Target) {
		l.own = matrix("own")
	}
	for r, ends := range s.Relations {
		if ends.Src == s.Target && at.draws(r) {
			l.of[r] = matrix("<" + moduleKey(ends.Name) + ">")
		}
	}
	return l
}

// terms returns the terms that labels add to the rows of g's destinations of type t, or nil.
func (l *labelInput) terms(tp *tape.Tape, t int, g Graph) (terms []tape.Term) {
	if l == nil || g.Labels == nil {
		return nil
	}
	add := func(e Edges, z *tape.Var) {
		if z != nil && e.Nbr.Rows > 0 { // the sum over no edges is 0
			sum := tp.WeightedSum(l.table, tp.Leaf(e.Weight), nil, e.Adjacency)
			terms = append(terms, tape.Term{X: sum, W: z, Across: l.across})
		}
	}
	if t == l.target {
		add(g.Labels.Own, l.own)
	}
	for r, ends := range l.relations {
		if ends.Dst == t {
			add(g.Labels.Of[r], l.of[r])
		}
	}
	return terms
}

// SeesLabels reports whether input labels can reach the seeds of a network of this shape: whether a
// layer draws from a relation out of the labelled type.
func (s Shape) SeesLabels() bool {
	for _, drawn := range s.Reach.Relations {
		for r, ends := range s.Relations {
			if ends.Src == s.Target && drawn[r] {
				return true
			}
		}
	}
	return false
}

// labelled lists the networks that can have labels for input.
func labelled() []Kind {
	return kindsIn(table, func(n network) (Kind, bool) { return n.kind, n.labels })
}
