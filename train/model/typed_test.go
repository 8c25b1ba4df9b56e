package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// academy is a graph of four types. Papers are classified. With two layers the relation to venues
// is never reached; of ghosts there are none.
var academy = struct {
	types     []string
	nodes     []int
	relations []Relation
	degrees   []int // of each relation's destinations, at most
	fanouts   [][]int
}{
	types: []string{"paper", "author", "venue", "ghost"},
	nodes: []int{24, 17, 5, 0},
	relations: []Relation{
		{"paper___cites___paper", sample.Relation{Src: 0, Dst: 0}},
		{"author___writes___paper", sample.Relation{Src: 1, Dst: 0}},
		{"venue___invites___author", sample.Relation{Src: 2, Dst: 1}},
		{"paper___in___venue", sample.Relation{Src: 0, Dst: 2}},
		{"ghost___haunts___paper", sample.Relation{Src: 3, Dst: 0}},
		{"paper___by___author", sample.Relation{Src: 0, Dst: 1}},
		{"author___reads___paper", sample.Relation{Src: 1, Dst: 0}},
	},
	degrees: []int{7, 4, 3, 9, 0, 6, 5},
	fanouts: [][]int{6: {3, 0}}, // layer 0 does not draw from the last relation
}

// academyLists has short and empty lists, with repeated neighbours in some.
func academyLists(r, times int) lists {
	ends := academy.relations[r]
	l, rng := make(lists, academy.nodes[ends.Dst]*times), rand.New(rand.NewPCG(9, uint64(r)))
	for v := range l {
		if academy.degrees[r] == 0 || v%5 == 4 {
			continue
		}
		for range rng.IntN(academy.degrees[r] + 1) {
			l[v] = append(l[v], uint32(rng.IntN(academy.nodes[ends.Src]*times)))
		}
		slices.Sort(l[v])
	}
	return l
}

// academyGraph is so many times as large.
func academyGraph(times int) (s sample.Schema, topo []sample.Topology) {
	for _, n := range academy.nodes {
		s.Types = append(s.Types, n*times)
	}
	for r, ends := range academy.relations {
		s.Relations = append(s.Relations, ends.Relation)
		topo = append(topo, sample.AtHand(academyLists(r, times)))
	}
	return s, topo
}

// features returns the features of nodes of type t, in columns, exact in float16.
func features(t int, ids []uint32, columns int) (values []float32) {
	for _, v := range ids {
		rng := rand.New(rand.NewPCG(uint64(t), uint64(v)))
		for range columns {
			values = append(values, float32(rng.IntN(257)-128)/64)
		}
	}
	return values
}

// typedProblem is a batch of papers for c on a backend, and the shape of its network.
type typedProblem struct {
	Shape
	config Config
	batch  sample.Batch
	rows   [][]float32 // of the inputs, by type
	x      []kernels.Tensor
	graphs []Graph
	labels kernels.Tensor
}

// newTypedProblem draws it from an academy so many times as large, with rows of in columns by type,
// and with values of edges, so many by relation.
func newTypedProblem(be kernels.Backend, c Config, in []int, kind sample.Kind, times, fanout int, edges ...int) *typedProblem {
	return typedProblemThrough(nil, be, c, in, kind, times, fanout, edges...)
}

// typedProblemThrough is newTypedProblem where e, unless it is nil, decides what is drawn further.
func typedProblemThrough(e sample.Expander, be kernels.Backend, c Config, in []int, kind sample.Kind, times, fanout int, edges ...int) *typedProblem {
	schema, topo := academyGraph(times)
	draws := sample.Config{Kind: kind, Fanouts: slices.Repeat([]int{fanout}, c.Layers), OfRelation: make([][]int, len(topo))}
	for r, fanouts := range academy.fanouts {
		if len(fanouts) == c.Layers {
			draws.OfRelation[r] = fanouts
		}
	}
	p := &typedProblem{config: c, Shape: Shape{In: in, Out: 3, Types: academy.types, Relations: academy.relations, Reach: draws.Reach(schema, 0), Edges: edges}}
	draws.Options = c.Blocks(p.Shape)
	seeds := make([][]uint32, len(schema.Types))
	for v := uint32(0); v < uint32(schema.Types[0]); v += 3 {
		seeds[0] = append(seeds[0], v)
	}
	s := sample.NewTyped(schema, topo, draws, 1)
	s.Bring(edgeValues(edges))
	if err := s.SampleThrough(context.Background(), e, []*sample.Batch{&p.batch}, []sample.BatchSeed{{First: 5}}, [][][]uint32{seeds}); err != nil {
		panic(err)
	}
	p.on(be)
	return p
}

