package model

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/tape"
)

// twoTypes is SAGE for papers and authors, and three relations: papers cite papers, authors write papers, papers have
// authors. It stands for the typed networks: a file like sage.go is all that a network needs.
var twoTypes = network{kind: "two-types", newLayer: newTwoTypes}

// ends are the types that each relation comes from and leads to.
var ends = [][2]int{{0, 0}, {1, 0}, {0, 1}}

type twoTypesLayer struct {
	self, bias []*tape.Var // by type
	neighbor   []*tape.Var // by relation
	ending     []ending    // by type
}

func newTwoTypes(d *declared, c Config, at place) layer {
	var l twoTypesLayer
	for r, end := range ends {
		l.neighbor = append(l.neighbor, d.glorot(fmt.Sprintf("convs.%d.%d.weight", at.layer, r), at.out, at.in[end[0]]))
	}
	for i, in := range at.in {
		l.self = append(l.self, d.glorot(fmt.Sprintf("skips.%d.%d.weight", at.layer, i), at.out, in))
		l.bias = append(l.bias, d.constant(fmt.Sprintf("skips.%d.%d.bias", at.layer, i), at.out, 0.1))
		l.ending = append(l.ending, d.ending(c, at))
	}
	return &l
}

func (l *twoTypesLayer) forward(s step, x Rows, g Graph) Rows {
	y := make(Rows, len(x))
	for i, nodes := range g.Nodes {
		if nodes.Dst == 0 {
			continue // the last layer has no authors
		}
		terms := []tape.Term{{X: s.t.Convert(s.t.Head(x[i], nodes.Dst)), W: l.self[i]}}
		for r, e := range g.Edges {
			if from, to := ends[r][0], ends[r][1]; to == i {
				terms = append(terms, tape.Term{X: mean(s.t, x[from], e), W: l.neighbor[r]})
			}
		}
		y[i] = l.ending[i].affineReLU(s.t, l.bias[i], terms...)
	}
	return y
}

// TestTypedNetworksFit: a network of two types and three relations runs on Forward as it is, and its kept rows come by type.
func TestTypedNetworksFit(t *testing.T) {
	be := kernels.NewReference()
	c := Config{Kind: SAGE, Layers: 2, Hidden: 6, Norm: "layer", Dropout: 0.4}
	p := newProblem(be, SAGE, 24, someSeeds, c.Layers, 3, 6)
	for l, g := range p.graphs { // authors are as many as papers, but for the last layer's
		g.Nodes = append(g.Nodes, g.Nodes[0])
		g.Edges = append(g.Edges, g.Edges[0], g.Edges[0])
		if l == c.Layers-1 {
			g.Nodes[1].Dst = 0
		}
		p.graphs[l] = g
	}
	m := declare(twoTypes, c, Shape{In: []int{6, 6}, Out: 3})
	m.be = be
	for n, param := range m.Params {
		param.allocate(be, 11, uint64(n))
	}
	defer m.Close()
	tp := tape.New(be)
	defer tp.Close()
	shake(be, m)
	var kept Kept
	loss := func(record bool) (sum float64) {
		tp.Reset(record)
		y := m.Forward(tp, Rows{tp.Leaf(p.x), tp.Leaf(p.x)}, p.graphs, Pass{Key: 77, Kept: &kept})
		require.Len(t, y, 2)
		require.Nil(t, y[1])
		for _, l := range wide(be, tp.CrossEntropy(y[0], p.labels, 1)) {
			sum += l
		}
		return sum
	}
	loss(true)
	tp.Backward()
	require.Len(t, kept.Hidden, 1)
	require.Equal(t, kept.Hidden[0][1].Value.Rows, kept.Hidden[0][1].Grad.Rows)
	for _, param := range m.Params {
		value, grad := wide(be, param.Value), wide(be, param.Grad)
		for i, x := range value {
			const h = 1e-5
			at := func(v float64) float64 {
				value[i] = v
				be.UploadF64(param.Value, value)
				return loss(false)
			}
			up, down := at(x+h), at(x-h)
			at(x)
			require.InDelta(t, (up-down)/(2*h), grad[i], 1e-6, "%s[%d]", param.Name, i)
		}
	}
}

// TestTypesDropDifferently: type 0 drops what a graph of one type does, and type 1, of the same ids, something else.
func TestTypesDropDifferently(t *testing.T) {
	be := kernels.NewReference()
	p := newProblem(be, SAGE, 24, someSeeds, 1, 3, 6)
	tp := tape.New(be)
	defer tp.Close()
	nodes := p.graphs[0].Nodes[0]
	one := Rows{tp.Leaf(p.x)}.drop(tp, Graph{Nodes: []Frontier{nodes}}, 77, 0.4)
	two := Rows{tp.Leaf(p.x), tp.Leaf(p.x)}.drop(tp, Graph{Nodes: []Frontier{nodes, nodes}}, 77, 0.4)
	require.Equal(t, wide(be, one[0].Value), wide(be, two[0].Value))
	require.NotEqual(t, wide(be, two[0].Value), wide(be, two[1].Value))
}
