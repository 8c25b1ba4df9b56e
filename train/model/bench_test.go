package model

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// BenchmarkStep is forward and backward on a batch of 1,000 seeds, two layers, fanouts 10 and 5,
// 128 feature columns, without sampling and gathering.
func BenchmarkStep(b *testing.B) {
	const nodes, in = 100000, 128
	topo := make(lists, nodes)
	x := uint64(1)
	for v := range topo {
		for range 12 {
			x = sample.Hash(x)
			topo[v] = append(topo[v], uint32(x%nodes))
		}
		slices.Sort(topo[v])
	}
	seeds := make([]uint32, 1000)
	for i := range seeds {
		seeds[i] = uint32(i * 97)
	}
	for _, kind := range []Kind{SAGE, GCN, GAT, RSAGE, RGCN, RGAT, HGT} {
		b.Run("model="+string(kind), func(b *testing.B) {
			be := kernels.NewCPU(kernels.CPUOptions{})
			m := New(be, Config{Kind: kind, Layers: 2, Hidden: 64, Norm: "layer", Heads: 8}, Shape{In: []int{in}, Out: 40}, 1)
			var batch sample.Batch
			require.NoError(b, sample.NewSampler(sample.AtHand(topo), sample.Config{Fanouts: []int{10, 5}, Options: kind.Sampling()}, 1).SampleOne(context.Background(), &batch, sample.BatchSeed{First: 1}, seeds))
			n := len(batch.Inputs()[0])
			xs := f32(be, make([]float32, n*in), n, in)
			var graphs []Graph
			for i := range batch.Layers {
				graphs = append(graphs, upload(be, &batch.Layers[i]))
			}
			labels := u32(be, make([]uint32, len(seeds)))
			tp := tape.New(be)
			for b.Loop() {
				tp.Reset(true)
				tp.CrossEntropy(m.Forward(tp, Rows{tp.Leaf(xs)}, graphs, Pass{})[0], labels, 1)
				tp.Backward()
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkTemporal is a step on a batch of 600 events of a stream like Wikipedia's, with ten
// neighbours, and as many rows and nodes as those come to.
func BenchmarkTemporal(b *testing.B) {
	const nodes, rows, roots, fanout = 1700, 8000, 1800, 16
	for _, kind := range TemporalKinds {
		c, s := TemporalConfig{Kind: kind, Hidden: 100, Time: 100, Heads: 2, Mails: 1, FixedTime: true, Dropout: 0.1, AttnDropout: 0.1}, TemporalShape{Event: 172}
		rows := rows
		if kind == APAN {
			c.Mails = 10
		}
		if kind != TGN {
			rows = roots
		}
		b.Run("model="+string(kind), func(b *testing.B) {
			be := kernels.NewCPU(kernels.CPUOptions{})
			m, tp := NewTemporal(be, c, s, 1), tape.New(be)
			in := drawMoments(c, s, nodes, rows, roots, fanout).upload(be, c, s)
			for b.Loop() {
				tp.Reset(true)
				z := m.Embed(tp, in, m.Update(tp, in, 9), 9)
				third := roots / 3
				src := in.Count.Slice(0, third)
				tp.LinkLoss(m.Score(tp, z, src, in.Count.Slice(third, 2*third)), m.Score(tp, z, src, in.Count.Slice(2*third, roots)))
				tp.Backward()
			}
			b.ReportMetric(600*float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
