package sample

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/store/storetest"
)

// spill is a Room in memory, which fails at the failAt-th call of a method, if that is not 0.
type spill struct {
	mu      sync.Mutex
	runs    []*spillRun
	calls   int
	failAt  int
	forgets bool // the last record of each run
}

type spillRun struct {
	*spill
	records [][]byte
	busy    int
}

var errSpill = errors.New("no space left")

func (s *spill) NewRun() Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = append(s.runs, &spillRun{spill: s})
	return s.runs[len(s.runs)-1]
}

func (r *spillRun) fail() error {
	if r.calls++; r.calls == r.failAt {
		return errSpill
	}
	return nil
}

func (r *spillRun) Append(record []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy > 0 {
		panic("a run is appended to that is read")
	}
	r.records = append(r.records, slices.Clone(record))
	return r.fail()
}

// Each lends pieces of several records, in any order, two at once, and spoils them afterwards.
func (r *spillRun) Each(ctx context.Context, do func(records []byte) error) error {
	r.mu.Lock()
	all, err := r.records, errors.Join(r.fail(), ctx.Err())
	if err != nil {
		r.mu.Unlock()
		return err
	}
	r.busy++
	r.mu.Unlock()
	if r.forgets {
		all = all[:len(all)-1]
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for w := range errs {
		wg.Go(func() {
			for i := w; i < len(all) && errs[w] == nil; i += 4 {
				piece := slices.Concat(all[i], nil)
				if i+2 < len(all) {
					piece = append(piece, all[i+2]...)
				}
				errs[w] = do(piece)
				for i := range piece {
					piece[i] = 0xa5
				}
			}
		})
	}
	wg.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy--
	r.records = nil
	return errors.Join(errs...)
}

// left counts records that nobody has read.
func (s *spill) left() (n int) {
	for _, r := range s.runs {
		n += len(r.records)
	}
	return n
}

// reverseAll makes the reverse of b.
func (s *Sampler) reverseAll(b *Batch) {
	for l := range b.Layers {
		s.reverse(&s.schema, b, l)
	}
}

// requireHorizon compares batches of SampleFar with batches of Sample.
func requireHorizon(t *rapid.T, s *Sampler, room Room) {
	n := rapid.IntRange(0, 12).Draw(t, "steps")
	z, seeds, without := make([]BatchSeed, n), make([][][]uint32, n), make([][]Without, n)
	want, next := make([]*Batch, n), 0
	for i := range want {
		z[i], seeds[i], without[i] = anySeeds(t, s)
		want[i] = &Batch{Without: without[i]}
	}
	require.NoError(t, s.Sample(context.Background(), want, z, seeds))
	require.NoError(t, s.SampleFar(context.Background(), room, n, func(i int) (BatchSeed, [][]uint32, []Without) {
		lentSeeds, lentWithout := make([][]uint32, len(seeds[i])), make([]Without, len(without[i]))
		for k := range seeds[i] {
			lentSeeds[k] = slices.Clone(seeds[i][k])
		}
		for k, w := range without[i] {
			lentWithout[k] = Without{slices.Clone(w.Start), slices.Clone(w.Src)}
		}
		return z[i], lentSeeds, lentWithout
	}, func(i int, b *Batch) error {
		if i != next {
			return fmt.Errorf("step %d comes where %d is next", i, next)
		}
		next++
		bytes := b.Bytes()
		s.reverseAll(b)
		require.Equal(t, bytes, b.Bytes(), "there is the size of the reverse")
		requireSame(t, want[i], b, "%+v", s.Config)
		return nil
	}))
	require.Equal(t, n, next)
}

// TestHorizonDrawsTheSame: whatever is resident, in memory or in the room, however many steps are
// in a part and pairs in a range, and whoever draws them.
func TestHorizonDrawsTheSame(t *testing.T) {
	spilt, kept := 0, 0
	storetest.CheckUntil(t, func(t *rapid.T) {
		s, _ := anySampler(t, NS, Labor0)
		for s.Weighted {
			s, _ = anySampler(t, NS, Labor0)
		}
		s.maxPairs = rapid.SampledFrom([]int{1, 10, maxPairs}).Draw(t, "pairs")
		for range 2 { // the same buffers again
			s.Bytes = rapid.SampledFrom([]int64{1, 1000, 10_000, 200_000, defaultBytes}).Draw(t, "bytes")
			room := new(spill)
			requireHorizon(t, s, room)
			require.Zero(t, room.left())
			if len(room.runs) > 0 {
				spilt++
			} else {
				kept++
			}
		}
	}, map[string]*int{"a horizon in the room": &spilt, "a horizon in memory": &kept})
	t.Logf("%d horizons in the room, %d in memory", spilt, kept)
}

// TestHorizonReadsEachListOnce: a hop is one pass in the order of the file, however many parts and
// ranges there are, and what is counted is what Sample counts that draws all batches together.
func TestHorizonReadsEachListOnce(t *testing.T) {
	topo := wide(20_000, 8)
	const n = 12
	z, seeds, without := make([]BatchSeed, n), make([][]uint32, n), make([]Without, n)
	for i := range n {
		z[i] = BatchSeed{First: uint64(i)}
		var pairs []uint64
		for j := range 100 {
			v := uint32(j*199 + i*7)
			seeds[i] = append(seeds[i], v)
			if j%3 == 0 {
				pairs = append(pairs, uint64(j)<<32|uint64(topo[v][j%8]))
			}
		}
		without[i].Fill(100, pairs)
	}
	newTier := func() *tiered { return &tiered{lists: topo, resident: 200, part: 1000} }
	whole, batches, c := newTier(), make([]*Batch, n), Config{Fanouts: []int{4, 3, 2}}
	for i := range batches {
		batches[i] = new(Batch)
	}
	require.NoError(t, NewSampler(whole, c, 2).Sample(context.Background(), batches, z, ofOneType(seeds)))
	require.Len(t, whole.reads, 3, "a pass a hop")
	last := map[string][][]uint32{}
	for i, bytes := range []int64{1 << 30, 300_000, 8_000, 8_000, 8_000} {
		for _, leaves := range []bool{false, true} {
			tier, room := newTier(), new(spill)
			s := NewSampler(tier, c, 1+i%3)
			s.Bytes = bytes
			require.NoError(t, s.SampleFar(t.Context(), room, n, func(i int) (BatchSeed, [][]uint32, []Without) {
				if leaves {
					return z[i], [][]uint32{seeds[i]}, without[i : i+1]
				}
				return z[i], [][]uint32{seeds[i]}, nil
			}, func(i int, b *Batch) error {
				own := int64(0)
				for _, b := range s.own {
					own += b.Bytes()
				}
				if own > bytes/2 && len(s.own) > 1 {
					return fmt.Errorf("%d batches take %d bytes, of %d", len(s.own), own, bytes)
				}
				return nil
			}))
			if !leaves {
				require.Equal(t, []int64{whole.hits.Load(), whole.misses.Load()}, []int64{tier.hits.Load(), tier.misses.Load()})
			}
			key := fmt.Sprint(bytes, leaves)
			if before, ok := last[key]; ok {
				require.Equal(t, before, tier.reads, "whoever draws")
			}
			last[key] = tier.reads
			hop, all := 0, []uint32(nil)
			for _, nodes := range tier.reads {
				if len(all) > 0 && nodes[0] <= all[len(all)-1] {
					require.True(t, leaves || slices.Equal(whole.reads[hop], all), "hop %d", hop)
					hop, all = hop+1, nil
				}
				require.True(t, slices.IsSorted(nodes))
				all = append(all, nodes...)
			}
			require.Equal(t, 2, hop, "a pass a hop")
			if bytes == 1<<30 {
				require.Len(t, tier.reads, 3)
				require.Empty(t, room.runs, "all fits in memory")
			} else {
				require.Greater(t, len(tier.reads), 8)
				require.NotEmpty(t, room.runs)
			}
			require.Zero(t, room.left())
		}
	}
}

// TestHorizonOfLongLists draws from lists that come in parts, for several steps at once.
func TestHorizonOfLongLists(t *testing.T) {
	topo := hub(3000)
	rapid.Check(t, func(t *rapid.T) {
		c := config(t)
		if !c.Far() {
			t.Skip()
		}
		if c.Fanouts = c.Fanouts[:1]; c.Fanouts[0] == 50 {
			c.Fanouts[0] = 200
		}
		s := NewSampler(&tiered{lists: topo, part: rapid.SampledFrom([]int{100, 700, 1000, 2999}).Draw(t, "part")}, c, 2)
		s.Bytes = rapid.SampledFrom([]int64{1, 1 << 20}).Draw(t, "bytes")
		if !c.SelfLoops && rapid.Bool().Draw(t, "values") {
			s.Bring([]Values{&valued{s.relations[0].topo.(*tiered), 1}})
		}
		n, w := rapid.IntRange(1, 4).Draw(t, "steps"), Without{}
		w.Fill(1, []uint64{7, 2900, 7, 0})
		z, batches, without := make([]BatchSeed, n), make([]*Batch, n), make([][]Without, n)
		for i := range n {
			if z[i] = anyZ(t); rapid.Bool().Draw(t, "without") {
				without[i] = []Without{w}
			}
			batches[i] = &Batch{Without: without[i]}
		}
		require.NoError(t, s.Sample(context.Background(), batches, z, ofOneType(slices.Repeat([][]uint32{{0}}, n))))
		require.NoError(t, s.SampleFar(t.Context(), new(spill), n, func(i int) (BatchSeed, [][]uint32, []Without) {
			return z[i], [][]uint32{{0}}, without[i]
		}, func(i int, b *Batch) error {
			s.reverseAll(b)
			requireSame(t, batches[i], b, "%+v", c)
			return nil
		}))
		require.Empty(t, s.parts, "lists that are through are forgotten")
	})
}

// farSample draws 12 steps with SampleFar. They take several parts and ranges.
func farSample(ctx context.Context, tier *tiered, room Room, done func(i int) error) error {
	s := NewSampler(tier, Config{Fanouts: []int{3, 3}}, 2)
	s.Bytes = 40_000
	return s.SampleFar(ctx, room, 12, func(i int) (BatchSeed, [][]uint32, []Without) {
		seeds := make([]uint32, 40)
		for j := range seeds {
			seeds[j] = uint32(i + 20*j)
		}
		return BatchSeed{First: uint64(i)}, [][]uint32{seeds}, nil
	}, func(i int, _ *Batch) error { return done(i) })
}

// TestHorizonErrors: whatever fails comes back, and ends it.
func TestHorizonErrors(t *testing.T) {
	topo, fine, ctx := wide(1000, 8), func(int) error { return nil }, context.Background()
	for at := 1; ; at += 1 + at/20 {
		room := &spill{failAt: at}
		err := farSample(ctx, &tiered{lists: topo, part: 3}, room, fine)
		if room.calls < at { // how many there are depends on who reads
			require.NoError(t, err)
			require.Greater(t, at, 50)
			break
		}
		require.ErrorIs(t, err, errSpill, "call %d", at)
		for _, r := range room.runs {
			require.Zero(t, r.busy)
		}
	}
	require.ErrorContains(t, farSample(ctx, &tiered{lists: topo, part: 3}, &spill{forgets: true}, fine), "were appended to a run, and it gives")

	mine, done := errors.New("mine"), -1
	require.ErrorIs(t, farSample(ctx, &tiered{lists: topo, part: 3, err: mine}, new(spill), fine), mine)
	require.ErrorIs(t, farSample(ctx, &tiered{lists: topo, part: 3}, new(spill), func(i int) error {
		if done = i; i == 5 {
			return mine
		}
		return nil
	}), mine)
	require.Equal(t, 5, done)

	for reads := 1; ; reads++ {
		ctx, cancel := context.WithCancel(ctx)
		tier := &tiered{lists: topo, part: 3}
		tier.onRead = func() {
			if len(tier.reads) == reads {
				cancel()
			}
		}
		err := farSample(ctx, tier, new(spill), fine)
		if cancel(); len(tier.reads) < reads {
			require.NoError(t, err)
			require.Greater(t, reads, 4)
			break
		}
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, tier.reads, reads)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, farSample(ended, &tiered{lists: topo, part: 3}, new(spill), fine), context.Canceled)

	bad := NewSampler(&tiered{lists: lists{{1}, {0, 7}, {}}, part: 10}, Config{Fanouts: []int{All}}, 1)
	require.EqualError(t, bad.SampleFar(ctx, new(spill), 2, func(i int) (BatchSeed, [][]uint32, []Without) {
		return BatchSeed{}, [][]uint32{{uint32(2 - i)}}, nil
	}, func(int, *Batch) error { return nil }), "node 1 has neighbour 7, and there are 3 nodes")
}

