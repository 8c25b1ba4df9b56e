package sample

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// star0 is a topology in which node 0 has all others as neighbours, and those have none. As a
// Topology it has no list in memory, and serves them in parts.
type star0 struct {
	others  []uint32 // 1, 2, …
	weights []float32
	part    int
}

func newStar0(degree int) *star0 {
	s := &star0{others: make([]uint32, degree), weights: make([]float32, degree), part: 1 << 16}
	for i := range s.others {
		s.others[i], s.weights[i] = uint32(i+1), float32(1+i%3)
	}
	return s
}

func (s *star0) Nodes() int         { return len(s.others) + 1 }
func (s *star0) Resident() uint32   { return 0 }
func (s *star0) Count(int64, int64) {}
func (s *star0) Degree(v uint32) int {
	if v == 0 {
		return len(s.others)
	}
	return 0
}
func (s *star0) Neighbors(v uint32) []uint32 { return s.others[:s.Degree(v)] }
func (s *star0) Weights(v uint32) []float32  { return s.weights[:s.Degree(v)] }
func (s *star0) SelfLoops(context.Context) (func(v uint32) int, error) {
	return func(uint32) int { return 0 }, nil
}
func (s *star0) Read(_ context.Context, nodes []uint32, serve func(i, from int, part []uint32) error) error {
	return inParts(s.others, s.part, serve)
}
func (s *star0) ReadWeights(_ context.Context, nodes []uint32, serve func(i, from int, part []float32) error) error {
	return inParts(s.weights, s.part, serve)
}

func inParts[T any](list []T, part int, serve func(i, from int, part []T) error) error {
	for from := 0; from < len(list); from += part {
		if err := serve(0, from, list[from:min(from+part, len(list))]); err != nil {
			return err
		}
	}
	return nil
}

// TestHubsTakeBoundedMemory: to draw from 10 million neighbours takes no more than what is drawn,
// whole or in parts. LABOR-* is left out, which needs lists as a whole.
func TestHubsTakeBoundedMemory(t *testing.T) {
	degree := 10_000_000
	if testing.Short() {
		degree = 500_000 // the race detector takes its time
	}
	makeKnots()
	topo := newStar0(degree)
	for _, c := range []Config{
		{Kind: NS}, {Kind: NS, Smoothed: true}, {Kind: NS, Weighted: true}, {Kind: Labor0}, {Kind: Labor0, Poisson: true},
		{Kind: RW, Walk: DefaultWalk},
	} {
		c = c.with(10)
		s, g := newSingle(topo, c), NewSampler(topo, c, 1)
		for name, sample := range map[string]func(b *Batch) error{
			"sampler": func(b *Batch) error { return s.Sample(b, BatchSeed{1, 2, 0.5}, []uint32{0}) },
			"group": func(b *Batch) error {
				return g.SampleOne(context.Background(), b, BatchSeed{1, 2, 0.5}, []uint32{0})
			},
			"horizon": func(b *Batch) error {
				if !c.Far() {
					return g.SampleOne(context.Background(), b, BatchSeed{1, 2, 0.5}, []uint32{0})
				}
				return g.SampleFar(context.Background(), nil, 1, func(int) (BatchSeed, [][]uint32, []Without) {
					return BatchSeed{1, 2, 0.5}, [][]uint32{{0}}, nil
				}, func(_ int, drawn *Batch) error {
					*b = *drawn
					return nil
				})
			},
		} {
			var before, after runtime.MemStats
			var b Batch
			runtime.ReadMemStats(&before)
			require.NoError(t, sample(&b))
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<10), "%s, %s", name, c.name())
			require.NotEmpty(t, b.flat(0).Nbr, "%s, %s", name, c.name())
			require.LessOrEqual(t, len(b.flat(0).Nbr), 100)
		}
	}
}

// TestSizesOfPoisson: how many LABOR-0 keeps by r ≤ k/d has the mean k and the variance k(1-k/d).
// And it is never more than there is room for, also not where all neighbours are one, which have
// one number.
func TestSizesOfPoisson(t *testing.T) {
	const trials, k, d = 20_000, 10, 50
	for _, smoothed := range []bool{false, true} {
		c := Config{Kind: Labor0, Poisson: true, Smoothed: smoothed, Fanouts: []int{k}}
		s, b := newSingle(hub(d), c), Batch{}
		var size, square moments
		for i := range uint64(trials) {
			require.NoError(t, s.Sample(&b, BatchSeed{Hash(1, i), Hash(2, i), 0.7}, []uint32{0}))
			n := float64(len(b.flat(0).Nbr))
			size.add(n)
			square.add((n - k) * (n - k))
		}
		size.requireMean(t, k, "smoothed %v", smoothed)
		square.requireMean(t, k*(1-float64(k)/d), "smoothed %v", smoothed)

		same, most := lists{make([]uint32, 1000)}, 0
		s = newSingle(same, c)
		for i := range uint64(1000) {
			require.NoError(t, s.Sample(&b, BatchSeed{Hash(1, i), Hash(2, i), 0.7}, []uint32{0}))
			most = max(most, len(b.flat(0).Nbr))
		}
		require.Equal(t, k+int(8*math.Sqrt(k))+16, most)
	}
}

