package infer

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
)

// Workers has the workers that evaluate together. Each of them computes its share of the nodes, and
// all of them get all rows. So all of them measure the same bits.
type Workers struct {
	Rank, Of int
	// Gather returns the bytes that each worker gives, by worker. All of them call it.
	Gather func(ctx context.Context, own []byte) ([][]byte, error)
	// Exchange sends send[q] to worker q, and returns what each worker sends to this one. All of
	// them call it. The results are lent until the next call.
	Exchange func(ctx context.Context, send [][]byte) ([][]byte, error)
}

// appendRows appends the bytes of rows to dst.
func (e *Evaluator) appendRows(dst []byte, rows kernels.Tensor) ([]byte, error) {
	err := e.step.Feed.Read(rows, func(b []byte) error {
		dst = append(dst, b...)
		return nil
	})
	return dst, err
}

// rowsIn returns the rows of n nodes of type t in b, which appendRows made. They are valid until
// the next call.
func (e *Evaluator) rowsIn(t, n int, b []byte) (kernels.Tensor, error) {
	if n == 0 || len(b)%(4*n) != 0 {
		return kernels.Tensor{}, fmt.Errorf("infer: another worker sends %d bytes as rows of %d nodes", len(b), n)
	}
	return e.step.Feed.Hidden(t, kernels.F32, n, len(b)/(4*n), func(dst []byte) error {
		copy(dst, b)
		return nil
	})
}

// sampledSteps measures nodes of type t on sampled blocks, Batch of them a step. Worker p computes
// the steps p, p+V, p+2V and so on, of V workers, and every worker measures all steps in their
// order.
func (e *Evaluator) sampledSteps(ctx context.Context, t int, nodes []uint32) error {
	rank, of := 0, 1
	if e.Workers != nil {
		rank, of = e.Workers.Rank, e.Workers.Of
	}
	all := (len(nodes) + e.Batch - 1) / e.Batch
	seeds := func(step int) []uint32 { return nodes[step*e.Batch : min((step+1)*e.Batch, len(nodes))] }
	var own []byte
	round := 0
	exchange := func() error {
		came, err := e.Workers.Gather(ctx, own)
		if err != nil {
			return err
		}
		for q, b := range came {
			s := round*of + q
			if s >= all {
				break
			}
			y, err := e.rowsIn(t, len(seeds(s)), b)
			if err != nil {
				return err
			}
			if err := e.task.Measure(e.step.Feed, t, y, seeds(s)); err != nil {
				return err
			}
		}
		round, own = round+1, own[:0]
		return nil
	}
	steps := pipeline.Steps{
		To: (all + of - 1) / of, // the same on all workers; in the last step some have no seeds
		Seeds: func(step int) [][]uint32 {
			byType := make([][]uint32, len(e.data.Types))
			if s := step*of + rank; s < all {
				byType[t] = seeds(s)
			}
			return byType
		},
		BatchSeed: func(step int) sample.BatchSeed { return sample.Alone(e.Seed, -1, step*of+rank) },
	}
	return e.pipe.Run(ctx, steps, func(b *pipeline.Gathered) (err error) {
		batch := b.Batch.(*sample.Batch)
		if of > 1 && len(batch.Seeds[t]) == 0 {
			return exchange()
		}
		out := e.step.Predict(step.InputOf(batch, b.Rows...))[t]
		e.look()
		if of == 1 {
			return e.task.Measure(e.step.Feed, t, out.Value, batch.Seeds[t])
		}
		if own, err = e.appendRows(own, out.Value); err != nil {
			return err
		}
		return exchange()
	})
}

// shareBytes returns the bytes of rows that workers compute and exchange at a time in a layer-wise
// pass. It returns 0 if they do not share the pass: this worker is alone, or a worker has rows on
// disk. All workers call it.
func (e *Evaluator) shareBytes(ctx context.Context, inMemory bool) (int64, error) {
	if e.Workers == nil {
		return 0, nil
	}
	own := int64(0)
	if inMemory {
		own = e.ChunkBytes
	}
	all, err := e.Workers.Gather(ctx, binary.LittleEndian.AppendUint64(nil, uint64(own)))
	if err != nil {
		return 0, err
	}
	least := int64(math.MaxInt64)
	for _, b := range all {
		if len(b) != 8 {
			return 0, fmt.Errorf("infer: another worker sends %d bytes before a pass, and not 8", len(b))
		}
		least = min(least, int64(binary.LittleEndian.Uint64(b)))
	}
	return least / 2, nil
}

// inShares passes the rows that compute makes of nodes of type t to use, in ascending order of
// nodes. It goes piece by piece, of this many nodes, and each worker computes a part of each piece.
func (e *Evaluator) inShares(
	ctx context.Context, t int, nodes nodeSet, piece int,
	compute func(part nodeSet, use func(chunk []uint32, y kernels.Tensor) error) error,
	use func(chunk []uint32, y kernels.Tensor) error,
) error {
	w := e.Workers
	part, share := make(nodeSet, len(nodes)), func(n, p int) (lo, hi int) { return p * n / w.Of, (p + 1) * n / w.Of }
	var own []byte
	exchange := func(ids []uint32) error {
		lo, hi := share(len(ids), w.Rank)
		for _, v := range ids[lo:hi] {
			part.add(v)
		}
		own = own[:0]
		err := compute(part, func(_ []uint32, y kernels.Tensor) (err error) {
			own, err = e.appendRows(own, y)
			return err
		})
		if err != nil {
			return err
		}
		for _, v := range ids[lo:hi] {
			part[v/64] = 0
		}
		came, err := w.Gather(ctx, own)
		if err != nil {
			return err
		}
		for p, b := range came {
			lo, hi := share(len(ids), p)
			if lo == hi {
				continue
			}
			y, err := e.rowsIn(t, hi-lo, b)
			if err != nil {
				return err
			}
			if err := use(ids[lo:hi], y); err != nil {
				return err
			}
		}
		return nil
	}
	var ids []uint32
	for v := range nodes.all {
		if ids = append(ids, v); len(ids) == piece {
			if err := exchange(ids); err != nil {
				return err
			}
			ids = ids[:0]
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return exchange(ids)
}
