package history

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/train/sample"
)

// group is the sample.Expander of steps that are drawn together. Its memory is used for each group
// again.
type group struct {
	cache        *Cache
	first, steps int

	next, ownNext       [][][]uint32 // by step and type
	origins, ownOrigins [][][]sample.Origin
}

// Expand decides which nodes of found are used at layer L - 1 - h, whose sources hop h draws, if
// that layer has a pool. All other nodes are drawn further and get no origins.
func (g *group) Expand(ctx context.Context, hop int, found [][][]uint32) ([][][]uint32, [][][]sample.Origin, error) {
	c := g.cache
	if len(found) != g.steps || hop >= c.o.Layers {
		panic(fmt.Sprintf("history: Expand: hop %d of %d batches, for a group of %d and %d layers", hop, len(found), g.steps, c.o.Layers))
	}
	g.fit()
	layer := c.o.Layers - 1 - hop
	for i, types := range found {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if len(types) != c.o.Types {
			panic(fmt.Sprintf("history: Expand: %d types of nodes, and there are %d", len(types), c.o.Types))
		}
		for t, live := range types {
			k := c.at[layer][t]
			if k < 0 {
				g.next[i][t], g.origins[i][t] = nil, nil
				continue
			}
			next, origins := &g.ownNext[i][t], &g.ownOrigins[i][t]
			*next, *origins = c.plan(g.first+i, k, live, (*next)[:0], (*origins)[:0])
			g.next[i][t], g.origins[i][t] = *next, *origins
		}
	}
	return g.next[:g.steps], g.origins[:g.steps], nil
}

// fit makes room for the lists of all steps.
func (g *group) fit() {
	for len(g.next) < g.steps {
		n := g.cache.o.Types
		g.next, g.ownNext = append(g.next, make([][]uint32, n)), append(g.ownNext, make([][]uint32, n))
		g.origins, g.ownOrigins = append(g.origins, make([][]sample.Origin, n)), append(g.ownOrigins, make([][]sample.Origin, n))
	}
}
