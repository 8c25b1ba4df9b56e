package plan

import (
	"context"

	"github.com/gnnstore/gnnstore/train/sample"
)

// Graph is a Sampler of batches of a graph, each a *sample.Batch, drawn as Steps say.
type Graph struct{ GraphSampler }

// GraphSampler draws several batches, as a sample.Sampler does.
type GraphSampler interface {
	SampleThrough(
		ctx context.Context, e sample.Expander, batches []*sample.Batch, batchSeeds []sample.BatchSeed, seeds [][][]uint32,
	) error
	Pack(dst []byte, b *sample.Batch) []byte
	Unpack(b *sample.Batch, src []byte) (rest []byte, err error)
	Far() bool
	SampleFar(ctx context.Context, room sample.Room, n int, from func(i int) (sample.BatchSeed, [][]uint32, []sample.Without), done func(i int, b *sample.Batch) error) error
}

// Cooperator is a GraphSampler that can draw batches together with other workers: see
// sample.Sampler.SampleCooperative. Steps.Cooperative calls for it.
type Cooperator interface {
	Cooperate(
		ctx context.Context, e sample.Expander,
		batches []*sample.Batch, batchSeeds []sample.BatchSeed, seeds [][][]uint32,
	) error
}

// New returns an empty *sample.Batch.
func (g Graph) New() Batch { return new(sample.Batch) }

// Draw draws into batches that are all *sample.Batch.
func (g Graph) Draw(ctx context.Context, s *Steps, from int, into []Batch) error {
	n := len(into)
	if s.Prepare != nil {
		if err := s.Prepare(ctx, from, n); err != nil {
			return err
		}
	}
	batches, batchSeeds, seeds := make([]*sample.Batch, n), make([]sample.BatchSeed, n), make([][][]uint32, n)
	for i := range into {
		step, b := from+i, into[i].(*sample.Batch)
		batches[i], batchSeeds[i], seeds[i] = b, s.BatchSeed(step), s.Seeds(step)
		if b.Without = nil; s.Without != nil {
			b.Without = s.Without(step)
		}
	}
	var expander sample.Expander
	if s.Expand != nil {
		expander = s.Expand(from, n)
	}
	if s.Cooperative {
		return g.GraphSampler.(Cooperator).Cooperate(ctx, expander, batches, batchSeeds, seeds)
	}
	return g.SampleThrough(ctx, expander, batches, batchSeeds, seeds)
}

// Pack appends a *sample.Batch to dst.
func (g Graph) Pack(dst []byte, b Batch) []byte { return g.GraphSampler.Pack(dst, b.(*sample.Batch)) }

// Unpack restores b, a *sample.Batch, from what Pack appended.
func (g Graph) Unpack(b Batch, src []byte) error {
	_, err := g.GraphSampler.Unpack(b.(*sample.Batch), src)
	return err
}

// DrawFar draws batches that are all *sample.Batch.
func (g Graph) DrawFar(ctx context.Context, s *Steps, r sample.Room, from, n int, done func(step int, b Batch) error) error {
	of := func(i int) (batchSeed sample.BatchSeed, seeds [][]uint32, without []sample.Without) {
		if step := from + i; s.Without != nil {
			return s.BatchSeed(step), s.Seeds(step), s.Without(step)
		}
		return s.BatchSeed(from + i), s.Seeds(from + i), nil
	}
	return g.SampleFar(ctx, r, n, of, func(i int, b *sample.Batch) error { return done(from+i, b) })
}
