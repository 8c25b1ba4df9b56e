package model

import (
	"fmt"

	"github.com/gnnstore/gnnstore/train/tape"
)

// RGCN is the relational graph convolution of Schlichtkrull et al. 2018, equation 2 with c =
// |N_r(v)|: y = W_0·x_v + b + Σ_r W_r·mean_r(x_u, u → v). All types share W_0 and b, so that they
// need rows of one width. Where the input widths differ, a linear map with a bias first brings each
// type to Config.Hidden columns.
//
// With Config.Bases B the input is always brought to that width, and W_r = Σ_b a_rb·V_b (equation
// 3).
//
// Where edges of r have values, E_r·mean_r(e_uv) is added, the mean being over the same edges. E_r
// is no sum of bases.
//
// Parameters have the shapes of PyTorch Geometric's RGCNConv, whose matrices have a row for each
// input. RGCNConv numbers relations. A layer here numbers the relations that it draws from, in
// their order. RGCNConv has no E_r; it is called edge of its relation, also with a row for each
// input.
const RGCN Kind = "rgcn"

var rgcn = network{
	kind: RGCN,
	validate: func(c Config) error {
		if c.Bases < 0 || c.Bases > 1<<16 {
			return fmt.Errorf("{bases} %d: at least 0, for a matrix a relation, and at most %d", c.Bases, 1<<16)
		}
		return nil
	},
	typed:    true,
	edges:    true,
	newLayer: newRGCN,
	labels:   true,
	across:   true,
	sums:     true,
}

type rgcnLayer struct {
	typed
	encoder
	in, bases    int
	number       []int       // by relation: which it is of those that the layer draws from
	weight, comp *tape.Var   // W_r one below the other, or V_b and a; nil where the layer draws from no relation
	edge         []*tape.Var // E_r by relation; nil where edges have no values
	root, bias   *tape.Var
}

func newRGCN(d *declared, c Config, at place) layer {
	relations := len(at.shape.Relations)
	l := &rgcnLayer{typed: at.typed(), bases: c.Bases, number: make([]int, relations), edge: make([]*tape.Var, relations)}
	if at.layer == 0 && (c.Bases > 0 || widths(at.in) > 1) {
		l.encoder, at = d.encoder(c, at)
	}
	for _, in := range at.in {
		l.in = max(l.in, in) // the width of all types that it reads
	}
	drawn := 0
	for r := range l.number {
		if at.draws(r) {
			l.number[r] = drawn
			drawn++
		}
	}
	name := fmt.Sprintf("convs.%d.", at.layer)
	switch {
	case drawn == 0:
	case c.Bases == 0:
		l.weight = d.glorot(name+"weight", drawn, l.in, at.out)
	default:
		l.weight = d.glorot(name+"weight", c.Bases, l.in, at.out)
		l.comp = d.glorot(name+"comp", drawn, c.Bases)
	}
	for r := range l.edge {
		if at.draws(r) && at.edges(r) > 0 {
			l.edge[r] = d.glorot(at.conv(r)+"edge", at.edges(r), at.out)
		}
	}
	l.root = d.glorot(name+"root", l.in, at.out)
	l.bias = d.constant(name+"bias", at.out, 0)
	l.endings = d.endings(c, at)
	return l
}

// widths counts the different numbers of columns, but for 0.
func widths(in []int) int {
	different := map[int]bool{}
	for _, cols := range in {
		if cols > 0 {
			different[cols] = true
		}
	}
	return len(different)
}

func (l *rgcnLayer) forward(s step, x Rows, g Graph) Rows {
	x = l.encoder.forward(s.t, x)
	ofRelations := l.weight
	if l.comp != nil && l.multiplies() {
		flat := s.t.Reshape(l.weight, l.bases, l.weight.Value.Len()/l.bases)
		ofRelations = s.t.Product(l.comp, flat)
		ofRelations = s.t.Reshape(ofRelations, l.comp.Value.Rows*l.in, l.weight.Value.Cols)
	}
	return l.each(g, func(t, dst int) *tape.Var {
		terms := []tape.Term{{X: s.t.Factor(s.t.Head(x[t], dst)), W: l.root, Across: true}}
		add := func(x, weights *tape.Var, n int) {
			terms = append(terms, tape.Term{X: x, W: s.t.Window(weights, n*l.in, (n+1)*l.in), Across: true})
		}
		var means []*tape.Var
		var numbers []int
		for _, r := range l.drawn(t, g) {
			means = append(means, mean(s.t, x[l.relations[r].Src], g.Edges[r]))
			numbers = append(numbers, l.number[r])
		}
		if l.mixes(t) && len(means) > 0 {
			for b, mixed := range s.t.Mix(means, l.comp, numbers) {
				add(mixed, l.weight, b)
			}
		} else {
			for i, n := range numbers {
				add(means[i], ofRelations, n)
			}
		}
		for _, r := range l.drawn(t, g) {
			if w := l.edge[r]; w != nil {
				terms = append(terms, tape.Term{X: meanOfValues(s.t, g.Edges[r]), W: w, Across: true})
			}
		}
		return l.endings[t].affineReLU(s.t, l.bias, append(terms, s.labels.terms(s.t, t, g)...)...)
	})
}

// mixes chooses between both sides of Σ_r W_r·mean_r = Σ_b V_b·(Σ_r a_rb·mean_r) for type t. It
// reports whether the right side has fewer products.
func (l *rgcnLayer) mixes(t int) bool { return l.comp != nil && len(l.into[t]) > l.bases }

// multiplies reports whether any type takes the left side.
func (l *rgcnLayer) multiplies() bool {
	for t, relations := range l.into {
		if len(relations) > 0 && !l.mixes(t) {
			return true
		}
	}
	return false
}
