package task

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/data"
)

// TestBalancedWeights: they are seeds ÷ (classes × seeds of the class), so that all seeds together
// weigh what they are.
func TestBalancedWeights(t *testing.T) {
	ds, err := store.Open(storetest.Build(t, storetest.Communities(800, 4, 8, 16, 1)))
	require.NoError(t, err)
	defer ds.Close()
	d, err := data.Open(ds, data.Options{})
	require.NoError(t, err)
	k, err := NewNodes(d, Options{ClassWeights: BalancedWeights, Batch: 10})
	require.NoError(t, err)
	sum := 0.0
	for _, v := range d.Train {
		sum += float64(k.classWeights[d.Labels.Class(v)])
	}
	require.InDelta(t, len(d.Train), sum, 1e-3)
}

func TestRowWeights(t *testing.T) {
	got, sum := rowWeights([]float32{9}, []uint32{2, 0, kernels.NoLabel, 2}, []float32{0.5, 1, 4})
	require.Equal(t, []float32{9, 4, 0.5, 0, 4}, got)
	require.Equal(t, 8.5, sum)
}
