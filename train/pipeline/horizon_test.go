package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/spill"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/sample"
)

// joined is a rig whose stack goes by horizons of so many windows together.
func joined(t *testing.T, windows int, size int64, faults func(bool, int64, int) error) (*rig, plan.Join) {
	r := newRig(t)
	var err error
	o := cachetier.Options{HostBytes: 14_000}
	r.stack, err = cachetier.Open(t.Context(), r.ds.Features(0), o)
	require.NoError(t, err)
	f, err := spill.Create(spill.Options{Dir: t.TempDir(), Bytes: size, Segment: 4096, Buffers: windows + 12, Depth: 3, Faults: faults})
	require.NoError(t, err)
	ok, err := r.stack.Join(t.Context(), f, windows, r.ds.Features(0).Rows(), r.ds.Features(0), o)
	require.NoError(t, err)
	require.True(t, ok)
	room, err := spill.Create(spill.Options{Dir: t.TempDir(), Bytes: max(size, 64<<10), Segment: 4096, Buffers: 6, Depth: 2, Faults: faults})
	require.NoError(t, err)
	t.Cleanup(func() { r.stack.Close(); f.Close(); room.Close() })
	return r, plan.Join{File: f, Room: room, Windows: windows}
}

// Horizons deliver the batches of a plain loop, in its order, with its rows, however many windows
// and bytes they have, and where the disk fails as well. Nothing of them is left.
func TestHorizonsDeliverTheSameBatches(t *testing.T) {
	type batch struct {
		nbr  []uint32
		rows []byte
	}
	var want []batch
	r := newRig(t)
	sampler := sample.NewSampler(sample.AtHand(r.ds.Graph(0)), sample.Config{Fanouts: []int{5, 3}}, 1)
	s := steps(0, 40)
	for step := range 40 {
		var b sample.Batch
		require.NoError(t, sampler.SampleOne(t.Context(), &b, s.BatchSeed(step), s.Seeds(step)[0]))
		rows := make([]byte, len(b.Inputs()[0])*32)
		require.NoError(t, r.stack.Gather(t.Context(), rows, b.Inputs()[0]))
		want = append(want, batch{b.Layers[1].Blocks[0].Nbr, rows})
	}
	broken := func(_ bool, at int64, _ int) error {
		if at/4096%3 == 0 {
			return errors.New("the disk is gone")
		}
		return nil
	}
	reread, waited := int64(0), int64(0)
	for _, windows := range []int{4, 7, 30} {
		for _, size := range []int64{8 << 10, 64 << 10, 4 << 20} {
			for _, batches := range []int64{0, 10_000, 1 << 30} {
				for _, faults := range []func(bool, int64, int) error{nil, broken} {
					r, join := joined(t, windows, size, faults)
					c := small(r.config(2, batches))
					c.Join, c.BatchBytes, c.BatchRows = join, 2000, []int{150}
					p := r.pipe(c)
					for range 2 {
						n := 0
						use := func(b *pipeline.Gathered) error {
							if b.Step != n {
								return errors.New("not in order")
							}
							rows, ok := r.be.Host(b.Rows[0])
							if !ok || !bytes.Equal(rows, want[n].rows) || !slices.Equal(b.Batch.(*sample.Batch).Layers[1].Blocks[0].Nbr, want[n].nbr) {
								return fmt.Errorf("another batch %d", n)
							}
							n++
							return nil
						}
						require.NoError(t, p.Run(t.Context(), steps(0, 40), use))
						require.Equal(t, len(want), n)
					}
					require.Zero(t, join.File.Stats().UsedBytes)
					if size > 1<<20 && batches > 0 {
						require.Positive(t, r.stack.Stats().Join.Spilled, "%d windows, batches of %d bytes", windows, batches)
					}
					require.Zero(t, join.Room.Stats().UsedBytes)
					if j := r.stack.Stats().Join; j != nil {
						reread += j.Reread
					}
					waited += join.Room.Stats().BytesWritten
					p.Close()
				}
			}
		}
	}
	require.Positive(t, reread)
	require.Positive(t, waited)
}

// small has a sampler keep next to nothing in memory while it draws a horizon.
func small(c plan.Config) plan.Config {
	c.Sampler.(plan.Graph).GraphSampler.(*sample.Sampler).Bytes = 5000
	return c
}

