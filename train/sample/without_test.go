package sample

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/store/storetest"
)

// cut is a topology without some edges. Batches that are drawn without these edges are compared
// with batches from it. places has the places of its edges in the whole lists, whose weights and
// values they have.
type cut struct {
	lists
	whole   lists
	places  [][]uint32
	columns int
}

// newCut leaves out of whole the edges that w leaves out for seeds.
func newCut(whole lists, seeds []uint32, w Without, columns int) *cut {
	c := &cut{lists: make(lists, len(whole)), whole: whole, places: make([][]uint32, len(whole)), columns: columns}
	for v, list := range whole {
		for place, u := range list {
			if i := slices.Index(seeds, uint32(v)); i < 0 || !slices.Contains(w.Of(i), u) {
				c.lists[v], c.places[v] = append(c.lists[v], u), append(c.places[v], uint32(place))
			}
		}
	}
	return c
}

func (c *cut) Weights(v uint32) (w []float32) {
	all := c.whole.Weights(v)
	for _, place := range c.places[v] {
		w = append(w, all[place])
	}
	return w
}

func (c *cut) Columns() int { return c.columns }

func (c *cut) TakeValues(dst []float32, v uint32, places []uint32) {
	for i, p := range places {
		for column := range c.columns {
			dst[i*c.columns+column] = valueOf(column, v, int(c.places[v][p]))
		}
	}
}

func (c *cut) ReadValues(context.Context, int, []uint32, func(i, from int, part []float32) error) error {
	panic("read")
}

// without is any edges to seeds, and pairs that no edge joins.
func without(t *rapid.T, s Schema, seeds [][]uint32) (all []Without) {
	all = make([]Without, len(s.Relations))
	for r, ends := range s.Relations {
		if len(seeds[ends.Dst]) == 0 || rapid.Bool().Draw(t, "all edges") {
			continue
		}
		pair := rapid.Custom(func(t *rapid.T) uint64 {
			seed := rapid.IntRange(0, len(seeds[ends.Dst])-1).Draw(t, "seed")
			return uint64(seed)<<32 | uint64(rapid.IntRange(0, s.Types[ends.Src]-1).Draw(t, "source"))
		})
		all[r].Fill(len(seeds[ends.Dst]), rapid.SliceOfN(pair, 0, 100).Draw(t, "pairs"))
	}
	return all
}

// requireDrawnWithout compares batches that are drawn without some edges, bit for bit, with those
// that are drawn from a graph that never had them: whatever is resident, however many come
// together, and whoever draws them.
func requireDrawnWithout(t *testing.T, any func(t *rapid.T) (Schema, []lists, Config)) {
	left := 0
	storetest.CheckUntil(t, func(t *rapid.T) {
		schema, topo, c := any(t)
		var tiers []Topology
		var values []Values
		var columns []int
		for _, l := range topo {
			tier := &tiered{lists: l, part: rapid.SampledFrom([]int{1, 7, 1000}).Draw(t, "part")}
			tier.resident = rapid.Uint32Range(0, uint32(len(l))).Draw(t, "resident")
			n := 0
			if !c.SelfLoops {
				n = rapid.IntRange(0, 2).Draw(t, "columns")
			}
			tiers, columns, values = append(tiers, tier), append(columns, n), append(values, nil)
			if n > 0 {
				values[len(values)-1] = &valued{tier, n}
			}
		}
		s := NewTyped(schema, tiers, c, rapid.IntRange(1, 4).Draw(t, "workers"))
		s.maxPairs = rapid.SampledFrom([]int{1, 10, maxPairs}).Draw(t, "pairs")
		s.Bytes = rapid.SampledFrom([]int64{1, 1000, defaultBytes}).Draw(t, "bytes")
		s.Bring(values)
		n := rapid.IntRange(1, 5).Draw(t, "batches")
		batches, z, seeds := make([]*Batch, n), make([]BatchSeed, n), make([][][]uint32, n)
		for range 2 { // the same buffers again
			for i := range batches {
				if batches[i] == nil {
					batches[i] = new(Batch)
				}
				z[i], seeds[i] = anyZ(t), typedSeeds(t, schema)
				batches[i].Without = nil
				if rapid.Bool().Draw(t, "without") {
					batches[i].Without = without(t, schema, seeds[i])
				}
			}
			require.NoError(t, s.Sample(context.Background(), batches, z, seeds))
			for i, b := range batches {
				var graph []Topology
				var known []Values
				for r, l := range topo {
					k := newCut(l, seeds[i][schema.Relations[r].Dst], b.without(r), columns[r])
					graph, known = append(graph, AtHand(k)), append(known, nil)
					if columns[r] > 0 {
						known[r] = k
					}
					for v := range l {
						left += len(l[v]) - len(k.lists[v])
					}
				}
				never := NewTyped(schema, graph, c, 1)
				never.Bring(known)
				var want Batch
				require.NoError(t, never.SampleOne(context.Background(), &want, z[i], seeds[i]...))
				require.Empty(t, difference(&want, b), "batch %d of %+v", i, c)
			}
		}
	}, map[string]*int{"an edge left out": &left})
}

