package topology_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// bg is for calls that no test cancels.
var bg = context.Background()

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	offsetsFile   = "topo/node__to__node/offsets.u64"
	neighborsFile = "topo/node__to__node/neighbors.u32"
)

// open seals a graph of these lists and returns it with its path; the lists come back sorted.
func open(t testing.TB, lists [][]uint32) (*store.Graph, string) {
	for v := range lists {
		slices.Sort(lists[v])
	}
	path := storetest.Build(t, storetest.Spec{Nodes: len(lists), Neighbors: lists, Dim: 1})
	return reopen(t, path), path
}

func reopen(t testing.TB, path string) *store.Graph {
	d, err := store.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d.Graph(0)
}

// uneven returns lists with isolated nodes, hubs whose lists come in parts, lists that take lines
// of offsets beyond 16 bits, self loops (one or several), and duplicates.
func uneven(nodes int, seed uint64) [][]uint32 {
	rng := rand.New(rand.NewPCG(seed, 1))
	lists := make([][]uint32, nodes)
	for v := range lists {
		degree := rng.IntN(30)
		switch rng.IntN(20) {
		case 0:
			degree = 0
		case 1:
			degree = rng.IntN(2000)
		}
		switch v {
		case nodes / 2, nodes / 3, nodes/3 + 1, nodes - 1:
			degree = topology.MaxPart*(1+v%3) + v%2
		}
		for range degree {
			lists[v] = append(lists[v], rng.Uint32N(uint32(nodes)))
		}
		if rng.IntN(10) == 0 {
			lists[v] = append(lists[v], slices.Repeat([]uint32{uint32(v)}, 1+rng.IntN(3))...)
		}
	}
	lists[nodes/2] = append(lists[nodes/2], slices.Repeat([]uint32{uint32(nodes / 2)}, 2*topology.MaxPart)...)
	return lists
}

// read returns the lists that Read serves.
func read(t *topology.Tier, nodes []uint32) ([][]uint32, error) {
	got := make([][]uint32, len(nodes))
	for i, v := range nodes {
		got[i] = make([]uint32, t.Degree(v))
	}
	var mu sync.Mutex
	served := make([]int, len(nodes))
	err := t.Read(bg, nodes, func(i, from int, part []uint32) error {
		mu.Lock()
		defer mu.Unlock()
		served[i] += len(part)
		if copy(got[i][from:], part) != len(part) || len(part) > topology.MaxPart {
			return fmt.Errorf("%d neighbours from %d on, of %d", len(part), from, len(got[i]))
		}
		return nil
	})
	for i := range served {
		if err == nil && served[i] != len(got[i]) {
			err = fmt.Errorf("node %d: %d of %d neighbours came", nodes[i], served[i], len(got[i]))
		}
	}
	return got, err
}