// garbled is a room that changes a word of each piece.
type garbled struct{ spill }

func (g *garbled) NewRun() Run { return garbledRun{g.spill.NewRun()} }

type garbledRun struct{ Run }

func (r garbledRun) Each(ctx context.Context, do func(records []byte) error) error {
	return r.Run.Each(ctx, func(records []byte) error {
		records[4*rand.IntN(len(records)/4)+rand.IntN(4)] ^= 1 << rand.IntN(8)
		return do(records)
	})
}

// TestHorizonSurvivesGarbage: records that were not appended are an error or other batches, and no
// panic of a worker's.
func TestHorizonSurvivesGarbage(t *testing.T) {
	failed := 0
	for range 100 {
		if err := farSample(context.Background(), &tiered{lists: wide(1000, 8), part: 3}, new(garbled), func(int) error { return nil }); err != nil {
			failed++
		}
	}
	require.Positive(t, failed)
}

func TestHorizonOfNothing(t *testing.T) {
	topo := lists{{1}, {0}}
	from := func(i int) (BatchSeed, [][]uint32, []Without) { return BatchSeed{}, [][]uint32{{uint32(i)}}, nil }
	var seen []uint32
	done := func(_ int, b *Batch) error {
		seen = append(seen, b.Seeds[0]...)
		return nil
	}
	require.NoError(t, NewSampler(AtHand(topo), Config{}, 1).SampleFar(context.Background(), nil, 2, from, done))
	require.Equal(t, []uint32{0, 1}, seen, "without layers")
	require.NoError(t, NewSampler(AtHand(topo), Config{Fanouts: []int{2}}, 1).SampleFar(context.Background(), nil, 0, nil, nil))
	for _, c := range everyKind() {
		if c = c.with(2); !c.Far() {
			require.Panics(t, func() {
				_ = NewSampler(AtHand(weighing{topo, []float32{1}}), c, 1).SampleFar(context.Background(), nil, 2, from, done)
			})
		}
	}
}

