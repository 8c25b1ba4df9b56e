package pipeline_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/sample"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a dataset and what a pipeline over it needs.
type rig struct {
	ds    *store.Dataset
	stack *cachetier.Stack
	topo  *topology.Tier
	be    kernels.Backend
}

func newRig(t *testing.T) *rig {
	ds, err := store.Open(storetest.Build(t, storetest.Communities(500, 4, 8, 16, 1)))
	require.NoError(t, err)
	stack, err := cachetier.Open(t.Context(), ds.Features(0), cachetier.Options{HostBytes: 3000})
	require.NoError(t, err)
	topo, err := topology.Open(t.Context(), ds.Graph(0), topology.Options{Bytes: topology.LeastBytes(ds.Graph(0)) + 5000})
	require.NoError(t, err)
	t.Cleanup(func() { topo.Close(); stack.Close(); ds.Close() })
	return &rig{ds, stack, topo, kernels.NewCPU(kernels.CPUOptions{})}
}

func (r *rig) config(samplers int, bytes int64) plan.Config {
	return plan.Config{
		Sampler: plan.Graph{GraphSampler: sample.NewSampler(r.topo, sample.Config{Fanouts: []int{5, 3}}, samplers)}, Parallel: samplers,
		Tables: []*cachetier.Stack{r.stack}, Bytes: bytes,
	}
}

// rows describes the rows of the rig's table.
var rows = rowsOfLag(0)

func rowsOfLag(lag int) []pipeline.Table {
	return []pipeline.Table{{Type: kernels.F16, Cols: 16, Lag: lag}}
}

// pipe is a pipeline of what c plans.
func (r *rig) pipe(c plan.Config) *pipeline.Pipeline {
	return pipeline.New(pipeline.Config{Planner: plan.NewPlanner(c), Tables: rows, Backend: r.be})
}

// steps have batches of different sizes, the largest in the middle.
func steps(from, to int) pipeline.Steps {
	return pipeline.Steps{From: from, To: to, BatchSeed: func(step int) sample.BatchSeed { return sample.BatchSeed{First: uint64(step)} }, Seeds: func(step int) [][]uint32 {
		seeds := make([]uint32, 1+min(step, 40-step)*2)
		for i := range seeds {
			seeds[i] = uint32(i * 5)
		}
		return [][]uint32{seeds}
	}}
}

// TestSameBatches: any number of samplers and any budget deliver the batches of a plain loop, in
// its order, with its rows and its counters.
func TestSameBatches(t *testing.T) {
	type batch struct {
		inputs []uint32
		nbr    []uint32
		rows   []byte
		read   int64
	}
	r := newRig(t)
	want := func() (want []batch) {
		sampler := sample.NewSampler(sample.AtHand(r.ds.Graph(0)), sample.Config{Fanouts: []int{5, 3}}, 1)
		s := steps(0, 40)
		read := int64(0)
		for step := range 40 {
			var b sample.Batch
			require.NoError(t, sampler.SampleOne(t.Context(), &b, s.BatchSeed(step), s.Seeds(step)[0]))
			rows := make([]byte, len(b.Inputs()[0])*32)
			require.NoError(t, r.stack.Gather(t.Context(), rows, b.Inputs()[0]))
			read += int64(len(b.Inputs()[0]))
			want = append(want, batch{b.Inputs()[0], b.Layers[1].Blocks[0].Nbr, rows, read})
		}
		return want
	}()
	for _, samplers := range []int{1, 2, 7} {
		for _, bytes := range []int64{0, 1, 10_000, 1 << 30} {
			for _, group := range []int{0, 1, 5} {
				for ahead := range 3 {
					c := r.config(samplers, bytes)
					c.Group, c.Ahead = group, ahead
					p := r.pipe(c)
					started := r.stack.Stats().InputRows
					var got []batch
					use := func(b *pipeline.Gathered) error {
						require.Equal(t, len(got), b.Step)
						rows, ok := r.be.Host(b.Rows[0])
						require.True(t, ok)
						got = append(got, batch{
							slices.Clone(b.Batch.Inputs()[0]), slices.Clone(b.Batch.(*sample.Batch).Layers[1].Blocks[0].Nbr), slices.Clone(rows), b.Read[0].InputRows - started,
						})
						return nil
					}
					require.NoError(t, p.Run(t.Context(), steps(0, 13), use))
					require.NoError(t, p.Run(t.Context(), steps(13, 13), use))
					require.NoError(t, p.Run(t.Context(), steps(13, 40), use))
					p.Close()
					require.Equal(t, want, got, "%d samplers, %d bytes, groups of %d, %d ahead", samplers, bytes, group, ahead)
					s := p.Stats()
					require.NotEmpty(t, s.Limiting())
					require.Equal(t, samplers, s.Samplers)
				}
			}
		}
	}
}