// on puts the problem on a backend: rows in float16, unless it computes in float64.
func (p *typedProblem) on(be kernels.Backend) {
	p.rows, p.x, p.graphs = nil, nil, nil
	for t, ids := range p.batch.Inputs() {
		values := features(t, ids, p.In[t])
		p.rows = append(p.rows, values)
		switch _, wide := be.(*kernels.Reference); {
		case wide:
			p.x = append(p.x, f32(be, values, len(ids), p.In[t]))
		default:
			half := make([]uint16, len(values))
			kernels.Float32ToHalf(half, values)
			x := kernels.Tensor{Buf: be.Alloc(kernels.F16, len(half)), Type: kernels.F16, Rows: len(ids), Cols: p.In[t]}
			be.UploadHalf(x, half)
			p.x = append(p.x, x)
		}
	}
	for l := range p.batch.Layers {
		p.graphs = append(p.graphs, upload(be, &p.batch.Layers[l]))
	}
	uploadOrigins(be, p.batch.Layers, p.graphs)
	if p.config.LabelInput > 0 {
		show(be, p.Shape, &p.batch.Layers[0], &p.graphs[0], p.batch.Seeds[0])
	}
	labels := make([]uint32, len(p.batch.Seeds[0]))
	for i := range labels {
		labels[i] = uint32(2 * i % 3)
	}
	p.labels = u32(be, labels)
}

// inputs are the rows as leaves of tp, and nil where there are none.
func (p *typedProblem) inputs(tp *tape.Tape) Rows {
	x := make(Rows, len(p.x))
	for t, rows := range p.x {
		if rows.Len() > 0 {
			x[t] = tp.Leaf(rows)
		}
	}
	return x
}

// some has a few columns of papers and authors, and none of venues: there is a row for all of them.
var some = []int{6, 2, 0, 4}

// typedCases are the typed networks, with all that they can have, on input rows of any width.
var typedCases = []struct {
	Config
	in []int
}{
	{Config{Kind: RSAGE, Layers: 2, Hidden: 6, Norm: "layer"}, some},
	{Config{Kind: RSAGE, Layers: 2, Hidden: 4, Norm: "none"}, []int{1, 349, 3, 1}},
	{Config{Kind: RGCN, Layers: 2, Hidden: 6, Norm: "layer"}, some},
	{Config{Kind: RGCN, Layers: 2, Hidden: 6, Norm: "none"}, []int{5, 5, 5, 5}},
	{Config{Kind: RGCN, Layers: 2, Hidden: 5, Norm: "layer", Bases: 1}, []int{5, 5, 5, 5}}, // means are mixed
	{Config{Kind: RGCN, Layers: 2, Hidden: 5, Norm: "none", Bases: 2}, some},               // for papers, and not for authors
	{Config{Kind: RGCN, Layers: 2, Hidden: 5, Norm: "none", Bases: 7}, []int{1, 34, 0, 0}}, // matrices are summed
	{Config{Kind: RGAT, Layers: 2, Hidden: 6, Norm: "layer", Heads: 2}, some},
	{Config{Kind: RGAT, Layers: 2, Hidden: 6, Norm: "none", Heads: 3}, []int{1, 34, 1, 1}},
	{Config{Kind: HGT, Layers: 2, Hidden: 6, Norm: "layer", Heads: 2}, some},
	{Config{Kind: HGT, Layers: 2, Hidden: 3, Norm: "none", Heads: 3}, []int{1, 34, 1, 1}}, // as wide as the last layer
	{Config{Kind: RSAGE, Layers: 2, Hidden: 6, Norm: "layer", LabelInput: 3}, some},
	{Config{Kind: RGCN, Layers: 2, Hidden: 6, Norm: "none", LabelInput: 4}, []int{5, 5, 5, 5}},
	{Config{Kind: RGCN, Layers: 2, Hidden: 5, Norm: "layer", Bases: 2, LabelInput: 1}, some},
	{Config{Kind: RGAT, Layers: 2, Hidden: 6, Norm: "layer", Heads: 2, LabelInput: 3}, some},
	{Config{Kind: HGT, Layers: 2, Hidden: 6, Norm: "none", Heads: 2, LabelInput: 3}, some},
	{Config{Kind: HGT, Layers: 2, Hidden: 3, Norm: "layer", Heads: 3, LabelInput: 5}, []int{1, 34, 1, 1}},
}

