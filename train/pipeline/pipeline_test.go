package pipeline_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/sample"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a dataset and what a pipeline over it needs.
type rig struct {
	ds    *store.Dataset
	stack *cachetier.Stack
	be    kernels.Backend
}

func newRig(t *testing.T) *rig {
	ds, err := store.Open(storetest.Build(t, storetest.Communities(500, 4, 8, 16, 1)))
	require.NoError(t, err)
	stack, err := cachetier.Open(ds.Features(0), cachetier.Options{HostBytes: 3000})
	require.NoError(t, err)
	t.Cleanup(func() { stack.Close(); ds.Close() })
	return &rig{ds, stack, kernels.NewCPU(kernels.CPUOptions{})}
}

func (r *rig) config(samplers int, bytes int64) pipeline.Config {
	c := pipeline.Config{Stack: r.stack, Type: kernels.F16, Cols: 16, Backend: r.be, Bytes: bytes}
	for range samplers {
		c.Samplers = append(c.Samplers, sample.NewSampler(r.ds.Graph(0), []int{5, 3}, sample.Options{}))
	}
	return c
}

// steps have batches of different sizes, the largest in the middle.
func steps(from, to int) pipeline.Steps {
	return pipeline.Steps{From: from, To: to, Z: func(step int) uint64 { return uint64(step) }, Seeds: func(step int) []uint32 {
		seeds := make([]uint32, 1+min(step, 40-step)*2)
		for i := range seeds {
			seeds[i] = uint32(i * 5)
		}
		return seeds
	}}
}

// TestSameBatches: any number of samplers and any budget deliver the batches of a plain loop, in its order, with its rows
// and its counters.
func TestSameBatches(t *testing.T) {
	type batch struct {
		inputs []uint32
		nbr    []uint32
		rows   []byte
		read   int64
	}
	r := newRig(t)
	want := func() (want []batch) {
		sampler := sample.NewSampler(r.ds.Graph(0), []int{5, 3}, sample.Options{})
		s := steps(0, 40)
		read := int64(0)
		for step := range 40 {
			var b sample.Batch
			require.NoError(t, sampler.Sample(&b, s.Z(step), s.Seeds(step)))
			rows := make([]byte, len(b.Inputs())*32)
			require.NoError(t, r.stack.Gather(rows, b.Inputs()))
			read += int64(len(b.Inputs()))
			want = append(want, batch{b.Inputs(), b.Blocks[1].Nbr, rows, read})
		}
		return want
	}()
	for _, samplers := range []int{1, 2, 7} {
		for _, bytes := range []int64{0, 1, 10_000, 1 << 30} {
			p := pipeline.New(r.config(samplers, bytes))
			started := r.stack.Stats().InputRows
			var got []batch
			use := func(b *pipeline.Gathered) error {
				require.Equal(t, len(got), b.Step)
				rows, ok := r.be.Host(b.Rows)
				require.True(t, ok)
				got = append(got, batch{
					slices.Clone(b.Batch.Inputs()), slices.Clone(b.Batch.Blocks[1].Nbr), slices.Clone(rows), b.Read.InputRows - started,
				})
				return nil
			}
			require.NoError(t, p.Run(t.Context(), steps(0, 13), use))
			require.NoError(t, p.Run(t.Context(), steps(13, 13), use))
			require.NoError(t, p.Run(t.Context(), steps(13, 40), use))
			p.Close()
			require.Equal(t, want, got, "%d samplers, %d bytes", samplers, bytes)
			s := p.Stats()
			require.NotEmpty(t, s.Limiting())
			require.Equal(t, samplers, s.Samplers)
		}
	}
}

// counted notes how many bytes of batches there are between drawing and use.
type counted struct {
	*sample.Sampler
	flying *atomic.Int64
	most   *atomic.Int64
}

func size(b *sample.Batch) int64 { return b.Bytes() + int64(len(b.Inputs())*32) }

func (c counted) Sample(b *sample.Batch, z uint64, seeds []uint32) error {
	err := c.Sampler.Sample(b, z, seeds)
	now := c.flying.Add(size(b))
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	return err
}

