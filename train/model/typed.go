package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// typed is the part that layers of typed networks share: the types that they make, the relations
// that they draw from, and their endings.
type typed struct {
	relations []Relation
	makes     []bool
	into      [][]int  // by type: the relations to it that the layer draws from, ascending
	endings   []ending // by type
}

func (p place) typed() typed {
	l := typed{relations: p.shape.Relations, makes: make([]bool, len(p.in)), into: make([][]int, len(p.in))}
	for t := range p.in {
		l.makes[t] = p.makes(t)
	}
	for r, ends := range p.shape.Relations {
		if p.draws(r) {
			l.into[ends.Dst] = append(l.into[ends.Dst], r)
		}
	}
	return l
}

// each calls row for the types that the layer makes and that g has destinations of, with their
// number, and returns the rows.
func (l *typed) each(g Graph, row func(t, dst int) *tape.Var) Rows {
	y := make(Rows, len(g.Nodes))
	for t, nodes := range g.Nodes {
		if l.makes[t] && nodes.Dst > 0 {
			y[t] = row(t, nodes.Dst)
		}
	}
	return y
}

// drawn lists the relations to type t that have edges in g. The sum over others is 0, and their
// sources may have no rows.
func (l *typed) drawn(t int, g Graph) (relations []int) {
	for _, r := range l.into[t] {
		if g.Edges[r].Nbr.Rows > 0 || g.Edges[r].Given.Rows > 0 {
			relations = append(relations, r)
		}
	}
	return relations
}

// dropAttention returns alpha, an element an edge of relation r, after dropout in training.
func (l *typed) dropAttention(s step, layer, r int, alpha *tape.Var, g Graph, p float32) *tape.Var {
	if s.key == 0 {
		return alpha
	}
	from, to := g.Nodes[l.relations[r].Src], g.Nodes[l.relations[r].Dst]
	key := sample.Key(sample.Hash(s.key, uint64(layer), 1), r)
	return s.t.EdgeDropout(alpha, from.IDs, to.IDs.Slice(0, to.Dst), g.Edges[r].Adjacency, key, p)
}

// edges returns the number of values of an edge of relation r.
func (p place) edges(r int) int {
	if len(p.shape.Edges) == 0 {
		return 0
	}
	return p.shape.Edges[r]
}

// conv returns the beginning of the names of relation r's parameters. of does the same for the
// part of type t.
func (p place) conv(r int) string {
	return fmt.Sprintf("convs.%d.<%s>.", p.layer, moduleKey(p.shape.Relations[r].Name))
}

func (p place) of(part string, t int) string {
	return fmt.Sprintf("%s.%d.%s.", part, p.layer, moduleKey(p.shape.Types[t]))
}

// moduleKey is a name as PyTorch Geometric's ModuleDict has it: a dot would begin the name of a
// part.
func moduleKey(name string) string { return strings.ReplaceAll(name, ".", "#") }

// endings declares the ending of each type.
func (d *declared) endings(c Config, at place) []ending {
	all := make([]ending, len(at.in))
	for t := range all {
		if at.makes(t) {
			all[t] = d.endingOf(c, at, at.of("norms", t))
		}
	}
	return all
}

// skips has, by type, the parameters of S_t·x_v + b_t, the term of a node's own row. Types that the
// layer does not make have nil.
type skips struct{ weight, bias []*tape.Var }

func (d *declared) skips(at place) skips {
	s := skips{make([]*tape.Var, len(at.in)), make([]*tape.Var, len(at.in))}
	for t, in := range at.in {
		if at.makes(t) {
			name := at.of("skips", t)
			s.weight[t] = d.glorot(name+"weight", at.out, in)
			s.bias[t] = d.constant(name+"bias", at.out, 0)
		}
	}
	return s
}

// encoder brings the input rows of each type to Config.Hidden columns, by a linear map with a bias.
// Rows that are learnt and have as many already stay as they are. The zero value leaves all rows as
// they are.
type encoder struct{ weight, bias []*tape.Var } // by type

// encoder declares one, and returns the place of what reads its rows.
func (d *declared) encoder(c Config, at place) (encoder, place) {
	e := encoder{make([]*tape.Var, len(at.in)), make([]*tape.Var, len(at.in))}
	read := slices.Clone(at.in)
	for t, in := range at.in {
		if in == 0 || at.shape.In[t] == 0 || at.shape.LearntDim(t) == c.Hidden {
			continue
		}
		name := "inputs." + moduleKey(at.shape.Types[t]) + "."
		e.weight[t] = d.glorot(name+"weight", c.Hidden, in)
		e.bias[t] = d.constant(name+"bias", c.Hidden, 0)
		read[t] = c.Hidden
		d.inputGrads[t] = true
	}
	at.in = read
	return e, at
}

func (e encoder) forward(t *tape.Tape, x Rows) Rows {
	y := slices.Clone(x)
	for i := range e.weight {
		if x[i] != nil {
			y[i] = e.encode(t, i, x[i])
		}
	}
	return y
}

// encode is forward for rows of type n.
func (e encoder) encode(t *tape.Tape, n int, x *tape.Var) *tape.Var {
	if e.weight == nil || e.weight[n] == nil {
		return x
	}
	return t.Affine(e.bias[n], tape.Term{X: t.Factor(x), W: e.weight[n]})
}
