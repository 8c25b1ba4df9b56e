package tiers

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Parts connects this worker with the owners of other nodes. New sets Reads.
type Parts struct {
	sample.Parts // Exchange is for drawing
	// Cooperative: workers draw and compute each step's batch together, each worker its own nodes.
	Cooperative bool
	// Agree is plan.Config.Agree.
	Agree func(ctx context.Context, n int) (int, error)
	// Rows exchanges rows of features, as Exchange does for drawing.
	Rows func(ctx context.Context, send [][]byte) ([][]byte, error)
	// Left is pipeline.Config.Left.
	Left func(stage pipeline.Stage, err error)
}

// deal is pipeline.Config.Deal.
func (p *Parts) deal(ctx context.Context, b plan.Batch, n, rowBytes, sentBytes int, read, dst []byte) error {
	d, send := b.(*sample.Batch).Dealt(), make([][]byte, p.Workers)
	for q, places := range d.Send[n] {
		send[q] = make([]byte, len(places)*sentBytes)
		for i, at := range places {
			copy(send[q][i*sentBytes:(i+1)*sentBytes], read[int(at)*rowBytes:])
		}
	}
	came, err := p.Rows(ctx, send)
	if err != nil {
		return err
	}
	for q, places := range d.Take[n] {
		if len(came[q]) != len(places)*sentBytes {
			return fmt.Errorf("worker %d sent %d bytes of rows; %d rows of %d bytes were expected",
				q, len(came[q]), len(places), sentBytes)
		}
		for i, at := range places {
			copy(dst[int(at)*sentBytes:(int(at)+1)*sentBytes], came[q][i*sentBytes:])
		}
	}
	return nil
}

// Memory that a worker takes beside what it takes alone.
const (
	partsScratch = 6     // times sample.Batch.DrawnBytes for a step that is drawn: for others, and in messages
	partsNumbers = 3 * 4 // bytes of a batch for each input: see sample.Dealt
	partsLearnt  = 6     // times the learnt rows of a step: of two steps at owners, and their gradients
	partsRows    = 5     // times the rows of a step: as read, sent, received, and twice in MPI's messages
)

// partsSampler draws with the other workers.
type partsSampler struct {
	checked
	parts *Parts
}

func (s partsSampler) SampleThrough(
	ctx context.Context, e sample.Expander, batches []*sample.Batch, batchSeeds []sample.BatchSeed, seeds [][][]uint32,
) error {
	return s.data.Place(store.Guard(func() error {
		return s.SampleParts(ctx, &s.parts.Parts, e, batches, batchSeeds, seeds)
	}))
}

// Cooperate implements plan.Cooperator.
func (s partsSampler) Cooperate(
	ctx context.Context, e sample.Expander, batches []*sample.Batch, batchSeeds []sample.BatchSeed, seeds [][][]uint32,
) error {
	return s.data.Place(store.Guard(func() error {
		return s.SampleCooperative(ctx, &s.parts.Parts, e, batches, batchSeeds, seeds)
	}))
}