// TestEdgeCases: of each kind, what nothing can be drawn from, and parallel edges.
func TestEdgeCases(t *testing.T) {
	topo := weighing{lists{{}, {1}, {0, 0, 0, 3}, {3, 3, 3, 3}}, []float32{1, 2, 0, 3}}
	for _, c := range everyKind() {
		draw := func(k int, o Options, seeds ...uint32) flat {
			c := c.with(k)
			c.Options = o
			var b Batch
			require.NoError(t, newSingle(topo, c).Sample(&b, BatchSeed{7, 8, 0.5}, seeds), c.name())
			return b.flat(0)
		}
		for _, k := range []int{0, 1, 3, math.MaxInt32} {
			require.Empty(t, draw(k, Options{}).Src, "no seeds")
			require.Empty(t, draw(k, Options{}, 0).Nbr, "a node without neighbours")
			b := draw(k, Options{SelfLoops: true}, 0, 1)
			require.Equal(t, []uint32{0, 1}, b.Nbr, "each itself, once, though 1 has a self loop")
			require.Equal(t, []uint32{0, 1}, b.Start)
			if len(b.Weight) > 0 {
				require.Equal(t, []float32{1, 1}, b.Weight)
			}
		}
		require.Empty(t, draw(0, Options{}, 2, 3).Nbr)
		tier := &tiered{lists: topo.lists, part: 10}
		g := NewSampler(tier, c.with(0, 0), 1)
		require.NoError(t, g.SampleOne(context.Background(), new(Batch), BatchSeed{First: 1}, []uint32{2, 3}))
		require.Empty(t, tier.reads, "nothing is read where nothing is drawn")
		if c.Kind == RW { // counts a neighbour once, however many edges lead to it
			require.Less(t, len(draw(9, Options{}, 2).Nbr), 3)
			require.Empty(t, draw(2, Options{}, 3).Nbr, "whom walks never leave")
			continue
		}
		if b := draw(9, Options{}, 2); c.Weighted {
			require.Equal(t, []uint32{1, 1, 2}, b.Nbr, "an edge of weight 0 is none")
			require.InDeltaSlice(t, []float32{1 / 6., 2 / 6., 3 / 6.}, b.Weight, 1e-7)
		} else {
			require.Equal(t, []uint32{1, 1, 1, 2}, b.Nbr, "parallel edges are drawn apart")
		}
		if varies := c.with(2); !varies.varies() {
			require.Len(t, draw(2, Options{}, 3).Nbr, 2, "parallel edges take their places")
		}
	}
}

// TestWeightsThatAreNone: the error names the node and the place, whether lists are at hand or come
// in parts.
func TestWeightsThatAreNone(t *testing.T) {
	infinite, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, bad := range []float32{-1, nan, infinite, -infinite, -math.SmallestNonzeroFloat32} {
		for _, k := range []int{1, 4, All} {
			weights := []float32{1, 0, 2, bad, 3}
			want := fmt.Sprintf("neighbour 3 of node 0 has the weight %v; weights are finite and at least 0", bad)
			c := Config{Kind: NS, Weighted: true, Fanouts: []int{k}}
			var b Batch
			err := newSingle(weighing{hub(5), weights}, c).Sample(&b, BatchSeed{First: 1}, []uint32{1, 0})
			require.EqualError(t, err, want)
			for _, part := range []int{1, 3, 5} {
				topo := &star0{others: hub(5)[0], weights: weights, part: part}
				err := NewSampler(topo, c, 1).SampleOne(context.Background(), &b, BatchSeed{First: 1}, []uint32{1, 0})
				require.EqualError(t, err, want)
				var place *WeightError
				require.ErrorAs(t, err, &place)
				require.Equal(t, uint32(0), place.Node)
			}
		}
	}
}

// TestWeightsOfAnySize: the largest, the smallest and zeros, together.
func TestWeightsOfAnySize(t *testing.T) {
	const huge, tiny = math.MaxFloat32, math.SmallestNonzeroFloat32
	for _, weights := range [][]float32{
		make([]float32, 6), slices.Repeat([]float32{huge}, 6), slices.Repeat([]float32{tiny}, 6), {huge, tiny, 0, 1, huge, tiny},
	} {
		for _, k := range []int{1, 2, 5, 6} {
			s := newSingle(weighing{hub(6), weights}, Config{Kind: NS, Weighted: true, Smoothed: true, Fanouts: []int{k}})
			for i := range uint64(200) {
				var b Batch
				require.NoError(t, s.Sample(&b, BatchSeed{Hash(1, i), Hash(2, i), float64(i%2) / 2}, []uint32{0}))
				requireValid(t, s.Config, 7, &b)
			}
		}
	}
}

