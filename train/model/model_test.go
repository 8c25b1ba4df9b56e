package model

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// ring joins each node to three others, one of them twice; some nodes to themselves, and some to
// none.
type ring int

func (n ring) Nodes() int { return int(n) }

func (n ring) Neighbors(v uint32) []uint32 {
	if v%5 == 4 {
		return nil // an isolated destination
	}
	list := []uint32{(v + 1) % uint32(n), (v + 3) % uint32(n), (v + 3) % uint32(n), (v + 7) % uint32(n)}
	if v%3 == 0 {
		list = append(list, v)
	}
	slices.Sort(list)
	return list
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

// someSeeds are the seeds of a problem on 24 nodes.
var someSeeds = []uint32{0, 4, 7, 9, 15}

// newProblem draws a batch of seeds among nodes, as kind wants it. The fourth seed has no label.
func newProblem(be kernels.Backend, kind Kind, nodes int, seeds []uint32, layers, fanout, in int) problem {
	return problemOf(be, drawn(sample.Config{Fanouts: slices.Repeat([]int{fanout}, layers), Options: kind.Sampling()}, nodes, seeds), nodes, in)
}

// drawn is a batch of seeds among nodes.
func drawn(c sample.Config, nodes int, seeds []uint32) *sample.Batch {
	return drawnThrough(nil, c, nodes, seeds)
}

// drawnThrough is drawn where e, unless it is nil, decides what is drawn further.
func drawnThrough(e sample.Expander, c sample.Config, nodes int, seeds []uint32) *sample.Batch {
	var b sample.Batch
	s := sample.NewSampler(sample.AtHand(ring(nodes)), c, 1)
	if err := s.SampleThrough(context.Background(), e, []*sample.Batch{&b}, []sample.BatchSeed{{First: 5}}, [][][]uint32{{seeds}}); err != nil {
		panic(err)
	}
	return &b
}

// problemOf puts b on a backend, with rows that depend on the nodes alone.
func problemOf(be kernels.Backend, b *sample.Batch, nodes, in int) problem {
	rng := rand.New(rand.NewPCG(1, 2))
	all := make([]float32, nodes*in)
	for i := range all {
		all[i] = float32(rng.NormFloat64())
	}
	var host []float32
	for _, v := range b.Inputs()[0] {
		host = append(host, all[int(v)*in:][:in]...)
	}
	p := problem{x: f32(be, host, len(b.Inputs()[0]), in)}
	for i := range b.Layers {
		p.graphs = append(p.graphs, upload(be, &b.Layers[i]))
	}
	uploadOrigins(be, b.Layers, p.graphs)
	labels := make([]uint32, len(b.Seeds[0]))
	for i := range labels {
		labels[i] = uint32(2 * i % 3)
	}
	labels[3] = kernels.NoLabel
	p.labels = u32(be, labels)
	return p
}

// shape returns the shape of a graph of one type.
func shape(in, out int) Shape { return Shape{In: []int{in}, Out: out} }

func f32(be kernels.Backend, v []float32, rows, cols int) kernels.Tensor {
	t := kernels.Tensor{Buf: be.Alloc(kernels.F32, len(v)), Type: kernels.F32, Rows: rows, Cols: cols}
	be.UploadF32(t, v)
	return t
}

func upload(be kernels.Backend, l *sample.Layer) Graph {
	var g Graph
	for _, nodes := range l.Nodes {
		g.Nodes = append(g.Nodes, Frontier{Dst: nodes.Dst, IDs: u32(be, nodes.Src)})
	}
	for i := range l.Blocks {
		k := &l.Blocks[i]
		g.Edges = append(g.Edges, Edges{Weight: f32(be, k.Weight, len(k.Weight), 1), Adjacency: kernels.Adjacency{
			Start: u32(be, k.Start), End: u32(be, k.End), Nbr: u32(be, k.Nbr),
			RevStart: u32(be, k.RevStart), RevDst: u32(be, k.RevDst), RevEdge: u32(be, k.RevEdge)}})
		if n := len(k.Nbr); n > 0 && len(k.Values) > 0 {
			count := make([]uint32, n+1)
			for e := range count {
				count[e] = uint32(e)
			}
			g.Edges[i].Bring(f32(be, k.Values, n, len(k.Values)/n), u32(be, count))
		}
	}
	return g
}

// TestGradients compares every parameter's gradient with central differences, in float64.
func TestGradients(t *testing.T) {
	for _, c := range []struct {
		Config
		sampler sample.Kind
	}{
		{Config{Kind: SAGE, Layers: 1, Hidden: 4, Norm: "none"}, sample.NS},
		{Config{Kind: SAGE, Layers: 2, Hidden: 4, Norm: "none"}, sample.NS},
		{Config{Kind: SAGE, Layers: 2, Hidden: 4, Norm: "none"}, sample.LaborStar},
		{Config{Kind: SAGE, Layers: 3, Hidden: 5, Norm: "layer", Dropout: 0.4, InputDropout: 0.2}, sample.NS},
		{Config{Kind: SAGE, Layers: 3, Hidden: 5, Norm: "layer", Dropout: 0.4, InputDropout: 0.2}, sample.RW},
		{Config{Kind: MLP, Layers: 3, Hidden: 5, Norm: "layer", Dropout: 0.3}, sample.NS},
		{Config{Kind: GCN, Layers: 1, Hidden: 4, Norm: "none"}, sample.NS},
		{Config{Kind: GCN, Layers: 2, Hidden: 4, Norm: "none"}, sample.NS},
		{Config{Kind: GCN, Layers: 3, Hidden: 5, Norm: "layer", Dropout: 0.4, InputDropout: 0.2}, sample.NS},
		{Config{Kind: GAT, Layers: 1, Hidden: 4, Norm: "none", Heads: 2}, sample.NS},
		{Config{Kind: GAT, Layers: 2, Hidden: 6, Norm: "none", Heads: 3}, sample.NS},
		{Config{Kind: GAT, Layers: 2, Hidden: 6, Norm: "none", Heads: 3}, sample.RW},
		{Config{Kind: GAT, Layers: 3, Hidden: 6, Norm: "layer", Dropout: 0.4, InputDropout: 0.2, Heads: 2, AttnDropout: 0.3}, sample.NS},
		{Config{Kind: GAT, Layers: 3, Hidden: 6, Norm: "layer", Dropout: 0.4, InputDropout: 0.2, Heads: 2, AttnDropout: 0.3}, sample.LaborStar},
		{Config{Kind: RSAGE, Layers: 2, Hidden: 4, Norm: "layer"}, sample.NS},
		{Config{Kind: RGCN, Layers: 2, Hidden: 4, Norm: "none"}, sample.RW},
		{Config{Kind: RGAT, Layers: 2, Hidden: 6, Norm: "layer", Heads: 2}, sample.LaborStar},
		{Config{Kind: HGT, Layers: 2, Hidden: 6, Norm: "layer", Heads: 2}, sample.RW},
	} {
		be := kernels.NewReference()
		m := New(be, c.Config, shape(6, 3), 11)
		p := problemOf(be, drawn(sample.Config{
			Kind: c.sampler, Walk: sample.DefaultWalk, Fanouts: slices.Repeat([]int{3}, c.Layers), Options: c.Kind.Sampling(),
		}, 24, someSeeds), 24, 6)
		tp := tape.New(be)
		loss := func(record bool) float64 {
			tp.Reset(record)
			rows := tp.CrossEntropy(m.Forward(tp, Rows{tp.Leaf(p.x)}, p.graphs, Pass{Key: 77})[0], p.labels, 0.25)
			host := make([]float64, rows.Rows)
			be.DownloadF64(host, rows)
			sum := 0.0
			for _, l := range host {
				sum += l
			}
			return sum / 4
		}
		shake(be, m)
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

// shake moves all parameters, so that no row sits on ReLU's kink, as a row of zeros does where
// biases are 0.
func shake(be *kernels.Reference, m *Model) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, param := range m.Params {
		value := make([]float64, param.Value.Len())
		be.DownloadF64(value, param.Value)
		for i := range value {
			value[i] += 0.3 * rng.NormFloat64()
		}
		be.UploadF64(param.Value, value)
	}
}

// networks has one of every kind, with all that a network can have.
var networks = []Config{
	{Kind: SAGE, Layers: 2, Hidden: 16, Norm: "layer", Dropout: 0.5},
	{Kind: GCN, Layers: 2, Hidden: 16, Norm: "layer", Dropout: 0.5},
	{Kind: GAT, Layers: 2, Hidden: 16, Norm: "layer", Dropout: 0.5, Heads: 4, AttnDropout: 0.5},
	{Kind: MLP, Layers: 2, Hidden: 16, Norm: "layer", Dropout: 0.5},
	{Kind: RSAGE, Layers: 2, Hidden: 16, Norm: "layer", Dropout: 0.5},
	{Kind: RGCN, Layers: 2, Hidden: 16, Norm: "layer", Dropout: 0.5},
	{Kind: RGAT, Layers: 2, Hidden: 16, Norm: "layer", Dropout: 0.5, Heads: 4, AttnDropout: 0.5},
	{Kind: HGT, Layers: 2, Hidden: 16, Norm: "layer", Dropout: 0.5, Heads: 4, AttnDropout: 0.5},
}

// gradients runs one step and returns the gradients of all parameters.
func gradients(be kernels.Backend, c Config, p problem) []float32 {
	m := New(be, c, shape(p.x.Cols, 3), 11)
	defer m.Close()
	tp := tape.New(be)
	defer tp.Close()
	tp.Reset(true)
	tp.CrossEntropy(m.Forward(tp, Rows{tp.Leaf(p.x)}, p.graphs, Pass{Key: 77})[0], p.labels, 0.25)
	tp.Backward()
	var all []float32
	for _, param := range m.Params {
		g := make([]float32, param.Grad.Len())
		be.DownloadF32(g, param.Grad)
		all = append(all, g...)
	}
	return all
}

// TestBackendsAgree runs one step on both backends.
func TestBackendsAgree(t *testing.T) {
	for _, c := range networks {
		run := func(be kernels.Backend) []float32 {
			return gradients(be, c, newProblem(be, c.Kind, 24, someSeeds, 2, 3, 6))
		}
		require.InDeltaSlice(t, run(kernels.NewReference()), run(kernels.NewCPU(kernels.CPUOptions{})), 1e-5, "%v", c.Kind)
	}
}

// TestThreadsGiveTheSameBits: a step on blocks of several chunks, for several numbers of threads
// and every kernel set.
func TestThreadsGiveTheSameBits(t *testing.T) {
	seeds := make([]uint32, 1500)
	for i := range seeds {
		seeds[i] = uint32(2 * i)
	}
	for _, set := range kernels.Sets() {
		for _, c := range networks {
			c.Hidden = 64
			run := func(threads int) []float32 {
				be := kernels.NewCPU(kernels.CPUOptions{Threads: threads, Set: set})
				return gradients(be, c, newProblem(be, c.Kind, 3000, seeds, c.Layers, 3, 50))
			}
			want := run(1)
			for _, threads := range []int{2, 7} {
				require.Equal(t, want, run(threads), "%s %s, %d threads", set, c.Kind, threads)
			}
		}
	}
}

// TestBatchesSeeWhatTheWholeGraphSees: with every neighbour, a seed's logits on the blocks of a
// batch equal its logits layer after layer over all nodes.
func TestBatchesSeeWhatTheWholeGraphSees(t *testing.T) {
	const nodes, in = 24, 6
	be := kernels.NewReference()
	for _, c := range networks {
		c.Layers = 3
		m, tp := New(be, c, shape(in, 3), 11), tape.New(be)
		tp.Reset(false)
		p := newProblem(be, c.Kind, nodes, someSeeds, c.Layers, c.Kind.All(), in)
		batch := make([]float64, 5*3)
		be.DownloadF64(batch, m.Forward(tp, Rows{tp.Leaf(p.x)}, p.graphs, Pass{})[0].Value)

		everyone := make([]uint32, nodes)
		for v := range everyone {
			everyone[v] = uint32(v)
		}
		var b sample.Batch
		require.NoError(t, sample.NewSampler(sample.AtHand(ring(nodes)), sample.Config{Fanouts: []int{c.Kind.All()}, Options: c.Kind.Sampling()}, 1).SampleOne(context.Background(), &b, sample.BatchSeed{}, everyone))
		g := upload(be, &b.Layers[0])
		rng := rand.New(rand.NewPCG(1, 2))
		all := make([]float32, nodes*in)
		for i := range all {
			all[i] = float32(rng.NormFloat64())
		}
		x := Rows{tp.Leaf(f32(be, all, nodes, in))}
		for l := range c.Layers {
			x = m.Layer(tp, l, x, g)
		}
		whole := make([]float64, nodes*3)
		be.DownloadF64(whole, x[0].Value)
		for i, v := range someSeeds {
			require.InDeltaSlice(t, whole[int(v)*3:][:3], batch[i*3:][:3], 1e-12, "%s, node %d", c.Kind, v)
		}
	}
}

// TestParams: names, shapes and order, which checkpoints and the initial values depend on, and how
// many numbers that is.
func TestParams(t *testing.T) {
	for kind, want := range map[Kind]string{
		SAGE: `convs.0.lin_l.weight [6 5], convs.0.lin_l.bias [6], convs.0.lin_r.weight [6 5], norms.0.weight [6], norms.0.bias [6],
			convs.1.lin_l.weight [6 6], convs.1.lin_l.bias [6], convs.1.lin_r.weight [6 6], norms.1.weight [6], norms.1.bias [6],
			convs.2.lin_l.weight [4 6], convs.2.lin_l.bias [4], convs.2.lin_r.weight [4 6]`,
		GCN: `convs.0.lin.weight [6 5], convs.0.bias [6], norms.0.weight [6], norms.0.bias [6],
			convs.1.lin.weight [6 6], convs.1.bias [6], norms.1.weight [6], norms.1.bias [6],
			convs.2.lin.weight [4 6], convs.2.bias [4]`,
		GAT: `convs.0.lin.weight [6 5], convs.0.att_src [1 3 2], convs.0.att_dst [1 3 2], convs.0.bias [6], norms.0.weight [6], norms.0.bias [6],
			convs.1.lin.weight [6 6], convs.1.att_src [1 3 2], convs.1.att_dst [1 3 2], convs.1.bias [6], norms.1.weight [6], norms.1.bias [6],
			convs.2.lin.weight [4 6], convs.2.att_src [1 1 4], convs.2.att_dst [1 1 4], convs.2.bias [4]`,
		MLP: `lins.0.weight [6 5], lins.0.bias [6], norms.0.weight [6], norms.0.bias [6],
			lins.1.weight [6 6], lins.1.bias [6], norms.1.weight [6], norms.1.bias [6],
			lins.2.weight [4 6], lins.2.bias [4]`,
	} {
		c := Config{Kind: kind, Layers: 3, Hidden: 6, Norm: "layer", Heads: 3}
		m := New(kernels.NewReference(), c, shape(5, 4), 1)
		var got []string
		n := int64(0)
		for _, p := range m.Params {
			got = append(got, fmt.Sprint(p.Name, " ", p.Shape))
			n += int64(p.Value.Len())
			require.Equal(t, p.Shape[len(p.Shape)-1], p.Value.Cols, p.Name)
			require.Equal(t, p.Value.Len(), p.Grad.Len(), p.Name)
		}
		require.Equal(t, strings.Join(strings.Fields(want), " "), strings.Join(got, ", "), kind)
		require.Equal(t, n, c.Weights(shape(5, 4)), kind)
		m.Close()
	}
}

func TestValidate(t *testing.T) {
	require.NoError(t, Config{Kind: SAGE, Layers: 2, Hidden: 8, Norm: "layer"}.Validate())
	err := Config{Kind: "gru", Layers: -1, Hidden: -1, Dropout: 1, InputDropout: math.NaN(), Norm: "batch"}.Validate()
	for _, want := range []string{
		"{model} gru: there are sage, gcn, gat, mlp, rsage, rgcn, rgat and hgt", "{layers} -1", "{hidden} -1", "{dropout} 1", "{input_dropout} NaN",
		"{norm} batch",
	} {
		require.ErrorContains(t, err, want)
	}
	gat := Config{Kind: GAT, Layers: 2, Hidden: 8, Norm: "none", Heads: 8}
	require.NoError(t, gat.Validate())
	for _, heads := range []int{-1, 0, 3, 16} {
		gat.Heads = heads
		require.ErrorContains(t, gat.Validate(), fmt.Sprintf("{heads} %d: it must divide {hidden} 8", heads))
	}
	require.ErrorContains(t, Config{Kind: RGAT, Hidden: 8, Heads: 3}.Validate(), "{heads} 3: it must divide {hidden} 8")
	require.ErrorContains(t, Config{Kind: GAT, AttnDropout: 1}.Validate(), "{attn_dropout} 1")
	require.ErrorContains(t, Config{Kind: RGCN, Bases: -1}.Validate(), "{bases} -1")
}
