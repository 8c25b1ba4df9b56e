package generate

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
)

// BenchmarkEdges makes papers100m's at full size, on one processor, from different places.
func BenchmarkEdges(b *testing.B) {
	for _, kind := range []string{"papers100m", "reddit"} {
		b.Run("kind="+kind, func(b *testing.B) {
			g, err := Open(kind, Options{})
			require.NoError(b, err)
			r := g.relations[0]
			src, dst := make([]int64, ingest.ChunkRows), make([]int64, ingest.ChunkRows)
			n := int64(0)
			for b.Loop() {
				r.fill(src, dst, n*12345*ingest.ChunkRows%(r.edges-ingest.ChunkRows))
				n++
			}
			b.ReportMetric(float64(n*ingest.ChunkRows)/b.Elapsed().Seconds()/1e6, "Medges/s")
		})
	}
}

// BenchmarkEdgesStreamed is Source.Edges on all processors.
func BenchmarkEdgesStreamed(b *testing.B) {
	g, err := Open("papers100m", Options{Scale: 0.01})
	require.NoError(b, err)
	n := int64(0)
	for b.Loop() {
		require.NoError(b, g.Edges(context.Background(), 0, func(c ingest.EdgeChunk) error { n += int64(c.Len()); return nil }))
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Medges/s")
}

func BenchmarkRowsAt(b *testing.B) {
	g, err := Open("papers100m", Options{})
	require.NoError(b, err)
	rows := make([]uint32, 1024)
	for i := range rows {
		rows[i] = uint32(i) * 9999
	}
	dst := make([]float32, len(rows)*g.shape.dim)
	b.SetBytes(int64(4 * len(dst)))
	n := 0
	for b.Loop() {
		g.RowsAt(0, rows, dst)
		n += len(dst)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mvalues/s")
}
