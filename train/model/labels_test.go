package model

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// classesShown returns the classes that a node shows in these tests where it is no seed: none, one
// or two.
func classesShown(v uint32) []uint32 {
	return [][]uint32{{2}, nil, {0, 1}, {1}, {0}}[v%5]
}

// show gives g, the first layer of a batch, the labels of the nodes that it reads, except of seeds.
func show(be kernels.Backend, s Shape, layer *sample.Layer, g *Graph, seeds []uint32) {
	var relations []sample.Relation
	for _, r := range s.named().Relations {
		relations = append(relations, r.Relation)
	}
	var l sample.Labels
	l.Make(layer, relations, s.Target, s.Out, func(v uint32) []uint32 {
		if slices.Contains(seeds, v) {
			return nil
		}
		return classesShown(v)
	}, true)
	all := upload(be, &sample.Layer{Blocks: append([]sample.Block{l.Own}, l.Of...)}).Edges
	g.Labels = &Labels{Own: all[0], Of: all[1:]}
}

// labelled returns the term that labels add to node v of type t, by the formula.
func (f formulas) labelled(t, v int) []float64 {
	var sum []float64
	add := func(name string, row []float64) {
		z, y := f.params["labels."+name+".weight"], []float64(nil)
		switch {
		case z == nil:
			return
		case f.Kind == RGCN:
			y = across(z, row)
		default:
			y = times(z, row)
		}
		if sum == nil {
			sum = make([]float64, len(y))
		}
		sum = plus(sum, y)
	}
	layer := &f.batch.Layers[0]
	of := func(u uint32) []float64 { // L
		row := make([]float64, f.LabelInput)
		if id := layer.Nodes[0].Src[u]; !slices.Contains(f.batch.Seeds[0], id) {
			for _, c := range classesShown(id) {
				row = plus(row, f.params["labels.weight"][int(c)*f.LabelInput:][:f.LabelInput])
			}
		}
		return row
	}
	if t == 0 {
		add("own", of(uint32(v)))
	}
	for r, ends := range f.Relations {
		if ends.Src != 0 || ends.Dst != t || !f.Reach.Relations[0][r] {
			continue
		}
		k := &layer.Blocks[r]
		mean := make([]float64, f.LabelInput)
		for e := k.Start[v]; e < k.End[v]; e++ {
			weight := 1 / float32(k.End[v]-k.Start[v])
			if len(k.Weight) > 0 {
				weight = k.Weight[e]
			}
			for c, x := range of(k.Nbr[e]) {
				mean[c] += float64(weight) * x
			}
		}
		add("<"+ends.Name+">", mean)
	}
	return sum
}

// TestLabelsAreFurtherColumns: in GraphSAGE and GCN, labels act like further columns of the
// features.
func TestLabelsAreFurtherColumns(t *testing.T) {
	const in, extra, out = 4, 3, 3
	for _, c := range []Config{
		{Kind: SAGE, Layers: 2, Hidden: 5, Norm: "layer"}, {Kind: SAGE, Layers: 1, Hidden: 5, Norm: "none"},
		{Kind: GCN, Layers: 2, Hidden: 5, Norm: "layer"}, {Kind: GCN, Layers: 1, Hidden: 5, Norm: "none"},
	} {
		be := kernels.NewReference()
		b := drawn(sample.Config{Fanouts: slices.Repeat([]int{3}, c.Layers), Options: c.Kind.Sampling()}, 24, someSeeds)
		p := problemOf(be, b, 24, in)
		with := c
		with.LabelInput = extra
		m, wider, tp := New(be, with, shape(in, out), 11), New(be, c, shape(in+extra, out), 11), tape.New(be)
		shake(be, m)
		show(be, m.Shape, &b.Layers[0], &p.graphs[0], b.Seeds[0])
		tp.Reset(false)
		got := wide(be, m.Forward(tp, Rows{tp.Leaf(p.x)}, p.graphs, Pass{})[0].Value)

		params := map[string][]float64{}
		for _, param := range m.Params {
			params[param.Name] = wide(be, param.Value)
		}
		joined := func(of string, cols int, z []float64) (all []float64) { // matrices side by side
			for w := params[of]; len(w) > 0; w = w[cols:] {
				all = append(all, w[:cols]...)
				if z == nil {
					all = append(all, make([]float64, extra)...)
					continue
				}
				all, z = append(all, z[:extra]...), z[extra:]
			}
			return all
		}
		for _, param := range wider.Params {
			value := params[param.Name]
			switch param.Name {
			case "convs.0.lin_l.weight", "convs.0.lin.weight":
				value = joined(param.Name, in, params["labels.<node___to___node>.weight"])
			case "convs.0.lin_r.weight":
				value = joined(param.Name, in, params["labels.own.weight"])
			}
			be.UploadF64(param.Value, value)
		}
		var rows []float64
		features := wide(be, p.x)
		for i, v := range b.Inputs()[0] {
			rows = append(rows, features[i*in:][:in]...)
			row := make([]float64, extra)
			if !slices.Contains(b.Seeds[0], v) {
				for _, class := range classesShown(v) {
					row = plus(row, params["labels.weight"][int(class)*extra:][:extra])
				}
			}
			rows = append(rows, row...)
		}
		x := kernels.Tensor{Buf: be.Alloc(kernels.F32, len(rows)), Type: kernels.F32, Rows: len(rows) / (in + extra), Cols: in + extra}
		be.UploadF64(x, rows)
		p.graphs[0].Labels = nil
		want := wide(be, wider.Forward(tp, Rows{tp.Leaf(x)}, p.graphs, Pass{})[0].Value)
		require.InDeltaSlice(t, want, got, 1e-6, "%+v: a third is a float32", c)
		m.Close()
		wider.Close()
		tp.Close()
	}
}

