package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestRemoteMemory: a backend whose memory the host cannot address trains and evaluates to the same
// bits, and its staging buffers go when the run does.
func TestRemoteMemory(t *testing.T) {
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	for name, change := range map[string]func(*run.Options){
		"sage":        func(*run.Options) {},
		"sampled":     func(o *run.Options) { o.EvalBytes, o.Cache.HostBytes = 0, 5000 },
		"gcn":         func(o *run.Options) { o.Kind = model.GCN },
		"gat, walked": func(o *run.Options) { o.Kind = model.GAT; draws["rw nested"](o) },
	} {
		o := small()
		o.Epochs = 2
		change(&o)
		want := trained(t, ds, o)
		held := kernels.HostBytes()
		got, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{Backend: kerneltest.Remote(kernels.NewCPU(kernels.CPUOptions{}))})
		require.NoError(t, err, name)
		sameWork(t, want, got, name)
		require.Equal(t, held, kernels.HostBytes(), name)
	}
}
