package disk

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDepthWithin checks that buffers fit in the bytes allowed, and that buffers for one more read
// would not.
func TestDepthWithin(t *testing.T) {
	require.Equal(t, 0, DepthWithin(BufferBytes(0)))
	require.Equal(t, 1, DepthWithin(0))
	for bytes := int64(1 << 20); bytes < BufferBytes(0); bytes += 1 << 20 {
		depth := DepthWithin(bytes)
		require.LessOrEqual(t, BufferBytes(depth), bytes)
		require.Greater(t, BufferBytes(depth+1), bytes)
	}
}

// TestForSmallFiles: buffers are no larger than the files, or than the buffers of one read where
// those are larger.
func TestForSmallFiles(t *testing.T) {
	for _, bytes := range []int64{0, 3 << 20, 20 << 20} {
		for _, asked := range []int{0, 3, 500} {
			op := opening{Options: Options{Depth: asked}.For(bytes)}
			require.LessOrEqual(t, BufferBytes(op.depth(defaultRingDepth)), max(BufferBytes(1), bytes))
		}
	}
	op := opening{Options: Options{}.For(100 << 20)}
	require.Equal(t, defaultRingDepth, op.depth(defaultRingDepth))
}
