package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// edgesOf is the values of a relation's edges in tests, in so many columns, exact in float16.
type edgesOf struct{ relation, columns int }

func (e edgesOf) Columns() int { return e.columns }

func (e edgesOf) TakeValues(dst []float32, v uint32, places []uint32) {
	for i, p := range places {
		for c := range e.columns {
			dst[i*e.columns+c] = float32(sample.Hash(uint64(e.relation), uint64(v), uint64(p), uint64(c))%257)/64 - 2
		}
	}
}

func (e edgesOf) ReadValues(context.Context, int, []uint32, func(i, from int, part []float32) error) error {
	panic("values are read that are at hand")
}

// edgeValues returns the values of all relations of academy.
func edgeValues(columns []int) []sample.Values {
	values := make([]sample.Values, len(academy.relations))
	for r, n := range columns {
		if n > 0 {
			values[r] = edgesOf{r, n}
		}
	}
	return values
}

// edgeCases are the networks that read values of edges: of some relations, in one column and
// several.
var edgeCases = []struct {
	Config
	in, edges []int
}{
	{Config{Kind: RSAGE, Layers: 2, Hidden: 6, Norm: "layer"}, some, []int{2, 1, 0, 5, 1, 3, 0}},
	{Config{Kind: RSAGE, Layers: 2, Hidden: 5, Norm: "none"}, []int{1, 34, 3, 1}, []int{0, 17, 0, 0, 0, 0, 1}},
	{Config{Kind: RGCN, Layers: 2, Hidden: 6, Norm: "layer"}, some, []int{2, 1, 0, 0, 1, 3, 4}},
	{Config{Kind: RGCN, Layers: 2, Hidden: 5, Norm: "none", Bases: 2}, []int{5, 5, 5, 5}, []int{2, 1, 2, 0, 1, 0, 1}},
	{Config{Kind: RGAT, Layers: 2, Hidden: 6, Norm: "layer", Heads: 2}, some, []int{2, 1, 0, 0, 1, 3, 0}},
	{Config{Kind: RGAT, Layers: 2, Hidden: 6, Norm: "none", Heads: 3}, []int{5, 5, 5, 5}, []int{1, 0, 7, 2, 0, 2, 3}},
}

// TestEdgeGradients compares every parameter's gradient with central differences, in float64,
// dropping rows and attention.
func TestEdgeGradients(t *testing.T) {
	for _, c := range edgeCases {
		for _, kind := range []sample.Kind{sample.NS, sample.LaborStar} {
			c.Dropout, c.InputDropout, c.AttnDropout = 0.4, 0.2, 0.3
			be := kernels.NewReference()
			p := newTypedProblem(be, c.Config, c.in, kind, 1, 3, c.edges...)
			m, tp := New(be, c.Config, p.Shape, 11), tape.New(be)
			shake(be, m)
			loss := func(record bool) (sum float64) {
				tp.Reset(record)
				for _, l := range wide(be, tp.CrossEntropy(m.Forward(tp, p.inputs(tp), p.graphs, Pass{Key: 77})[0], p.labels, 1)) {
					sum += l
				}
				return sum
			}
			loss(true)
			tp.Backward()
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

// TestEdgesAsTheFormulasHaveThem compares logits with sums over edges, one by one: in float64 on
// the Reference, and within what float32 rounds on every kernel set.
func TestEdgesAsTheFormulasHaveThem(t *testing.T) {
	for _, c := range edgeCases {
		for _, kind := range []sample.Kind{sample.NS, sample.LaborStar} {
			be := kernels.NewReference()
			p := newTypedProblem(be, c.Config, c.in, kind, 1, 3, c.edges...)
			params := map[string][]float64{}
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
			want := slices.Concat(formulas{c.Config, p, params, nil}.logits()...)
			require.InDeltaSlice(t, want, got, 1e-11, "%+v %s", c, kind)
			for _, set := range kernels.Sets() {
				require.InDeltaSlice(t, want, logits(kernels.NewCPU(kernels.CPUOptions{Set: set})), 3e-4, "%+v %s on %s", c, kind, set)
			}
		}
	}
}

// TestEdgeThreadsGiveTheSameBits: a step on blocks of several chunks, on several threads.
func TestEdgeThreadsGiveTheSameBits(t *testing.T) {
	for _, c := range edgeCases {
		c.Hidden, c.Heads = 48, min(c.Heads, 3)
		run := func(threads int) (all [][]float64) {
			be := kernels.NewCPU(kernels.CPUOptions{Threads: threads})
			p := newTypedProblem(be, c.Config, c.in, sample.NS, 60, 5, c.edges...)
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

// TestEdgeParams: names and shapes, for what a layer reaches alone.
func TestEdgeParams(t *testing.T) {
	edges := []int{2, 0, 1, 0, 0, 0, 4} // the second relation is reached by the lower layer alone, the last one by the upper
	for kind, want := range map[Kind][]string{
		RSAGE: {
			"convs.0.<paper___cites___paper>.lin_edge.weight [6 2]", "convs.0.<venue___invites___author>.lin_edge.weight [6 1]",
			"convs.1.<paper___cites___paper>.lin_edge.weight [3 2]", "convs.1.<author___reads___paper>.lin_edge.weight [3 4]",
		},
		RGCN: {
			"convs.0.<paper___cites___paper>.edge [2 6]", "convs.0.<venue___invites___author>.edge [1 6]",
			"convs.1.<paper___cites___paper>.edge [2 3]", "convs.1.<author___reads___paper>.edge [4 3]",
		},
		RGAT: {
			"convs.0.<paper___cites___paper>.lin_edge.weight [6 2]", "convs.0.<paper___cites___paper>.att_edge [1 2 3]",
			"convs.0.<venue___invites___author>.lin_edge.weight [6 1]", "convs.0.<venue___invites___author>.att_edge [1 2 3]",
			"convs.1.<paper___cites___paper>.lin_edge.weight [3 2]", "convs.1.<paper___cites___paper>.att_edge [1 1 3]",
			"convs.1.<author___reads___paper>.lin_edge.weight [3 4]", "convs.1.<author___reads___paper>.att_edge [1 1 3]",
		},
	} {
		c := Config{Kind: kind, Layers: 2, Hidden: 6, Norm: "none", Heads: 2}
		names := func(edges ...int) (all []string) {
			p := newTypedProblem(kernels.NewReference(), c, some, sample.NS, 1, 3, edges...)
			m := declare(kind.network(), c, p.Shape)
			n := int64(0)
			for _, param := range m.Params {
				all = append(all, fmt.Sprint(param.Name, " ", param.Shape))
				n += int64(param.size())
			}
			require.Equal(t, n, c.Weights(p.Shape))
			return all
		}
		with, without := names(edges...), names()
		require.Subset(t, with, without)
		var more []string
		for _, name := range with {
			if !slices.Contains(without, name) {
				more = append(more, name)
			}
		}
		require.Equal(t, want, more, kind)
		require.True(t, kind.ReadsEdges())
	}
	require.False(t, HGT.ReadsEdges())
	require.False(t, SAGE.ReadsEdges())
	require.Equal(t, "rsage, rgcn and rgat", EdgeKinds())
}
