package sample

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoBlocks: batches of nodes alone have the same nodes as batches with blocks. Their memory
// does not grow with the number of relations.
func TestNoBlocks(t *testing.T) {
	const nodes, relations, batches, seeds = 500, 2000, 3, 100
	schema, topo := Schema{Types: []int{nodes, nodes}}, []Topology(nil)
	for i := range relations {
		schema.Relations = append(schema.Relations, Relation{i % 2, i / 2 % 2})
		topo = append(topo, AtHand(lists(make([][]uint32, nodes))))
	}
	for _, layers := range []int{1, 3} {
		c := Config{Fanouts: make([]int, layers)}
		with := NewTyped(schema, topo, c, 2)
		c.NoBlocks = true
		s := NewTyped(schema, topo, c, 2)
		s.Bring(make([]Values, relations))
		s.BringRows(make([]Rows, relations), make([]int, relations), nil)
		var all, others [batches]*Batch
		var batchSeeds []BatchSeed
		var of [][][]uint32
		for i := range batches {
			all[i], others[i] = new(Batch), new(Batch)
			batchSeeds = append(batchSeeds, Alone(1, 1, i))
			own := make([][]uint32, 2)
			for v := range uint32(seeds) {
				own[i%2] = append(own[i%2], (7*v+uint32(i))%nodes)
			}
			of = append(of, own)
		}
		require.NoError(t, s.Sample(context.Background(), all[:], batchSeeds, of))
		require.NoError(t, with.Sample(context.Background(), others[:], batchSeeds, of))
		for i, b := range all {
			require.Equal(t, others[i].Inputs(), b.Inputs())
			require.Equal(t, others[i].Seeds, b.Seeds)
			for l := range b.Layers {
				require.Equal(t, others[i].Layers[l].Nodes, b.Layers[l].Nodes)
				require.Empty(t, b.Layers[l].Blocks)
			}
			require.LessOrEqual(t, b.Bytes(), int64(5*seeds*layers))
			packed := s.Pack(nil, b)
			require.LessOrEqual(t, len(packed), 8*seeds+100)
			var again Batch
			rest, err := s.Unpack(&again, packed)
			require.NoError(t, err)
			require.Empty(t, rest)
			require.Equal(t, b.Layers, again.Layers)
		}
		all[0].Without = make([]Without, relations)
		require.PanicsWithValue(t, "sample: Sample: batches without blocks have no edges to leave out", func() {
			_ = s.Sample(context.Background(), all[:1], batchSeeds[:1], of[:1])
		})
		each, once := s.Scratch(all[0])
		require.Zero(t, each+once)
	}
	for _, c := range []Config{
		{Fanouts: []int{0, 5}}, {Fanouts: []int{All}}, {Fanouts: []int{0}, OfRelation: [][]int{nil, {3}}},
		{Fanouts: []int{0}, Options: Options{SelfLoops: true}},
	} {
		require.NoError(t, c.Validate())
		c.NoBlocks = true
		require.EqualError(t, c.Validate(), "batches without blocks have no neighbours")
	}
	c := Config{Fanouts: []int{0}, OfRelation: slices.Repeat([][]int{{0}}, relations), Options: Options{NoBlocks: true}}
	require.NoError(t, c.Validate())
}
