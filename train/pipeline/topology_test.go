package pipeline_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/sample"
)

// hubs is a graph with isolated nodes, self loops, duplicates, and two lists that come in parts.
func hubs(t testing.TB, nodes int) (*store.Graph, string) {
	rng := rand.New(rand.NewPCG(1, 1))
	lists := make([][]uint32, nodes)
	for v := range lists {
		for range rng.IntN(40) {
			lists[v] = append(lists[v], rng.Uint32N(uint32(nodes)), uint32(nodes-1))
		}
		if rng.IntN(8) == 0 {
			lists[v] = append(lists[v], uint32(v), uint32(v))
		}
	}
	for _, hub := range []int{nodes / 3, nodes - 1} {
		for range topology.MaxPart + hub {
			lists[hub] = append(lists[hub], rng.Uint32N(uint32(nodes)))
		}
	}
	path := storetest.Build(t, storetest.Spec{Nodes: nodes, Neighbors: lists, Dim: 1})
	d, err := store.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d.Graph(0), path
}

// drawGroup samples steps 0 to n-1 from tier, size of them at a time.
func drawGroup(tier *topology.Tier, c sample.Config, workers, size, n int,
	seeds func(step int) []uint32,
) ([]*sample.Batch, error) {
	g := sample.NewSampler(tier, c, workers)
	batches, z, all := make([]*sample.Batch, n), make([]sample.BatchSeed, n), make([][][]uint32, n)
	for i := range batches {
		batches[i], z[i], all[i] = new(sample.Batch), sample.BatchSeed{First: uint64(i)}, [][]uint32{seeds(i)}
	}
	for lo := 0; lo < n; lo += size {
		hi := min(lo+size, n)
		if err := g.Sample(context.Background(), batches[lo:hi], z[lo:hi], all[lo:hi]); err != nil {
			return nil, err
		}
	}
	return batches, nil
}

func equal(a, b *sample.Batch) bool {
	return slices.Equal(a.Seeds[0], b.Seeds[0]) && slices.EqualFunc(a.Layers, b.Layers, func(k, l sample.Layer) bool {
		x, y := &k.Blocks[0], &l.Blocks[0]
		return k.Nodes[0].Dst == l.Nodes[0].Dst && slices.Equal(k.Nodes[0].Src, l.Nodes[0].Src) &&
			slices.Equal(x.Start, y.Start) && slices.Equal(x.End, y.End) && slices.Equal(x.Nbr, y.Nbr) &&
			slices.Equal(x.Weight, y.Weight) && slices.Equal(x.RevStart, y.RevStart) &&
			slices.Equal(x.RevDst, y.RevDst) && slices.Equal(x.RevEdge, y.RevEdge)
	})
}

// TestGroupsOverTiers: batches equal batches drawn one by one from the whole graph, whatever is
// resident and however it is read. The cost of reading depends on the size of the groups alone.
func TestGroupsOverTiers(t *testing.T) {
	const nodes, n = 2000, 5
	g, _ := hubs(t, nodes)
	seeds := func(step int) (ids []uint32) {
		for i := range 30 {
			ids = append(ids, uint32((i*61+step*17)%nodes))
		}
		return append(ids, nodes-1)
	}
	least, all := topology.LeastBytes(g), topology.AllBytes(g)
	for _, fanouts := range [][]int{{6, 4, 3}, {40, sample.All}} {
		for _, o := range []sample.Options{{}, {SelfLoops: true, GCN: true, RevEdges: true, RevInput: true}} {
			var want []*sample.Batch
			s := sample.NewSampler(sample.AtHand(g), sample.Config{Fanouts: fanouts, Options: o}, 1)
			for step := range n {
				b := new(sample.Batch)
				require.NoError(t, store.Guard(func() error {
					return s.SampleOne(context.Background(), b, sample.BatchSeed{First: uint64(step)}, seeds(step))
				}))
				want = append(want, b)
			}
			costs := map[string]disk.Account{}
			for _, c := range []struct {
				bytes         int64
				kind          disk.Kind
				workers, size int
			}{
				{least, disk.Pread, 1, 1}, {least, disk.Pread, 3, 1}, {least, disk.Pread, 2, n}, {least, disk.Pread, 1, n},
				{least, disk.Mmap, 2, n - 1},
				{all / 2, disk.Pread, 2, 3}, {all, disk.Mmap, 2, 2},
			} {
				tier, err := topology.Open(t.Context(), g, topology.Options{Bytes: c.bytes, Options: disk.Options{Kind: c.kind}})
				require.NoError(t, err)
				got, err := drawGroup(tier, sample.Config{Fanouts: fanouts, Options: o}, c.workers, c.size, n, seeds)
				require.NoError(t, err)
				for i := range want {
					require.True(t, equal(want[i], got[i]), "%+v: batch %d", c, i)
				}
				st := tier.Stats()
				require.Equal(t, st.Asked, st.Hits+st.Misses)
				require.LessOrEqual(t, st.Cold.Rows, st.Misses)
				require.Equal(t, c.bytes == all, st.Cold.Rows == 0)
				st.Cold.Seconds = 0
				key := fmt.Sprint(c.bytes, c.size)
				st.Cold.BytesRead, st.Cold.Amplification = 0, 0 // whole blocks past the page cache
				if first, ok := costs[key]; ok {
					require.Equal(t, first, st.Cold)
				}
				costs[key] = st.Cold
				tier.Close()
			}
			one, together := costs[fmt.Sprint(least, 1)], costs[fmt.Sprint(least, n)]
			require.Greater(t, one.Rows, together.Rows, "a group reads a list once")
		}
	}
}

func TestGroupOverDamage(t *testing.T) {
	_, path := hubs(t, 500)
	const section = "topo/node__to__node/neighbors.u32"
	storetest.Forge(t, path, section, store.PageSize, []byte{0, 2, 0, 0}) // 512
	ds, err := store.Open(path)
	require.NoError(t, err)
	defer ds.Close()
	g := ds.Graph(0)
	tier, err := topology.Open(t.Context(), g, topology.Options{Bytes: topology.LeastBytes(g), Options: disk.Options{Kind: disk.Pread}})
	require.NoError(t, err)
	defer tier.Close()
	every := func(int) (ids []uint32) {
		for v := range uint32(500) {
			ids = append(ids, v)
		}
		return ids
	}
	_, err = drawGroup(tier, sample.Config{Fanouts: []int{2}}, 2, 2, 2, every)
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.ErrorContains(t, err, path+": "+section+" at 0x1000: node ")
	require.ErrorContains(t, err, " has neighbour 512, and there are 500 nodes; run gnnstore verify")

	require.NoError(t, os.Truncate(filepath.Join(path, section), store.PageSize+4*int64(topology.MaxPart)))
	_, err = drawGroup(tier, sample.Config{Fanouts: []int{2}}, 2, 2, 2, func(int) []uint32 { return slices.Clone(every(0)[400:]) })
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.ErrorContains(t, err, path+": "+section+" at 0x")
	require.ErrorContains(t, err, "truncated")
	require.NotContains(t, err.Error(), "\n")
}
