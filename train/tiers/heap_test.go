package tiers

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHeapLimit: it follows what lies outside the heap, and goes back when the last of several is closed.
func TestHeapLimit(t *testing.T) {
	var none heapLimit
	none.follow()
	none.close()
	l := heapLimit{budget: 8 << 30}
	other := l
	l.follow()
	other.follow()
	require.Less(t, debug.SetMemoryLimit(-1), l.budget)
	l.close()
	require.Less(t, debug.SetMemoryLimit(-1), l.budget)
	other.close()
	other.close()
	require.Equal(t, int64(math.MaxInt64), debug.SetMemoryLimit(-1))
}
