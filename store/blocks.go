package store

import (
	"fmt"
	"math"
)

// A block is a run of a part's rows whose nodes follow each other in the whole, so that the edges
// of a block have consecutive numbers there. By rule, each of the first rows is a block, and then
// every 64 rows are one. By range, all rows are one block.

// block returns the block of a row.
func (o Owners) block(row int64) int64 {
	switch {
	case o.ends != nil:
		return 0
	case row < singles:
		return row
	}
	return singles + (row-singles)/dealt
}

// blockRow is the inverse of block: it returns the first row of a block.
func (o Owners) blockRow(block int64) int64 {
	switch {
	case o.ends != nil && block > 0: // behind all rows
		return math.MaxInt64
	case block < singles:
		return block
	}
	return singles + (block-singles)*dealt
}

// BeginsBlock reports whether a row is the first of a block: see [Relation].Blocks.
func (o Owners) BeginsBlock(row NodeID) bool {
	return o.blockRow(o.block(int64(row))) == int64(row)
}

// blocks returns the number of blocks of the first rows.
func (o Owners) blocks(rows int64) int64 {
	if rows == 0 {
		return 0
	}
	return o.block(rows-1) + 1
}

// blocks has the number in the whole of each block's first edge.
type blocks struct {
	first   []uint64
	section *section
	whole   uint64 // edges
}

// blockEdges returns the edges of block k, numbered in the part: lo to hi-1.
func (g *Graph) blockEdges(k int64) (lo, hi uint64) {
	o := g.own.Owners
	lo, _ = g.list(NodeID(o.blockRow(k)))
	_, hi = g.list(NodeID(min(o.blockRow(k+1), int64(g.Nodes())) - 1))
	return lo, hi
}

// OwnEdge returns the two ends of edge e of the whole, and the edge's number here, by which
// [EdgeColumn.At] finds its values. own is false if another part has the edge. A part's relation
// must have Blocks. OwnEdge panics as [Graph.Edge] does.
func (g *Graph) OwnEdge(e int64) (src, dst NodeID, here int64, own bool) {
	if g.own.Whole() {
		src, dst = g.Edge(e)
		return src, dst, e, true
	}
	b := &g.blocks
	lo, hi := int64(0), int64(len(b.first)) // the last block that begins at e or before it is in [lo, hi)
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		b.section.touch(8*mid, 8*mid+8)
		if b.first[mid] <= uint64(e) {
			lo = mid
		} else {
			hi = mid
		}
	}
	if len(b.first) == 0 {
		return 0, 0, 0, false
	}
	b.section.touch(8*lo, 8*lo+8)
	from, to := g.blockEdges(lo)
	if uint64(e) < b.first[lo] || uint64(e)-b.first[lo] >= to-from {
		return 0, 0, 0, false
	}
	here = int64(from + uint64(e) - b.first[lo])
	src, row := g.Edge(here)
	return src, g.own.Node(row), here, true
}

// checkBlocks checks that the blocks follow each other among the edges of the whole.
func (g *Graph) checkBlocks() error {
	next, whole := uint64(0), g.blocks.whole
	for k, first := range g.blocks.first {
		lo, hi := g.blockEdges(int64(k))
		if edges := hi - lo; first < next || edges > whole || first > whole-edges {
			return fmt.Errorf("block %d begins with edge %d of %d, and the blocks before it end at %d", k, first, whole, next)
		}
		next = first + hi - lo
	}
	return nil
}
