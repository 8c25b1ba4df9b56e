package ingest

import (
	"cmp"
	"context"
	"slices"
)

// numberNodes gives every node its stored id. By degree, the nodes that training reads most come first: a node is read
// once for each neighbour list that it is in, over all relations that start at its type.
func (b *builder) numberNodes(ctx context.Context) error {
	if b.Order == OrderOriginal {
		return nil
	}
	for _, n := range b.nodes {
		b.meter.begin("order nodes", int64(n.count), "nodes")
		lists := b.timesListed(n)
		n.rowOf = make([]uint32, n.count)
		for v := range n.rowOf {
			n.rowOf[v] = uint32(v)
		}
		slices.SortFunc(n.rowOf, func(a, b uint32) int {
			return cmp.Or(cmp.Compare(lists[b], lists[a]), cmp.Compare(a, b))
		})
		n.stored = make([]uint32, n.count)
		for v, row := range n.rowOf {
			n.stored[row] = uint32(v)
		}
		b.meter.add(n.count)
		b.meter.end()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// timesListed counts, by row, the neighbour lists that each node of a type is in.
func (b *builder) timesListed(n *nodes) []uint64 {
	lists := make([]uint64, n.count)
	for i, r := range b.schema.Relations {
		if b.typeOf(r.Src) == n {
			for _, u := range b.topology[i].neighbors {
				lists[u]++
			}
		}
	}
	return lists
}

// listLengths adds up, by row, the neighbours of each node of a type.
func (b *builder) listLengths(n *nodes) []uint64 {
	lengths := make([]uint64, n.count)
	for i, r := range b.schema.Relations {
		if t := b.topology[i]; b.typeOf(r.Dst) == n {
			for v := range lengths {
				lengths[v] += t.offsets[v+1] - t.offsets[v]
			}
		}
	}
	return lengths
}