// TestTypedGradients compares every parameter's gradient with central differences, in float64,
// dropping rows and attention.
func TestTypedGradients(t *testing.T) {
	for _, c := range typedCases {
		for _, kind := range []sample.Kind{sample.NS, sample.LaborStar} {
			c.Dropout, c.InputDropout, c.AttnDropout = 0.4, 0.2, 0.3
			be := kernels.NewReference()
			p := newTypedProblem(be, c.Config, c.in, kind, 1, 3)
			m, tp := New(be, c.Config, p.Shape, 11), tape.New(be)
			shake(be, m)
			pass := Pass{Key: 77}
			if kind == sample.NS {
				pass.Kept = new(Kept)
			}
			loss := func(record bool) (sum float64) {
				tp.Reset(record)
				y := m.Forward(tp, p.inputs(tp), p.graphs, pass)
				require.Equal(t, []bool{false, true, true, true}, absent(y))
				for _, l := range wide(be, tp.CrossEntropy(y[0], p.labels, 1)) {
					sum += l
				}
				return sum
			}
			loss(true)
			tp.Backward()
			if pass.Kept != nil {
				hidden := pass.Kept.Hidden[0]
				require.Equal(t, []bool{false, false, true, true}, absent(hidden), "no layer makes venues, and there are no ghosts")
				for i, rows := range hidden[:2] {
					require.Equal(t, p.graphs[0].Nodes[i].Dst, rows.Value.Rows)
					require.Equal(t, rows.Value.Rows, rows.Grad.Rows)
				}
			}
			for _, param := range m.Params {
				value, grad := wide(be, param.Value), wide(be, param.Grad)
				for i, x := range value {
					if i%(1+len(value)/12) != 0 {
						continue // of large matrices some elements
					}
					const h = 1e-5
					at := func(v float64) float64 {
						value[i] = v
						be.UploadF64(param.Value, value)
						return loss(false)
					}
					up, down := at(x+h), at(x-h)
					at(x)
					require.InDelta(t, (up-down)/(2*h), grad[i], 2e-6*max(1, grad[i], -grad[i]), "%+v %s: %s[%d]", c, kind, param.Name, i)
				}
			}
			m.Close()
			tp.Close()
		}
	}
}

// absent reports for each type whether it has no rows.
func absent(x Rows) (types []bool) {
	for _, v := range x {
		types = append(types, v == nil)
	}
	return types
}

// TestTypedNetworksAsTheFormulasHaveThem compares logits with sums over edges, one by one: in
// float64 on the Reference, and within what float32 rounds on every kernel set, which reads rows in
// float16.
func TestTypedNetworksAsTheFormulasHaveThem(t *testing.T) {
	for _, c := range typedCases {
		for _, kind := range []sample.Kind{sample.NS, sample.LaborStar} {
			be := kernels.NewReference()
			p := newTypedProblem(be, c.Config, c.in, kind, 1, 3)
			params := map[string][]float64{}
			var want []float64
			logits := func(be kernels.Backend) []float64 {
				p.on(be)
				m, tp := New(be, c.Config, p.Shape, 11), tape.New(be)
				defer m.Close()
				defer tp.Close()
				rng := rand.New(rand.NewPCG(3, 4))
				for _, param := range m.Params {
					value := make([]float32, param.Value.Len())
					for i := range value {
						value[i] = float32(rng.IntN(257)-128) / 512
					}
					be.UploadF32(param.Value, value)
					params[param.Name] = wide(be, param.Value)
				}
				tp.Reset(false)
				return wide(be, m.Forward(tp, p.inputs(tp), p.graphs, Pass{})[0].Value)
			}
			got := logits(be)
			want = slices.Concat(formulas{c.Config, p, params, nil}.logits()...)
			require.InDeltaSlice(t, want, got, 1e-11, "%+v %s", c, kind)
			for _, set := range kernels.Sets() {
				require.InDeltaSlice(t, want, logits(kernels.NewCPU(kernels.CPUOptions{Set: set})), 2e-4, "%+v %s on %s", c, kind, set)
			}
		}
	}
}

