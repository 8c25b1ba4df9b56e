package topology_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/store"
)

// TestSharedSections: relations that share sections give their own lists, in memory and from the
// disk.
func TestSharedSections(t *testing.T) {
	const nodes = 3000
	path := filepath.Join(t.TempDir(), "x.gnn")
	w, err := store.Create(path, store.WriterOptions{})
	require.NoError(t, err)
	original := make([]int64, nodes)
	for v := range original {
		original[v] = int64(v)
	}
	require.NoError(t, w.AddNodeType("node", original))
	s, err := w.NewShared("node", "node", false)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(3, 4))
	relations := make([][][]uint32, 3)
	for i, name := range []string{"a", "b", "c"} {
		require.NoError(t, s.Begin(name, false, "", ""))
		relations[i] = make([][]uint32, nodes)
		for v := range relations[i] {
			if rng.IntN(4) > 0 {
				continue
			}
			list := make([]uint32, 1+rng.IntN(40))
			for k := range list {
				list[k] = uint32(rng.IntN(nodes))
			}
			slices.Sort(list)
			relations[i][v] = list
			require.NoError(t, s.AppendList(uint32(v), list))
		}
	}
	require.NoError(t, s.Close())
	_, err = w.Seal(store.Manifest{Name: "x", Order: "original"})
	require.NoError(t, err)
	d, err := store.Open(path)
	require.NoError(t, err)
	defer d.Close()
	for i, lists := range relations {
		g := d.Graph(i)
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
