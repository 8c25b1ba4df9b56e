package model

import (
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// layer is one layer of a network, with its parameters.
type layer interface {
	// forward computes the rows of g's destinations from the rows of its sources: the activation
	// before dropout, or the logits in the last layer.
	forward(s step, x Rows, g Graph) Rows
}

// encodes is a layer that sums a function of its sources' rows instead of the rows themselves.
type encodes interface {
	encode(t *tape.Tape, n int, x *tape.Var) *tape.Var
}

// place is the place of a layer in its network.
type place struct {
	shape *Shape
	layer int   // 0 reads features
	in    []int // columns of its sources, by type; 0 of those that it does not read
	out   int   // columns of its destinations
	last  bool  // it computes the logits
}

// reads, makes and draws report whether the layer reads rows of type t, makes rows of it, and draws
// from relation r. In networks of one type all three are true.
func (p place) reads(t int) bool { return p.untyped() || p.shape.Reach.Types[p.layer][t] }
func (p place) makes(t int) bool { return p.untyped() || p.shape.Reach.Types[p.layer+1][t] }
func (p place) draws(r int) bool { return p.untyped() || p.shape.Reach.Relations[p.layer][r] }
func (p place) untyped() bool    { return len(p.shape.Reach.Types) == 0 }

// step is the state of a pass that its layers get.
type step struct {
	t      *tape.Tape
	key    uint64      // seeds dropout; 0: nothing is dropped
	labels *labelInput // of the first layer, where the network has it
}

// Graph is one layer of a batch on the backend.
type Graph struct {
	Nodes []Frontier // by type
	Edges []Edges    // by relation
	// Labels are the labels that sources show. Only the first layer has them, for
	// Config.LabelInput. nil: none.
	Labels *Labels
}

// Frontier is the nodes of one type in a layer.
type Frontier struct {
	Dst int            // the first Dst sources are the destinations
	IDs kernels.Tensor // U32, one a source: dropout hashes them
	// At has the place of each source's row, where some rows come from Pass.Slots: the number of a
	// row that the layer below computed or, with kernels.InSlot added, of a row of the table. Back
	// has the source of each computed row. Both are U32. Without rows, source n has row n of the
	// layer below.
	At, Back kernels.Tensor
}

// Edges are the edges of one relation. Weight is F32, one a position of Nbr, or has no rows:
// sample.Block.Weight.
type Edges struct {
	kernels.Adjacency
	Weight kernels.Tensor
	// Given replaces the layer's sum over its sources' rows: F32, a row a destination, or no rows.
	// It is the mean of the rows, with GCN their sum, with attention the sum of Weighed by Alpha.
	// The caller has added it up in parts: see Kind.Sums and Attends.
	Given kernels.Tensor
	// GivenValues likewise replaces the layer's work on the edges' values. It is their mean, a row
	// a destination, or with attention ValueScores, a row a position of Nbr.
	GivenValues kernels.Tensor

	values kernels.Tensor    // a row a position of Nbr, F32; or rows of a table, where at has the one of each position; or no rows
	at     kernels.Tensor    // U32; no rows: the row of its own number
	own    kernels.Adjacency // the lists over the positions
}

// Bring gives edges values to read, F32, a row a position of Nbr: sample.Block.Values. count is 0,
// 1, 2 and so on, U32, and longer than Nbr.
func (e *Edges) Bring(values, count kernels.Tensor) {
	n := e.Nbr.Rows
	e.values = values
	e.own = kernels.Adjacency{Start: e.Start, End: e.End, Nbr: count.Slice(0, n), RevStart: count.Slice(0, n+1), RevEdge: count.Slice(0, n)}
}

// BringRows gives edges rows of a table to read, in float16 or float32: position i of Nbr has row
// at[i], as sample.Block.Rows says. count is as Bring has it.
func (e *Edges) BringRows(table, at, count kernels.Tensor) {
	e.Bring(table, count)
	e.at = at
}

// valued returns the values of edges, a row a position of Nbr, in float32.
func (e *Edges) valued(t *tape.Tape) *tape.Var {
	if e.at.Rows == 0 {
		return t.Leaf(e.values)
	}
	return t.GatherRows(t.Leaf(e.values), e.at)
}

// Rows are the rows of a layer's nodes, by type; nil for a type without rows.
type Rows []*tape.Var

func (x Rows) keep(t *tape.Tape) {
	for _, v := range x {
		if v != nil {
			t.Keep(v)
		}
	}
}

// assemble returns the rows that g reads, by type, all with cols columns. Some are computed, in x,
// and the others are in slots.
func (x Rows) assemble(t *tape.Tape, g Graph, slots []kernels.Tensor, cols int) Rows {
	if !slices.ContainsFunc(g.Nodes, func(nodes Frontier) bool { return nodes.At.Rows > 0 }) {
		return x
	}
	y := slices.Clone(x)
	for i, nodes := range g.Nodes {
		if nodes.At.Rows == 0 {
			continue
		}
		computed, table := x[i], kernels.Tensor{}
		if computed == nil { // all are in slots
			computed = t.Leaf(kernels.Tensor{Type: kernels.F32, Cols: cols})
		}
		if i < len(slots) {
			table = slots[i]
		}
		y[i] = t.Assemble(computed, table, nodes.At, nodes.Back)
	}
	return y
}

// convert returns x in float32.
func (x Rows) convert(t *tape.Tape) Rows {
	y := slices.Clone(x)
	for i, v := range x {
		if v != nil {
			y[i] = t.Convert(v)
		}
	}
	return y
}

// drop returns x after dropout, each type by a key of its own.
func (x Rows) drop(t *tape.Tape, g Graph, key uint64, p float32) Rows {
	y := slices.Clone(x)
	for i, v := range x {
		if v != nil {
			y[i] = t.Dropout(v, g.Nodes[i].IDs, sample.Key(key, i), p)
		}
	}
	return y
}

// mean returns the mean of every destination's neighbours, weighted where they have weights, which
// add up to 1.
func mean(t *tape.Tape, x *tape.Var, e Edges) *tape.Var {
	if e.Given.Rows > 0 {
		return t.Leaf(e.Given)
	}
	if e.Weight.Rows == 0 {
		return t.NeighborMean(x, e.Adjacency)
	}
	return t.WeightedSum(x, t.Leaf(e.Weight), nil, e.Adjacency)
}

// meanOfValues returns the mean of the values of every destination's edges.
func meanOfValues(t *tape.Tape, e Edges) *tape.Var {
	if e.GivenValues.Rows > 0 {
		return t.Leaf(e.GivenValues)
	}
	own := e.own
	if e.at.Rows > 0 {
		own.Nbr = e.at
	}
	return mean(t, t.Leaf(e.values), Edges{Adjacency: own, Weight: e.Weight})
}

// ending is the end of a layer. The last layer's result stays as it is. Others apply LayerNorm, if
// the network has it, and an activation.
type ending struct {
	last        bool
	gain, shift *tape.Var // of LayerNorm, or nil
}

func (d *declared) ending(c Config, at place) ending {
	return d.endingOf(c, at, fmt.Sprintf("norms.%d.", at.layer))
}

// endingOf is an ending whose parameters' names begin with name.
func (d *declared) endingOf(c Config, at place, name string) ending {
	e := ending{last: at.last}
	if c.Norm == "layer" && !at.last {
		e.gain = d.constant(name+"weight", at.out, 1)
		e.shift = d.constant(name+"bias", at.out, 0)
	}
	return e
}

// affineReLU returns Affine of the terms, then the layer's ending with ReLU. Without LayerNorm that
// is one operation.
func (e ending) affineReLU(t *tape.Tape, bias *tape.Var, terms ...tape.Term) *tape.Var {
	switch {
	case e.last:
		return t.Affine(bias, terms...)
	case e.gain == nil:
		return t.AffineReLU(bias, terms...)
	}
	return e.relu(t, t.Affine(bias, terms...))
}

// relu returns y after the layer's ending with ReLU. It uses y up.
func (e ending) relu(t *tape.Tape, y *tape.Var) *tape.Var { return e.with(t, t.ReLU, y) }

// elu returns y after the layer's ending with ELU.
func (e ending) elu(t *tape.Tape, y *tape.Var) *tape.Var { return e.with(t, t.ELU, y) }

// with returns y after the layer's norm and activation. The last layer has neither.
func (e ending) with(t *tape.Tape, activation func(*tape.Var) *tape.Var, y *tape.Var) *tape.Var {
	if e.last {
		return y
	}
	if e.gain != nil {
		y = t.LayerNorm(y, e.gain, e.shift)
	}
	return activation(y)
}
