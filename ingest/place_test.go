package ingest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlaces: a row is named by its line, whatever lies between the lines, and else by its number.
func TestPlaces(t *testing.T) {
	var named []string
	out := Chunks(t.Context(), func(c EdgeChunk) error {
		for i := range c.Len() {
			named = append(named, c.Edge(i, "edge"))
		}
		return nil
	})
	require.NoError(t, out.In("a.csv"))
	for _, line := range []int64{2, 3, 7, 8, 9, 12} {
		out.Chunk.Src, out.Chunk.Dst = append(out.Chunk.Src, line), append(out.Chunk.Dst, line)
		out.Line(line)
		require.NoError(t, out.Added())
	}
	require.NoError(t, out.In("b.npy")) // without lines
	for range 2 {
		out.Chunk.Src, out.Chunk.Dst = append(out.Chunk.Src, 1), append(out.Chunk.Dst, 1)
		require.NoError(t, out.Added())
	}
	require.NoError(t, out.Flush())
	require.Equal(t, []string{
		"a.csv: line 2", "a.csv: line 3", "a.csv: line 7", "a.csv: line 8", "a.csv: line 9", "a.csv: line 12",
		"b.npy: edge 7 (counting from 1)", "b.npy: edge 8 (counting from 1)",
	}, named)
	p := Place{File: "y.npy", First: 3}
	require.Equal(t, "y.npy: row 5 (counting from 0)", p.Row(2))
	p.Lines.Add(0, 9)
	require.Equal(t, "y.npy: line 11", p.Row(2))
}
