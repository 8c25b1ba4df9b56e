package tiers

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHeapLimit: it follows what lies outside the heap, and goes back when the last of several is
// closed.
func TestHeapLimit(t *testing.T) {
	var none HeapLimit
	none.Follow()
	none.Close()
	l := HeapLimit{Budget: 8 << 30}
	other := l
	l.Follow()
	other.Follow()
	require.Less(t, debug.SetMemoryLimit(-1), l.Budget)
	l.Close()
	require.Less(t, debug.SetMemoryLimit(-1), l.Budget)
	other.Close()
	other.Close()
	require.Equal(t, int64(math.MaxInt64), debug.SetMemoryLimit(-1))
}
