package graph

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestDryStepMapsWhatAStepTakes: for each network, a dry step maps exactly the memory of a real
// one: the real step on the same batch then asks for no more.
func TestDryStepMapsWhatAStepTakes(t *testing.T) {
	for _, kind := range []model.Kind{model.SAGE, model.GCN, model.GAT, model.MLP, model.RSAGE, model.RGCN, model.RGAT, model.HGT} {
		t.Run(string(kind), func(t *testing.T) {
			o := small()
			o.Kind, o.Hidden, o.Dropout = kind, 64, 0.3
			tr, err := newTrainer(context.Background(), open(t, storetest.Communities(600, 4, 8, 16, 2)), o, run.Hooks{}, internal{})
			require.NoError(t, err)
			defer tr.Close()
			tr.task.Begin(1)
			b, err := tr.batch(t.Context(), 0)
			require.NoError(t, err)
			before := kernels.HostBytes()
			require.NoError(t, tr.rehearse(b, 0))
			require.Equal(t, before, kernels.HostBytes())
			require.False(t, tr.Backend.Dry())
		})
	}
}

// idle is a backend that panics if a matrix product is computed.
type idle struct{ kernels.Backend }

func (idle) MatMul(_, _, _ kernels.Tensor, _, _, _ bool) { panic("a refused run computes") }

func (idle) Affine(_, _ kernels.Tensor, _ bool, _ ...kernels.Term) { panic("a refused run computes") }

// TestRefusalComputesNothing: a run without enough memory is refused before a step computes
// anything, and the least that the refusal names works.
func TestRefusalComputesNothing(t *testing.T) {
	o := small()
	o.MemoryBytes = 16 << 20
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	_, err := newTrainer(t.Context(), ds, o, run.Hooks{Backend: idle{kernels.NewCPU(kernels.CPUOptions{})}}, internal{})
	var short *plan.NotEnough
	require.ErrorAs(t, err, &short)
	o.MemoryBytes = (short.Least.Total + 1<<20 - 1) >> 20 << 20
	tr, err := newTrainer(t.Context(), ds, o, run.Hooks{}, internal{})
	require.NoError(t, err)
	tr.Close()
}
