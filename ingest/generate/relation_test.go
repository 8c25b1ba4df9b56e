package generate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
)

// TestTriples: relations of a knowledge graph have the edges that the kind says, and join the
// communities that they should, but for the share that is random; at full size they are 100 M.
func TestTriples(t *testing.T) {
	full := open(t, "kg", Options{})
	require.EqualValues(t, 10_000_000, full.schema.NodeTypes[0].Count)
	edges := int64(0)
	for _, r := range full.schema.Relations {
		edges += r.Edges
	}
	require.EqualValues(t, 100_000_000, edges)
	require.Greater(t, full.schema.Relations[0].Edges, 6*full.schema.Relations[15].Edges)
	require.Empty(t, full.schema.Tables)
	require.Empty(t, full.schema.Labels)
	require.Empty(t, full.schema.Splits)

	g := open(t, "kg", Options{Nodes: 20_000, Edges: 60_000})
	p := g.types[0]
	shifts := map[int]bool{}
	for n, r := range g.relations {
		shifts[r.shift] = true
		all, joined := 0.0, 0.0
		require.NoError(t, g.Edges(t.Context(), n, func(c ingest.EdgeChunk) error {
			for i, u := range c.Src {
				from, to := p.of(p.ids.rank(uint32(u))), p.of(p.ids.rank(uint32(c.Dst[i])))
				all++
				if from == to^r.shift {
					joined++
				}
			}
			return nil
		}))
		require.EqualValues(t, r.edges, all)
		require.InDelta(t, 0.9+0.1/64, joined/all, 0.03, "relation %d", n)
	}
	require.Len(t, shifts, 16)
	// Communities that are no power of two: one whose partner is missing is its own.
	few := open(t, "kg", Options{Nodes: 100, Edges: 100, Classes: 5})
	for _, r := range few.relations {
		for c := range 5 {
			require.Equal(t, c, r.home(r.home(c)))
		}
	}
}