// TestTypedBatchesSeeWhatTheWholeGraphSees: with every neighbour, a seed's logits on the blocks of
// a batch equal its logits layer after layer over all nodes of the types that it makes.
func TestTypedBatchesSeeWhatTheWholeGraphSees(t *testing.T) {
	be := kernels.NewReference()
	schema, topo := academyGraph(1)
	for _, c := range typedCases {
		p := newTypedProblem(be, c.Config, c.in, sample.NS, 1, sample.All)
		for r := range academy.relations { // relations of which a layer draws some
			p.Reach.Relations[0][r] = p.Reach.Relations[0][r] || r == 6
		}
		m, tp := New(be, c.Config, p.Shape, 11), tape.New(be)
		shake(be, m)
		var b sample.Batch
		draws := sample.Config{Fanouts: []int{sample.All, sample.All}, Options: c.Blocks(p.Shape)}
		require.NoError(t, sample.NewTyped(schema, topo, draws, 1).SampleOne(context.Background(), &b, sample.BatchSeed{}, p.batch.Seeds...))
		p.batch = b
		p.on(be)
		tp.Reset(false)
		batch := wide(be, m.Forward(tp, p.inputs(tp), p.graphs, Pass{})[0].Value)

		draws.Fanouts = draws.Fanouts[:1]
		hidden := Rows(nil) // of all nodes
		for l := range c.Layers {
			everyone := make([][]uint32, len(schema.Types))
			for t, n := range schema.Types {
				for v := uint32(0); p.Reach.Types[l+1][t] && v < uint32(n); v++ {
					everyone[t] = append(everyone[t], v)
				}
			}
			var one sample.Batch
			require.NoError(t, sample.NewTyped(schema, topo, draws, 1).SampleOne(context.Background(), &one, sample.BatchSeed{}, everyone...))
			x := make(Rows, len(schema.Types))
			for t, ids := range one.Inputs() {
				switch {
				case len(ids) == 0:
				case l > 0:
					x[t] = tp.GatherRows(hidden[t], u32(be, ids))
				case p.In[t] > 0:
					x[t] = tp.Leaf(f32(be, features(t, ids, p.In[t]), len(ids), p.In[t]))
				}
			}
			g := upload(be, &one.Layers[0])
			if c.LabelInput > 0 {
				show(be, p.Shape, &one.Layers[0], &g, p.batch.Seeds[0])
			}
			hidden = m.Layer(tp, l, x, g)
		}
		whole := wide(be, hidden[0].Value)
		for i, v := range p.batch.Seeds[0] {
			require.InDeltaSlice(t, whole[3*v:][:3], batch[3*i:][:3], 1e-12, "%+v, node %d", c, v)
		}
		m.Close()
		tp.Close()
	}
}

// TestTypedThreadsGiveTheSameBits: a step on blocks of several chunks, on several threads.
func TestTypedThreadsGiveTheSameBits(t *testing.T) {
	for _, c := range typedCases {
		c.Hidden, c.Heads = 48, min(c.Heads, 3)
		run := func(threads int) (all [][]float64) {
			be := kernels.NewCPU(kernels.CPUOptions{Threads: threads})
			p := newTypedProblem(be, c.Config, c.in, sample.NS, 60, 5)
			m, tp := New(be, c.Config, p.Shape, 11), tape.New(be)
			defer m.Close()
			defer tp.Close()
			tp.Reset(true)
			tp.CrossEntropy(m.Forward(tp, p.inputs(tp), p.graphs, Pass{Key: 77})[0], p.labels, 0.01)
			tp.Backward()
			for _, param := range m.Params {
				all = append(all, wide(be, param.Grad))
			}
			return all
		}
		want := run(1)
		for _, threads := range []int{2, 7} {
			require.Equal(t, want, run(threads), "%+v, %d threads", c, threads)
		}
	}
}

