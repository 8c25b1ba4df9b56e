package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChunker: chunks follow each other, end with their file, and are as large as a Source may make
// them.
func TestChunker(t *testing.T) {
	var got []string
	ids := Chunks(t.Context(), func(c IDChunk) error {
		got = append(got, fmt.Sprintf("%s %d+%d", c.File, c.First, c.Len()))
		return nil
	})
	for i := range 2 * (ChunkRows + 1) {
		require.NoError(t, ids.In([]string{"a", "b"}[i/(ChunkRows+1)]))
		ids.Chunk.IDs = append(ids.Chunk.IDs, int64(i))
		require.NoError(t, ids.Added())
	}
	require.NoError(t, ids.Flush())
	require.NoError(t, ids.Flush())
	require.Equal(t, []string{"a 0+65536", "a 65536+1", "b 65537+65536", "b 131073+1"}, got)
}

func TestChunkerBounds(t *testing.T) {
	rows := Chunks(t.Context(), func(c RowChunk) error {
		require.LessOrEqual(t, 4*len(c.Values), ChunkBytes)
		require.Greater(t, 4*(len(c.Values)+1000), ChunkBytes)
		return nil
	})
	for range 3 * (ChunkBytes / 4 / 1000) {
		rows.Chunk.Values = append(rows.Chunk.Values, make([]float32, 1000)...)
		require.NoError(t, rows.Added())
	}
	require.Empty(t, rows.Chunk.Values)
	require.EqualValues(t, 3*(ChunkBytes/4/1000), rows.Chunk.First)

	long := []byte(strings.Repeat("x", MaxIDBytes))
	edges := Chunks(t.Context(), func(c EdgeChunk) error {
		last := len(c.SrcTexts.At(c.Len()-1)) + len(c.DstTexts.At(c.Len()-1))
		require.Less(t, len(c.SrcTexts.Bytes)+len(c.DstTexts.Bytes)-last, ChunkBytes)
		require.Equal(t, []uint64{7}, c.Values[0][:1])
		require.Len(t, c.Values[0], c.Len())
		return nil
	})
	edges.Chunk.Values = make([][]uint64, 1)
	for range 1000 {
		edges.Chunk.SrcTexts.Append(long)
		edges.Chunk.DstTexts.Append(long[:1])
		edges.Chunk.Values[0] = append(edges.Chunk.Values[0], 7)
		require.NoError(t, edges.Added())
	}
	require.NoError(t, edges.Flush())
	require.EqualValues(t, 1000, edges.Chunk.First)
}

// TestChunkerStops: an error of emit is returned as it is, and no chunk follows a cancelled
// context.
func TestChunkerStops(t *testing.T) {
	broken := errors.New("broken")
	labels := Chunks(t.Context(), func(LabelChunk) error { return broken })
	labels.Chunk.Values = append(labels.Chunk.Values, 1)
	require.NoError(t, labels.Added())
	require.Equal(t, broken, labels.In("other"))

	ctx, cancel := context.WithCancel(t.Context())
	labels = Chunks(ctx, func(LabelChunk) error { panic("a chunk follows") })
	labels.Chunk.Values = append(labels.Chunk.Values, 1)
	require.NoError(t, labels.Added())
	cancel()
	require.ErrorIs(t, labels.Flush(), context.Canceled)
}
