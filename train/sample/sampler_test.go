package sample

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// tiered is a topology that serves some lists by Read only, as parts of at most part neighbours,
// the last first, several at once.
type tiered struct {
	lists
	resident     uint32
	part         int
	hits, misses atomic.Int64
	reads        [][]uint32
	err          error
	onRead       func()
}

func (t *tiered) Neighbors(v uint32) []uint32 {
	if v >= t.resident {
		panic(fmt.Sprintf("list %d is not resident", v))
	}
	return t.lists[v]
}

func (t *tiered) Degree(v uint32) int { return len(t.lists[v]) }
func (t *tiered) Resident() uint32    { return t.resident }

func (t *tiered) SelfLoops(context.Context) (func(v uint32) int, error) {
	return func(v uint32) int { return selfLoops(t.lists[v], v) }, nil
}

func (t *tiered) Count(hits, misses int64) {
	t.hits.Add(hits)
	t.misses.Add(misses)
}

func (t *tiered) Weights(v uint32) []float32 {
	if v >= t.resident {
		panic(fmt.Sprintf("weights %d are not resident", v))
	}
	return t.lists.Weights(v)
}

func (t *tiered) Read(_ context.Context, nodes []uint32, serve func(i, from int, part []uint32) error) error {
	return readParts(t, nodes, func(v uint32) []uint32 { return t.lists[v] }, 1<<31, serve)
}

func (t *tiered) ReadWeights(_ context.Context, nodes []uint32, serve func(i, from int, part []float32) error) error {
	return readParts(t, nodes, t.lists.Weights, float32(math.NaN()), serve)
}

// readParts lends what of has for nodes, and then spoils it.
func readParts[T any](t *tiered, nodes []uint32, of func(v uint32) []T, spoilt T, serve func(i, from int, part []T) error) error {
	t.reads = append(t.reads, slices.Clone(nodes))
	if t.onRead != nil {
		t.onRead()
	}
	var wg sync.WaitGroup
	errs := make(chan error, 1)
	for i, v := range slices.Backward(nodes) {
		if v < t.resident || i > 0 && nodes[i-1] >= v || len(t.lists[v]) == 0 {
			panic(fmt.Sprintf("nodes[%d] is %d", i, v))
		}
		for from := 0; from < len(t.lists[v]); from += t.part {
			wg.Go(func() {
				lent := slices.Clone(of(v)[from:min(from+t.part, len(t.lists[v]))])
				if err := serve(i, from, lent); err != nil {
					select {
					case errs <- err:
					default:
					}
				}
				for i := range lent {
					lent[i] = spoilt
				}
			})
		}
	}
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return t.err
	}
}

// difference says where two batches differ, or nothing.
func difference(want, got *Batch) string {
	if !slices.EqualFunc(want.Seeds, got.Seeds, slices.Equal[[]uint32]) || len(want.Layers) != len(got.Layers) {
		return "seeds"
	}
	for l := range want.Layers {
		if len(want.Layers[l].Nodes) != len(got.Layers[l].Nodes) || len(want.Layers[l].Blocks) != len(got.Layers[l].Blocks) {
			return fmt.Sprintf("layer %d: types or relations", l)
		}
		for i := range want.Layers[l].Nodes {
			if w, g := want.Layers[l].Nodes[i], got.Layers[l].Nodes[i]; w.Dst != g.Dst || !slices.Equal(w.Src, g.Src) {
				return fmt.Sprintf("layer %d, type %d: want %d of %v, got %d of %v", l, i, w.Dst, w.Src, g.Dst, g.Src)
			}
		}
		for i := range want.Layers[l].Blocks {
			w, g := &want.Layers[l].Blocks[i], &got.Layers[l].Blocks[i]
			if !slices.Equal(w.Values, g.Values) {
				return fmt.Sprintf("layer %d, relation %d: values %v and %v", l, i, w.Values, g.Values)
			}
			if !slices.Equal(w.Weight, g.Weight) {
				return fmt.Sprintf("layer %d, relation %d: weights %v and %v", l, i, w.Weight, g.Weight)
			}
			for name, pair := range map[string][2][]uint32{
				"Start": {w.Start, g.Start}, "End": {w.End, g.End}, "Nbr": {w.Nbr, g.Nbr},
				"RevStart": {w.RevStart, g.RevStart}, "RevDst": {w.RevDst, g.RevDst}, "RevEdge": {w.RevEdge, g.RevEdge},
			} {
				if !slices.Equal(pair[0], pair[1]) {
					return fmt.Sprintf("layer %d, relation %d %s: want %v, got %v", l, i, name, pair[0], pair[1])
				}
			}
		}
	}
	return ""
}

func TestGroupsDrawTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		topo := graph(t)
		c := config(t)
		tier := &tiered{lists: topo, part: rapid.SampledFrom([]int{1, 7, 1000}).Draw(t, "part")}
		tier.resident = rapid.Uint32Range(0, uint32(len(topo))).Draw(t, "resident")
		s, g := newSingle(topo, c), NewSampler(tier, c, rapid.IntRange(1, 4).Draw(t, "workers"))
		g.maxPairs = rapid.SampledFrom([]int{1, 10, maxPairs}).Draw(t, "pairs")
		g.Bytes = rapid.SampledFrom([]int64{1, 1000, defaultBytes}).Draw(t, "bytes")
		for range 3 { // the same buffers again
			n := rapid.IntRange(1, 8).Draw(t, "batches")
			batches, z, seeds := make([]*Batch, n), make([]BatchSeed, n), make([][]uint32, n)
			for i := range batches {
				batches[i], z[i] = new(Batch), anyZ(t)
				seeds[i] = rapid.SliceOfNDistinct(rapid.Uint32Range(0, uint32(len(topo)-1)), 0, len(topo), rapid.ID[uint32]).Draw(t, "seeds")
			}
			require.NoError(t, g.Sample(context.Background(), batches, z, ofOneType(seeds)))
			for i := range batches {
				var want Batch
				require.NoError(t, s.Sample(&want, z[i], seeds[i]))
				require.Empty(t, difference(&want, batches[i]), "batch %d", i)
			}
		}
		if int(tier.resident) == len(topo) {
			require.Zero(t, tier.misses.Load())
		}
		passes := 1
		switch {
		case c.Kind == RW:
			passes = c.Walk.Length
		case c.Weighted:
			passes = 2
		}
		if g.maxPairs == maxPairs && g.Bytes == defaultBytes {
			require.LessOrEqual(t, len(tier.reads), 3*passes*len(c.Fanouts), "so many passes a hop")
		}
	})
}

// TestPartsOfLongLists: a choice from a list that comes in parts equals the choice from the whole
// list, even if one part fills a selection.
func TestPartsOfLongLists(t *testing.T) {
	topo := hub(3000)
	rapid.Check(t, func(t *rapid.T) {
		c := config(t)
		if c.Fanouts = c.Fanouts[:1]; c.Fanouts[0] == 50 {
			c.Fanouts[0] = 200
		}
		tier := &tiered{lists: topo, part: rapid.SampledFrom([]int{100, 700, 1000, 2999}).Draw(t, "part")}
		z, seeds := anyZ(t), []uint32{0}
		var want, got Batch
		require.NoError(t, newSingle(topo, c).Sample(&want, z, seeds))
		g := NewSampler(tier, c, 1)
		require.NoError(t, g.SampleOne(context.Background(), &got, z, seeds))
		require.Empty(t, difference(&want, &got), "%+v", c)
		require.Empty(t, g.parts, "lists that are through are forgotten")
	})
}

// TestGroupKeepsWhatBytesAllow: batches that are drawn one after the other use the same walks, and
// the same copies of lists.
func TestGroupKeepsWhatBytesAllow(t *testing.T) {
	topo := wide(1000, 8)
	for _, c := range []Config{{Kind: RW, Walk: DefaultWalk}, {Kind: LaborStar}} {
		c.Fanouts = []int{4, 3}
		g := NewSampler(&tiered{lists: topo, part: 1000}, c, 2)
		g.Bytes = 1
		batches, z, seeds := make([]*Batch, 6), make([]BatchSeed, 6), make([][]uint32, 6)
		for i := range batches {
			batches[i], z[i], seeds[i] = new(Batch), BatchSeed{First: uint64(i)}, []uint32{uint32(i), uint32(100*i + 7)}
		}
		require.NoError(t, g.Sample(context.Background(), batches, z, ofOneType(seeds)))
		require.Len(t, g.jobs, 1, c.Kind)
		g.Bytes = defaultBytes
		require.NoError(t, g.Sample(context.Background(), batches, z, ofOneType(seeds)))
		require.Len(t, g.jobs, 6, c.Kind)
	}
}

