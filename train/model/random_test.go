package model

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// TestGlorot: the weights of a matrix are uniform up to a bound that both of its sides have a part
// in, and no two matrices begin alike.
func TestGlorot(t *testing.T) {
	m := New(kernels.NewReference(), Config{Kind: SAGE, Layers: 2, Hidden: 400, Norm: "none"}, shape(20, 400), 3)
	defer m.Close()
	first := map[float32]string{}
	matrices := 0
	for _, p := range m.Params {
		if len(p.Shape) < 2 {
			continue // a bias
		}
		matrices++
		bound := math.Sqrt(6 / float64(p.Shape[0]+p.Shape[1]))
		host := make([]float32, p.Value.Len())
		m.be.DownloadF32(host, p.Value)
		low, high, sum, squares := 0.0, 0.0, 0.0, 0.0
		for _, w := range host {
			x := float64(w) / bound
			low, high, sum, squares = min(low, x), max(high, x), sum+x, squares+x*x
		}
		n := float64(len(host))
		require.InDelta(t, 1, high, 0.01, p.Name)
		require.InDelta(t, -1, low, 0.01, p.Name)
		require.InDelta(t, 0, sum/n, 5/math.Sqrt(3*n), p.Name)
		require.InDelta(t, 1.0/3, squares/n, 0.02, p.Name)
		require.NotContains(t, first, host[0], p.Name)
		first[host[0]] = p.Name
	}
	require.Equal(t, 4, matrices)
}

// keyed records the keys and rates of dropout.
type keyed struct {
	kernels.Backend
	rows, edges []uint64
	rates       []float32
}

func (k *keyed) Dropout(dst, src, ids kernels.Tensor, key uint64, p float32) {
	k.rows, k.rates = append(k.rows, key), append(k.rates, p)
	k.Backend.Dropout(dst, src, ids, key, p)
}

func (k *keyed) EdgeDropout(dst, src, srcIDs, dstIDs kernels.Tensor, g kernels.Adjacency, key uint64, p float32) {
	k.edges = append(k.edges, key)
	k.Backend.EdgeDropout(dst, src, srcIDs, dstIDs, g, key, p)
}

// TestDropoutKeys: rows and attention are dropped anew in every layer and in every step, each at
// its rate.
func TestDropoutKeys(t *testing.T) {
	for _, kind := range Kinds {
		be := &keyed{Backend: kernels.NewReference()}
		c := Config{Kind: kind, Layers: 3, Hidden: 6, Norm: "layer", Dropout: 0.5, InputDropout: 0.25, Heads: 2, AttnDropout: 0.5}
		m, tp := New(be, c, shape(6, 3), 11), tape.New(be)
		p := newProblem(be, kind, 24, someSeeds, c.Layers, 3, 6)
		for step := range uint64(4) {
			tp.Reset(true)
			m.Forward(tp, Rows{tp.Leaf(p.x)}, p.graphs, Pass{Key: 2*step + 1})
		}
		require.Len(t, distinct(be.rows), 4*c.Layers, kind)
		require.Equal(t, []float32{0.25, 0.5, 0.5}, be.rates[:3], kind)
		if kind == GAT || kind == RGAT || kind == HGT {
			require.Len(t, distinct(be.edges), 4*c.Layers)
		} else {
			require.Empty(t, be.edges, kind)
		}
	}
}

func distinct(keys []uint64) map[uint64]bool {
	set := map[uint64]bool{}
	for _, k := range keys {
		set[k] = true
	}
	return set
}

// TestEvaluationDropsNothing: without a key, rates make no difference, in a batch and layer by
// layer.
func TestEvaluationDropsNothing(t *testing.T) {
	be := kernels.NewReference()
	for _, c := range networks {
		c.InputDropout = 0.5
		sure := c
		sure.Dropout, sure.InputDropout, sure.AttnDropout = 0, 0, 0
		logits := func(c Config) (batch, layer []float64) {
			m, tp := New(be, c, shape(6, 3), 11), tape.New(be)
			p := newProblem(be, c.Kind, 24, someSeeds, c.Layers, sample.All, 6)
			tp.Reset(false)
			y := m.Forward(tp, Rows{tp.Leaf(p.x)}, p.graphs, Pass{})[0]
			batch = make([]float64, y.Value.Len())
			be.DownloadF64(batch, y.Value)
			y = m.Layer(tp, 0, Rows{tp.Leaf(p.x)}, p.graphs[0])[0]
			layer = make([]float64, y.Value.Len())
			be.DownloadF64(layer, y.Value)
			return batch, layer
		}
		wantBatch, wantLayer := logits(sure)
		batch, layer := logits(c)
		require.Equal(t, wantBatch, batch, c.Kind)
		require.Equal(t, wantLayer, layer, c.Kind)
	}
}
