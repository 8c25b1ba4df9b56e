package infer

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

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
}

// appendRows appends the bytes of rows to dst.
func appendRows(dst []byte, rows []float32) []byte {
	for _, x := range rows {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
	}
	return dst
}

// rowsIn appends to dst the rows that appendRows made b of.
func rowsIn(dst []float32, b []byte) []float32 {
	for ; len(b) >= 4; b = b[4:] {
		dst = append(dst, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return dst
}

// others has the memory for rows that other workers have computed.
type others struct {
	be   kernels.Backend
	buf  kernels.Buffer
	rows []float32
}

// tensor returns rows of n nodes as a tensor, which is valid until the next call.
func (o *others) tensor(n int, b []byte) (kernels.Tensor, error) {
	o.rows = rowsIn(o.rows[:0], b)
	if n == 0 || len(o.rows)%n != 0 {
		return kernels.Tensor{}, fmt.Errorf("infer: %d numbers of %d nodes, from another worker", len(o.rows), n)
	}
	kernels.GrowBuffer(o.be, &o.buf, kernels.F32, len(o.rows), len(o.rows))
	t := kernels.Tensor{Buf: o.buf, Type: kernels.F32, Rows: n, Cols: len(o.rows) / n}
	o.be.UploadF32(t, o.rows)
	return t, nil
}

func (o *others) free() { kernels.FreeBuffers(o.be, &o.buf) }

// sampledSteps measures steps on sampled blocks. nodes returns the nodes of a step, all of type t,
// and seeds the same by type. Worker p computes the steps p, p+V, p+2V and so on, of V workers, and
// every worker measures all steps in their order.
func (e *Evaluator) sampledSteps(
	ctx context.Context, t, all int, nodes func(step int) []uint32, seeds func(step int) [][]uint32,
) error {
	rank, of := 0, 1
	if e.Workers != nil {
		rank, of = e.Workers.Rank, e.Workers.Of
	}
	o := others{be: e.step.Tape.Backend()}
	defer o.free()
	var own []byte
	round := 0
	exchange := func(y kernels.Tensor) error {
		own = own[:0]
		if y.Buf != nil {
			own = appendRows(own, e.step.Feed.Download(y))
		}
		came, err := e.Workers.Gather(ctx, own)
		if err != nil {
			return err
		}
		for q := range of {
			if s := round*of + q; s < all {
				y, err := o.tensor(len(nodes(s)), came[q])
				if err != nil {
					return err
				}
				if err := e.task.Measure(e.step.Feed, t, y, nodes(s)); err != nil {
					return err
				}
			}
		}
		round++
		return nil
	}
	steps := pipeline.Steps{
		To:        (all - rank + of - 1) / of,
		Seeds:     func(step int) [][]uint32 { return seeds(step*of + rank) },
		BatchSeed: func(step int) sample.BatchSeed { return sample.Alone(e.Seed, -1, step*of+rank) },
	}
	err := e.pipe.Run(ctx, steps, func(b *pipeline.Gathered) error {
		batch := b.Batch.(*sample.Batch)
		out := e.step.Predict(step.InputOf(batch, b.Rows...))[t]
		e.look()
		if of == 1 {
			return e.task.Measure(e.step.Feed, t, out.Value, batch.Seeds[t])
		}
		return exchange(out.Value)
	})
	if err == nil && of > 1 && round*of < all { // others have one step more
		err = exchange(kernels.Tensor{})
	}
	return err
}

// shares is the agreement of workers on a layer-wise pass. Its hidden rows are in memory.
type shares struct {
	*Workers
	bytes int64 // of the rows that are computed, and exchanged, at a time
}

// shares returns nil if this worker is alone, or if any worker has rows on disk. All workers call
// it.
func (e *Evaluator) shares(ctx context.Context, inMemory bool) (*shares, error) {
	if e.Workers == nil {
		return nil, nil
	}
	own := binary.LittleEndian.AppendUint64(nil, uint64(e.ChunkBytes))
	if !inMemory {
		clear(own)
	}
	all, err := e.Workers.Gather(ctx, own)
	if err != nil {
		return nil, err
	}
	bytes := int64(math.MaxInt64)
	for _, b := range all {
		if len(b) != len(own) {
			return nil, fmt.Errorf("infer: another worker sends %d bytes before a pass, and not %d", len(b), len(own))
		}
		bytes = min(bytes, int64(binary.LittleEndian.Uint64(b)))
	}
	if bytes == 0 {
		return nil, nil
	}
	return &shares{e.Workers, bytes / 2}, nil
}

// each passes the rows of width columns that compute makes of nodes to use, in ascending order of
// nodes. It goes piece by piece, and each worker computes a part of each piece.
func (s *shares) each(
	ctx context.Context, nodes nodeSet, width int, f *step.Feed,
	compute func(part nodeSet, use func(chunk []uint32, y kernels.Tensor) error) error,
	use func(chunk []uint32, y kernels.Tensor) error,
) error {
	o := others{be: f.Backend()}
	defer o.free()
	part, most := make(nodeSet, len(nodes)), max(int64(s.Of), s.bytes/int64(4*max(width, 1)))
	share := func(n, p int) (lo, hi int) { return p * n / s.Of, (p + 1) * n / s.Of }
	var own []byte
	piece := make([]uint32, 0, min(most, int64(nodes.count())))
	exchange := func() error {
		lo, hi := share(len(piece), s.Rank)
		for _, v := range piece[lo:hi] {
			part.add(v)
		}
		own = own[:0]
		if lo < hi {
			err := compute(part, func(_ []uint32, y kernels.Tensor) error {
				own = appendRows(own, f.Download(y))
				return nil
			})
			if err != nil {
				return err
			}
		}
		for _, v := range piece[lo:hi] {
			part[v/64] = 0
		}
		came, err := s.Gather(ctx, own)
		if err != nil {
			return err
		}
		for p, b := range came {
			lo, hi := share(len(piece), p)
			if lo == hi {
				continue
			}
			y, err := o.tensor(hi-lo, b)
			if err != nil {
				return err
			}
			if err := use(piece[lo:hi], y); err != nil {
				return err
			}
		}
		piece = piece[:0]
		return nil
	}
	for v := range nodes.all {
		if piece = append(piece, v); int64(len(piece)) == most {
			if err := exchange(); err != nil {
				return err
			}
		}
	}
	if len(piece) == 0 {
		return nil
	}
	return exchange()
}

// usedOf returns at most n of ids, in a random order that seed fixes.
func usedOf(ids []uint32, n int, seed uint64) []uint32 {
	used := slices.Clone(ids)
	sample.Shuffle(used, seed, -1)
	return used[:min(len(used), n)]
}
