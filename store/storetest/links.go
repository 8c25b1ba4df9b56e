package storetest

import (
	"slices"

	"github.com/gnnstore/gnnstore/store"
)

// Linked returns s as an undirected graph for link prediction: each edge between different nodes
// appears once in each direction. Of every ten pairs, it holds out one to validate and one to test.
func (s Spec) Linked() Spec {
	all, split, seen := make([][]store.NodeID, s.Nodes), new(EdgeSplit), map[[2]store.NodeID]bool{}
	for v, list := range s.Neighbors {
		for _, u := range list {
			pair := [2]store.NodeID{min(u, store.NodeID(v)), max(u, store.NodeID(v))}
			if pair[0] == pair[1] || seen[pair] {
				continue
			}
			seen[pair] = true
			switch len(seen) % 10 {
			case 0:
				split.Test.Src, split.Test.Dst = append(split.Test.Src, pair[0]), append(split.Test.Dst, pair[1])
			case 1:
				split.Valid.Src, split.Valid.Dst = append(split.Valid.Src, pair[0]), append(split.Valid.Dst, pair[1])
			default:
				all[pair[0]], all[pair[1]] = append(all[pair[0]], pair[1]), append(all[pair[1]], pair[0])
			}
		}
	}
	for v := range all {
		slices.Sort(all[v])
	}
	s.Neighbors, s.EdgeSplit, s.Symmetric = all, split, true
	return s
}
