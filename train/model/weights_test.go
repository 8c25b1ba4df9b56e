package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// weighing are the networks whose edges may have any weights, without norm and dropout.
var weighing = []Config{
	{Kind: SAGE, Layers: 2, Hidden: 6, Norm: "none"},
	{Kind: GAT, Layers: 2, Hidden: 6, Norm: "none", Heads: 3},
}

// weighed draws a batch for c and gives each edge the weight of its destination's degree.
func weighed(c Config, weight func(degree uint32) float32) *sample.Batch {
	o := c.Kind.Sampling()
	o.RevEdges = true
	b := drawn(sample.Config{Fanouts: slices.Repeat([]int{3}, c.Layers), Options: o}, 24, someSeeds)
	for l := range b.Layers {
		k := &b.Layers[l].Blocks[0]
		k.Weight = make([]float32, len(k.Nbr))
		for i := range k.Start {
			for e := k.Start[i]; e < k.End[i]; e++ {
				k.Weight[e] = weight(k.End[i] - k.Start[i])
			}
		}
	}
	return b
}

// TestEqualWeightsAreNone: edges of equal weights give the gradients of edges without weights.
func TestEqualWeightsAreNone(t *testing.T) {
	for _, c := range weighing {
		for _, be := range []kernels.Backend{kernels.NewReference(), kernels.NewCPU(kernels.CPUOptions{})} {
			b := weighed(c, func(degree uint32) float32 {
				if c.Kind == SAGE {
					return 1 / float32(degree)
				}
				return 3 // attention divides by the sum: only ratios count
			})
			got := gradients(be, c, problemOf(be, b, 24, 5))
			for l := range b.Layers {
				b.Layers[l].Blocks[0].Weight = nil
			}
			want := gradients(be, c, problemOf(be, b, 24, 5))
			require.InDeltaSlice(t, want, got, 1e-6, "%s on %s", c.Kind, be.Name())
		}
	}
}

// TestWeightsAsTheFormulasHaveThem compares logits with sums over edges, one by one in float64: on
// the Reference with float32 features, on the CPU backend with float16 ones.
func TestWeightsAsTheFormulasHaveThem(t *testing.T) {
	const in, out = 5, 3
	for _, c := range weighing {
		rng := rand.New(rand.NewPCG(8, 9))
		b := weighed(c, func(uint32) float32 { return float32(math.Exp(rng.NormFloat64())) })
		rows := make([]float32, len(b.Inputs()[0])*in)
		for i := range rows {
			rows[i] = float32(rng.IntN(65)-32) / 16 // exact in float16
		}
		logits := func(be kernels.Backend, x kernels.Tensor) ([]float64, *Model) {
			m, tp := New(be, c, shape(in, out), 11), tape.New(be)
			for _, p := range m.Params { // no bias that is zero
				value := make([]float32, p.Value.Len())
				be.DownloadF32(value, p.Value)
				for i := range value {
					value[i] += float32(i%7) / 16
				}
				be.UploadF32(p.Value, value)
			}
			tp.Reset(false)
			var graphs []Graph
			for l := range b.Layers {
				graphs = append(graphs, upload(be, &b.Layers[l]))
			}
			return wide(be, m.Forward(tp, Rows{tp.Leaf(x)}, graphs, Pass{})[0].Value), m
		}
		reference := kernels.NewReference()
		got, m := logits(reference, f32(reference, rows, len(rows)/in, in))
		params := map[string][]float64{}
		for _, p := range m.Params {
			params[p.Name] = wide(reference, p.Value)
		}
		want := byFormula(c, b, rows, in, out, params, nil)
		require.InDeltaSlice(t, want, got, 1e-12, "%s", c.Kind)

		cpu, half := kernels.NewCPU(kernels.CPUOptions{}), make([]uint16, len(rows))
		kernels.Float32ToHalf(half, rows)
		x := kernels.Tensor{Buf: cpu.Alloc(kernels.F16, len(half)), Type: kernels.F16, Rows: len(rows) / in, Cols: in}
		cpu.UploadHalf(x, half)
		got, _ = logits(cpu, x)
		require.InDeltaSlice(t, want, got, 1e-4, "%s in float16", c.Kind)
	}
}

