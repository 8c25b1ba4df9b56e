package temporal

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
)

// BenchmarkStep is a step of TGN on a batch of 600 events of a stream like Wikipedia's: users and
// items whose popularity falls off, ten neighbours each, 16 features. Rows and features are there;
// what is measured is the step alone, its upload and its records included.
func BenchmarkStep(b *testing.B) {
	const users, items, events, size = 8000, 1000, 6000, 600
	rng := rand.New(rand.NewPCG(1, 2))
	stream := loopStream(rng, events, users, 16)
	for i := range stream {
		stream[i].src = uint32(users * math.Pow(rng.Float64(), 4))
		stream[i].dst = users + uint32(items*math.Pow(rng.Float64(), 2))
	}
	batch := (&loopDrawer{events: stream, fanout: 10, each: 1, nodes: users + items, rng: rng}).draw(events-size, events, false)
	c := model.TemporalConfig{Kind: model.TGN, Hidden: 100, Time: 100, Heads: 2, Mails: 1, Dropout: 0.1, AttnDropout: 0.1, FixedTime: true}
	for _, set := range kernels.Sets() {
		b.Run("set="+string(set), func(b *testing.B) {
			be := kernels.NewCPU(kernels.CPUOptions{Set: set})
			s := NewStepper(be, model.NewTemporal(be, c, model.TemporalShape{Event: 16}, 1), optim.Options{})
			defer s.Close()
			state := make([]float32, len(batch.Nodes)*s.Record.Cols())
			in := Input{
				Batch: batch, State: floatsOn(be, state, s.Record.Cols()), Features: featuresOn(be, featuresOf(stream, batch.Events), 16, true), Key: 9,
				Publish: func([]uint32, []byte) error { return nil },
			}
			for b.Loop() {
				_, err := s.Compute(in)
				require.NoError(b, err)
				require.NoError(b, s.Update(1e-4, nil))
			}
			b.ReportMetric(size*float64(b.N)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(len(batch.RowNode)), "rows")
			b.ReportMetric(float64(len(batch.Nodes)), "nodes")
		})
	}
}
