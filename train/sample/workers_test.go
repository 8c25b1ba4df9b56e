package sample

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// listOf names what a layer draws for a node: its neighbours in a relation.
type listOf struct {
	layer, relation int
	node            uint32
}

// drawnList has neighbours in order, with their weights, values and rows.
type drawnList struct {
	Neighbors []uint32
	Weights   []float32
	Values    []float32
	Rows      []uint32
}

// listsOf adds all lists of a batch to all. A list that is there must be the same.
func listsOf(t require.TestingT, s Schema, b *Batch, all map[listOf]drawnList) {
	for l := range b.Layers {
		for r, ends := range s.Relations {
			block, dst, src := &b.Layers[l].Blocks[r], &b.Layers[l].Nodes[ends.Dst], &b.Layers[l].Nodes[ends.Src]
			for i := range block.Start {
				var d drawnList
				for e := block.Start[i]; e < block.End[i]; e++ {
					d.Neighbors = append(d.Neighbors, src.Src[block.Nbr[e]])
					if len(block.Weight) > 0 {
						d.Weights = append(d.Weights, block.Weight[e])
					}
				}
				key := listOf{l, r, dst.Src[i]}
				if have, ok := all[key]; ok {
					require.Equal(t, have, d, "%v", key)
				}
				all[key] = d
			}
		}
	}
}

// TestWorkersDrawAlike: what workers draw for shares of the seeds, each alone, are the lists of one
// batch of all seeds: no other, and none is missing. LABOR-* weighs all seeds, and is not so.
func TestWorkersDrawAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema, topo := typedGraph(t)
		c := typedConfig(t, NS, Labor0)
		ofRelation(t, &c, schema)
		var tiers []Topology
		for _, l := range topo {
			tiers = append(tiers, &tiered{lists: l, part: 7, resident: uint32(len(l))})
		}
		z, seeds := anyZ(t), typedSeeds(t, schema)
		draw := func(seeds [][]uint32, all map[listOf]drawnList) {
			var b Batch
			require.NoError(t, NewTyped(schema, tiers, c, 1).SampleOne(t.Context(), &b, z, seeds...))
			listsOf(t, schema, &b, all)
		}
		want, got := map[listOf]drawnList{}, map[listOf]drawnList{}
		draw(seeds, want)
		workers := rapid.IntRange(1, 8).Draw(t, "workers")
		for w := range workers {
			share := make([][]uint32, len(seeds))
			for n, ids := range seeds {
				share[n] = ids[w*len(ids)/workers : (w+1)*len(ids)/workers]
			}
			draw(share, got)
		}
		require.Equal(t, want, got)
	})
}
