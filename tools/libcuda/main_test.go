package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
	"github.com/stretchr/testify/require"
)

// TestSymbols: symbols.txt is in order, and has every function that the driver package needs.
func TestSymbols(t *testing.T) {
	names := strings.Fields(symbols)
	require.True(t, slices.IsSorted(names))
	require.Len(t, slices.Compact(slices.Clone(names)), len(names))
	for _, row := range driver.Table() {
		require.Contains(t, names, row.Symbol)
	}
}
