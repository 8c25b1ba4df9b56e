package store

import (
	"fmt"
	"slices"
)

// Graph is the topology of one relation: for each destination node its in-neighbours, compressed sparse rows.
type Graph struct {
	Relation *Relation
	offsets  []uint64
	edges    []NodeID
	sources  int64 // nodes that neighbours are ids of
	path     string
}

// Graph returns the topology of relation i of the manifest.
func (d *Dataset) Graph(i int) *Graph {
	r := &d.manifest.Relations[i]
	src, _ := d.NodeType(r.Src)
	return &Graph{
		Relation: r,
		offsets:  cast[uint64](d.sections[r.Offsets.Path].payload()),
		edges:    cast[NodeID](d.sections[r.Neighbors.Path].payload()),
		sources:  src.Count,
		path:     d.path,
	}
}

// Nodes is the number of destination nodes.
func (g *Graph) Nodes() int { return len(g.offsets) - 1 }

// Edges is the number of edges.
func (g *Graph) Edges() int64 { return int64(len(g.edges)) }

// Degree is the number of v's in-neighbours.
func (g *Graph) Degree(v NodeID) int { return len(g.Neighbors(v)) }

// Neighbors returns v's in-neighbours, ascending. The slice is borrowed: read-only, and valid until the Dataset is
// closed. Safe for concurrent use. An offset that cannot be true panics with a *SectionError, which [Guard] returns.
func (g *Graph) Neighbors(v NodeID) []NodeID {
	if int64(v) >= int64(len(g.offsets))-1 {
		err := fmt.Errorf("neighbour id %d, and there are %d nodes", v, g.Nodes())
		panic(g.corrupt(g.Relation.Neighbors.Path, -1, err))
	}
	lo, hi := g.offsets[v], g.offsets[v+1]
	if lo > hi || hi > uint64(len(g.edges)) {
		err := fmt.Errorf("node %d has edges %d to %d of %d", v, lo, hi, len(g.edges))
		panic(g.corrupt(g.Relation.Offsets.Path, PageSize+8*int64(v), err))
	}
	return g.edges[lo:hi:hi] // cap == len: an append copies instead of scribbling on v+1
}

// CorruptNeighbor is the error of neighbour u of node v where u is no node. Neighbors lends what the file holds;
// whoever uses a neighbour as an index compares it with the number of nodes first and panics with this, which [Guard]
// returns.
func (g *Graph) CorruptNeighbor(v, u NodeID) *SectionError {
	at := int64(-1)
	if i := slices.Index(g.Neighbors(v), u); i >= 0 {
		at = PageSize + 4*(int64(g.offsets[v])+int64(i))
	}
	err := fmt.Errorf("node %d has neighbour %d, and there are %d nodes", v, u, g.sources)
	return g.corrupt(g.Relation.Neighbors.Path, at, err)
}

func (g *Graph) corrupt(section string, at int64, err error) *SectionError {
	return &SectionError{g.path, section, at, fmt.Errorf("%w; run gnnstore verify", err)}
}
