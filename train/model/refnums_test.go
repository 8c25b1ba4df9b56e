package model

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// recorded is the output of tools/refnums/refnums.py: a graph, and the results of PyTorch Geometric
// on it.
type recorded struct {
	MadeWith    map[string]string `json:"made_with"`
	Dim         int               `json:"dim"`
	Hidden      int               `json:"hidden"`
	Classes     int               `json:"classes"`
	LR          float32           `json:"lr"`
	WeightDecay float32           `json:"weight_decay"`
	Neighbors   lists             `json:"in_neighbors"`
	Features    []float32         `json:"features"`
	Labels      []uint32          `json:"labels"`
	Seeds       []uint32          `json:"seeds"`
	Blocks      []struct {
		Dst   []uint32 `json:"dst"`
		Lists lists    `json:"lists"`
		Src   []uint32 `json:"src"`
	} `json:"blocks"`
	Cases []recordedCase `json:"cases"`
}

type recordedCase struct {
	Model       Kind                      `json:"model"`
	Heads       int                       `json:"heads"`
	On          string                    `json:"on"` // "whole graph" or "blocks"
	EdgeWeights [][]float32               `json:"edge_weights"`
	Weights     map[string]recordedTensor `json:"weights"`
	Logits      []float64                 `json:"logits"`
	Gradients   map[string]recordedTensor `json:"gradients"`
	Losses      []float64                 `json:"losses"`
}

type recordedTensor struct {
	Shape []int     `json:"shape"`
	Data  []float64 `json:"data"`
}

// lists is a topology in memory.
type lists [][]uint32

func (l lists) Nodes() int                  { return len(l) }
func (l lists) Neighbors(v uint32) []uint32 { return l[v] }

// batch is the blocks that c was computed on: every neighbour, or those that the file spells out.
func (r *recorded) batch(t *testing.T, c recordedCase) sample.Batch {
	var b sample.Batch
	if c.On == "whole graph" {
		s := sample.NewSampler(sample.AtHand(r.Neighbors), sample.Config{Fanouts: []int{sample.All, sample.All}, Options: c.Model.Sampling()}, 1)
		require.NoError(t, s.SampleOne(context.Background(), &b, sample.BatchSeed{First: 1}, r.Seeds))
		return b
	}
	o := c.Model.Sampling()
	o.RevInput = true
	for l, spelled := range r.Blocks {
		drawn := make(lists, len(r.Neighbors))
		for i, v := range spelled.Dst {
			drawn[v] = spelled.Lists[i]
		}
		var one sample.Batch
		require.NoError(t, sample.NewSampler(sample.AtHand(drawn), sample.Config{Fanouts: []int{sample.All}, Options: o}, 1).SampleOne(context.Background(), &one, sample.BatchSeed{First: 1}, spelled.Dst))
		require.Equal(t, spelled.Src, one.Inputs()[0])
		if c.Model == GCN {
			require.Len(t, c.EdgeWeights[l], len(one.Layers[0].Blocks[0].Weight))
			one.Layers[0].Blocks[0].Weight = c.EdgeWeights[l] // the sampler saw only what was drawn
		}
		b.Layers = append(b.Layers, one.Layers[0])
	}
	return b
}

// How far results may be from PyTorch Geometric's in float64, as a share of the largest logit, the
// largest gradient of any parameter, the largest loss. Kernel sets differ by the order of their
// sums only. The Reference computes in float64 as well, but GCN's edge weights, GAT's slope and
// Adam's rates are float32 even there.
type tolerance struct{ step, losses float64 }

var (
	tolerance32 = tolerance{1e-6, 5e-6}
	tolerance64 = tolerance{1e-7, 5e-8}
)

// TestPyTorchGeometricAgrees compares logits, the gradient of every parameter and ten losses of
// Adam, on every kernel set.
func TestPyTorchGeometricAgrees(t *testing.T) {
	text, err := os.ReadFile("testdata/refnums/pyg.json")
	require.NoError(t, err)
	var r recorded
	require.NoError(t, json.Unmarshal(text, &r))
	everyBackend(t, func(t *testing.T, be kernels.Backend, within tolerance) {
		for _, c := range r.Cases {
			t.Run(fmt.Sprintf("%s/%s", c.Model, c.On), func(t *testing.T) { r.compare(t, be, c, within) })
		}
	})
}

// everyBackend runs test on the Reference and on every kernel set.
func everyBackend(t *testing.T, test func(t *testing.T, be kernels.Backend, within tolerance)) {
	t.Run("reference", func(t *testing.T) { test(t, kernels.NewReference(), tolerance64) })
	for _, set := range kernels.Sets() {
		t.Run(string(set), func(t *testing.T) { test(t, kernels.NewCPU(kernels.CPUOptions{Set: set}), tolerance32) })
	}
}