func TestTierHoldsTheGraph(t *testing.T) {
	lists := uneven(1000, 2)
	g, _ := open(t, lists)
	least, all := topology.LeastBytes(g), topology.AllBytes(g)
	for _, bytes := range []int64{least, least + 4*1000 + 3, (least + all) / 2, all, 1 << 60} {
		for _, kind := range disk.Kinds[1:] {
			start := kernels.HostBytes()
			tier, err := topology.Open(bg, g, topology.Options{Bytes: bytes, Options: disk.Options{Kind: kind, Depth: 8}})
			require.NoError(t, err)
			require.Equal(t, len(lists), tier.Nodes())
			require.Equal(t, g.Edges(), tier.Edges())
			stats := tier.Stats()
			require.LessOrEqual(t, stats.OffsetBytes+stats.ResidentBytes, bytes)
			require.EqualValues(t, tier.Resident(), stats.ResidentLists)
			if bytes >= all {
				require.EqualValues(t, len(lists), tier.Resident())
			} else {
				next := int64(len(lists[tier.Resident()]))
				require.Greater(t, stats.OffsetBytes+stats.ResidentBytes+4*next, bytes, "another list would fit")
			}
			require.GreaterOrEqual(t, stats.Warmup.BytesRead, stats.Warmup.BytesWanted)

			loops, err := tier.SelfLoops(bg)
			require.NoError(t, err)
			again, err := tier.SelfLoops(bg)
			require.NoError(t, err)
			var cold []uint32
			for v, list := range lists {
				require.Equal(t, len(list), tier.Degree(uint32(v)))
				own := 0
				for _, u := range list {
					if int(u) == v {
						own++
					}
				}
				require.Equal(t, own, loops(uint32(v)), "self loops of node %d", v)
				require.Equal(t, own, again(uint32(v)))
				switch {
				case uint32(v) < tier.Resident():
					require.True(t, slices.Equal(list, tier.Neighbors(uint32(v))), "node %d", v)
				case len(list) > 0:
					cold = append(cold, uint32(v))
				}
			}
			got, err := read(tier, cold)
			require.NoError(t, err)
			for i, v := range cold {
				require.True(t, slices.Equal(lists[v], got[i]), "node %d", v)
			}
			require.Panics(t, func() { tier.Neighbors(uint32(len(lists))) })
			require.Panics(t, func() { tier.Degree(uint32(len(lists))) })
			tier.Close()
			tier.Close()
			require.Equal(t, start, kernels.HostBytes())
		}
	}
}

// TestReadAnyNodes checks that any set of cold lists comes whole, and that its cost depends only on
// the set and the engine.
func TestReadAnyNodes(t *testing.T) {
	lists := uneven(1000, 3)
	g, _ := open(t, lists)
	var tiers []*topology.Tier
	for _, o := range []disk.Options{{Kind: disk.Pread, Depth: 1}, {Kind: disk.Pread}, {Kind: disk.Mmap}} {
		tier, err := topology.Open(bg, g, topology.Options{Bytes: topology.LeastBytes(g), Options: o})
		require.NoError(t, err)
		defer tier.Close()
		tiers = append(tiers, tier)
	}
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.IntRange(1, 200).Draw(t, "one in")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var nodes []uint32
		for v := range lists {
			if len(lists[v]) > 0 && rng.IntN(one) == 0 {
				nodes = append(nodes, uint32(v))
			}
		}
		wanted := int64(0)
		for _, v := range nodes {
			wanted += 4 * int64(len(lists[v]))
		}
		var first disk.Account
		for n, tier := range tiers {
			before := tier.Stats()
			got, err := read(tier, nodes)
			require.NoError(t, err)
			for i, v := range nodes {
				require.True(t, slices.Equal(lists[v], got[i]), "node %d", v)
			}
			cost := tier.Stats().Sub(before).Cold
			require.EqualValues(t, len(nodes), cost.Rows)
			require.Equal(t, wanted, cost.BytesWanted)
			require.GreaterOrEqual(t, cost.BytesRead, wanted)
			cost.Seconds = 0
			if n == 0 {
				first = cost
			}
			if kind, _ := tier.Engine(); kind == disk.Pread {
				require.Equal(t, first, cost)
			}
		}
	})
}

func TestReadRefusesItsCallersBugs(t *testing.T) {
	g, _ := open(t, [][]uint32{{1}, {}, {1, 2}, {0}})
	tier, err := topology.Open(bg, g, topology.Options{Bytes: topology.LeastBytes(g) + 4})
	require.NoError(t, err)
	defer tier.Close()
	require.EqualValues(t, 2, tier.Resident(), "a list of nothing fits everywhere")
	for _, nodes := range [][]uint32{{0}, {3, 2}, {2, 2}} {
		require.Panics(t, func() { _ = tier.Read(bg, nodes, nil) }, "%v", nodes)
	}
	require.NoError(t, tier.Read(bg, nil, nil))
	require.Panics(t, func() { tier.Neighbors(2) })
}

