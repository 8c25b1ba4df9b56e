package disk

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDepthWithin: buffers take what was allowed at most, and a read more would take more.
func TestDepthWithin(t *testing.T) {
	require.Equal(t, 0, DepthWithin(BufferBytes(0)))
	require.Equal(t, 1, DepthWithin(0))
	for bytes := int64(1 << 20); bytes < BufferBytes(0); bytes += 1 << 20 {
		depth := DepthWithin(bytes)
		require.LessOrEqual(t, BufferBytes(depth), bytes)
		require.Greater(t, BufferBytes(depth+1), bytes)
	}
}