// TestTypedParams: names, shapes and order. What a layer does not reach has no parameters. A dot in
// a name is a # in parameter names.
func TestTypedParams(t *testing.T) {
	for _, c := range []struct {
		Config
		in   []int
		want string
	}{
		{Config{Kind: RSAGE, Layers: 2, Hidden: 6, Norm: "layer"}, some, `inputs.venue.row [1 6],
			convs.0.<paper___cites___paper>.lin_l.weight [6 6], convs.0.<author___writes___paper>.lin_l.weight [6 2],
			convs.0.<venue___invites___author>.lin_l.weight [6 6], convs.0.<ghost___haunts___paper>.lin_l.weight [6 4],
			convs.0.<paper___by___author>.lin_l.weight [6 6],
			skips.0.paper.weight [6 6], skips.0.paper.bias [6], skips.0.author.weight [6 2], skips.0.author.bias [6],
			skips.0.ghost.weight [6 4], skips.0.ghost.bias [6],
			norms.0.paper.weight [6], norms.0.paper.bias [6], norms.0.author.weight [6], norms.0.author.bias [6],
			norms.0.ghost.weight [6], norms.0.ghost.bias [6],
			convs.1.<paper___cites___paper>.lin_l.weight [3 6], convs.1.<author___writes___paper>.lin_l.weight [3 6],
			convs.1.<ghost___haunts___paper>.lin_l.weight [3 6], convs.1.<author___reads___paper>.lin_l.weight [3 6],
			skips.1.paper.weight [3 6], skips.1.paper.bias [3]`},
		{Config{Kind: RGCN, Layers: 2, Hidden: 6, Norm: "none"}, []int{5, 5, 5, 5}, `convs.0.weight [5 5 6], convs.0.root [5 6], convs.0.bias [6],
			convs.1.weight [4 6 3], convs.1.root [6 3], convs.1.bias [3]`},
		{Config{Kind: RGCN, Layers: 2, Hidden: 6, Norm: "none", Bases: 2}, some, `inputs.venue.row [1 6],
			inputs.paper.weight [6 6], inputs.paper.bias [6], inputs.author.weight [6 2], inputs.author.bias [6],
			inputs.ghost.weight [6 4], inputs.ghost.bias [6],
			convs.0.weight [2 6 6], convs.0.comp [5 2], convs.0.root [6 6], convs.0.bias [6],
			convs.1.weight [2 6 3], convs.1.comp [4 2], convs.1.root [6 3], convs.1.bias [3]`},
		{Config{Kind: RGAT, Layers: 1, Hidden: 6, Norm: "none", Heads: 2}, []int{4, 2, 0, 4}, `
			convs.0.<paper___cites___paper>.lin.weight [3 4], convs.0.<paper___cites___paper>.att_src [1 1 3], convs.0.<paper___cites___paper>.att_dst [1 1 3],
			convs.0.<author___writes___paper>.lin_src.weight [3 2], convs.0.<author___writes___paper>.lin_dst.weight [3 4],
			convs.0.<author___writes___paper>.att_src [1 1 3], convs.0.<author___writes___paper>.att_dst [1 1 3],
			convs.0.<ghost___haunts___paper>.lin.weight [3 4], convs.0.<ghost___haunts___paper>.att_src [1 1 3], convs.0.<ghost___haunts___paper>.att_dst [1 1 3],
			convs.0.<author___reads___paper>.lin_src.weight [3 2], convs.0.<author___reads___paper>.lin_dst.weight [3 4],
			convs.0.<author___reads___paper>.att_src [1 1 3], convs.0.<author___reads___paper>.att_dst [1 1 3],
			skips.0.paper.weight [3 4], skips.0.paper.bias [3]`},
		{Config{Kind: RSAGE, Layers: 1, Hidden: 6, Norm: "none", LabelInput: 4}, []int{4, 2, 0, 4}, `
			convs.0.<paper___cites___paper>.lin_l.weight [3 4], convs.0.<author___writes___paper>.lin_l.weight [3 2],
			convs.0.<ghost___haunts___paper>.lin_l.weight [3 4], convs.0.<author___reads___paper>.lin_l.weight [3 2],
			skips.0.paper.weight [3 4], skips.0.paper.bias [3],
			labels.weight [3 4], labels.<paper___cites___paper>.weight [3 4]`},
		{Config{Kind: RGCN, Layers: 2, Hidden: 6, Norm: "none", LabelInput: 4}, []int{5, 5, 5, 5}, `
			convs.0.weight [5 5 6], convs.0.root [5 6], convs.0.bias [6],
			convs.1.weight [4 6 3], convs.1.root [6 3], convs.1.bias [3],
			labels.weight [3 4], labels.own.weight [4 6], labels.<paper___cites___paper>.weight [4 6], labels.<paper___by___author>.weight [4 6]`},
		{Config{Kind: HGT, Layers: 1, Hidden: 6, Norm: "layer", Heads: 2}, []int{6, 2, 0, 4}, `
			inputs.paper.weight [6 6], inputs.paper.bias [6], inputs.author.weight [6 2], inputs.author.bias [6],
			inputs.ghost.weight [6 4], inputs.ghost.bias [6],
			convs.0.kqv_lin.lins.paper.weight [18 6], convs.0.kqv_lin.lins.paper.bias [18], convs.0.kqv_lin.lins.author.weight [18 6],
			convs.0.kqv_lin.lins.author.bias [18], convs.0.kqv_lin.lins.ghost.weight [18 6], convs.0.kqv_lin.lins.ghost.bias [18],
			convs.0.out_lin.lins.paper.weight [6 6], convs.0.out_lin.lins.paper.bias [6],
			convs.0.k_rel.weight [8 3 3], convs.0.v_rel.weight [8 3 3], convs.0.skip.paper [1],
			convs.0.p_rel.paper__cites__paper [1 2], convs.0.p_rel.author__writes__paper [1 2],
			convs.0.p_rel.ghost__haunts__paper [1 2], convs.0.p_rel.author__reads__paper [1 2],
			lin.weight [3 6], lin.bias [3]`},
	} {
		p := newTypedProblem(kernels.NewReference(), c.Config, c.in, sample.NS, 1, 3)
		m := declare(c.Kind.network(), c.Config, p.Shape)
		var got []string
		n := int64(0)
		for _, param := range m.Params {
			got = append(got, fmt.Sprint(param.Name, " ", param.Shape))
			n += int64(param.size())
		}
		require.Equal(t, strings.Join(strings.Fields(c.want), " "), strings.Join(got, ", "), "%+v", c.Config)
		require.Equal(t, n, c.Weights(p.Shape))
	}
	dotted := Shape{In: []int{3}, Out: 2, Types: []string{"a.b"}, Relations: []Relation{{Name: "a.b___x.y___a.b"}}}
	m := declare(rsage, Config{Kind: RSAGE, Layers: 1, Hidden: 2, Norm: "none"}, dotted)
	require.Equal(t, "convs.0.<a#b___x#y___a#b>.lin_l.weight", m.Params[0].Name)
	require.Equal(t, "skips.0.a#b.weight", m.Params[1].Name)
}

