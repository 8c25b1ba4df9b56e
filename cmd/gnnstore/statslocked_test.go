package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestLockedText: stats shows the locked memory, the reason for less, and the way of rows to the
// device.
func TestLockedText(t *testing.T) {
	require.Empty(t, lockedText(&run.Result{}))
	l := &run.LockedMemory{Rows: kernels.Locked{Bytes: 3 << 20, Of: 4 << 20, Why: "too little"}, Slots: kernels.Locked{Bytes: 1 << 20, Of: 1 << 20}}
	r := &run.Result{Locked: l}
	require.Equal(t, "locked memory: rows 3 MiB of 4 MiB, slots of copies 1 MiB of 1 MiB (too little)", lockedText(r))
	l.Gather, l.Rows.Why = &kernels.GatherRates{Why: "it was asked"}, ""
	require.Equal(t, "locked memory: rows 3 MiB of 4 MiB, slots of copies 1 MiB of 1 MiB; "+
		"the host gathers rows for a copy to the GPU: it was asked", lockedText(r))
}
