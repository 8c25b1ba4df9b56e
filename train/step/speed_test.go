package step

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/sample"
)

// BenchmarkHeld measures the cost of a live node to a step beside the computing, for rows of 128
// columns: to bring the row, from a slot or from the layer below; to measure its gradient; and to
// write it where it was computed. A whole step stands beside them.
func BenchmarkHeld(b *testing.B) {
	const nodes, seeds, width = 100_000, 5000, 128
	be := kernels.NewCPU(kernels.CPUOptions{})
	c := model.Config{Kind: model.SAGE, Layers: 2, Hidden: width, Norm: "layer", Dropout: 0.5}
	s := New(be, model.New(be, c, model.Shape{In: []int{width}, Out: 40}, 1), &evenly{classes: 40}, optim.Options{})
	defer s.Close()
	slots := kernels.Tensor{Buf: be.Alloc(kernels.F16, nodes*width), Type: kernels.F16, Rows: nodes, Cols: width}
	defer be.Free(slots.Buf)

	var batch sample.Batch
	sampler := sample.NewSampler(sample.AtHand(around(nodes)), sample.Config{Fanouts: []int{4, 4}}, 1)
	ids := make([]uint32, seeds)
	for i := range ids {
		ids[i] = uint32(i * (nodes / seeds))
	}
	require.NoError(b, sampler.SampleThrough(context.Background(), finding{2, 0.45}, []*sample.Batch{&batch}, []sample.BatchSeed{{}}, [][][]uint32{{ids}}))
	inputs := batch.Inputs()[0]
	x := kernels.Tensor{Buf: be.Alloc(kernels.F32, len(inputs)*width), Rows: len(inputs), Cols: width}
	defer be.Free(x.Buf)
	be.Fill(x, 0.5)
	in, store := InputOf(&batch, x), Store{}
	for i := range batch.Layers[0].Nodes[0].Dst {
		store.Rows, store.To = append(store.Rows, uint32(i)), append(store.To, uint32(7*i%nodes))
	}
	in.Held, in.Kept, in.Key = &Held{Slots: [][]kernels.Tensor{{slots}}, Store: []Store{store}}, new(model.Kept), 77
	step := func() {
		_, err := compute(s, in)
		require.NoError(b, err)
		require.NoError(b, s.Update(1e-4, nil))
	}
	step()
	live := len(batch.Layers[1].Nodes[0].Src)
	for _, part := range []struct {
		name string
		do   func()
	}{
		{"read", func() {
			rows := in.Kept.Hidden[0][0].Value
			be.AssembleRows(rows, in.Kept.Computed[0][0].Value, slots, s.Feed.graphs[1].Nodes[0].At)
		}},
		{"norms", func() { s.norms(in) }},
		{"write", func() { s.store(in, true) }},
		{"step", step},
	} {
		b.Run(part.name, func(b *testing.B) {
			for b.Loop() {
				part.do()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(live), "ns/node")
		})
	}
}