// TestLabelGradients compares every parameter's gradient with central differences, in float64, of
// the networks that TestTypedGradients does not have.
func TestLabelGradients(t *testing.T) {
	for _, c := range []struct {
		Config
		sampler sample.Kind
	}{
		{Config{Kind: SAGE, Layers: 2, Hidden: 5, Norm: "layer", LabelInput: 3}, sample.NS},
		{Config{Kind: SAGE, Layers: 3, Hidden: 4, Norm: "none", LabelInput: 1}, sample.RW},
		{Config{Kind: GCN, Layers: 2, Hidden: 5, Norm: "none", LabelInput: 3}, sample.NS},
		{Config{Kind: RGAT, Layers: 1, Hidden: 6, Norm: "none", Heads: 2, LabelInput: 2}, sample.LaborStar},
	} {
		be := kernels.NewReference()
		m, tp := New(be, c.Config, shape(6, 3), 11), tape.New(be)
		b := drawn(sample.Config{
			Kind: c.sampler, Walk: sample.DefaultWalk, Fanouts: slices.Repeat([]int{3}, c.Layers), Options: c.Kind.Sampling(),
		}, 24, someSeeds)
		p := problemOf(be, b, 24, 6)
		show(be, m.Shape, &b.Layers[0], &p.graphs[0], b.Seeds[0])
		shake(be, m)
		loss := func(record bool) (sum float64) {
			tp.Reset(record)
			for _, l := range wide(be, tp.CrossEntropy(m.Forward(tp, Rows{tp.Leaf(p.x)}, p.graphs, Pass{Key: 77})[0], p.labels, 1)) {
				sum += l
			}
			return sum
		}
		loss(true)
		tp.Backward()
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
				require.InDelta(t, (up-down)/(2*h), grad[i], 1e-6*max(1, grad[i], -grad[i]), "%+v %s[%d]", c, param.Name, i)
			}
		}
		m.Close()
		tp.Close()
	}
}

// TestLabelParams: a network's parameters begin as they do without labels. The parameters of labels
// come behind them.
func TestLabelParams(t *testing.T) {
	for _, c := range typedCases {
		if c.LabelInput == 0 {
			continue
		}
		be := kernels.NewReference()
		p := newTypedProblem(be, c.Config, c.in, sample.NS, 1, 3)
		with := New(be, c.Config, p.Shape, 11)
		c.LabelInput = 0
		without := New(be, c.Config, p.Shape, 11)
		for i, param := range without.Params {
			require.Equal(t, param.Name, with.Params[i].Name)
			require.Equal(t, wide(be, param.Value), wide(be, with.Params[i].Value), param.Name)
		}
		require.Equal(t, "labels.weight", with.Params[len(without.Params)].Name)
		with.Close()
		without.Close()
	}
}

func TestSeesLabels(t *testing.T) {
	schema, _ := academyGraph(1)
	for target, want := range []bool{true, true, true, false} {
		draws := sample.Config{Fanouts: []int{3, 3}}
		s := Shape{Target: target, Relations: academy.relations, Reach: draws.Reach(schema, target)}
		require.Equal(t, want && target != 2, s.SeesLabels(), academy.types[target])
		draws.Fanouts = []int{3, 3, 3} // venues see papers, whose authors see venues
		s.Reach = draws.Reach(schema, target)
		require.Equal(t, want, s.SeesLabels(), academy.types[target])
	}
}

func TestLabelInputValidates(t *testing.T) {
	c := Config{Kind: RSAGE, Layers: 2, Hidden: 8, Norm: "layer", Heads: 8, LabelInput: 1 << 16}
	require.NoError(t, c.Validate())
	for _, columns := range []int{-1, 1<<16 + 1} {
		c.LabelInput = columns
		require.ErrorContains(t, c.Validate(), "{label_input} ")
	}
	for _, kind := range []Kind{GAT, MLP} {
		c.Kind, c.LabelInput = kind, 8
		require.ErrorContains(t, c.Validate(), "{label_input} 8: {model} "+string(kind)+" has no place for labels; take sage, gcn, rsage, rgcn, rgat and hgt")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	c.Kind, c.LabelInput = Kind("x"), rng.IntN(9)+1
	require.NotContains(t, c.Validate().Error(), "label_input", "an unknown network is what is wrong")
}