func TestNoAllocationOnceGrown(t *testing.T) {
	topo := weighing{wide(2000, 30), make([]float32, 30)}
	for i := range topo.weights {
		topo.weights[i] = float32(i % 4)
	}
	seeds := make([]uint32, 20)
	for i := range seeds {
		seeds[i] = uint32(i)
	}
	for _, c := range everyKind() {
		c = c.with(10, 5)
		c.Options = Options{SelfLoops: true, GCN: c.Kind != RW && !c.Weighted, RevEdges: true, RevInput: true}
		s, b, z := newSingle(topo, c), Batch{}, BatchSeed{Drift: 0.5}
		draw := func(seeds []uint32) func() {
			return func() {
				z.First++
				if err := s.Sample(&b, z, seeds); err != nil {
					panic(err)
				}
			}
		}
		for range 20 {
			draw(seeds)()
		}
		fixed := testing.AllocsPerRun(5, draw(seeds[:1])) // whatever is drawn
		many := testing.AllocsPerRun(5, draw(seeds))
		require.LessOrEqual(t, many, fixed+1, c.name()) // a size that never was, now and then
	}
}

// requireValid holds what is true of every batch.
func requireValid(t require.TestingT, c Config, nodes int, b *Batch) {
	for l := range b.Layers {
		k, fanout := b.flat(l), c.Fanouts[len(c.Fanouts)-1-l]
		above := b.Seeds[0]
		if l+1 < len(b.Layers) {
			above = b.flat(l + 1).Src
		}
		require.Equal(t, len(above), k.Dst)
		require.Equal(t, above, k.Src[:k.Dst:k.Dst], "destinations come first")
		require.Len(t, k.Start, k.Dst)
		require.Len(t, k.End, k.Dst)
		used, ids, end := make([]bool, len(k.Src)), map[uint32]bool{}, uint32(0)
		for _, u := range k.Src {
			require.Less(t, int(u), nodes)
			require.False(t, ids[u], "%d twice", u)
			ids[u] = true
		}
		weighted := c.GCN || c.Weighted || c.Kind == LaborStar || c.Kind == RW
		require.Equal(t, weighted, len(k.Weight) == len(k.Nbr) && weighted)
		for i := range k.Dst {
			require.Equal(t, end, k.Start[i], "no gaps")
			require.LessOrEqual(t, k.Start[i], k.End[i])
			end = k.End[i]
			sum, n := 0.0, int(k.End[i]-k.Start[i])
			for e := k.Start[i]; e < k.End[i]; e++ {
				used[k.Nbr[e]] = true
				if weighted {
					w := float64(k.Weight[e])
					require.True(t, w >= 0 && w <= math.MaxFloat32, "weight %v", w)
					sum += w
				}
			}
			if c.SelfLoops {
				n--
				require.Equal(t, uint32(i), k.Nbr[end-1], "itself last")
			} else if weighted && n > 0 {
				require.InDelta(t, 1, sum, 1e-5)
			}
			if fanout != All {
				require.LessOrEqual(t, n, 25*fanout, "room") // of a fanout of 1; 16 or fewer of others
			}
		}
		require.Equal(t, int(end), len(k.Nbr))
		for u := k.Dst; u < len(k.Src); u++ {
			require.True(t, used[u], "source %d is nobody's neighbour", u)
		}
	}
}

// FuzzSampler draws by any Config from any graph, and holds what is true of every batch, alone and
// in a group.
func FuzzSampler(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		topo, c, z := graph(t), config(t), anyZ(t)
		seeds := someSeeds(t, topo)
		var alone, together Batch
		require.NoError(t, newSingle(topo, c).Sample(&alone, z, seeds))
		requireValid(t, c, len(topo), &alone)
		tier := &tiered{lists: topo, part: rapid.IntRange(1, 100).Draw(t, "part")}
		tier.resident = rapid.Uint32Range(0, uint32(len(topo))).Draw(t, "resident")
		require.NoError(t, NewSampler(tier, c, 2).SampleOne(context.Background(), &together, z, seeds))
		require.Empty(t, difference(&alone, &together))
	}))
}

// TestEveryBatchIsValid is FuzzSampler's property over what rapid thinks of.
func TestEveryBatchIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		topo, c, z := graph(t), config(t), anyZ(t)
		var b Batch
		require.NoError(t, newSingle(topo, c).Sample(&b, z, someSeeds(t, topo)))
		requireValid(t, c, len(topo), &b)
	})
}

// BenchmarkKinds draws batches of 1,000 seeds by each kind.
func BenchmarkKinds(b *testing.B) {
	topo := wide(200_000, 14)
	for _, c := range everyKind() {
		b.Run(fmt.Sprintf("kind=%s", c.name()), func(b *testing.B) {
			s, edges, seeds := newSingle(topo, c.with(15, 10, 5)), 0, make([]uint32, 1000)
			var batch Batch
			for i := 0; b.Loop(); i++ {
				for j := range seeds {
					seeds[j] = uint32((i*1000 + j) % len(topo))
				}
				require.NoError(b, s.Sample(&batch, BatchSeed{uint64(i), uint64(i + 1), 0.5}, seeds))
				for l := range batch.Layers {
					edges += len(batch.flat(l).Nbr)
				}
			}
			b.ReportMetric(float64(edges)/b.Elapsed().Seconds()/1e6, "Medges/s")
		})
	}
}
