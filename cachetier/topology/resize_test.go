package topology_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// counters returns the counters of a tier, without the seconds.
func counters(t *topology.Tier) topology.Stats {
	s := t.Stats()
	s.Cold.Seconds, s.Warmup.Seconds = 0, 0
	return s
}

// withHub returns short lists, some empty, with a list of hub neighbours in their middle.
func withHub(hub int, seed uint64) [][]uint32 {
	const nodes = 300
	rng := rand.New(rand.NewPCG(seed, 1))
	lists := make([][]uint32, nodes)
	for v := range lists {
		degree := rng.IntN(30)
		if v == nodes/2 {
			degree = hub
		}
		for range degree {
			lists[v] = append(lists[v], rng.Uint32N(nodes))
		}
	}
	return lists
}

// holds compares the resident lists and weights of a tier with the graph.
func holds(t require.TestingT, g *store.Graph, weights *store.EdgeColumn, tier *topology.Tier) {
	for v := range tier.Resident() {
		require.True(t, slices.Equal(g.Neighbors(v), tier.Neighbors(v)), "node %d", v)
		if weights != nil {
			require.True(t, slices.Equal(store.EdgeValues[float32](weights, v), tier.Weights(v)), "node %d", v)
		}
	}
}

// TestResizeIsOpen resizes a tier through any budgets. It then holds and counts the same as a tier
// opened with the last budget.
func TestResizeIsOpen(t *testing.T) {
	g, column, _ := openWeighted(t, withHub(topology.MaxPart+1, 10))
	rapid.Check(t, func(t *rapid.T) {
		o := topology.Options{Options: disk.Options{Kind: rapid.SampledFrom(disk.Kinds[1:]).Draw(t, "kind")}}
		if rapid.Bool().Draw(t, "weighted") {
			o.Weights = column
		}
		least, lists := topology.LeastBytes(g), topology.ListBytes(g, o.Weights)
		budget := rapid.OneOf(rapid.Int64Range(0, 1<<12), rapid.Int64Range(0, lists), rapid.Just(lists), rapid.Just(int64(1<<60)))
		budgets := rapid.SliceOfN(budget, 2, 4).Draw(t, "budgets")
		start := kernels.HostBytes()
		o.Bytes = least + budgets[0]
		tier, err := topology.Open(bg, g, o)
		require.NoError(t, err)
		defer tier.Close()
		loops := rapid.IntRange(0, len(budgets)).Draw(t, "self loops are wanted after")
		for i, bytes := range budgets {
			if i > 0 {
				require.NoError(t, tier.Resize(bg, least+bytes))
			}
			holds(t, g, o.Weights, tier)
			tier.Count(3, 4) // Resize forgets this, and the reads below
			if r := tier.Resident(); int(r) < g.Nodes() && tier.Degree(r) > 0 {
				got, err := read(tier, []uint32{r})
				require.NoError(t, err)
				require.True(t, slices.Equal(g.Neighbors(r), got[0]))
			}
			if i >= loops {
				_, err := tier.SelfLoops(bg)
				require.NoError(t, err)
			}
		}
		o.Bytes = least + budgets[len(budgets)-1]
		require.NoError(t, tier.Resize(bg, o.Bytes))
		taken := kernels.HostBytes() - start

		start = kernels.HostBytes()
		want, err := topology.Open(bg, g, o)
		require.NoError(t, err)
		defer want.Close()
		if loops < len(budgets) {
			_, err = want.SelfLoops(bg)
			require.NoError(t, err)
		}
		require.Equal(t, kernels.HostBytes()-start, taken)
		require.Equal(t, want.Resident(), tier.Resident())
		require.Equal(t, counters(want), counters(tier))
		holds(t, g, o.Weights, tier)
		count, err := tier.SelfLoops(bg)
		require.NoError(t, err)
		wantCount, err := want.SelfLoops(bg)
		require.NoError(t, err)
		for v := range uint32(g.Nodes()) {
			require.Equal(t, wantCount(v), count(v), "node %d", v)
		}
		require.Equal(t, counters(want), counters(tier), "who was resized counts on like the other")
	})
}

