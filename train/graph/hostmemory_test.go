package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestRunGivesItsMemoryBack: tiers, arenas and weights lie where the garbage collector does not
// look.
func TestRunGivesItsMemoryBack(t *testing.T) {
	ds := open(t, storetest.Communities(2000, 4, 8, 64, 2))
	o := small()
	o.Hidden, o.Cache.HostBytes, o.Cache.DeviceBytes = 64, 100_000, 100_000
	start := kernels.HostBytes()
	trained(t, ds, o)
	require.Equal(t, start, kernels.HostBytes())
	o.EvalBytes = 0 // evaluates on sampled blocks
	trained(t, ds, o)
	require.Equal(t, start, kernels.HostBytes())
}