func (r *recorded) compare(t *testing.T, be kernels.Backend, c recordedCase, within tolerance) {
	b := r.batch(t, c)
	var rows []float32
	for _, v := range b.Inputs()[0] {
		rows = append(rows, r.Features[int(v)*r.Dim:][:r.Dim]...)
	}
	x := f32(be, rows, len(b.Inputs()[0]), r.Dim)
	var graphs []Graph
	for i := range b.Layers {
		graphs = append(graphs, upload(be, &b.Layers[i]))
	}
	classes := make([]uint32, len(r.Seeds))
	for i, v := range r.Seeds {
		classes[i] = r.Labels[v]
	}
	config := Config{Kind: c.Model, Layers: 2, Hidden: r.Hidden, Norm: "none", Heads: c.Heads}
	c.compare(t, be, config, shape(r.Dim, r.Classes), []kernels.Tensor{x}, graphs, classes, r.adam(), within)
}

// adam is the rates of the optimizer.
func (r *recorded) adam() kernels.AdamStep {
	return kernels.AdamStep{LR: r.LR, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: r.WeightDecay}
}

// compare runs a network of the recorded weights on a batch with rows x, by type, where seeds of
// type 0 have these classes.
func (c recordedCase) compare(t *testing.T, be kernels.Backend, config Config, s Shape, x []kernels.Tensor, graphs []Graph, classes []uint32,
	adam kernels.AdamStep, within tolerance) {
	require.NoError(t, config.Validate())
	m, tp := New(be, config, s, 1), tape.New(be)
	defer m.Close()
	defer tp.Close()
	require.Len(t, c.Weights, len(m.Params))
	for _, p := range m.Params {
		w, ok := c.Weights[p.Name]
		require.True(t, ok, "PyTorch Geometric has no parameter %s", p.Name)
		require.Equal(t, w.Shape, p.Shape, p.Name)
		be.UploadF32(p.Value, rounded(w.Data))
	}
	labels := u32(be, classes)
	step := func() (logits kernels.Tensor, loss float64) {
		tp.Reset(true)
		rows := make(Rows, len(x))
		for i := range x {
			rows[i] = tp.Leaf(x[i])
		}
		y := m.Forward(tp, rows, graphs, Pass{})[0]
		per := wide(be, tp.CrossEntropy(y, labels, 1/float32(len(classes))))
		tp.Backward()
		for _, l := range per {
			loss += l / float64(len(classes))
		}
		return y.Value, loss
	}

	logits, _ := step()
	offLogits := requireClose(t, "logits", c.Logits, wide(be, logits), within.step)
	var want, got []float64
	for _, p := range m.Params {
		want, got = append(want, c.Gradients[p.Name].Data...), append(got, wide(be, p.Grad)...)
		be.Fill(p.Grad, 0)
	}
	offGradients := requireClose(t, "gradients", want, got, within.step)

	moments := make([][2]kernels.Tensor, len(m.Params))
	for i, p := range m.Params {
		for j := range moments[i] {
			moments[i][j] = f32(be, make([]float32, p.Value.Len()), p.Value.Rows, p.Value.Cols)
		}
	}
	var losses []float64
	for n := range c.Losses {
		_, loss := step()
		losses = append(losses, loss)
		// Of the rates as they are: 1-float32(0.999) is 1.3e-5 below 0.001, and ten losses show it.
		adam.Correct1 = float32(1 - math.Pow(float64(adam.Beta1), float64(n+1)))
		adam.Correct2 = float32(1 - math.Pow(float64(adam.Beta2), float64(n+1)))
		for i, p := range m.Params {
			of := kernels.AdamParam{Value: p.Value, Grad: p.Grad, M: moments[i][0], V: moments[i][1]}
			be.Adam([]kernels.AdamParam{of}, 1, adam, kernels.Guard{})
		}
	}
	offLosses := requireClose(t, "losses", c.Losses, losses, within.losses)
	t.Logf("off by at most %.1e (logits), %.1e (gradients), %.1e (losses)", offLogits, offGradients, offLosses)
}

// requireClose compares, and returns the largest difference as a share of the largest number.
func requireClose(t *testing.T, what string, want, got []float64, share float64) (off float64) {
	t.Helper()
	require.Len(t, got, len(want), what)
	size := 0.0
	for _, w := range want {
		size = max(size, math.Abs(w))
	}
	for i := range want {
		off = max(off, math.Abs(want[i]-got[i])/size) // the built-in max keeps a NaN
	}
	require.LessOrEqual(t, off, share, "%s: want %v, got %v", what, want, got)
	return off
}

func rounded(v []float64) []float32 {
	s := make([]float32, len(v))
	for i := range v {
		s[i] = float32(v[i])
	}
	return s
}