// TestResizeReadsWhatIsMissing checks that Resize does not read the lists it has, reads none if it
// shrinks, and never reads offsets.
func TestResizeReadsWhatIsMissing(t *testing.T) {
	g, weights, _ := openWeighted(t, withHub(2*topology.MaxPart, 11))
	least, all := topology.LeastBytes(g), topology.LeastBytes(g)+topology.ListBytes(g, weights)
	var bytes [3]atomic.Int64 // read from offsets, lists and weights
	o := topology.Options{Bytes: (least + all) / 2, Weights: weights, Options: disk.Options{Kind: disk.Pread}}
	o.Faults = func(file int, _ int64, size int) disk.Fault {
		bytes[file].Add(int64(size))
		return disk.Fault{}
	}
	tier, err := topology.Open(bg, g, o)
	require.NoError(t, err)
	defer tier.Close()
	offsets, first := bytes[0].Load(), bytes[1].Load()
	require.NoError(t, tier.Resize(bg, all))
	require.Equal(t, offsets, bytes[0].Load())
	for _, column := range []int{1, 2} {
		require.LessOrEqual(t, bytes[column].Load(), 4*g.Edges()+3*store.PageSize, "the page where both meet comes twice")
	}
	require.Less(t, first, bytes[1].Load())
	whole := bytes[1].Load()
	require.NoError(t, tier.Resize(bg, least+100))
	require.NoError(t, tier.Resize(bg, least))
	require.Equal(t, whole, bytes[1].Load())
	require.Equal(t, offsets, bytes[0].Load())
}

// TestResizeThatFails makes each read of a Resize fail in turn, and ends the context at some. The
// tier stays as it was, and can be resized later.
func TestResizeThatFails(t *testing.T) {
	g, weights, _ := openWeighted(t, withHub(3*topology.MaxPart, 12))
	all := topology.LeastBytes(g) + topology.ListBytes(g, weights)
	for _, kind := range disk.Kinds[1:] {
		for _, from := range []int64{topology.LeastBytes(g), all / 2} {
			start := kernels.HostBytes()
			var left atomic.Int64 // reads until trouble comes
			var trouble func() disk.Fault
			o := topology.Options{Bytes: from, Weights: weights, Options: disk.Options{Kind: kind}}
			o.Faults = func(int, int64, int) disk.Fault {
				if trouble != nil && left.Add(-1) == 0 {
					return trouble()
				}
				return disk.Fault{}
			}
			tier, err := topology.Open(bg, g, o)
			require.NoError(t, err)
			before, resident, taken := tier.Stats(), tier.Resident(), kernels.HostBytes()
			unchanged := func(n int64) {
				require.Equal(t, before, tier.Stats(), "%s, read %d", kind, n)
				require.Equal(t, resident, tier.Resident())
				require.Equal(t, taken, kernels.HostBytes())
				holds(t, g, weights, tier)
				cold := uint32(g.Nodes() - 1)
				got, err := readWeights(tier, []uint32{cold})
				require.NoError(t, err)
				require.True(t, slices.Equal(store.EdgeValues[float32](weights, cold), got[0]))
				before = tier.Stats()
			}
			reads := int64(1)
			for ; ; reads++ { // until no read is left that could fail
				left.Store(reads)
				trouble = func() disk.Fault { return disk.Fault{Errno: syscall.EIO} }
				if err = tier.Resize(bg, all); err == nil {
					break
				}
				require.ErrorIs(t, err, syscall.EIO)
				require.ErrorContains(t, err, fmt.Sprintf("topology: the lists of %d nodes: ", g.Nodes()))
				trouble = nil
				unchanged(reads)
			}
			require.Greater(t, reads, int64(4), "lists and weights are several reads")
			trouble = nil
			require.NoError(t, tier.Resize(bg, from))
			before, taken = tier.Stats(), kernels.HostBytes()

			for n := range int64(3) {
				ctx, cancel := context.WithCancel(bg)
				if left.Store(n); n == 0 {
					cancel()
				}
				trouble = func() disk.Fault { cancel(); return disk.Fault{} }
				require.ErrorIs(t, tier.Resize(ctx, all), context.Canceled, "%s, read %d", kind, n)
				cancel()
				trouble = nil
				unchanged(n)
			}
			require.NoError(t, tier.Resize(bg, all))
			holds(t, g, weights, tier)
			tier.Close()
			require.Equal(t, start, kernels.HostBytes())
		}
	}
}

func TestResizeRefuses(t *testing.T) {
	_, path := open(t, [][]uint32{{1, 2}, {0}, {}, {0, 1, 2}})
	storetest.Forge(t, path, neighborsFile, store.PageSize+4*5, []byte{4})
	g := reopen(t, path)
	least := topology.LeastBytes(g)
	tier, err := topology.Open(bg, g, topology.Options{Bytes: least + 4*3})
	require.NoError(t, err)
	defer tier.Close()
	before := tier.Stats()
	require.EqualError(t, tier.Resize(bg, least-1), fmt.Sprintf(
		"topology: a budget of %d bytes: the offsets of 4 nodes and 6 edges take %d, the least that works", least-1, least))
	err = tier.Resize(bg, least+4*6)
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.ErrorContains(t, err, "topology: the lists of 4 nodes: ")
	require.ErrorContains(t, err, path+": "+neighborsFile+" at 0x1014: node 3 has neighbour 4, and there are 4 nodes; run gnnstore verify")
	require.Equal(t, before, tier.Stats())
	require.Equal(t, []uint32{1, 2}, tier.Neighbors(0))
}