// TestBlocks: the input layer has a reverse for relations from types whose rows gradients flow to.
func TestBlocks(t *testing.T) {
	equal, constant := []int{5, 5, 5, 5}, []int{6, 6, 0, 6}
	none, all, third := []bool{false, false, false, false}, []bool{true, true, true, true}, []bool{false, false, true, false}
	for _, c := range []struct {
		Config
		in       []int
		learnt   []bool
		reversed []bool
	}{
		{Config{Kind: RSAGE}, equal, nil, none},
		{Config{Kind: RSAGE}, []int{5, 4, 3, 2}, nil, none},
		{Config{Kind: RSAGE}, constant, nil, third},
		{Config{Kind: RSAGE}, equal, third, third},
		{Config{Kind: RGCN}, equal, nil, none},
		{Config{Kind: RGCN, Bases: 2}, equal, nil, all},
		{Config{Kind: RGCN}, []int{5, 5, 4, 5}, nil, all},
		{Config{Kind: RGCN}, constant, nil, third},
		{Config{Kind: RGAT, Heads: 1}, constant, nil, third},
		{Config{Kind: HGT, Heads: 1}, equal, nil, all},
	} {
		c.Layers, c.Hidden, c.Norm = 2, 6, "none"
		p := newTypedProblem(kernels.NewReference(), c.Config, c.in, sample.NS, 1, 3)
		p.Learnt = c.learnt
		o := c.Blocks(p.Shape)
		require.Equal(t, c.reversed, o.RevTypes, "%+v", c)
		require.Equal(t, c.Kind == RGAT || c.Kind == HGT, o.RevInput)
		require.Equal(t, c.Kind == RGAT || c.Kind == HGT, o.RevEdges)
		require.True(t, c.Kind.Typed())
	}
	require.False(t, SAGE.Typed())
}

// TestTypesDropDifferently: type 0 drops what a graph of one type does, and type 1, of the same
// ids, something else. So do relations.
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

	var want []uint64
	for l, relations := range [][]int{{0, 1, 2, 5}, {0, 1, 6}} { // by the type that they lead to
		for _, r := range relations {
			want = append(want, sample.Key(sample.Hash(9, uint64(l), 1), r))
		}
	}
	for _, kind := range []Kind{RGAT, HGT} {
		edges := &keyed{Backend: be}
		c := Config{Kind: kind, Layers: 2, Hidden: 6, Norm: "none", Heads: 2, AttnDropout: 0.5}
		q := newTypedProblem(edges, c, some, sample.NS, 1, 3)
		m, on := New(edges, c, q.Shape, 11), tape.New(edges)
		on.Reset(false)
		m.Forward(on, q.inputs(on), q.graphs, Pass{Key: 9})
		require.ElementsMatch(t, want, edges.edges, kind)
	}
}
