package pipeline_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/sample"
)

// weighted is a graph with all weights at hand.
type weighted struct {
	*store.Graph
	weights *store.EdgeColumn
}

// Weights implements sample.WeightedTopology.
func (w weighted) Weights(v uint32) []float32 { return store.EdgeValues[float32](w.weights, v) }

// TestWeightedGroupsOverTiers: batches that are drawn by weights from a Tier equal batches from the
// whole graph, whatever is resident, with hubs whose lists and weights come in parts.
func TestWeightedGroupsOverTiers(t *testing.T) {
	const nodes, n = 500, 3
	rng := rand.New(rand.NewPCG(2, 2))
	lists := make([][]uint32, nodes)
	for v := range lists {
		degree := rng.IntN(40)
		if v == nodes/3 || v == nodes-1 {
			degree = topology.MaxPart + v
		}
		for range degree {
			lists[v] = append(lists[v], rng.Uint32N(nodes))
		}
	}
	d, err := store.Open(storetest.Build(t, storetest.Spec{Nodes: nodes, Neighbors: lists, Dim: 1, Weight: func(v, i int) float32 {
		return float32((v+i*i)%7) / 3 // one in seven is 0, and never drawn
	}}))
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	g := d.Graph(0)
	weights := g.Column("weight")
	seeds := func(step int) (ids []uint32) {
		for i := range 20 {
			ids = append(ids, uint32((i*23+step*17)%(nodes-1)))
		}
		return append(ids, nodes-1)
	}
	all := topology.LeastBytes(g) + topology.ListBytes(g, weights)
	for _, o := range []sample.Options{{}, {SelfLoops: true, RevEdges: true, RevInput: true}} {
		c := sample.Config{Fanouts: []int{6, sample.All}, Weighted: true, Options: o}
		s := sample.NewSampler(sample.AtHand(weighted{g, weights}), c, 1)
		var want []*sample.Batch
		for step := range n {
			b := new(sample.Batch)
			require.NoError(t, store.Guard(func() error {
				return s.SampleOne(context.Background(), b, sample.BatchSeed{First: uint64(step)}, seeds(step))
			}))
			want = append(want, b)
		}
		for _, bytes := range []int64{topology.LeastBytes(g), all / 2, all} {
			for _, kind := range []disk.Kind{disk.Pread, disk.Mmap} {
				tier, err := topology.Open(t.Context(), g, topology.Options{Bytes: bytes, Weights: weights, Options: disk.Options{Kind: kind}})
				require.NoError(t, err)
				got, err := drawGroup(tier, c, 2, n, n, seeds)
				require.NoError(t, err)
				for i := range want {
					require.True(t, equal(want[i], got[i]), "batch %d, %s", i, fmt.Sprint(o, bytes, kind))
				}
				tier.Close()
			}
		}
	}
}