// TestQueueKeepsWhatItMay: whatever comes is passed on, range by range in the order of nodes, and
// no more at once than may be in memory, unless one node has more.
func TestQueueKeepsWhatItMay(t *testing.T) {
	s := NewSampler(AtHand(lists{{}}), Config{}, 2)
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SampledFrom([]uint64{1, 2, 100, 1 << 17, 1 << 32}).Draw(t, "nodes")
		lo := rapid.Uint64Range(0, nodes-1).Draw(t, "lo")
		q := &queue{
			recordPool: &recordPool{room: new(spill), left: rapid.Int64Range(0, 1<<17).Draw(t, "left")}, nodes: nodeRange{lo, nodes},
			most: rapid.IntRange(1, 3000).Draw(t, "most"),
		}
		q.total = func() int { return 2 * len(q.pairs) }
		key, skew, all := rapid.Uint64().Draw(t, "key"), rapid.SampledFrom([]float64{1, 4, 40}).Draw(t, "skew"), []pair(nil)
		for i := range rapid.IntRange(0, 10_000).Draw(t, "pairs") {
			x, width := 1.0, float64(draw(key, i, 1<<30))/(1<<30)
			for range int(skew) {
				x *= width
			}
			p := pair(lo+uint64(x*float64(nodes-lo)))<<32 | pair(i)
			all = append(all, p)
			if err := q.add(p); err != nil {
				t.Fatal(err)
			}
		}
		var got []pair
		after := lo
		err := q.each(context.Background(), s, func(r nodeRange, pairs []pair) error {
			if r.lo < after || r.hi > nodes || len(pairs) > q.most && r.hi-r.lo > 1 {
				return fmt.Errorf("%d pairs in the range %v after %d", len(pairs), r, after)
			}
			for _, p := range pairs {
				if v := uint64(p.node()); v < r.lo || v >= r.hi {
					return fmt.Errorf("node %d in the range %v", v, r)
				}
			}
			got, after = append(got, pairs...), r.hi
			return nil
		})
		require.NoError(t, err)
		slices.Sort(all)
		slices.Sort(got)
		require.True(t, slices.Equal(all, got))
	})
}

