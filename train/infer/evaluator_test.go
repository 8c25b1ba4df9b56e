package infer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
)

// TestEvaluationReadsEveryNeighbor: also where a node has many more of them than any fanout.
func TestEvaluationReadsEveryNeighbor(t *testing.T) {
	ds, err := store.Open(storetest.Build(t, storetest.Communities(300, 3, 60, 8, 3)))
	require.NoError(t, err)
	defer ds.Close()
	d, err := data.Open(ds, data.Options{})
	require.NoError(t, err)
	stack, err := cachetier.Open(t.Context(), d.Types[0].Features, cachetier.Options{})
	require.NoError(t, err)
	defer stack.Close()
	be := kernels.NewCPU(kernels.CPUOptions{})
	for _, kind := range []model.Kind{model.SAGE, model.GCN, model.GAT} {
		c := model.Config{Kind: kind, Layers: 2, Hidden: 16, Norm: "layer", Heads: 8}
		s := step.New(be, model.New(be, c, model.Shape{In: []int{d.Types[0].Dim()}, Out: 3}, 1), nil, optim.Options{})
		e := New(d, s, nil, Options{Draws: sample.Config{Fanouts: []int{5, 3}, Options: kind.Sampling()}, Bytes: 1 << 30})
		e.Attach([]*cachetier.Stack{stack}, nil)
		wanted := []uint32{3, 50, 299}
		nodes := newNodeSet(300)
		for _, v := range wanted {
			nodes.add(v)
		}
		var drawn *drawnChunk
		require.NoError(t, e.drawn(t.Context(), nodes, 0, 0, func(c *drawnChunk) error {
			require.Nil(t, drawn)
			drawn = c
			return nil
		}))
		require.Equal(t, wanted, drawn.nodes)
		src, block := drawn.batch.Inputs()[0], &drawn.batch.Layers[0].Blocks[0]
		for i, v := range wanted {
			others := map[uint32]bool{v: true}
			list := d.Relations[0].Neighbors(v)
			require.Greater(t, len(list), 50)
			for _, u := range list {
				others[u] = true
			}
			read := map[uint32]bool{v: true}
			for _, place := range block.Nbr[block.Start[i]:block.End[i]] {
				read[src[place]] = true
			}
			require.Equal(t, others, read, "%s, node %d", kind, v)
		}
		s.Close()
	}
}
