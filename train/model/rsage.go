package model

import (
	"github.com/gnnstore/gnnstore/train/tape"
)

// RSAGE is SAGE over several relations: y = S_t·x_v + b_t + Σ_r W_r·mean_r(x_u, u → v) for v of
// type t, the sum being over the relations to t. A mean of no neighbours is 0. It is R-GraphSAGE of
// the baselines of OGB-LSC (Hu et al. 2021), where all types share one S.
const RSAGE Kind = "rsage"

var rsage = network{kind: RSAGE, sums: true, typed: true, edges: true, newLayer: newRSAGE, labels: true}

type rsageLayer struct {
	typed
	neighbor []*tape.Var // by relation
	edge     []*tape.Var // likewise; nil where edges have no values
	skips    skips
}

func newRSAGE(d *declared, c Config, at place) layer {
	relations := len(at.shape.Relations)
	l := &rsageLayer{typed: at.typed(), neighbor: make([]*tape.Var, relations), edge: make([]*tape.Var, relations)}
	for r, ends := range at.shape.Relations {
		if at.draws(r) {
			l.neighbor[r] = d.glorot(at.conv(r)+"lin_l.weight", at.out, at.in[ends.Src])
		}
		if at.draws(r) && at.edges(r) > 0 {
			l.edge[r] = d.glorot(at.conv(r)+"lin_edge.weight", at.out, at.edges(r))
		}
	}
	l.skips = d.skips(at)
	l.endings = d.endings(c, at)
	return l
}

func (l *rsageLayer) forward(s step, x Rows, g Graph) Rows {
	return l.each(g, func(t, dst int) *tape.Var {
		terms := []tape.Term{{X: s.t.Factor(s.t.Head(x[t], dst)), W: l.skips.weight[t]}}
		for _, r := range l.drawn(t, g) {
			terms = append(terms, tape.Term{X: mean(s.t, x[l.relations[r].Src], g.Edges[r]), W: l.neighbor[r]})
			if w := l.edge[r]; w != nil {
				terms = append(terms, tape.Term{X: meanOfValues(s.t, g.Edges[r]), W: w})
			}
		}
		return l.endings[t].affineReLU(s.t, l.skips.bias[t], append(terms, s.labels.terms(s.t, t, g)...)...)
	})
}