// A run of horizons that is cut short leaves nothing, and the next one is whole.
func TestHorizonsThatAreCutShort(t *testing.T) {
	r, join := joined(t, 8, 1<<20, nil)
	c := small(r.config(2, 1<<30))
	c.Join, c.BatchBytes, c.BatchRows = join, 2000, []int{150}
	p := r.pipe(c)
	defer p.Close()
	for stop := 0; stop < 40; stop += 3 {
		enough := errors.New("enough")
		err := p.Run(t.Context(), steps(0, 40), func(b *pipeline.Gathered) error {
			if b.Step == stop {
				return enough
			}
			return nil
		})
		require.ErrorIs(t, err, enough)
		require.Zero(t, join.File.Stats().UsedBytes)
	}
	n := 0
	require.NoError(t, p.Run(t.Context(), steps(0, 40), func(*pipeline.Gathered) error {
		n++
		return nil
	}))
	require.Equal(t, 40, n)
}

// A run that ends while its first horizon is drawn waits for who draws, and leaves nothing.
func TestHorizonsThatEndBeforeTheFirst(t *testing.T) {
	r, join := joined(t, 8, 1<<20, nil)
	c := small(r.config(2, 1<<30))
	c.Join, c.BatchBytes, c.BatchRows = join, 2000, []int{150}
	p := r.pipe(c)
	defer p.Close()
	ctx, end := context.WithCancel(t.Context())
	var drawing atomic.Int64
	s := steps(0, 40)
	seeds := s.Seeds
	s.Seeds = func(step int) [][]uint32 {
		drawing.Add(1)
		defer drawing.Add(-1)
		if step == 0 {
			end()
			time.Sleep(20 * time.Millisecond) // so that a run that does not wait is gone
		}
		return seeds(step)
	}
	require.ErrorIs(t, p.Run(ctx, s, func(*pipeline.Gathered) error { return nil }), context.Canceled)
	require.Zero(t, drawing.Load())
	require.Zero(t, join.File.Stats().UsedBytes)
	require.NoError(t, p.Run(t.Context(), steps(0, 40), func(*pipeline.Gathered) error { return nil }))
}

// A range that begins without horizons, since it seems to be a few windows long, stays without when
// they turn out to be shorter.
func TestHorizonsBeginWithTheRange(t *testing.T) {
	r, join := joined(t, 8, 1<<20, nil)
	c := r.config(2, 1<<30)
	c.Join, c.BatchBytes, c.BatchRows = join, 2000, []int{20}
	p := r.pipe(c)
	defer p.Close()
	n := 0
	require.NoError(t, p.Run(t.Context(), steps(0, 40), func(b *pipeline.Gathered) error {
		if b.Step != n {
			return fmt.Errorf("step %d where %d is next", b.Step, n)
		}
		n++
		return nil
	}))
	require.Equal(t, 40, n)
	require.Nil(t, r.stack.Stats().Join)
}

// Where the spill has no space for a batch, the steps go by windows.
func TestASpillWithoutSpace(t *testing.T) {
	for _, taken := range []int{0, 5, 7, 8} {
		r, join := joined(t, 4, 8*4096, nil)
		c := r.config(2, 1<<30)
		c.Join, c.BatchBytes, c.BatchRows = join, 2000, []int{150}
		others := join.File.NewRun()
		require.NoError(t, others.Put(t.Context(), make([]byte, taken*4096)))
		p := r.pipe(c)
		n := 0
		require.NoError(t, p.Run(t.Context(), steps(0, 40), func(b *pipeline.Gathered) error {
			if b.Step != n {
				return fmt.Errorf("step %d where %d is next", b.Step, n)
			}
			n++
			return nil
		}))
		require.Equal(t, 40, n)
		others.Drop()
		require.Zero(t, join.File.Stats().UsedBytes)
		p.Close()
	}
}

// Memory that is missing where a lost batch is drawn anew is an error of the run.
func TestLostBatchesAreDrawnUnderGuard(t *testing.T) {
	r, join := joined(t, 8, 1<<20, func(bool, int64, int) error { return errors.New("the disk is gone") })
	c := small(r.config(2, 1<<30))
	c.Join, c.BatchBytes, c.BatchRows = join, 2000, []int{150}
	p := r.pipe(c)
	defer p.Close()
	s := steps(0, 40)
	seeds, last := s.Seeds, -1
	s.Seeds = func(step int) [][]uint32 {
		if step < last {
			panic(&kernels.MemoryError{Bytes: 1, Err: errors.New("there is none")})
		}
		last = max(last, step)
		return seeds(step)
	}
	var missing *kernels.MemoryError
	require.ErrorAs(t, p.Run(t.Context(), s, func(*pipeline.Gathered) error { return nil }), &missing)
	require.Zero(t, join.File.Stats().UsedBytes)
}