func TestBudgetBelowTheOffsets(t *testing.T) {
	g, _ := open(t, uneven(300, 4))
	least := topology.LeastBytes(g)
	_, err := topology.Open(bg, g, topology.Options{Bytes: least - 1})
	require.EqualError(t, err, fmt.Sprintf(
		"topology: a budget of %d bytes: the offsets of 300 nodes and %d edges take %d, the least that works", least-1, g.Edges(), least))
	_, err = topology.Open(bg, g, topology.Options{Bytes: least, Options: disk.Options{Kind: "tape"}})
	require.ErrorContains(t, err, `unknown disk engine "tape"`)
}

func TestGraphsWithoutMuch(t *testing.T) {
	for _, lists := range [][][]uint32{{}, {{}}, make([][]uint32, 28), make([][]uint32, 27), make([][]uint32, 29), {{0, 0}}} {
		g, _ := open(t, lists)
		tier, err := topology.Open(bg, g, topology.Options{Bytes: topology.LeastBytes(g)})
		require.NoError(t, err)
		for v := range lists {
			require.Equal(t, len(lists[v]), tier.Degree(uint32(v)))
		}
		loops, err := tier.SelfLoops(bg)
		require.NoError(t, err)
		for v := range lists {
			require.Equal(t, len(lists[v]), loops(uint32(v)))
		}
		tier.Close()
	}
}

func TestOffsetsThatCannotBe(t *testing.T) {
	const nodes = 40_000 // more than are read at once
	lists := make([][]uint32, nodes)
	for v := range lists {
		lists[v] = []uint32{uint32(v), uint32(v)}
	}
	for _, c := range []struct {
		node int
		to   uint64
		at   int
		want string
	}{
		{0, 1, 0, "starts at 1, not 0"},
		{100, 5, 100, "decreases at node 100 (198 > 5)"},
		{100, 203, 101, "decreases at node 101 (203 > 202)"},
		{nodes, 3, nodes, fmt.Sprintf("decreases at node %d (%d > 3)", nodes, 2*nodes-2)},
		{nodes, 2*nodes - 1, nodes, "node 40000 begins at edge 79999, and there are 80000 edges"},
		{32256, 0, 32256, "decreases at node 32256 (64510 > 0)"}, // at the seam of two portions
		{32255, 1 << 63, 32255, "node 32255 begins at edge 9223372036854775808, and there are 80000 edges"},
	} {
		_, path := open(t, lists)
		place := int64(store.PageSize + 8*c.node)
		storetest.Forge(t, path, offsetsFile, place, binary.LittleEndian.AppendUint64(nil, c.to))
		g := reopen(t, path)
		start := kernels.HostBytes()
		for _, kind := range disk.Kinds[1:] {
			_, err := topology.Open(bg, g, topology.Options{Bytes: 1 << 30, Options: disk.Options{Kind: kind}})
			require.ErrorIs(t, err, store.ErrCorrupt)
			require.ErrorContains(t, err, c.want+"; run gnnstore verify")
			require.ErrorContains(t, err, fmt.Sprintf("%s: %s at 0x%x: ", path, offsetsFile, store.PageSize+8*c.at))
			require.NotContains(t, err.Error(), "\n")
			require.Equal(t, start, kernels.HostBytes())
		}
	}
}

func TestNeighborsThatDoNotExist(t *testing.T) {
	_, path := open(t, [][]uint32{{1, 2}, {0}, {}, {0, 1, 2}})
	storetest.Forge(t, path, neighborsFile, store.PageSize+4*5, []byte{4})
	g := reopen(t, path)
	want := path + ": " + neighborsFile + " at 0x1014: node 3 has neighbour 4, and there are 4 nodes; run gnnstore verify"
	for _, kind := range disk.Kinds[1:] {
		o := topology.Options{Bytes: 1 << 20, Options: disk.Options{Kind: kind}}
		_, err := topology.Open(bg, g, o)
		require.ErrorIs(t, err, store.ErrCorrupt)
		require.ErrorContains(t, err, want)

		o.Bytes = topology.LeastBytes(g) + 4*3
		tier, err := topology.Open(bg, g, o)
		require.NoError(t, err)
		_, err = read(tier, []uint32{3})
		require.ErrorContains(t, err, want)
		require.Zero(t, tier.Stats().Cold, "what fails counts nothing")
		tier.Close()
	}
}

