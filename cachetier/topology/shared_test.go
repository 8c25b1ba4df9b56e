package topology_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestSharedSections: relations that share sections give their own lists, in memory and from the
// disk.
func TestSharedSections(t *testing.T) {
	const nodes = 3000
	rng := rand.New(rand.NewPCG(3, 4))
	spec := storetest.TypedSpec{Types: []storetest.TypedNodes{{Name: "node", Nodes: nodes}}, Shared: true}
	for _, name := range []string{"a", "b", "c"} {
		lists := make([][]uint32, nodes)
		for v := range lists {
			if rng.IntN(4) > 0 {
				continue
			}
			list := make([]uint32, 1+rng.IntN(40))
			for k := range list {
				list[k] = uint32(rng.IntN(nodes))
			}
			slices.Sort(list)
			lists[v] = list
		}
		spec.Relations = append(spec.Relations, storetest.TypedRelation{Src: "node", Name: name, Dst: "node", Neighbors: lists})
	}
	d, err := store.Open(storetest.BuildTyped(t, spec))
	require.NoError(t, err)
	defer d.Close()
	for i, r := range spec.Relations {
		g, lists := d.Graph(i), r.Neighbors
		require.True(t, g.Shares())
		for _, bytes := range []int64{topology.AllBytes(g), topology.LeastBytes(g), topology.LeastBytes(g) + 5000} {
			tier, err := topology.Open(bg, g, topology.Options{Bytes: bytes})
			require.NoError(t, err)
			var cold []uint32
			for v := range uint32(nodes) {
				require.Equal(t, len(lists[v]), tier.Degree(v))
				if v < tier.Resident() {
					require.True(t, slices.Equal(lists[v], tier.Neighbors(v)))
				} else if len(lists[v]) > 0 {
					cold = append(cold, v)
				}
			}
			got := make([][]uint32, len(cold))
			require.NoError(t, tier.Read(bg, cold, func(k, from int, part []uint32) error {
				require.Zero(t, from)
				got[k] = slices.Clone(part)
				return nil
			}))
			for k, v := range cold {
				require.Equal(t, lists[v], got[k])
			}
			tier.Close()
		}
	}
}
