// Package model holds the networks: layers over tape operations, written once for every backend.
//
// A [Model] is a list of layers and their [Param]s. [Model.Forward] chains the layers over a batch,
// and evaluation calls [Model.Layer] for one layer at a time over the whole graph. Parameters have
// the names and shapes that PyTorch Geometric users expect.
//
// Nodes have types and edges have relations: [Rows] is a list by type, [Graph] has frontiers by
// type and edges by relation. SAGE, GCN, GAT and MLP know one type and one relation, so their lists
// have one element. RSAGE, RGCN, RGAT and HGT know any number: [Shape] names them, and lists the
// types and relations that each layer reaches. A layer has no parameters, no rows and no edges for
// the others.
//
// Parameters belong to the Model, from New to Close. Rows and gradients belong to the tape, until
// its next Reset. A Model is used by one goroutine at a time.
//
// A [Temporal] is a network for streams of events. temporal.go describes its input and its results.
// The caller keeps the state of nodes.
//
// Start at sage.go, at rsage.go for several types, and at tgn.go for streams. A further network is
// a file like them and an entry of the table in this one, or of streamTable.
package model

import (
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// Kind names a network.
type Kind string

// table has every network once.
var table = []network{sage, gcn, gat, mlp, rsage, rgcn, rgat, hgt}

// network holds the properties of a Kind.
type network struct {
	kind     Kind
	sampling sample.Options // what its blocks must have
	alone    bool           // it reads no neighbours
	validate func(c Config) error
	newLayer func(d *declared, c Config, at place) layer
	typed    bool // it knows types and relations; others have one of each
	labels   bool // its first layer can have labels for input
	across   bool // its matrices have a row for each input, not for each output
	edges    bool // it reads values of edges
	sums     bool // of its sources its layers read means or sums alone
}

// Kinds lists the networks there are.
var Kinds = kindsIn(table, func(n network) (Kind, bool) { return n.kind, true })

// kindsIn lists the kinds of a table for which kind returns listed.
func kindsIn[N any](table []N, kind func(n N) (k Kind, listed bool)) (all []Kind) {
	for _, n := range table {
		if k, listed := kind(n); listed {
			all = append(all, k)
		}
	}
	return all
}

// network is k's entry of the table, or the zero network.
func (k Kind) network() network {
	for _, n := range table {
		if n.kind == k {
			return n
		}
	}
	return network{}
}

// All is the fanout that reads everything this network looks at: every neighbour, or for an MLP
// none.
func (k Kind) All() int {
	if k.network().alone {
		return 0
	}
	return sample.All
}

// Sampling returns the options that the network's blocks need, whatever its shape: see
// [Config.Blocks].
func (k Kind) Sampling() sample.Options { return k.network().sampling }

// Typed reports whether the network knows several types and relations.
func (k Kind) Typed() bool { return k.network().typed }

// TypedKinds lists the networks that know several types and relations, for people.
func TypedKinds() string {
	return sample.Names(kindsIn(table, func(n network) (Kind, bool) { return n.kind, n.typed }))
}

// Sums reports whether layers read only a mean or a sum a relation of their sources' rows. A caller
// may give them that: Edges.Given.
func (k Kind) Sums() bool { return k.network().sums }

// ReadsEdges reports whether the network reads values of edges.
func (k Kind) ReadsEdges() bool { return k.network().edges }

// EdgeKinds lists the networks that read values of edges, for people.
func EdgeKinds() string {
	return sample.Names(kindsIn(table, func(n network) (Kind, bool) { return n.kind, n.edges }))
}

// Shape holds the sizes of a network that follow from the data.
type Shape struct {
	In  []int // columns of the input rows, by type; 0 where there are none, and the layers read a learnt row instead
	Out int   // columns of the logits: classes; or of the rows that Config.Decoder reads
	// EdgeOut is the columns of the logits that Config.Decoder makes of edges, by rows of Out
	// columns for both ends and EdgeIn numbers of the edge itself. Default 0: it scores links.
	EdgeOut, EdgeIn int
	// Decoded is the relations whose links Config.Decoder tells apart. Default: it does not.
	Decoded int
	// Learnt[t] means that the input rows of type t are learnt as the weights are: gradients flow
	// to them. Default: no type's rows are learnt.
	Learnt []bool
	// Target is the type of the seeds, whose logits they are.
	Target int

	// What typed networks need, and no others: the names of types and relations, and which of them
	// each layer knows. A graph of one type may leave them out: then names are node and
	// node___to___node, and each layer knows all.
	Types     []string
	Relations []Relation
	Reach     sample.Reach
	// Edges[r] is the number of values of an edge of relation r, for networks that read them. Edges
	// is empty where no edge has values.
	Edges []int
}

// named is s with the names that it left out.
func (s Shape) named() Shape {
	if len(s.In) == 1 && len(s.Types) == 0 {
		s.Types = []string{"node"}
	}
	if len(s.In) == 1 && len(s.Relations) == 0 {
		s.Relations = []Relation{{Name: "node___to___node"}}
	}
	return s
}

// LearntDim is the columns of type t's rows where they are learnt, else 0.
func (s *Shape) LearntDim(t int) int {
	if t < len(s.Learnt) && s.Learnt[t] {
		return s.In[t]
	}
	return 0
}

// Relation is a relation that layers sum over: its name in the names of parameters,
// SRC___REL___DST, and the numbers of its ends.
type Relation struct {
	Name string
	sample.Relation
}

// Model is a network on a backend.
type Model struct {
	Config
	Shape
	Parameters
	layers []layer
	lists  []*list
	rows   []*tape.Var // by type: what its nodes read where they have no rows, one row for all
	labels *labelInput // nil: it has none
	decode decoder

	inputGrads []bool // by type: gradients flow to the rows that layer 0 reads
}

// New makes a network of this shape, with weights drawn from seed: Glorot uniform matrices, zero
// biases. It panics when c is not valid.
func New(be kernels.Backend, c Config, s Shape, seed uint64) *Model {
	return build("New", be, c, s, func(p *Parameters) { p.begin(be, seed) })
}

// NewFixed makes a network to predict with: its parameters have no gradients, and are zero until
// Load or Upload. It panics as New does.
func NewFixed(be kernels.Backend, c Config, s Shape) *Model {
	return build("NewFixed", be, c, s, func(p *Parameters) { p.fix(be) })
}

// build makes a network. allocate gives its parameters memory; op is the caller's name for panics.
func build(op string, be kernels.Backend, c Config, s Shape, allocate func(p *Parameters)) *Model {
	if err := c.Validate(); err != nil {
		panic("model: " + op + ": " + err.Error())
	}
	m := declare(c.network(), c, s)
	allocate(&m.Parameters)
	for _, l := range m.lists {
		l.allocate(be)
	}
	m.decode.allocate(be, c.Decoder, s.Out)
	return m
}

// declare makes a network whose parameters have no memory yet.
func declare(n network, c Config, s Shape) *Model {
	s = s.named()
	c.Layers = max(c.Layers, 1) // rows as they are come from a layer that does nothing
	m, d := &Model{Config: c, Shape: s, rows: make([]*tape.Var, len(s.In))}, &declared{inputGrads: make([]bool, len(s.In))}
	for l := range c.Layers {
		at := place{shape: &m.Shape, layer: l, in: make([]int, len(s.In)), out: c.Hidden, last: l == c.Layers-1}
		for t, in := range s.In {
			switch {
			case !at.reads(t):
			case l > 0:
				at.in[t] = c.Hidden
			case in == 0:
				at.in[t] = c.Hidden
				m.rows[t] = d.glorot("inputs."+moduleKey(s.Types[t])+".row", 1, c.Hidden)
				d.inputGrads[t] = true
			default:
				at.in[t] = in
				d.inputGrads[t] = d.inputGrads[t] || s.LearntDim(t) > 0
			}
		}
		if at.last {
			at.out = s.Out
		}
		m.layers = append(m.layers, n.newLayer(d, c, at))
	}
	if c.LabelInput > 0 { // last, so that all others begin as they do without it
		m.labels = d.labelInput(n, c, &m.Shape)
	}
	if s.EdgeOut > 0 {
		m.decode.edge = d.edgeDecoder(c.Decoder, &s)
	} else {
		m.decode = d.decoder(c.Decoder, s.Decoded, s.Out)
	}
	m.Params, m.lists, m.inputGrads = d.params, d.lists, d.inputGrads
	return m
}

// Blocks returns the options that the blocks of this network need: Kind.Sampling, and the reverse
// of the input layer for relations from types whose rows gradients flow to. A network that reads no
// neighbours needs no blocks.
func (c Config) Blocks(s Shape) sample.Options {
	o := c.network().sampling
	if o.NoBlocks = !c.Reads(); !o.NoBlocks {
		o.RevTypes = declare(c.network(), c, s).inputGrads
	}
	return o
}

// Weights returns the number of elements in the parameters of New, to know their memory before it
// is taken.
func (c Config) Weights(s Shape) int64 {
	var n int64
	for _, p := range declare(c.network(), c, s).Params {
		n += int64(p.size())
	}
	return n
}

// Pass holds the options of Forward. The zero value is evaluation.
type Pass struct {
	// Key seeds dropout, a new one each step. Default 0: nothing is dropped.
	Key uint64
	// Kept receives the rows of hidden layers, which then stay as they are. Default nil: later
	// layers may write over them.
	Kept *Kept
	// Slots are tables of rows that earlier steps computed: Slots[l][t] has rows of type t that
	// layer l computes, F16, each of Config.Hidden columns or more. Frontier.At of layer l+1 names
	// the rows to read. Default nil: none.
	Slots [][]kernels.Tensor
	// Exchange returns the rows that layer l reads, if other workers have some of them. x has the
	// rows that this worker has: layer l-1 computed them, or they are from Slots. cols has the
	// columns of each type, 0 for types that layer l-1 does not compute. After the last layer, l is
	// the number of layers, and Exchange returns the rows of the seeds. Default nil: x has all
	// rows.
	Exchange func(l int, x Rows, cols []int) Rows
}

// Kept holds the rows between layers. Hidden[l] are the rows that layer l+1 reads, before dropout,
// computed or from slots. With Pass.Exchange they are the rows that this worker has, before it
// exchanges them. Each has its Value after Forward and its Grad after Backward, both until
// the tape's next Reset. Computed[l] are the rows that layer l computed. They have their Value just
// as long; where no row of the type is from a slot they are the same as Hidden[l].
type Kept struct{ Hidden, Computed []Rows }

// Forward computes the logits of a batch's seeds from the feature rows x of its inputs.
func (m *Model) Forward(t *tape.Tape, x Rows, graphs []Graph, p Pass) Rows {
	if p.Kept != nil {
		p.Kept.Hidden, p.Kept.Computed = p.Kept.Hidden[:0], p.Kept.Computed[:0]
	}
	x = m.inputs(t, x, graphs[0])
	for l, g := range graphs {
		if l > 0 {
			computed := x
			x = x.assemble(t, g, p.slots(l-1), m.Hidden)
			if p.Kept != nil {
				x.keep(t)
				p.Kept.Hidden, p.Kept.Computed = append(p.Kept.Hidden, x), append(p.Kept.Computed, computed)
			}
			x = m.exchanged(l, x, p)
		}
		x = m.layers[l].forward(m.step(t, l, p.Key), m.drop(t, l, x, g, p.Key), g)
	}
	return m.exchanged(len(graphs), x, p)
}

// exchanged returns the rows that layer l reads; x are the ones that this worker has.
func (m *Model) exchanged(l int, x Rows, p Pass) Rows {
	if p.Exchange == nil {
		return x
	}
	below := place{shape: &m.Shape, layer: l - 1}
	cols := make([]int, len(m.In))
	for t := range cols {
		if below.makes(t) {
			cols[t] = m.Width(l - 1)
		}
	}
	return p.Exchange(l, x, cols)
}

// slots are the tables of rows that layer l computes.
func (p Pass) slots(l int) []kernels.Tensor {
	if l < len(p.Slots) {
		return p.Slots[l]
	}
	return nil
}

// inputs is x with a row for each node of the types that have none.
func (m *Model) inputs(t *tape.Tape, x Rows, g Graph) Rows {
	if !slices.ContainsFunc(m.rows, func(row *tape.Var) bool { return row != nil }) {
		return x
	}
	x = slices.Clone(x)
	for i, row := range m.rows {
		if row != nil && g.Nodes[i].IDs.Rows > 0 {
			x[i] = t.Repeat(row, g.Nodes[i].IDs.Rows)
		}
	}
	return x
}

// drop is layer l's input x after dropout. It uses x up, as [tape.Tape.Dropout] does.
func (m *Model) drop(t *tape.Tape, l int, x Rows, g Graph, key uint64) Rows {
	p := float32(m.Dropout)
	if l == 0 {
		p = float32(m.InputDropout)
	}
	if key == 0 || p == 0 {
		return x
	}
	return x.drop(t, g, sample.Hash(key, uint64(l)), p)
}

// Layer computes layer l for the destinations of g from the rows x of its sources. Layer 0 reads
// features. The result is the activation before dropout, or in the last layer the logits. As in
// evaluation, nothing is dropped.
func (m *Model) Layer(t *tape.Tape, l int, x Rows, g Graph) Rows {
	if l == 0 {
		x = m.inputs(t, x, g)
	}
	return m.layers[l].forward(m.step(t, l, 0), x, g)
}

// Encodes reports whether layer l sums a function of its sources' rows, instead of the rows
// themselves.
func (m *Model) Encodes(l int) bool {
	_, ok := m.layers[l].(encodes)
	return ok
}

// Sources is the rows of n sources of type from as layer l adds them up, in float32: x, or where
// nodes of the type have no rows what they read instead. x is a leaf, or nil.
func (m *Model) Sources(t *tape.Tape, l, from, n int, x *tape.Var) kernels.Tensor {
	if l == 0 && m.rows[from] != nil {
		x = t.Repeat(m.rows[from], n)
	}
	if e, ok := m.layers[l].(encodes); ok {
		x = e.encode(t, from, x)
	}
	return t.Convert(x).Value
}

// step returns what layer l needs of a pass.
func (m *Model) step(t *tape.Tape, l int, key uint64) step {
	s := step{t: t, key: key}
	if l == 0 {
		s.labels = m.labels
	}
	return s
}

// Width is the number of columns that layer l produces.
func (m *Model) Width(l int) int {
	if l == m.Layers-1 {
		return m.Out
	}
	return m.Hidden
}

// Close frees the parameters.
func (m *Model) Close() {
	m.decode.free(m.be)
	for _, l := range m.lists {
		m.be.Free(l.Buf)
	}
	m.free()
}