// TestBudget: batches of one size never take more than the budget, whatever the stages' speeds; and never more than one
// where the budget is below a batch.
func TestBudget(t *testing.T) {
	r := newRig(t)
	same := steps(0, 60)
	same.Z = func(int) uint64 { return 7 }
	seeds := same.Seeds(20)
	same.Seeds = func(int) []uint32 { return seeds }
	var one sample.Batch
	require.NoError(t, sample.NewSampler(r.ds.Graph(0), []int{5, 3}, sample.Options{}).Sample(&one, 7, seeds))
	for fit := int64(0); fit < 5; fit++ {
		var flying, most atomic.Int64
		c := r.config(4, fit*size(&one)+1)
		for i, s := range c.Samplers {
			c.Samplers[i] = counted{s.(*sample.Sampler), &flying, &most}
		}
		p := pipeline.New(c)
		require.NoError(t, p.Run(t.Context(), same, func(b *pipeline.Gathered) error {
			flying.Add(-size(b.Batch))
			return nil
		}))
		p.Close()
		require.LessOrEqual(t, most.Load(), max(1, fit)*size(&one), "room for %d", fit)
	}
}

var errTest = errors.New("broken on purpose")

type broken struct {
	*sample.Sampler
	at uint64
}

func (s broken) Sample(b *sample.Batch, z uint64, seeds []uint32) error {
	if z == s.at {
		return errTest
	}
	return s.Sampler.Sample(b, z, seeds)
}

// outside asks for a row that the table does not have.
type outside struct {
	*sample.Sampler
	at uint64
}

func (s outside) Sample(b *sample.Batch, z uint64, seeds []uint32) error {
	err := s.Sampler.Sample(b, z, seeds)
	if z == s.at {
		b.Blocks[0].Src[0] = 500
	}
	return err
}

// TestErrors: an error in any stage ends all of them, and a later Run works.
func TestErrors(t *testing.T) {
	r := newRig(t)
	for _, at := range []int{0, 1, 17, 39} {
		c := r.config(3, 20_000)
		sound := slices.Clone(c.Samplers)
		for i, s := range sound {
			c.Samplers[i] = broken{s.(*sample.Sampler), uint64(at)}
		}
		p := pipeline.New(c)
		require.ErrorIs(t, p.Run(t.Context(), steps(0, 40), func(*pipeline.Gathered) error { return nil }), errTest)
		copy(p.Samplers, sound)

		last := -1
		require.ErrorIs(t, p.Run(t.Context(), steps(0, 40), func(b *pipeline.Gathered) error {
			if last = b.Step; b.Step == at {
				return errTest
			}
			return nil
		}), errTest)
		require.Equal(t, at, last)

		for i, s := range sound {
			p.Samplers[i] = outside{s.(*sample.Sampler), uint64(at)}
		}
		require.ErrorContains(t, p.Run(t.Context(), steps(0, 40), func(*pipeline.Gathered) error { return nil }), "the table has 500 rows")
		copy(p.Samplers, sound)

		used := 0
		require.NoError(t, p.Run(t.Context(), steps(0, 40), func(*pipeline.Gathered) error { used++; return nil }))
		require.Equal(t, 40, used)
		p.Close()
	}
}

// TestCancel: after the end of the context no step begins, and a range that was used to its end is no failure.
func TestCancel(t *testing.T) {
	r := newRig(t)
	p := pipeline.New(r.config(2, 1<<20))
	defer p.Close()
	for _, at := range []int{0, 5, 38} {
		ctx, cancel := context.WithCancel(t.Context())
		used := 0
		require.ErrorIs(t, p.Run(ctx, steps(0, 40), func(b *pipeline.Gathered) error {
			if used++; b.Step == at {
				cancel()
			}
			return nil
		}), context.Canceled)
		require.Equal(t, at+1, used)
	}
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, p.Run(ctx, steps(0, 40), func(b *pipeline.Gathered) error {
		if b.Step == 39 {
			cancel()
		}
		return nil
	}))
	require.ErrorIs(t, p.Run(ctx, steps(0, 40), func(*pipeline.Gathered) error { panic("a step after the end") }), context.Canceled)
}
