package history_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/sample"
)

// TestMeanSizing: workers that share batches count half of what one worker counts for all of them,
// and take the same number of slots. A worker of other nodes is refused.
func TestMeanSizing(t *testing.T) {
	sizing := func(nodes int) *history.Sizing {
		reach := sample.Reach{Types: [][]bool{{true}, {true}}, Relations: [][]bool{{true}, {true}}}
		return history.NewSizing(reach, 2, func(int) *history.Heat { return history.HeatOf(nodes, true, nil) })
	}
	batch := func(nodes ...uint32) *sample.Batch {
		layer := sample.Layer{Nodes: []sample.Frontier{{Src: nodes, Dst: 1}}}
		return &sample.Batch{Layers: []sample.Layer{layer, layer}}
	}
	s := history.Settings{PGrad: 1, TStale: 10, HistoryBytes: history.Auto}
	alone, shares := sizing(1000), []*history.Sizing{sizing(1000), sizing(1000)}
	for _, step := range [][2][]uint32{{{1, 2, 900}, {3, 70, 800}}, {{1, 600}, {2, 3, 4, 5}}} {
		alone.Add(batch(append(step[0], step[1]...)...), []int64{64})
		for p, nodes := range step {
			shares[p].Add(batch(nodes...), []int64{64})
		}
	}
	sums := [][]float64{shares[0].Sums(), shares[1].Sums()}
	var want []float64
	for i, x := range alone.Sums() {
		require.InDelta(t, x, sums[0][i]+sums[1][i], 1e-12)
		want = append(want, x/2)
	}
	for _, z := range shares {
		require.NoError(t, z.Merge(sums, 2))
		require.InDeltaSlice(t, want, z.Sums(), 1e-12)
		require.Equal(t, shares[0].Kept(s, 512)[0].Slots, z.Kept(s, 512)[0].Slots)
	}
	require.ErrorContains(t, alone.Merge([][]float64{alone.Sums(), sizing(100).Sums()}, 1), "worker 1 has ")
}