// wide is the elements of t in float64.
func wide(be kernels.Backend, t kernels.Tensor) []float64 {
	all := make([]float64, t.Len())
	if r, ok := be.(*kernels.Reference); ok {
		r.DownloadF64(all, t)
		return all
	}
	narrow := make([]float32, len(all))
	be.DownloadF32(narrow, t)
	for i, v := range narrow {
		all[i] = float64(v)
	}
	return all
}

// byFormula computes the logits of b by the formulas of the papers, with the weights of its edges,
// or with equal ones, and with what is read of history, unless that is nil.
func byFormula(c Config, b *sample.Batch, rows []float32, in, out int, params map[string][]float64, h *held) []float64 {
	x := make([][]float64, len(b.Inputs()[0]))
	for v := range x {
		for _, r := range rows[v*in:][:in] {
			x[v] = append(x[v], float64(r))
		}
	}
	for l := range b.Layers {
		nodes, k, last := &b.Layers[l].Nodes[0], &b.Layers[l].Blocks[0], l == c.Layers-1
		name := fmt.Sprintf("convs.%d.", l)
		width, heads := c.Hidden, c.Heads
		if last {
			width, heads = out, 1
		}
		y := make([][]float64, nodes.Dst)
		for i := range y {
			weight := func(e uint32) float64 {
				switch {
				case len(k.Weight) > 0:
					return float64(k.Weight[e])
				case c.Kind == SAGE:
					return 1 / float64(k.End[i]-k.Start[i])
				}
				return 1
			}
			sum := make([]float64, len(x[i]))
			for e := k.Start[i]; e < k.End[i]; e++ {
				for j, v := range x[k.Nbr[e]] {
					sum[j] += weight(e) * v
				}
			}
			if c.Kind == GCN {
				for j, v := range times(params[name+"lin.weight"], sum) {
					y[i] = append(y[i], v+params[name+"bias"][j])
					if !last {
						y[i][j] = max(0, y[i][j])
					}
				}
				continue
			}
			if c.Kind == SAGE {
				own, others := times(params[name+"lin_r.weight"], x[i]), times(params[name+"lin_l.weight"], sum)
				for j, bias := range params[name+"lin_l.bias"] {
					y[i] = append(y[i], own[j]+others[j]+bias)
					if !last {
						y[i][j] = max(0, y[i][j])
					}
				}
				continue
			}
			w, per := params[name+"lin.weight"], width/heads
			own := times(w, x[i])
			for j, bias := range params[name+"bias"] {
				h := j / per
				score := func(a string, row []float64) (sum float64) {
					for c := h * per; c < (h+1)*per; c++ {
						sum += params[name+a][c] * row[c]
					}
					return sum
				}
				above, below := 0.0, 0.0
				for e := k.Start[i]; e < k.End[i]; e++ {
					row := times(w, x[k.Nbr[e]])
					s := score("att_src", row) + score("att_dst", own)
					counts := weight(e) * math.Exp(max(s, float64(float32(attentionSlope))*s))
					above, below = above+counts*row[j], below+counts
				}
				v := above/below + bias
				if !last && v < 0 {
					v = math.Expm1(v)
				}
				y[i] = append(y[i], v)
			}
		}
		x = y
		if !last {
			x = h.assemble(l, 0, &b.Layers[l+1].Nodes[0], x)
		}
	}
	return slices.Concat(x...)
}

// times is w·x, with a row of w for every number of the result.
func times(w, x []float64) (y []float64) {
	for ; len(w) > 0; w = w[len(x):] {
		sum := 0.0
		for j, v := range x {
			sum += w[j] * v
		}
		y = append(y, sum)
	}
	return y
}