func TestDrawnWithoutEdges(t *testing.T) {
	requireDrawnWithout(t, func(t *rapid.T) (Schema, []lists, Config) {
		topo := graph(t)
		for {
			if c := config(t); c.Kind != RW && !(c.GCN && slices.Contains(c.Fanouts, 0)) {
				return OneType(len(topo)), []lists{topo}, c
			}
		}
	})
}

func TestTypedDrawnWithoutEdges(t *testing.T) {
	requireDrawnWithout(t, func(t *rapid.T) (Schema, []lists, Config) {
		schema, topo := typedGraph(t)
		c := typedConfig(t, NS, Labor0, LaborStar)
		ofRelation(t, &c, schema)
		return schema, topo, c
	})
}

// TestWithoutOfLongLists: lists that come in parts lose edges as well, and are counted once.
func TestWithoutOfLongLists(t *testing.T) {
	topo := hub(3000)
	for _, c := range everyKind() {
		if c.Kind == RW {
			continue
		}
		c = c.with(20)
		for _, resident := range []uint32{0, 3001} {
			tier := &tiered{lists: topo, part: 100, resident: resident}
			b := Batch{Without: make([]Without, 1)}
			b.Without[0].Fill(1, []uint64{7, 2900, 7, 0})
			require.NoError(t, NewSampler(tier, c, 1).SampleOne(t.Context(), &b, BatchSeed{First: 1}, []uint32{0}))
			var want Batch
			never := newSingle(newCut(topo, []uint32{0}, b.Without[0], 0), c)
			require.NoError(t, never.Sample(&want, BatchSeed{First: 1}, []uint32{0}))
			require.Empty(t, difference(&want, &b), c.name())
			require.EqualValues(t, 1, tier.hits.Load()+tier.misses.Load())
		}
	}
}

// TestWithoutAnyEdge: a node that loses all of its edges draws nothing, and an edge that is left
// out may weigh nothing that is a number.
func TestWithoutAnyEdge(t *testing.T) {
	topo := lists{{}, {0, 0, 2}, {1}}
	for resident := range uint32(4) {
		b := Batch{Without: make([]Without, 1)}
		b.Without[0].Fill(2, []uint64{1 << 32, 1<<32 | 2})
		s := NewSampler(&tiered{lists: topo, part: 2, resident: resident}, Config{Fanouts: []int{All}}, 1)
		require.NoError(t, s.SampleOne(context.Background(), &b, BatchSeed{}, []uint32{2, 1}))
		k := b.flat(0)
		require.Equal(t, []uint32{0, 1}, k.Start)
		require.Equal(t, []uint32{1, 1}, k.End)
		require.Equal(t, []uint32{2, 1}, k.Src)
	}
	for resident := range uint32(3) { // a weight that is none is named by its place in the whole list
		tier := &spoiltWeights{tiered{lists: topo, part: 2, resident: resident}}
		b := Batch{Without: make([]Without, 1)}
		b.Without[0].Fill(1, []uint64{0})
		err := NewSampler(tier, Config{Fanouts: []int{1}, Weighted: true}, 1).SampleOne(t.Context(), &b, BatchSeed{}, []uint32{1})
		require.EqualError(t, err, "neighbour 2 of node 1 has the weight -1; weights are finite and at least 0")
	}
	walks := NewSampler(AtHand(topo), Config{Kind: RW, Walk: DefaultWalk, Fanouts: []int{2}}, 1)
	require.Panics(t, func() {
		_ = walks.SampleOne(context.Background(), &Batch{Without: make([]Without, 1)}, BatchSeed{}, []uint32{1})
	})
}

// spoiltWeights are -1 for the last edge of each node, and for those before it NaN.
type spoiltWeights struct{ tiered }

func (s *spoiltWeights) Weights(v uint32) []float32 {
	w := make([]float32, len(s.lists[v]))
	for i := range w {
		w[i] = float32(math.NaN())
	}
	if len(w) > 0 {
		w[len(w)-1] = -1
	}
	return w
}

func (s *spoiltWeights) ReadWeights(_ context.Context, nodes []uint32, serve func(i, from int, part []float32) error) error {
	return readParts(&s.tiered, nodes, s.Weights, float32(math.NaN()), serve)
}