func TestTruncatedNeighbors(t *testing.T) {
	for _, kind := range disk.Kinds[1:] {
		lists := uneven(2000, 5)
		g, path := open(t, lists)
		tier, err := topology.Open(bg, g, topology.Options{Bytes: topology.LeastBytes(g), Options: disk.Options{Kind: kind}})
		require.NoError(t, err)
		_, err = read(tier, []uint32{0}) // this loads the checksums too, which lie at the end
		require.NoError(t, err)
		require.NoError(t, os.Truncate(filepath.Join(path, neighborsFile), 3*store.PageSize))
		last := uint32(len(lists) - 1)
		_, err = read(tier, []uint32{last - 200, last})
		require.ErrorIs(t, err, store.ErrCorrupt)
		require.ErrorContains(t, err, path+": "+neighborsFile)
		require.NotContains(t, err.Error(), "\n")
		_, err = tier.SelfLoops(bg)
		require.ErrorIs(t, err, store.ErrCorrupt)
		got, err := read(tier, []uint32{0})
		require.NoError(t, err, "what is still there can be read")
		require.True(t, slices.Equal(lists[0], got[0]))
		tier.Close()
	}
}

func TestServeStopsARead(t *testing.T) {
	g, _ := open(t, uneven(1000, 6))
	tier, err := topology.Open(bg, g, topology.Options{Bytes: topology.LeastBytes(g)})
	require.NoError(t, err)
	defer tier.Close()
	mine := errors.New("mine")
	var nodes []uint32
	for v := range uint32(1000) {
		if tier.Degree(v) > 0 {
			nodes = append(nodes, v)
		}
	}
	require.ErrorIs(t, tier.Read(bg, nodes, func(i, from int, part []uint32) error {
		if i == 500 {
			return mine
		}
		return nil
	}), mine)
	require.Zero(t, tier.Stats().Cold)
}

// TestEndOfContext checks that reading ends with its context, and that a later call works.
func TestEndOfContext(t *testing.T) {
	lists := uneven(1000, 6)
	g, _ := open(t, lists)
	ctx, cancel := context.WithCancel(bg)
	cancel()
	for _, kind := range disk.Kinds[1:] {
		start := kernels.HostBytes()
		o := topology.Options{Bytes: topology.LeastBytes(g), Options: disk.Options{Kind: kind}}
		_, err := topology.Open(ctx, g, o)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, start, kernels.HostBytes())
		tier, err := topology.Open(bg, g, o)
		require.NoError(t, err)
		require.ErrorIs(t, tier.Read(ctx, []uint32{0}, nil), context.Canceled)
		_, err = tier.SelfLoops(ctx)
		require.ErrorIs(t, err, context.Canceled)
		_, err = tier.SelfLoops(bg)
		require.NoError(t, err)
		got, err := read(tier, []uint32{0})
		require.NoError(t, err)
		require.True(t, slices.Equal(lists[0], got[0]))
		tier.Close()
	}
}

func TestCount(t *testing.T) {
	g, _ := open(t, [][]uint32{{0}})
	tier, err := topology.Open(bg, g, topology.Options{Bytes: 1 << 20})
	require.NoError(t, err)
	defer tier.Close()
	before := tier.Stats()
	tier.Count(3, 4)
	tier.Count(2, 0)
	st := tier.Stats()
	require.Equal(t, []int64{9, 5, 4}, []int64{st.Asked, st.Hits, st.Misses})
	require.Equal(t, st, st.Sub(before).Add(before))
}