// TestRemoteMemory: rows come the same to a backend whose memory the host cannot address.
func TestRemoteMemory(t *testing.T) {
	r := newRig(t)
	p := pipeline.New(pipeline.Config{
		Planner: plan.NewPlanner(r.config(2, 10_000)), Tables: rows, Backend: kerneltest.Remote(r.be),
	})
	for range 2 { // the second with new buffers
		require.NoError(t, p.Run(t.Context(), steps(0, 40), func(b *pipeline.Gathered) error {
			var want []byte
			for _, v := range b.Batch.Inputs()[0] {
				want = append(want, r.ds.Features(0).Row(v)...)
			}
			got, ok := r.be.Host(b.Rows[0])
			require.True(t, ok)
			require.Equal(t, want, got)
			return nil
		}))
		p.Close()
	}
}

// TestTables gathers rows of two types of nodes, of different elements and widths, to memory of the
// host and to other memory, and counts what each step read of either.
func TestTables(t *testing.T) {
	r := newRig(t)
	other, err := store.Open(storetest.Build(t, storetest.Spec{Nodes: 500, Dim: 41, Elem: store.F32}))
	require.NoError(t, err)
	defer other.Close()
	features := []*store.Features{r.ds.Features(0), other.Features(0)}
	schema := sample.Schema{Types: []int{500, 500}, Relations: []sample.Relation{{Src: 0, Dst: 0}, {Src: 1, Dst: 0}}}
	lists := []sample.Topology{r.topo, sample.AtHand(r.ds.Graph(0))}
	typed := steps(0, 40)
	seeds := typed.Seeds
	typed.Seeds = func(step int) [][]uint32 { return append(seeds(step), nil) }
	for _, be := range []kernels.Backend{r.be, kerneltest.Remote(r.be)} {
		c := r.config(2, 20_000)
		c.Sampler, c.Tables = plan.Graph{GraphSampler: sample.NewTyped(schema, lists, sample.Config{Fanouts: []int{5, 3}}, 2)}, nil
		for _, f := range features {
			s, err := cachetier.Open(t.Context(), f, cachetier.Options{HostBytes: 3000})
			require.NoError(t, err)
			defer s.Close()
			c.Tables = append(c.Tables, s)
		}
		p := pipeline.New(pipeline.Config{Planner: plan.NewPlanner(c), Tables: append(rows, pipeline.Table{Type: kernels.F32, Cols: 41}), Backend: be})
		var count [2]int64
		require.NoError(t, p.Run(t.Context(), typed, func(b *pipeline.Gathered) error {
			require.NotEmpty(t, b.Batch.Inputs()[1])
			for i, f := range features {
				var want []byte
				for _, v := range b.Batch.Inputs()[i] {
					want = append(want, f.Row(v)...)
				}
				got, ok := r.be.Host(b.Rows[i])
				require.True(t, ok)
				require.Equal(t, want, got)
				count[i] += int64(b.Rows[i].Rows)
				require.Equal(t, count[i], b.Read[i].InputRows)
			}
			return nil
		}))
		p.Close()
	}
	require.Panics(t, func() { pipeline.New(pipeline.Config{Planner: plan.NewPlanner(r.config(1, 1)), Backend: r.be}) })
}

// counted notes how many bytes of blocks there are between drawing and use.
type counted struct {
	plan.Sampler
	flying *atomic.Int64
	most   *atomic.Int64
}

func (c counted) Draw(ctx context.Context, of *plan.Steps, from int, batches []plan.Batch) error {
	err := c.Sampler.Draw(ctx, of, from, batches)
	now := int64(0)
	for _, b := range batches {
		now = c.flying.Add(b.Bytes())
	}
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	return err
}

// TestBudget: batches of one size never take more than the budget, whatever the stages' speeds; and
// never more than one where the budget is below a batch.
func TestBudget(t *testing.T) {
	r := newRig(t)
	same := steps(0, 60)
	same.BatchSeed = func(int) sample.BatchSeed { return sample.BatchSeed{First: 7} }
	seeds := same.Seeds(20)[0]
	same.Seeds = func(int) [][]uint32 { return [][]uint32{seeds} }
	var one sample.Batch
	require.NoError(t, sample.NewSampler(sample.AtHand(r.ds.Graph(0)), sample.Config{Fanouts: []int{5, 3}}, 1).SampleOne(context.Background(), &one, sample.BatchSeed{First: 7}, seeds))
	for fit := int64(0); fit < 13; fit++ {
		for _, group := range []int{0, 3, -1} {
			var flying, most atomic.Int64
			c := r.config(4, fit*one.Bytes()+1)
			c.Sampler, c.Group = counted{c.Sampler, &flying, &most}, max(0, group)
			if group < 0 {
				c.BatchBytes, c.BatchRows = one.Bytes(), []int{len(one.Inputs()[0])}
			}
			p := r.pipe(c)
			require.NoError(t, p.Run(t.Context(), same, func(b *pipeline.Gathered) error {
				flying.Add(-b.Batch.Bytes())
				return nil
			}))
			p.Close()
			require.LessOrEqual(t, most.Load(), max(1, fit)*one.Bytes(), "room for %d", fit)
		}
	}
}

