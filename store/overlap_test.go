package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestVerifyOverlap writes splits whose parts overlap. Writers accept them, and verify refuses
// them.
func TestVerifyOverlap(t *testing.T) {
	spec := small()
	spec.Test = []store.NodeID{5, 1} // 1 is in Train
	require.ErrorContains(t, check(storetest.Build(t, spec)), "test.u32: node 1 is in two parts of the split")
	spec.Test = []store.NodeID{5, 2} // 2 is in Valid
	require.ErrorContains(t, check(storetest.Build(t, spec)), "test.u32: node 2 is in two parts of the split")
	spec.Test = []store.NodeID{5}
	require.NoError(t, check(storetest.Build(t, spec)))
}
