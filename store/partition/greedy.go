package partition

import (
	"cmp"
	"slices"

	"github.com/gnnstore/gnnstore/store"
)

// Linear deterministic greedy: Stanton and Kliot, Streaming Graph Partitioning for Large
// Distributed Graphs, KDD 2012; several passes: Nishimura and Ugander, Restreaming Graph
// Partitioning, KDD 2013. There, loads begin anew with each pass. On ogbn-arxiv in 8 parts that
// gives about as many crossing edges, but the largest part has 1.51 times the mean of the edges;
// ours has 1.40.
const (
	greedyPasses = 5
	greedyChunk  = 4096 // nodes that are placed one after the other
	// A part may have 103 hundredths of the mean, of each class of nodes.
	capNumerator, capDenominator = 103, 100
)

// none is the part of a node that has no part yet.
const none = ^uint16(0)

// greedy places each node in the part with the largest near·(1 − load/cap), in several passes. near
// counts the node's edges from nodes that are there now. load counts the nodes there of the node's
// class: the nodes of its type that train, or the others; cap is the most. So some part always has
// room, and both the nodes of a type and the nodes that train are even.
type greedy struct {
	*writer
	part   [][]uint16 // by type: of each node
	trains [][]uint64 // by type: a bit for each node
	into   [][]int    // by type: the relations to its nodes
	graphs []*store.Graph
	types  []int // by relation: the type of its sources

	caps  []int64   // by class: the most nodes of a part
	loads [][]int64 // by class, of each part
	near  []int64   // of the node at hand, by part: edges from nodes there
	found []uint16  // parts whose near is not 0
}

// greedily returns the part of each node, by type.
func (w *writer) greedily() ([][]uint16, error) {
	g := &greedy{writer: w, near: make([]int64, w.Parts), trains: w.trains()}
	nodes := int64(0)
	for t := range w.m.NodeTypes {
		kind := &w.m.NodeTypes[t]
		part := make([]uint16, kind.Count)
		for v := range part {
			part[v] = none
		}
		train := int64(ones(g.trains[t]))
		for _, n := range []int64{kind.Count - train, train} {
			g.caps = append(g.caps, capOf(n, w.Parts))
			g.loads = append(g.loads, make([]int64, w.Parts))
		}
		g.part, g.into = append(g.part, part), append(g.into, nil)
		nodes += kind.Count
	}
	for r := range w.m.Relations {
		of := &w.m.Relations[r]
		dst := w.typeOf(of.Dst)
		g.graphs, g.types = append(g.graphs, w.ds.Graph(r)), append(g.types, w.typeOf(of.Src))
		g.into[dst] = append(g.into[dst], r)
	}
	chunks := g.chunks()
	for pass := range greedyPasses {
		done := int64(0)
		for _, c := range chunks {
			if err := w.progress("place nodes", int64(pass)*nodes+done, greedyPasses*nodes, "nodes"); err != nil {
				return nil, err
			}
			for v := c.lo; v < c.hi; v++ {
				if err := g.place(c.t, uint32(v)); err != nil {
					return nil, err
				}
			}
			done += c.hi - c.lo
		}
	}
	return g.part, nil
}

// capOf returns the most nodes of a part, of n in all.
func capOf(n int64, parts int) int64 {
	mean := int64(parts) * capDenominator
	return max((n*capNumerator)/mean, (n+int64(parts)-1)/int64(parts))
}

// place places node v of type t.
func (g *greedy) place(t int, v uint32) error {
	for _, r := range g.into[t] {
		graph, src := g.graphs[r], g.types[r]
		for _, u := range graph.Neighbors(v) {
			if int(u) >= graph.Sources() {
				return graph.CorruptNeighbor(v, u)
			}
			if q := g.part[src][u]; q != none && (u != v || src != t) {
				if g.near[q] == 0 {
					g.found = append(g.found, q)
				}
				g.near[q]++
			}
		}
	}
	class := 2 * t
	if g.trains[t][v/64]>>(v%64)&1 == 1 {
		class++
	}
	load, most := g.loads[class], g.caps[class]
	if q := g.part[t][v]; q != none { // in an earlier pass
		load[q]--
	}
	best, score := -1, int64(0)
	for _, q := range g.found {
		s := g.near[q] * (most - load[q])
		if q := int(q); s > score || s == score && s > 0 && less(load, q, best) {
			best, score = q, s
		}
		g.near[q] = 0
	}
	g.found = g.found[:0]
	if best < 0 { // it has no neighbours, or their parts are full
		best = 0
		for q := range load {
			if less(load, q, best) {
				best = q
			}
		}
	}
	g.part[t][v] = uint16(best)
	load[best]++
	return nil
}

// less reports whether part a is to be taken before b, other things being equal.
func less(load []int64, a, b int) bool {
	return load[a] < load[b] || load[a] == load[b] && a < b
}

// chunk has nodes lo to hi-1 of a type.
type chunk struct {
	t      int
	lo, hi int64
}

// chunks returns the nodes in the order in which they are placed. Within a chunk they are read in
// the order of the file. Chunks come in hashed order. Otherwise nodes that lie together, such
// as hubs, would fill the same parts.
func (g *greedy) chunks() (all []chunk) {
	for t := range g.m.NodeTypes {
		for lo, n := int64(0), g.m.NodeTypes[t].Count; lo < n; lo += greedyChunk {
			all = append(all, chunk{t, lo, min(lo+greedyChunk, n)})
		}
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(mix(uint64(a)), mix(uint64(b))) })
	sorted := make([]chunk, len(all))
	for k, i := range order {
		sorted[k] = all[i]
	}
	return sorted
}

// mix is the finaliser of SplitMix64, a bijection.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
