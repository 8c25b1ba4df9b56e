package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

type ring int

func (n ring) Nodes() int { return int(n) }

func (n ring) Neighbors(v uint32) []uint32 {
	if v%5 == 4 {
		return nil // an isolated destination
	}
	return []uint32{(v + 1) % uint32(n), (v + 3) % uint32(n), (v + 3) % uint32(n), (v + 7) % uint32(n)}
}

func u32(be kernels.Backend, v []uint32) kernels.Tensor {
	t := kernels.Tensor{Buf: be.Alloc(kernels.U32, len(v)), Type: kernels.U32, Rows: len(v), Cols: 1}
	be.UploadU32(t, v)
	return t
}

// problem is a batch, its inputs and labels on a backend.
type problem struct {
	x      kernels.Tensor
	graphs []Graph
	labels kernels.Tensor
}

func newProblem(be kernels.Backend, layers, in int) problem {
	const nodes = 24
	var b sample.Batch
	fan := make([]int, layers)
	for i := range fan {
		fan[i] = 3
	}
	if err := sample.NewSampler(ring(nodes), fan, sample.Options{}).Sample(&b, 5, []uint32{0, 4, 7, 9, 15}); err != nil {
		panic(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	host := make([]float32, len(b.Inputs())*in)
	for i := range host {
		host[i] = float32(rng.NormFloat64())
	}
	p := problem{x: kernels.Tensor{Buf: be.Alloc(kernels.F32, len(host)), Type: kernels.F32, Rows: len(b.Inputs()), Cols: in}}
	be.UploadF32(p.x, host)
	for i := range b.Blocks {
		k := &b.Blocks[i]
		p.graphs = append(p.graphs, Graph{Dst: k.Dst, IDs: u32(be, k.Src), Adjacency: kernels.Adjacency{
			Start: u32(be, k.Start), End: u32(be, k.End), Nbr: u32(be, k.Nbr), RevStart: u32(be, k.RevStart), RevDst: u32(be, k.RevDst)}})
	}
	p.labels = u32(be, []uint32{0, 2, 1, kernels.NoLabel, 2})
	return p
}

// TestGradients compares every parameter's gradient with central differences, in float64.
func TestGradients(t *testing.T) {
	for _, c := range []Config{
		{Kind: SAGE, Layers: 1, Hidden: 4, Norm: "none"},
		{Kind: SAGE, Layers: 2, Hidden: 4, Norm: "none"},
		{Kind: SAGE, Layers: 3, Hidden: 5, Norm: "layer", Dropout: 0.4, InputDropout: 0.2},
		{Kind: MLP, Layers: 3, Hidden: 5, Norm: "layer", Dropout: 0.3},
	} {
		be := kernels.NewReference()
		m := New(be, c, 6, 3, 11)
		p := newProblem(be, c.Layers, 6)
		tp := tape.New(be)
		loss := func(record bool) float64 {
			tp.Reset(record)
			rows := tp.CrossEntropy(m.Forward(tp, tp.Leaf(p.x), p.graphs, 77), p.labels, 0.25)
			host := make([]float64, rows.Rows)
			be.DownloadF64(host, rows)
			sum := 0.0
			for _, l := range host {
				sum += l
			}
			return sum / 4
		}
		rng := rand.New(rand.NewPCG(3, 4))
		for _, param := range m.Params { // off the kinks: a row of zeros sits on ReLU's
			value := make([]float64, param.Value.Len())
			be.DownloadF64(value, param.Value)
			for i := range value {
				value[i] += 0.3 * rng.NormFloat64()
			}
			be.UploadF64(param.Value, value)
		}
		loss(true)
		tp.Backward()
		for _, param := range m.Params {
			n := param.Value.Len()
			value, grad := make([]float64, n), make([]float64, n)
			be.DownloadF64(value, param.Value)
			be.DownloadF64(grad, param.Grad)
			for i := range value {
				const h = 1e-5
				x := value[i]
				value[i] = x + h
				be.UploadF64(param.Value, value)
				up := loss(false)
				value[i] = x - h
				be.UploadF64(param.Value, value)
				down := loss(false)
				value[i] = x
				be.UploadF64(param.Value, value)
				require.InDelta(t, (up-down)/(2*h), grad[i], 1e-6*math.Max(1, math.Abs(grad[i])), "%+v %s[%d]", c, param.Name, i)
			}
		}
	}
}

// TestBackendsAgree runs one step on both backends.
func TestBackendsAgree(t *testing.T) {
	c := Config{Kind: SAGE, Layers: 2, Hidden: 16, Norm: "layer", Dropout: 0.5}
	run := func(be kernels.Backend) []float32 {
		m := New(be, c, 6, 3, 11)
		defer m.Close()
		p := newProblem(be, 2, 6)
		tp := tape.New(be)
		defer tp.Close()
		tp.Reset(true)
		tp.CrossEntropy(m.Forward(tp, tp.Leaf(p.x), p.graphs, 77), p.labels, 0.25)
		tp.Backward()
		var all []float32
		for _, param := range m.Params {
			g := make([]float32, param.Grad.Len())
			be.DownloadF32(g, param.Grad)
			all = append(all, g...)
		}
		return all
	}
	require.InDeltaSlice(t, run(kernels.NewReference()), run(kernels.NewCPU(kernels.CPUOptions{})), 1e-5)
}

func TestValidate(t *testing.T) {
	require.NoError(t, Config{Kind: SAGE, Layers: 2, Hidden: 8, Norm: "layer"}.Validate())
	err := Config{Kind: "gru", Layers: 0, Hidden: -1, Dropout: 1, InputDropout: math.NaN(), Norm: "batch"}.Validate()
	for _, want := range []string{"--model gru", "--layers 0", "--hidden -1", "--dropout 1", "--input-dropout NaN", "--norm batch"} {
		require.ErrorContains(t, err, want)
	}
}
