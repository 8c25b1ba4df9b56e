package graph

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChunkBytes(t *testing.T) {
	const mib = 1 << 20
	for total, want := range map[int64]int64{
		0: leastChunk, 1: leastChunk, 64 * mib: 256 << 10, 127 * mib: 256 << 10, 128 * mib: 512 << 10,
		math.MaxInt64: 32 * mib,
	} {
		require.Equal(t, want, chunkBytes(total), total)
	}
}
