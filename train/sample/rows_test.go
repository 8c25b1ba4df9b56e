package sample

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// tableRows is the number of rows of the table of edges in tests.
const tableRows = 50

// rowOf returns the row of the edge at a place of v's list.
func rowOf(v uint32, place int) uint32 {
	return uint32(Hash(300, uint64(v), uint64(place)) % tableRows)
}

// rowed is the rows of a topology's edges.
type rowed struct{ *tiered }

func (l rowed) TakeRows(dst []uint32, v uint32, places []uint32) {
	if v >= l.resident {
		panic("rows are taken that are not resident")
	}
	for i, p := range places {
		dst[i] = rowOf(v, int(p))
	}
}

func (l rowed) ReadRows(_ context.Context, nodes []uint32, serve func(i, from int, part []uint32) error) error {
	return readParts(l.tiered, nodes, func(v uint32) (all []uint32) {
		for i := range l.lists[v] {
			all = append(all, rowOf(v, i))
		}
		return all
	}, 1<<31, serve)
}

// TestRowsChangeNoDraw: apart from rows, blocks are equal with and without rows. Each edge has its
// own row, and each row is read once.
func TestRowsChangeNoDraw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		topo, c := graph(t), typedConfig(t, NS, Labor0, LaborStar)
		tier := &tiered{lists: topo, part: rapid.SampledFrom([]int{1, 7, 1000}).Draw(t, "part")}
		tier.resident = rapid.Uint32Range(0, uint32(len(topo))).Draw(t, "resident")
		with, without := NewSampler(tier, c, 2), NewSampler(tier, c, 2)
		values := rapid.Bool().Draw(t, "values")
		if values {
			with.Bring([]Values{&valued{tier, 2}})
		}
		with.BringRows([]Rows{rowed{tier}}, []int{1}, []int{3, tableRows})
		for range 3 { // the same buffers again
			seeds, z := someSeeds(t, topo), anyZ(t)
			var a, b Batch
			require.NoError(t, with.SampleOne(context.Background(), &a, z, seeds))
			require.NoError(t, without.SampleOne(context.Background(), &b, z, seeds))
			inputs := a.Inputs()
			require.Len(t, inputs, 3)
			require.Empty(t, inputs[1])
			require.Len(t, slices.Compact(slices.Sorted(slices.Values(inputs[2]))), len(inputs[2]), "a row is read twice")
			used := make([]bool, len(inputs[2]))
			for l := range a.Layers {
				k, dst := &a.Layers[l].Blocks[0], a.Layers[l].Nodes[0].Src
				require.Len(t, k.Rows, len(k.Nbr))
				require.Equal(t, 1, k.Table)
				for i := range k.Start {
					for e := k.Start[i]; e < k.End[i]; e++ {
						require.Equal(t, rowOf(dst[i], int(k.places[e])), inputs[2][k.Rows[e]])
						used[k.Rows[e]] = true
					}
				}
				require.Equal(t, values, len(k.Values) > 0 || values && len(k.Nbr) == 0)
				k.Rows, k.Values = nil, nil
			}
			require.NotContains(t, used, false)
			require.Empty(t, difference(&b, &a))
		}
	})
}

// TestRowsComeOnce checks that numbers of lists that several hops want are read once, at the end.
func TestRowsComeOnce(t *testing.T) {
	topo := wide(1000, 8)
	tier := &tiered{lists: topo, part: 1000}
	s := NewSampler(tier, Config{Fanouts: []int{4, 3}}, 2)
	s.BringRows([]Rows{rowed{tier}}, []int{0}, []int{tableRows})
	var b Batch
	require.NoError(t, s.SampleOne(context.Background(), &b, BatchSeed{First: 1}, []uint32{1, 2, 3}))
	require.Len(t, tier.reads, 2+1)
	require.Equal(t, slices.Sorted(slices.Values(b.Layers[0].Nodes[0].destinations())), tier.reads[2])
	each, _ := s.Scratch(&b)
	require.EqualValues(t, pairBytes*(b.Layers[0].Nodes[0].Dst+b.Layers[1].Nodes[0].Dst), each)
}

// TestRowsThatAreNone: one that is drawn is an error that says where it is, and the others do no
// harm.
func TestRowsThatAreNone(t *testing.T) {
	topo := lists{{1, 2}, {0, 2, 2}, {1}}
	bad := 0 // place in the list of node 1 with the largest row
	for i := range topo[1] {
		if rowOf(1, i) > rowOf(1, bad) {
			bad = i
		}
	}
	rows := int(rowOf(1, bad))
	require.Less(t, int(max(rowOf(0, 0), rowOf(0, 1), rowOf(2, 0))), rows, "in this test")
	for resident := range uint32(4) {
		tier := &tiered{lists: topo, part: 10, resident: resident}
		s := NewSampler(tier, Config{Fanouts: []int{All}}, 1)
		s.BringRows([]Rows{rowed{tier}}, []int{0}, []int{rows})
		require.NoError(t, s.SampleOne(context.Background(), new(Batch), BatchSeed{}, []uint32{0, 2}))
		err := s.SampleOne(context.Background(), new(Batch), BatchSeed{}, []uint32{2, 1})
		var none *RowError
		require.ErrorAs(t, err, &none)
		require.Equal(t, RowError{Node: 1, Place: bad, Row: uint32(rows), Rows: rows}, *none)
	}
	require.Panics(t, func() {
		NewSampler(AtHand(topo), Config{Kind: RW, Walk: DefaultWalk, Fanouts: []int{2}}, 1).BringRows([]Rows{rowed{}}, []int{0}, []int{1})
	})
	require.Panics(t, func() { NewSampler(AtHand(topo), Config{Fanouts: []int{2}}, 1).BringRows(nil, nil, nil) })
}
