package model

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
)

// recordedTypes is the output of tools/refnums/typed.py: a graph of several types, and the results
// of PyTorch Geometric on it.
type recordedTypes struct {
	Hidden      int     `json:"hidden"`
	Classes     int     `json:"classes"`
	LR          float32 `json:"lr"`
	WeightDecay float32 `json:"weight_decay"`
	Types       []struct {
		Name     string    `json:"name"`
		Columns  int       `json:"columns"`
		Features []float32 `json:"features"`
	} `json:"types"`
	Relations []struct {
		Name      string `json:"name"`
		Src       int    `json:"src"`
		Dst       int    `json:"dst"`
		Neighbors lists  `json:"in_neighbors"`
		// EdgeValues are the values of its edges, list by list, where they have some.
		EdgeValues []float32 `json:"edge_values"`
	} `json:"relations"`
	Labels []uint32 `json:"labels"`
	Seeds  []uint32 `json:"seeds"`
	Cases  []struct {
		recordedCase
		Bases   int            `json:"bases"`
		Columns map[string]int `json:"columns"`
		Edges   []int          `json:"edges"` // columns of their values that the network reads, by relation; empty: none
	} `json:"cases"`
}

// recordedEdges is the values of a relation's edges.
type recordedEdges struct {
	lists
	values  []float32
	columns int
}

func (r recordedEdges) Columns() int { return r.columns }

func (r recordedEdges) TakeValues(dst []float32, v uint32, places []uint32) {
	before := 0 // edges
	for _, list := range r.lists[:v] {
		before += len(list)
	}
	for i, p := range places {
		copy(dst[i*r.columns:][:r.columns], r.values[(before+int(p))*r.columns:])
	}
}

func (r recordedEdges) ReadValues(context.Context, int, []uint32, func(i, from int, part []float32) error) error {
	panic("values are read that are at hand")
}

// TestPyTorchGeometricAgreesOnTypes compares logits, the gradient of every parameter and ten losses
// of Adam, on every kernel set. Parameters have the names and shapes of PyTorch Geometric, so that
// weights are exchanged as they are.
func TestPyTorchGeometricAgreesOnTypes(t *testing.T) {
	text, err := os.ReadFile("testdata/refnums/typed.json")
	require.NoError(t, err)
	var r recordedTypes
	require.NoError(t, json.Unmarshal(text, &r))
	var schema sample.Schema
	var topo []sample.Topology
	s := Shape{Out: r.Classes}
	for _, kind := range r.Types {
		schema.Types = append(schema.Types, len(kind.Features)/kind.Columns)
		s.Types = append(s.Types, kind.Name)
	}
	for _, relation := range r.Relations {
		ends := sample.Relation{Src: relation.Src, Dst: relation.Dst}
		schema.Relations = append(schema.Relations, ends)
		s.Relations = append(s.Relations, Relation{relation.Name, ends})
		topo = append(topo, sample.AtHand(relation.Neighbors))
	}
	draws := sample.Config{Fanouts: []int{sample.All, sample.All}}
	s.Reach = draws.Reach(schema, 0)
	seeds := make([][]uint32, len(schema.Types))
	seeds[0] = r.Seeds
	var classes []uint32
	for _, v := range r.Seeds {
		classes = append(classes, r.Labels[v])
	}
	adam := (&recorded{LR: r.LR, WeightDecay: r.WeightDecay}).adam()
	everyBackend(t, func(t *testing.T, be kernels.Backend, within tolerance) {
		for _, c := range r.Cases {
			t.Run(fmt.Sprintf("%s/%d bases/%v/%v", c.Model, c.Bases, c.Columns, c.Edges), func(t *testing.T) {
				config := Config{Kind: c.Model, Layers: 2, Hidden: r.Hidden, Norm: "none", Heads: c.Heads, Bases: c.Bases}
				s, draws := s, draws
				for _, kind := range r.Types {
					s.In = append(slices.Clip(s.In), c.Columns[kind.Name])
				}
				s.Edges = c.Edges
				draws.Options = config.Blocks(s)
				sampler, values := sample.NewTyped(schema, topo, draws, 1), make([]sample.Values, len(topo))
				for i, n := range c.Edges {
					if n > 0 {
						values[i] = recordedEdges{r.Relations[i].Neighbors, r.Relations[i].EdgeValues, n}
					}
				}
				sampler.Bring(values)
				var b sample.Batch
				require.NoError(t, sampler.SampleOne(context.Background(), &b, sample.BatchSeed{First: 1}, seeds...))
				var x []kernels.Tensor
				for i, ids := range b.Inputs() {
					var rows []float32
					for _, v := range ids {
						rows = append(rows, r.Types[i].Features[int(v)*r.Types[i].Columns:][:s.In[i]]...)
					}
					x = append(x, f32(be, rows, len(ids), s.In[i]))
				}
				var graphs []Graph
				for l := range b.Layers {
					graphs = append(graphs, upload(be, &b.Layers[l]))
				}
				c.compare(t, be, config, s, x, graphs, classes, adam, within)
			})
		}
	})
}
