package model

import (
	"fmt"
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// HGT is the heterogeneous graph transformer of Hu et al. 2020, as PyTorch Geometric's HGTConv has
// it. Types have queries, keys and values, relations a matrix A_r for keys, M_r for values and a
// factor μ_r, all of them per head, of D columns:
//
//	score of u → v = μ_r/√D · ⟨q_v, k_u·A_r⟩     α = softmax over the edges of all relations to v
//	o = Σ α·v_u·M_r     y = β·(A_t·GELU(o) + b) + (1-β)·x_v with β = σ(skip_t)
//
// It multiplies where there are fewer rows: keys stay as they are and queries take A_r, and M_r
// comes after the sum.
//
// Each type's input is first brought to Config.Hidden columns, by a linear map with a bias. All
// layers are as wide, with Config.Heads heads side by side; of the last one's rows a linear map
// makes the logits. Parameters are HGTConv's, but for those that nothing reads; a layer numbers
// relations as RGCN's do.
const HGT Kind = "hgt"

var hgt = network{
	kind:     HGT,
	sampling: sample.Options{RevEdges: true, RevInput: true},
	validate: validateHeads,
	typed:    true,
	newLayer: newHGT,
	labels:   true,
}

type hgtLayer struct {
	typed
	encoder
	layer, heads, out int // out: the columns of a row, before the logits are made of it
	attnDropout       float32
	number            []int       // by relation: which it is of those that the layer draws from
	kqv, kqvBias      []*tape.Var // by type: of keys, queries and values, one below the other
	mix, mixBias      []*tape.Var // by type: A_t and b
	skip              []*tape.Var // by type
	keys, values      *tape.Var   // A_r and M_r: head by head, and in each relation by relation
	factors           []*tape.Var // by relation: μ_r of each head
	diagonal          *list       // where rows of keys and values lie; nil of a single head
	logits, bias      *tape.Var   // of the last layer
}

func newHGT(d *declared, c Config, at place) layer {
	classes := at.out
	at.out = c.Hidden
	l := &hgtLayer{typed: at.typed(), layer: at.layer, heads: c.Heads, out: at.out, attnDropout: float32(c.AttnDropout)}
	if at.layer == 0 {
		l.encoder, at = d.encoder(c, at)
	}
	types, relations := len(at.in), at.shape.Relations
	name := fmt.Sprintf("convs.%d.", at.layer)
	l.kqv, l.kqvBias = make([]*tape.Var, types), make([]*tape.Var, types)
	for t, in := range at.in {
		if in > 0 {
			key := name + "kqv_lin.lins." + moduleKey(at.shape.Types[t])
			l.kqv[t] = d.glorotOf(key+".weight", in+at.out, 3*at.out, in)
			l.kqvBias[t] = d.constant(key+".bias", 3*at.out, 0)
		}
	}
	l.mix, l.mixBias = make([]*tape.Var, types), make([]*tape.Var, types)
	for t := range at.in {
		if !at.makes(t) {
			continue
		}
		key := name + "out_lin.lins." + moduleKey(at.shape.Types[t])
		if len(l.into[t]) > 0 {
			l.mix[t] = d.glorot(key+".weight", at.out, at.out)
		}
		l.mixBias[t] = d.constant(key+".bias", at.out, 0)
	}
	l.number = make([]int, len(relations))
	drawn := 0
	for r := range relations {
		if at.draws(r) {
			l.number[r] = drawn
			drawn++
		}
	}
	width := at.out / l.heads
	if drawn > 0 {
		l.keys = d.glorot(name+"k_rel.weight", l.heads*drawn, width, width)
		l.values = d.glorot(name+"v_rel.weight", l.heads*drawn, width, width)
		if l.heads > 1 {
			l.diagonal = d.list(diagonal(l.heads, drawn, width))
		}
	}
	l.skip = make([]*tape.Var, types)
	for t := range at.in {
		if at.makes(t) {
			l.skip[t] = d.constant(name+"skip."+moduleKey(at.shape.Types[t]), 1, 1)
		}
	}
	l.factors = make([]*tape.Var, len(relations))
	for r := range relations {
		if at.draws(r) {
			key := strings.ReplaceAll(moduleKey(relations[r].Name), "___", "__") // as HGTConv has it
			l.factors[r] = d.filled(name+"p_rel."+key, 1, 1, l.heads)
		}
	}
	l.endings = d.endings(c, at)
	if at.last {
		l.logits = d.glorot("lin.weight", classes, at.out)
		l.bias = d.constant("lin.bias", classes, 0)
	}
	return l
}

// diagonal says for each row of hgtLayer.keys where it lies among the rows, of width columns, of
// one matrix a relation that has the heads' matrices on its diagonal.
func diagonal(heads, relations, width int) []uint32 {
	var at []uint32
	for h := range heads {
		for r := range relations {
			for i := range width {
				row := (r*heads+h)*width + i
				at = append(at, uint32(row*heads+h))
			}
		}
	}
	return at
}

// onDiagonal returns the matrices of relations, one below the other. Each has the matrices of its
// heads on its diagonal.
func (l *hgtLayer) onDiagonal(t *tape.Tape, matrices *tape.Var) *tape.Var {
	if l.heads == 1 || matrices == nil {
		return matrices
	}
	rows := matrices.Value.Rows // of all heads and relations
	return t.Reshape(t.ScatterRows(matrices, l.diagonal.Tensor, rows*l.heads), rows, l.out)
}

func (l *hgtLayer) forward(s step, x Rows, g Graph) Rows {
	t := s.t
	x = l.encoder.forward(t, x)
	p := hgtPass{hgtLayer: l, step: s, g: g, x: x, k: make(Rows, len(x)), v: make(Rows, len(x))}
	p.keys, p.values = l.onDiagonal(t, l.keys), l.onDiagonal(t, l.values)
	return l.each(g, func(to, dst int) *tape.Var {
		own, relations := t.Head(x[to], dst), l.drawn(to, g)
		var y *tape.Var
		if len(relations) > 0 {
			y = t.Affine(l.mixBias[to], tape.Term{X: t.GELU(p.attend(own, to, relations)), W: l.mix[to]})
		} else {
			y = t.Repeat(l.mixBias[to], dst) // o is 0, and so is GELU(0)
		}
		y = t.Gate(y, own, l.skip[to])
		if l.logits != nil {
			y = t.Affine(l.bias, tape.Term{X: y, W: l.logits})
		}
		if labels := s.labels.terms(t, to, g); labels != nil {
			y = t.Sum(y, t.Affine(nil, labels...))
		}
		return l.endings[to].relu(t, y)
	})
}

// hgtPass is one forward pass of the layer. Its matrices come from onDiagonal.
type hgtPass struct {
	*hgtLayer
	step
	g            Graph
	keys, values *tape.Var
	x, k, v      Rows // k and v as soon as a relation has asked for them
}

// attend returns o of the destinations of type to, whose own rows are given.
func (p *hgtPass) attend(own *tape.Var, to int, relations []int) *tape.Var {
	t := p.t
	sums := make([]*tape.Var, len(relations))
	if p.g.Edges[relations[0]].Given.Rows > 0 { // then all are
		for i, r := range relations {
			sums[i] = t.Leaf(p.g.Edges[r].Given)
		}
		return p.mixed(sums, relations)
	}
	q := p.part(t, 1, to, own)
	var scores []*tape.Var
	var weights []kernels.Tensor
	var lists []kernels.Adjacency
	for _, r := range relations {
		from, e := p.relations[r].Src, p.g.Edges[r]
		if p.k[from] == nil {
			p.k[from], p.v[from] = p.part(t, 0, from, p.x[from]), p.part(t, 2, from, p.x[from])
		}
		scores = append(scores, p.scoreOf(t, r, q, p.k[from], p.keys, e.Adjacency))
		weights, lists = append(weights, e.Weight), append(lists, e.Adjacency)
	}
	for i, alpha := range t.EdgeSoftmaxOf(scores, weights, lists) {
		r := relations[i]
		alpha = p.dropAttention(p.step, p.layer, r, alpha, p.g, p.attnDropout)
		sums[i] = t.WeightedSum(p.v[p.relations[r].Src], alpha, nil, lists[i])
	}
	return p.mixed(sums, relations)
}

// mixed returns o from the sums of values, by relation.
func (p *hgtPass) mixed(sums []*tape.Var, relations []int) *tape.Var {
	terms := make([]tape.Term, len(relations))
	for i, r := range relations {
		terms[i] = tape.Term{X: sums[i], W: p.of(p.t, p.values, r), Across: true}
	}
	return p.t.Affine(nil, terms...)
}

// part returns the keys (0), queries (1) or values (2) of rows of one type.
func (l *hgtLayer) part(t *tape.Tape, i, kind int, rows *tape.Var) *tape.Var {
	bias := t.Window(t.Reshape(l.kqvBias[kind], 3, l.out), i, i+1)
	return t.Affine(bias, tape.Term{X: rows, W: t.Window(l.kqv[kind], i*l.out, (i+1)*l.out)})
}

// of returns the matrix of relation r.
func (l *hgtLayer) of(t *tape.Tape, matrices *tape.Var, r int) *tape.Var {
	return t.Window(matrices, l.number[r]*l.out, (l.number[r]+1)*l.out)
}