// halfCold is a csr with few resident lists: the others are read in order, by two goroutines.
type halfCold struct{ *csr }

func (c halfCold) Resident() uint32                                      { return uint32(c.Nodes() / 100) }
func (c halfCold) Degree(v uint32) int                                   { return int(c.offsets[v+1] - c.offsets[v]) }
func (c halfCold) Count(int64, int64)                                    {}
func (c halfCold) SelfLoops(context.Context) (func(v uint32) int, error) { return nil, nil }
func (c halfCold) Read(_ context.Context, nodes []uint32, serve func(i, from int, part []uint32) error) error {
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for w := range errs {
		wg.Go(func() {
			for i := w * len(nodes) / 2; i < (w+1)*len(nodes)/2 && errs[w] == nil; i++ {
				errs[w] = serve(i, 0, c.Neighbors(nodes[i]))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// BenchmarkHorizon draws 32 steps of 1,000 seeds from a graph with one hundredth resident: by
// SampleFar, and by Sample in groups of 8.
func BenchmarkHorizon(b *testing.B) {
	nodes := 10_000_000
	if testing.Short() {
		nodes = 200_000
	}
	topo := halfCold{skewed(nodes, 14)}
	const steps, group = 32, 8
	z, seeds := make([]BatchSeed, steps), make([][]uint32, steps)
	for i := range seeds {
		z[i] = BatchSeed{First: uint64(i)}
		for j := range 1000 {
			seeds[i] = append(seeds[i], uint32((i*1000+j)*(nodes/(steps*1000))))
		}
	}
	edgesOf := func(batch *Batch) (n int) {
		for l := range batch.Layers {
			n += len(batch.flat(l).Nbr)
		}
		return n
	}
	run := func(name string, draw func(b *testing.B) (edges int)) {
		b.Run(name, func(b *testing.B) {
			edges := 0
			for b.Loop() {
				edges += draw(b)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(edges), "ns/edge")
		})
	}
	s := NewSampler(topo, Config{Fanouts: []int{15, 10, 5}}, 2)
	for _, bytes := range []int64{64 << 20, 1 << 30} {
		run(fmt.Sprintf("far/bytes=%dMiB", bytes>>20), func(b *testing.B) (edges int) {
			s.Bytes = bytes
			require.NoError(b, s.SampleFar(b.Context(), new(spill), steps, func(i int) (BatchSeed, [][]uint32, []Without) {
				return z[i], [][]uint32{seeds[i]}, nil
			}, func(_ int, batch *Batch) error {
				edges += edgesOf(batch)
				return nil
			}))
			return edges
		})
	}
	batches := make([]*Batch, group)
	for i := range batches {
		batches[i] = new(Batch)
	}
	run("groups", func(b *testing.B) (edges int) {
		for at := 0; at < steps; at += group {
			require.NoError(b, s.Sample(context.Background(), batches, z[at:at+group], ofOneType(seeds[at:at+group])))
			for _, batch := range batches {
				edges += edgesOf(batch)
			}
		}
		return edges
	})
}