// TestGroupForgetsWhatABatchHeld: a worker that numbered the first hop of a batch, and not the
// second, takes the second one when the same batch is drawn anew. By then its index is of other
// nodes.
func TestGroupForgetsWhatABatchHeld(t *testing.T) {
	topo := wide(200, 8)
	c := Config{Fanouts: []int{4, 3}}
	tier := &tiered{lists: topo, part: 1000}
	g := NewSampler(tier, c, 2)
	tier.onRead = func() { // one batch has the first worker at each hop: this gives the second hop to the other
		if len(tier.reads)%2 == 0 {
			g.drawers[0], g.drawers[1] = g.drawers[1], g.drawers[0]
		}
	}
	var got, want Batch
	for i, seeds := range [][]uint32{{1, 2, 3}, {50, 60}, {7, 1, 90, 91}} {
		z := BatchSeed{First: uint64(i)}
		require.NoError(t, g.SampleOne(context.Background(), &got, z, seeds))
		require.NoError(t, newSingle(topo, c).Sample(&want, z, seeds))
		require.Empty(t, difference(&want, &got), "batch %d", i)
	}
}

// wide is a graph of many nodes, so that a hop's passes have ranges to be split into.
func wide(nodes, degree int) lists {
	topo := make(lists, nodes)
	for v := range topo {
		for j := range degree {
			topo[v] = append(topo[v], uint32(draw(uint64(v), j, nodes)))
		}
		slices.Sort(topo[v])
	}
	return topo
}

// TestPassesReadEachListOnce: a hop that wants more than a pass draws from is split by nodes, and
// what is counted depends on nothing but the batches.
func TestPassesReadEachListOnce(t *testing.T) {
	topo := wide(100_000, 8)
	const n = 6
	sampleAll := func(pairs, workers int) *tiered {
		tier := &tiered{lists: topo, resident: 1000, part: 1000}
		g := NewSampler(tier, Config{Fanouts: []int{4, 3}}, workers)
		g.maxPairs = pairs
		batches, z, seeds := make([]*Batch, n), make([]BatchSeed, n), make([][]uint32, n)
		for i := range batches {
			batches[i], z[i] = new(Batch), BatchSeed{First: uint64(i)}
			for j := range 300 {
				seeds[i] = append(seeds[i], uint32(j*311+i*7))
			}
		}
		require.NoError(t, g.Sample(context.Background(), batches, z, ofOneType(seeds)))
		return tier
	}
	whole := sampleAll(maxPairs, 1)
	require.Len(t, whole.reads, 2, "a pass a hop")
	for _, c := range []struct{ pairs, workers int }{{maxPairs, 4}, {1000, 1}, {1000, 3}} {
		split := sampleAll(c.pairs, c.workers)
		require.Equal(t, whole.hits.Load(), split.hits.Load())
		require.Equal(t, whole.misses.Load(), split.misses.Load())
		if c.pairs == maxPairs {
			require.Equal(t, whole.reads, split.reads)
			continue
		}
		require.Greater(t, len(split.reads), 6)
		hop, all := 0, []uint32(nil)
		for _, nodes := range split.reads {
			require.LessOrEqual(t, len(nodes), 1000)
			if all = append(all, nodes...); len(all) == len(whole.reads[hop]) {
				require.Equal(t, whole.reads[hop], all)
				hop, all = hop+1, nil
			}
		}
		require.Equal(t, 2, hop)
	}
}

func TestGroupErrors(t *testing.T) {
	topo := lists{{1}, {0, 7}, {}}
	one := func(tier *tiered, seeds ...uint32) error {
		return NewSampler(tier, Config{Fanouts: []int{All}}, 2).Sample(t.Context(), []*Batch{new(Batch), new(Batch)}, []BatchSeed{{First: 1}, {First: 2}}, ofOneType([][]uint32{{2}, seeds}))
	}
	for resident := range uint32(4) {
		err := one(&tiered{lists: topo, part: 10, resident: resident}, 2, 0, 1)
		require.EqualError(t, err, "node 1 has neighbour 7, and there are 3 nodes")
		require.NoError(t, one(&tiered{lists: topo, part: 10, resident: resident}, 0))
	}
	mine := errors.New("mine")
	require.ErrorIs(t, one(&tiered{lists: topo, part: 10, err: mine}, 0), mine)
	require.NoError(t, one(&tiered{lists: topo, part: 10, err: mine}, 2), "what is not wanted is not read")
	require.Panics(t, func() {
		_ = NewSampler(&tiered{lists: topo}, Config{}, 1).Sample(t.Context(), nil, []BatchSeed{{First: 1}}, nil)
	})
	require.NoError(t, NewSampler(&tiered{lists: topo}, Config{Fanouts: []int{3}}, 1).Sample(context.Background(), nil, nil, nil))
}

