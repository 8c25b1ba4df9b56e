package topology_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

const weightsFile = "topo/node__to__node/weight.f32"

// weightOf is the weight of v's i-th edge in tests: one in eight is 0.
func weightOf(v, i int) float32 { return float32((v*7919+i*31)%8) * float32(1+i%1000) / 16 }

// openWeighted is open for a graph whose edges have weights.
func openWeighted(t testing.TB, lists [][]uint32) (g *store.Graph, weights *store.EdgeColumn, path string) {
	path = storetest.Build(t, storetest.Spec{Nodes: len(lists), Neighbors: lists, Dim: 1, Weight: weightOf})
	g = reopen(t, path)
	return g, g.Column("weight"), path
}

// readWeights returns the weights that ReadWeights serves.
func readWeights(t *topology.Tier, nodes []uint32) ([][]float32, error) {
	got := make([][]float32, len(nodes))
	for i, v := range nodes {
		got[i] = make([]float32, t.Degree(v))
	}
	var mu sync.Mutex
	served := make([]int, len(nodes))
	err := t.ReadWeights(bg, nodes, func(i, from int, part []float32) error {
		mu.Lock()
		defer mu.Unlock()
		served[i] += len(part)
		if copy(got[i][from:], part) != len(part) || len(part) > topology.MaxPart {
			return fmt.Errorf("%d weights from %d on, of %d", len(part), from, len(got[i]))
		}
		return nil
	})
	for i := range served {
		if err == nil && served[i] != len(got[i]) {
			err = fmt.Errorf("node %d: %d of %d weights came", nodes[i], served[i], len(got[i]))
		}
	}
	return got, err
}

// TestTierHoldsWeights checks weights, resident and cold, at any budget and by any engine.
func TestTierHoldsWeights(t *testing.T) {
	g, weights, _ := openWeighted(t, uneven(1000, 7))
	least, all := topology.LeastBytes(g), topology.LeastBytes(g)+topology.ListBytes(g, weights)
	require.Equal(t, topology.AllBytes(g)+4*g.Edges(), all)
	for _, bytes := range []int64{least, least + 8*1000 + 7, (least + all) / 2, all, 1 << 60} {
		for _, kind := range disk.Kinds[1:] {
			start := kernels.HostBytes()
			tier, err := topology.Open(bg, g, topology.Options{Bytes: bytes, Weights: weights, Options: disk.Options{Kind: kind, Depth: 8}})
			require.NoError(t, err)
			stats := tier.Stats()
			require.LessOrEqual(t, stats.OffsetBytes+stats.ResidentBytes, bytes)
			require.Equal(t, all-least, stats.TotalBytes)
			if bytes >= all {
				require.EqualValues(t, g.Nodes(), tier.Resident())
				require.Equal(t, stats.TotalBytes, stats.ResidentBytes)
			} else {
				next := int64(tier.Degree(tier.Resident()))
				require.Greater(t, stats.OffsetBytes+stats.ResidentBytes+8*next, bytes, "another list would fit")
			}
			require.GreaterOrEqual(t, stats.Warmup.BytesRead, stats.Warmup.BytesWanted)
			_, err = tier.SelfLoops(bg)
			require.NoError(t, err)
			var cold []uint32
			wanted := int64(0)
			for v := range uint32(g.Nodes()) {
				switch {
				case v < tier.Resident():
					require.True(t, slices.Equal(g.Neighbors(v), tier.Neighbors(v)), "node %d", v)
					require.True(t, slices.Equal(store.EdgeValues[float32](weights, v), tier.Weights(v)), "node %d", v)
				case tier.Degree(v) > 0:
					cold, wanted = append(cold, v), wanted+4*int64(tier.Degree(v))
				}
			}
			got, err := readWeights(tier, cold)
			require.NoError(t, err)
			account := tier.Stats().Cold
			require.Zero(t, account.Rows, "lists are counted where they are read")
			require.Equal(t, wanted, account.BytesWanted)
			require.GreaterOrEqual(t, account.BytesRead, wanted)
			lists, err := read(tier, cold)
			require.NoError(t, err)
			for i, v := range cold {
				require.True(t, slices.Equal(store.EdgeValues[float32](weights, v), got[i]), "node %d", v)
				require.True(t, slices.Equal(g.Neighbors(v), lists[i]), "node %d", v)
			}
			account = tier.Stats().Cold
			require.Equal(t, []int64{int64(len(cold)), 2 * wanted}, []int64{account.Rows, account.BytesWanted})
			require.Panics(t, func() { tier.Weights(tier.Resident()) })
			tier.Close()
			require.Equal(t, start, kernels.HostBytes())
		}
	}
}

// TestReadAnyWeights checks that reading the weights of any nodes costs the same as reading their
// lists, which lie at the same offsets.
func TestReadAnyWeights(t *testing.T) {
	g, weights, _ := openWeighted(t, uneven(1000, 8))
	tier, err := topology.Open(bg, g, topology.Options{Bytes: topology.LeastBytes(g), Weights: weights, Options: disk.Options{Kind: disk.Pread}})
	require.NoError(t, err)
	defer tier.Close()
	rapid.Check(t, func(t *rapid.T) {
		one := rapid.IntRange(1, 200).Draw(t, "one in")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var nodes []uint32
		for v := range uint32(g.Nodes()) {
			if tier.Degree(v) > 0 && rng.IntN(one) == 0 {
				nodes = append(nodes, v)
			}
		}
		before := tier.Stats()
		got, err := readWeights(tier, nodes)
		require.NoError(t, err)
		between := tier.Stats()
		for i, v := range nodes {
			require.True(t, slices.Equal(store.EdgeValues[float32](weights, v), got[i]), "node %d", v)
		}
		_, err = read(tier, nodes)
		require.NoError(t, err)
		cost, lists := between.Sub(before).Cold, tier.Stats().Sub(between).Cold
		require.EqualValues(t, len(nodes), lists.Rows)
		cost.Seconds, lists.Seconds, lists.Rows = 0, 0, 0
		require.Equal(t, lists, cost)
	})
}

