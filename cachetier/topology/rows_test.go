package topology_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// rowAt returns the row number of v's i-th edge.
func rowAt(v, i int) float64 { return float64((v*7919 + i*31) % 100_003) }

// openRowed is open for a graph whose edges have rows, and an odd column before them.
func openRowed(t testing.TB, lists [][]uint32, elem store.Elem) (g *store.Graph, values []*store.EdgeColumn, rows *store.EdgeColumn) {
	g = reopen(t, storetest.Build(t, storetest.Spec{Nodes: len(lists), Neighbors: lists, Dim: 1, Columns: []storetest.Column{
		{Name: "odd", Elem: store.U8, Value: func(v, i int) float64 { return float64((v + i) % 200) }}, {Name: store.EdgeID, Elem: elem, Value: rowAt},
	}}))
	return g, []*store.EdgeColumn{g.Column("odd")}, g.Column(store.EdgeID)
}

// TestTierHoldsRows checks row numbers of either width, resident and cold, at any budget, by any
// engine, and after any Resize.
func TestTierHoldsRows(t *testing.T) {
	for _, elem := range []store.Elem{store.U32, store.U64} {
		g, values, rows := openRowed(t, withHub(3*topology.MaxPart, 60), elem)
		least := topology.LeastBytes(g)
		all := least + topology.ListBytes(g, nil, append(values, rows)...)
		for _, kind := range disk.Kinds[1:] {
			start := kernels.HostBytes()
			tier, err := topology.Open(bg, g, topology.Options{Bytes: least, Values: values, Rows: rows, Options: disk.Options{Kind: kind, Depth: 8}})
			require.NoError(t, err)
			require.True(t, tier.HasRows())
			for _, bytes := range []int64{least, least + 13*300, (least + all) / 2, all, least + 13*200} {
				require.NoError(t, tier.Resize(bg, bytes))
				stats := tier.Stats()
				require.LessOrEqual(t, stats.OffsetBytes+stats.ResidentBytes, bytes)
				require.Equal(t, all-least, stats.TotalBytes)
				require.GreaterOrEqual(t, stats.Warmup.BytesRead, stats.Warmup.BytesWanted)
				require.Equal(t, bytes == all, tier.Resident() == uint32(g.Nodes()))
				holdsRows(t, g, tier)
			}
			require.Panics(t, func() { tier.TakeRows(nil, tier.Resident(), nil) })
			tier.Close()
			require.Equal(t, start, kernels.HostBytes())
		}
	}
}

// holdsRows compares all rows of a tier with what was written.
func holdsRows(t *testing.T, g *store.Graph, tier *topology.Tier) {
	var cold []uint32
	for v := range uint32(g.Nodes()) {
		degree := tier.Degree(v)
		if v >= tier.Resident() {
			if degree > 0 {
				cold = append(cold, v)
			}
			continue
		}
		places, got := make([]uint32, degree), make([]uint32, degree)
		for i := range places {
			places[i] = uint32(degree - 1 - i)
		}
		tier.TakeRows(got, v, places)
		for i, p := range places {
			if got[i] != uint32(rowAt(int(v), int(p))) {
				require.Equal(t, uint32(rowAt(int(v), int(p))), got[i], "node %d, place %d", v, p)
			}
		}
	}
	var mu sync.Mutex
	served := map[uint32]int{}
	before := tier.Stats().Cold
	require.NoError(t, tier.ReadRows(bg, cold, func(i, from int, part []uint32) error {
		mu.Lock()
		defer mu.Unlock()
		served[cold[i]] += len(part)
		bad := -1
		for k, row := range part {
			if row != uint32(rowAt(int(cold[i]), from+k)) {
				bad = k
			}
		}
		require.Negative(t, bad, "node %d, from %d", cold[i], from)
		return nil
	}))
	wanted := int64(0)
	for _, v := range cold {
		require.Equal(t, tier.Degree(v), served[v])
		wanted += int64(tier.Degree(v))
	}
	did := tier.Stats().Cold.Sub(before)
	require.Zero(t, did.Rows)
	require.Equal(t, wanted*int64(g.Column(store.EdgeID).Column.Elem.Size()), did.BytesWanted)
}

// TestRowsBeyond32Bits checks that larger row numbers become one that no table has, and that a Tier
// without rows panics.
func TestRowsBeyond32Bits(t *testing.T) {
	g, values, _ := openRowed(t, [][]uint32{{0, 0}}, store.U64)
	id := g.Column(store.EdgeID)
	require.Equal(t, uint32(1<<32-1), id.Row([]byte{0, 0, 0, 0, 1, 0, 0, 0}, 0))
	require.Equal(t, uint32(7), id.Row([]byte{0, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0}, 1))
	require.Panics(t, func() { g.Column("odd").Row([]byte{1}, 0) })
	tier, err := topology.Open(bg, g, topology.Options{Bytes: 1 << 20, Values: values})
	require.NoError(t, err)
	defer tier.Close()
	require.False(t, tier.HasRows())
	require.Panics(t, func() { tier.TakeRows(nil, 0, nil) })
	require.Panics(t, func() { _ = tier.ReadRows(bg, nil, nil) })
}