// sized remembers how large the first group was.
type sized struct {
	plan.Sampler
	first *int
}

func (s sized) Draw(ctx context.Context, of *plan.Steps, from int, batches []plan.Batch) error {
	if *s.first == 0 {
		*s.first = len(batches)
	}
	return s.Sampler.Draw(ctx, of, from, batches)
}

// TestFirstGroup: it is a step, or as many as what is known of a batch says.
func TestFirstGroup(t *testing.T) {
	r := newRig(t)
	for rows, want := range map[int]int{0: 1, 200: 4} {
		first := 0
		c := r.config(4, 1<<30)
		c.Sampler, c.BatchBytes = sized{c.Sampler, &first}, 10_000
		if rows > 0 {
			c.BatchRows = []int{rows}
		}
		p := r.pipe(c)
		require.NoError(t, p.Run(t.Context(), steps(0, 40), func(*pipeline.Gathered) error { return nil }))
		p.Close()
		require.Equal(t, want, first)
	}
}

var errTest = errors.New("broken on purpose")

// broken fails at the batch of a step.
type broken struct {
	plan.Sampler
	at int
}

func (s broken) Draw(ctx context.Context, of *plan.Steps, from int, batches []plan.Batch) error {
	if from <= s.at && s.at < from+len(batches) {
		return errTest
	}
	return s.Sampler.Draw(ctx, of, from, batches)
}

// TestErrors: an error in any stage ends all of them, and a later Run works.
func TestErrors(t *testing.T) {
	r := newRig(t)
	for _, at := range []int{0, 1, 17, 39} {
		c := r.config(3, 20_000)
		sound := c.Sampler
		c.Sampler = broken{sound, at}
		p := r.pipe(c)
		require.ErrorIs(t, p.Run(t.Context(), steps(0, 40), func(*pipeline.Gathered) error { return nil }), errTest)
		p.Planner.Sampler = sound

		last := -1
		require.ErrorIs(t, p.Run(t.Context(), steps(0, 40), func(b *pipeline.Gathered) error {
			if last = b.Step; b.Step == at {
				return errTest
			}
			return nil
		}), errTest)
		require.Equal(t, at, last)

		used := 0
		require.NoError(t, p.Run(t.Context(), steps(0, 40), func(*pipeline.Gathered) error { used++; return nil }))
		require.Equal(t, 40, used)
		p.Close()
	}
}

// TestTruncated: rows that are gone end the run with an error that names the file, in whichever
// stage they are read.
func TestTruncated(t *testing.T) {
	r := newRig(t)
	shard := r.ds.Features(0).Shards()[0]
	require.NoError(t, os.Truncate(shard.Path, shard.DataOffset))
	for _, group := range []int{1, 4} {
		c := r.config(2, 1<<20)
		c.Group = group
		p := r.pipe(c)
		err := p.Run(t.Context(), steps(0, 40), func(*pipeline.Gathered) error { return nil })
		require.ErrorIs(t, err, store.ErrCorrupt)
		require.ErrorContains(t, err, shard.Section)
		p.Close()
	}
}

// TestCancel: after the end of the context no step begins, and a range that was used to its end is
// no failure.
func TestCancel(t *testing.T) {
	r := newRig(t)
	p := r.pipe(r.config(2, 1<<20))
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

// TestSettle: a step that goes on after use is settled once, in order, before its batch is given
// back, and no later than after the next step was used.
func TestSettle(t *testing.T) {
	r := newRig(t)
	broken := errors.New("broken")
	for _, failing := range []int{-1, 0, 5, 39} {
		for _, cut := range []int{-1, 0, 7} {
			c := r.config(1, 10_000)
			c.Group = 3
			p := pipeline.New(pipeline.Config{Planner: plan.NewPlanner(c), Tables: rows, Backend: r.be, Buffers: 3})
			ctx, cancel := context.WithCancel(t.Context())
			used, settled := 0, 0
			err := p.Run(ctx, steps(0, 40), func(b *pipeline.Gathered) error {
				require.Equal(t, used, b.Step)
				require.LessOrEqual(t, used-settled, 1)
				used++
				first := b.Batch.Inputs()[0][0]
				b.Settle(func() error {
					require.Equal(t, settled, b.Step)
					require.Equal(t, first, b.Batch.Inputs()[0][0])
					if settled++; b.Step == failing {
						return broken
					}
					return nil
				}, b.Step%4 != 3)
				if b.Step == cut {
					cancel()
				}
				return nil
			})
			cancel()
			p.Close()
			switch {
			case cut >= 0 && (failing < 0 || cut+1 < failing):
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, used, settled)
			case failing >= 0 && cut >= 0:
				require.Error(t, err)
			case failing >= 0:
				require.ErrorIs(t, err, broken)
				require.LessOrEqual(t, used, failing+2)
			default:
				require.NoError(t, err)
				require.Equal(t, 40, settled)
			}
		}
	}
}