func TestWeightsThatAreNone(t *testing.T) {
	lists := [][]uint32{{1, 2}, {0}, {}, {0, 1, 2}}
	for _, c := range []struct {
		w    float32
		want string
	}{
		{-1, "has the weight -1; edges are drawn by weights of at least 0: ingest such, or draw without weights"},
		{float32(math.NaN()), "has the weight NaN; run gnnstore verify"},
		{float32(math.Inf(1)), "has the weight +Inf; run gnnstore verify"},
		{float32(math.Inf(-1)), "has the weight -Inf; run gnnstore verify"},
	} {
		_, _, path := openWeighted(t, lists)
		storetest.Forge(t, path, weightsFile, store.PageSize+4*4, binary.LittleEndian.AppendUint32(nil, math.Float32bits(c.w)))
		g := reopen(t, path)
		want := path + ": " + weightsFile + " at 0x1010: edge 4, of node 3, " + c.want
		for _, kind := range disk.Kinds[1:] {
			o := topology.Options{Bytes: 1 << 20, Weights: g.Column("weight"), Options: disk.Options{Kind: kind}}
			_, err := topology.Open(bg, g, o)
			require.ErrorContains(t, err, want)
			require.NotContains(t, err.Error(), "\n")

			o.Bytes = topology.LeastBytes(g) + 8*3
			tier, err := topology.Open(bg, g, o)
			require.NoError(t, err)
			require.EqualValues(t, 3, tier.Resident())
			_, err = readWeights(tier, []uint32{3})
			require.ErrorContains(t, err, want)
			require.Zero(t, tier.Stats().Cold, "what fails counts nothing")
			_, err = read(tier, []uint32{3})
			require.NoError(t, err, "its neighbours are fine")
			tier.Close()
		}
	}
}

func TestTruncatedWeights(t *testing.T) {
	lists := uneven(2000, 9)
	for _, kind := range disk.Kinds[1:] {
		g, weights, path := openWeighted(t, lists)
		tier, err := topology.Open(bg, g, topology.Options{Bytes: topology.LeastBytes(g), Weights: weights, Options: disk.Options{Kind: kind}})
		require.NoError(t, err)
		require.NoError(t, os.Truncate(filepath.Join(path, weightsFile), 3*store.PageSize))
		last := uint32(len(lists) - 1)
		_, err = readWeights(tier, []uint32{last - 200, last})
		require.ErrorIs(t, err, store.ErrCorrupt)
		require.ErrorContains(t, err, path+": "+weightsFile)
		require.NotContains(t, err.Error(), "\n")
		tier.Close()
	}
}

func TestWeightsRefuseTheirCallersBugs(t *testing.T) {
	lists := [][]uint32{{1}, {}, {1, 2}, {0}}
	g, weights, _ := openWeighted(t, lists)
	other, _, _ := openWeighted(t, lists)
	require.Panics(t, func() { _, _ = topology.Open(bg, other, topology.Options{Bytes: 1 << 20, Weights: weights}) })
	tier, err := topology.Open(bg, g, topology.Options{Bytes: 1 << 20})
	require.NoError(t, err)
	defer tier.Close()
	require.Panics(t, func() { tier.Weights(0) }, "it has none")
	require.Panics(t, func() { _ = tier.ReadWeights(bg, nil, nil) })
	cold, err := topology.Open(bg, g, topology.Options{Bytes: topology.LeastBytes(g), Weights: weights})
	require.NoError(t, err)
	defer cold.Close()
	for _, nodes := range [][]uint32{{1}, {3, 2}, {2, 2}} {
		require.Panics(t, func() { _ = cold.ReadWeights(bg, nodes, nil) }, "%v", nodes)
	}
	require.NoError(t, cold.ReadWeights(bg, nil, nil))
}

// TestWeightsOfAnotherType: a column may be called weight and hold anything.
func TestWeightsOfAnotherType(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bytes.gnn")
	w, err := store.Create(path, store.WriterOptions{})
	require.NoError(t, err)
	require.NoError(t, w.AddNodeType("node", []int64{0}))
	r, err := w.AddRelation("node", "to", "node", false, store.ColumnSpec{Name: "weight", Elem: store.U8})
	require.NoError(t, err)
	require.NoError(t, r.Append([]store.NodeID{0}, []byte{3}))
	require.NoError(t, r.Close())
	_, err = w.Seal(store.Manifest{Name: "bytes", Order: "original"})
	require.NoError(t, err)
	g := reopen(t, path)
	_, err = topology.Open(bg, g, topology.Options{Bytes: 1 << 20, Weights: g.Column("weight")})
	require.EqualError(t, err, "topology: "+path+": topo/node__to__node/weight.u8 holds u8, and edges are drawn by weights of "+
		"f32: ingest such, or draw without weights")
}
