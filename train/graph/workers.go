package graph

import (
	"context"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/infer"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/step"
)

// sums adds up the gradients of the workers of a run.
type sums struct {
	group *dist.Group
	be    kernels.Backend
	host  [][]float32 // a copy of each gradient
}

// reduce replaces gradients by the sums over all workers, and returns the sum of their tallies.
func (s *sums) reduce(ctx context.Context, at dist.At, own step.Tally, grads []kernels.Tensor) (*step.Tally, error) {
	if len(s.host) != len(grads) {
		s.host = make([][]float32, len(grads))
		for i, g := range grads {
			s.host[i] = make([]float32, g.Len())
		}
	}
	for i, g := range grads {
		s.be.DownloadF32(s.host[i], g)
	}
	sum, err := run.Reduce(ctx, s.group, at, own, s.host...)
	if err != nil {
		return nil, err
	}
	for i, g := range grads {
		s.be.UploadF32(g, s.host[i])
	}
	return &sum, nil
}

// share returns a function that gives this worker's part of n seeds; nil where one worker trains.
func (c *core) share() func(n int) (lo, hi int) {
	if g := c.Hooks.Group; g.Size() > 1 {
		return g.Share
	}
	return nil
}

// workers returns what evaluation needs to be shared among the workers of a run, or nil.
func (c *core) workers() *infer.Workers {
	g := c.Hooks.Group
	if g.Size() == 1 {
		return nil
	}
	return &infer.Workers{Rank: g.Rank(), Of: g.Size(), Gather: func(ctx context.Context, own []byte) ([][]byte, error) {
		return g.Gather(ctx, dist.At{Epoch: len(c.Result.Epochs) + 1, Step: c.Partial.Steps}, own)
	}}
}