// TestGroupEndsWithItsContext: before a batch, and in the middle of a pass.
func TestGroupEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	tier := &tiered{lists: wide(1000, 8), part: 1, onRead: cancel}
	g := NewSampler(tier, Config{Fanouts: []int{3, 3}}, 2)
	b := []*Batch{new(Batch), new(Batch)}
	seeds := [][]uint32{{1, 2}, {3, 4}}
	require.ErrorIs(t, g.Sample(ctx, b, []BatchSeed{{First: 1}, {First: 2}}, ofOneType(seeds)), context.Canceled)
	require.Len(t, tier.reads, 1)
	require.ErrorIs(t, g.Sample(ctx, b, []BatchSeed{{First: 1}, {First: 2}}, ofOneType(seeds)), context.Canceled)
	require.Len(t, tier.reads, 1, "nothing is read once it has ended")
	require.NoError(t, g.Sample(context.Background(), b, []BatchSeed{{First: 1}, {First: 2}}, ofOneType(seeds)))
}

// stopping is lists that call cancel when list number after is asked for.
type stopping struct {
	lists
	asked, after int
	cancel       func()
}

func (s *stopping) Neighbors(v uint32) []uint32 {
	if s.asked++; s.asked == s.after {
		s.cancel()
	}
	return s.lists[v]
}

// TestDrawsEndInTheMiddleOfABatch: at the next lists, of each kind.
func TestDrawsEndInTheMiddleOfABatch(t *testing.T) {
	topo, seeds := wide(1000, 8), make([]uint32, 1000)
	for v := range seeds {
		seeds[v] = uint32(v)
	}
	for _, c := range everyKind() {
		if c.Weighted {
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		lists := &stopping{lists: topo, after: 100, cancel: cancel}
		s := NewSampler(AtHand(lists), c.with(4), 1)
		require.ErrorIs(t, s.SampleOne(ctx, new(Batch), BatchSeed{First: 1}, seeds), context.Canceled, c.name())
		require.Equal(t, 2*ahead, lists.asked, c.name())
	}
}

// TestWorkersAreGuarded: what a worker panics with is for Guard to make an error of.
func TestWorkersAreGuarded(t *testing.T) {
	bad := errors.New("bad page")
	s := NewSampler(AtHand(&stopping{lists: wide(1000, 8), after: 3, cancel: func() { panic(bad) }}), Config{Fanouts: []int{2, 2}}, 3)
	s.Guard = func(work func() error) (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = r.(error)
			}
		}()
		return work()
	}
	batches := []*Batch{new(Batch), new(Batch), new(Batch)}
	err := s.Sample(context.Background(), batches, make([]BatchSeed, 3), ofOneType([][]uint32{nil, nil, {1, 2, 3}}))
	require.ErrorIs(t, err, bad)
}

func TestSortByNode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := nodeRange{lo: uint64(rapid.Uint32().Draw(t, "lo"))}
		part.hi = part.lo + uint64(rapid.SampledFrom([]uint32{1, 5, 2047, 2048, 2049, 1 << 25, 1<<32 - 1}).Draw(t, "range"))
		part.hi = min(part.hi, 1<<32)
		if part.lo == part.hi {
			part.lo--
		}
		ids := rapid.SliceOf(rapid.Uint64Range(part.lo, part.hi-1)).Draw(t, "ids")
		var pairs []pair
		for i, v := range ids {
			pairs = append(pairs, pair(v<<32|uint64(i)))
		}
		want := slices.Sorted(slices.Values(pairs))
		sortByNode(pairs, make([]pair, len(pairs)), part)
		require.Equal(t, want, slices.AppendSeq([]pair(nil), slices.Values(pairs)))
	})
}

// BenchmarkGroup is BenchmarkSample by groups of eight batches, with all lists resident.
func BenchmarkGroup(b *testing.B) {
	topo := wide(200_000, 14)
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("resident=all/workers=%d", workers), func(b *testing.B) {
			g := NewSampler(&tiered{lists: topo, resident: uint32(len(topo))}, Config{Fanouts: []int{15, 10, 5}}, workers)
			const n = 8
			batches, z, seeds := make([]*Batch, n), make([]BatchSeed, n), make([][]uint32, n)
			for i := range batches {
				batches[i], seeds[i] = new(Batch), make([]uint32, 1000)
			}
			edges := 0
			for step := 0; b.Loop(); step++ {
				for i := range batches {
					z[i] = BatchSeed{First: uint64(step*n + i)}
					for j := range seeds[i] {
						seeds[i][j] = uint32(((step*n+i)*1000 + j) % len(topo))
					}
				}
				require.NoError(b, g.Sample(context.Background(), batches, z, ofOneType(seeds)))
				for _, batch := range batches {
					for l := range batch.Layers {
						edges += len(batch.flat(l).Nbr)
					}
				}
			}
			b.ReportMetric(float64(edges)/b.Elapsed().Seconds(), "edges/s")
		})
	}
}
