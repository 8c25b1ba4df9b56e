package sample

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// valueOf is the value in column c of the edge at a place of v's list, in tests.
func valueOf(c int, v uint32, place int) float32 {
	return float32(Hash(uint64(c)+100, uint64(v), uint64(place))%100_000) / 8
}

// valued is the values of a topology's edges, in so many columns.
type valued struct {
	*tiered
	columns int
}

func (l *valued) Columns() int { return l.columns }

func (l *valued) TakeValues(dst []float32, v uint32, places []uint32) {
	if v >= l.resident {
		panic("values are taken that are not resident")
	}
	for i, p := range places {
		for c := range l.columns {
			dst[i*l.columns+c] = valueOf(c, v, int(p))
		}
	}
}

func (l *valued) ReadValues(_ context.Context, column int, nodes []uint32, serve func(i, from int, part []float32) error) error {
	return readParts(l.tiered, nodes, func(v uint32) (all []float32) {
		for i := range l.lists[v] {
			all = append(all, valueOf(column, v, i))
		}
		return all
	}, float32(math.NaN()), serve)
}

// TestValuesChangeNoDraw: apart from values, blocks are equal with and without values.
func TestValuesChangeNoDraw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		topo, c := graph(t), typedConfig(t, NS, Labor0, LaborStar)
		tier := &tiered{lists: topo, part: rapid.SampledFrom([]int{1, 7, 1000}).Draw(t, "part")}
		tier.resident = rapid.Uint32Range(0, uint32(len(topo))).Draw(t, "resident")
		with, without := NewSampler(tier, c, 2), NewSampler(tier, c, 2)
		with.Bring([]Values{&valued{tier, 2}})
		for range 3 { // the same buffers again
			seeds, z := someSeeds(t, topo), anyZ(t)
			var a, b Batch
			require.NoError(t, with.SampleOne(context.Background(), &a, z, seeds))
			require.NoError(t, without.SampleOne(context.Background(), &b, z, seeds))
			for l := range a.Layers {
				k := &a.Layers[l].Blocks[0]
				require.Len(t, k.Values, 2*len(k.Nbr))
				k.Values = nil
			}
			require.Empty(t, difference(&b, &a))
		}
	})
}

// TestValuesOfParallelEdges: edges between the same two nodes have values of their own, and where
// places have numbers of their own, every one of them is drawn at times.
func TestValuesOfParallelEdges(t *testing.T) {
	topo := lists{{}, {0, 0, 0, 0}}
	for _, c := range []Config{{Kind: NS}, {Kind: NS, Smoothed: true}, {Kind: NS, Weighted: true}, {Kind: Labor0}, {Kind: LaborStar}} {
		for _, resident := range []uint32{0, 2} {
			tier := &tiered{lists: topo, part: 3, resident: resident}
			s := NewSampler(tier, c.with(2), 1)
			s.Bring([]Values{&valued{tier, 1}})
			seen := map[float32]bool{}
			var b Batch
			for z := range uint64(60) {
				require.NoError(t, s.SampleOne(context.Background(), &b, BatchSeed{First: z}, []uint32{1}))
				k := b.flat(0)
				require.Len(t, k.Values, len(k.Nbr))
				for e, p := range k.places {
					require.Equal(t, valueOf(0, 1, int(p)), k.Values[e])
					seen[k.Values[e]] = true
				}
				require.Len(t, slices.Compact(slices.Sorted(slices.Values(k.places))), len(k.places), "no edge is drawn twice")
			}
			if c.Kind == NS && !c.Weighted {
				require.Len(t, seen, 4, c.name())
			}
		}
	}
}

// TestValuesComeOnce: lists that several hops want are read once a column, after all else.
func TestValuesComeOnce(t *testing.T) {
	topo := wide(1000, 8)
	tier := &tiered{lists: topo, part: 1000}
	s := NewSampler(tier, Config{Fanouts: []int{4, 3}}, 2)
	s.Bring([]Values{&valued{tier, 3}})
	var b Batch
	require.NoError(t, s.SampleOne(context.Background(), &b, BatchSeed{First: 1}, []uint32{1, 2, 3}))
	require.Len(t, tier.reads, 2+3)
	for _, nodes := range tier.reads[2:] {
		require.Equal(t, slices.Sorted(slices.Values(b.Layers[0].Nodes[0].destinations())), nodes)
	}
	each, _ := s.Scratch(&b)
	require.EqualValues(t, pairBytes*(b.Layers[0].Nodes[0].Dst+b.Layers[1].Nodes[0].Dst), each)
}

// TestValuesOfNothing: what no edge was drawn of is not read.
func TestValuesOfNothing(t *testing.T) {
	list := make([]uint32, 4000)
	for i := range list {
		list[i] = uint32(2 + i)
	}
	topo := append(lists{{0}, list}, make(lists, 4000)...)
	for _, c := range []Config{{Kind: Labor0, Poisson: true, Fanouts: []int{1}}, {Kind: LaborStar, Fanouts: []int{1}}} {
		tier := &tiered{lists: topo, part: 10_000}
		s := NewSampler(tier, c, 1)
		s.Bring([]Values{&valued{tier, 1}})
		nothing := 0
		for z := range uint64(40) {
			var b Batch
			tier.reads = nil
			require.NoError(t, s.SampleOne(context.Background(), &b, BatchSeed{First: z}, []uint32{0, 1}))
			want := []uint32{0, 1}
			if k := b.flat(0); k.Start[1] == k.End[1] {
				nothing++
				want = want[:1]
			}
			require.Equal(t, want, tier.reads[1], c.name())
		}
		require.Positive(t, nothing)
	}
}

// spoilt has a value that is NaN, of the second edge of node 1.
type spoilt struct{ *valued }

func (l spoilt) TakeValues(dst []float32, v uint32, places []uint32) {
	l.valued.TakeValues(dst, v, places)
	for i, p := range places {
		if v == 1 && p == 1 {
			dst[i*l.columns+1] = float32(math.NaN())
		}
	}
}

func (l spoilt) ReadValues(ctx context.Context, column int, nodes []uint32, serve func(i, from int, part []float32) error) error {
	return l.valued.ReadValues(ctx, column, nodes, func(i, from int, part []float32) error {
		if at := 1 - from; column == 1 && nodes[i] == 1 && at >= 0 && at < len(part) {
			part[at] = float32(math.NaN())
		}
		return serve(i, from, part)
	})
}

// TestValuesThatAreNone: one that is drawn is an error that says where it is, and the others do no
// harm.
func TestValuesThatAreNone(t *testing.T) {
	topo := lists{{1, 2}, {0, 2, 2}, {1}}
	for resident := range uint32(4) {
		tier := &tiered{lists: topo, part: 10, resident: resident}
		s := NewSampler(tier, Config{Fanouts: []int{All}}, 1)
		s.Bring([]Values{spoilt{&valued{tier, 2}}})
		require.NoError(t, s.SampleOne(context.Background(), new(Batch), BatchSeed{}, []uint32{0, 2}))
		err := s.SampleOne(context.Background(), new(Batch), BatchSeed{}, []uint32{2, 1})
		var bad *ValueError
		require.ErrorAs(t, err, &bad)
		require.EqualError(t, err, "neighbour 1 of node 1 has the value NaN in column 1")
	}
	require.Panics(t, func() {
		NewSampler(AtHand(topo), Config{Kind: RW, Walk: DefaultWalk, Fanouts: []int{2}}, 1).Bring([]Values{&valued{nil, 1}})
	})
	require.Panics(t, func() { NewSampler(AtHand(topo), Config{Fanouts: []int{2}}, 1).Bring(nil) })
}
