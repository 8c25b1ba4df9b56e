package store

import (
	"fmt"
	"sort"
)

// Owners deals out the nodes of a type, or the rows of an edge table, among parts.
type Owners struct {
	parts int
	ends  []NodeID // each part owns a range of nodes, up to its end; nil: the rule deals them out
}

// The values of Part.Owner: [OwnersByRule] deals out nodes, or each part owns a range of the nodes
// of each type.
const (
	ByRule  = "rule"
	ByRange = "range"
)

// OwnersByRule deals out nodes among so many parts by a fixed rule. The first nodes, which are the
// hubs in many datasets, are dealt out one by one. The others are dealt out in blocks of 64, so
// that an owner's rows lie together in the file.
func OwnersByRule(parts int) Owners { return Owners{parts: parts} }

// OwnersByRange gives each part a range of nodes. ends[q] is the first node behind the range of
// part q, where the range of part q+1 begins.
func OwnersByRange(ends []NodeID) Owners { return Owners{len(ends), ends} }

// start returns the first node of a part's range.
func (o Owners) start(part int) NodeID {
	if part == 0 {
		return 0
	}
	return o.ends[part-1]
}

// singles is the number of nodes of each part that are dealt out one by one, the first ones; the
// others are dealt out in blocks of dealt nodes.
const singles, dealt = 4096, 64

// Owner returns the part that owns node v.
func (o Owners) Owner(v NodeID) int {
	if o.ends != nil {
		return sort.Search(o.parts-1, func(q int) bool { return v < o.ends[q] })
	}
	n := uint64(o.parts)
	if uint64(v) < singles*n {
		return int(uint64(v) % n)
	}
	return int(uint64(v) / dealt % n)
}

// RowOf returns the place of node v among the nodes of its owner: the number of lower nodes that it
// owns.
func (o Owners) RowOf(v NodeID) NodeID {
	if o.ends != nil {
		return v - o.start(o.Owner(v))
	}
	n := uint64(o.parts)
	if uint64(v) < singles*n {
		return NodeID(uint64(v) / n)
	}
	return NodeID(uint64(v)/(dealt*n)*dealt + uint64(v)%dealt)
}

// NodeAt is the inverse of RowOf: it returns the node at a row of a part. If the part has no such
// row, each node of the part is less than the result.
func (o Owners) NodeAt(row uint64, part int) uint64 {
	if o.ends != nil {
		return uint64(o.start(part)) + row
	}
	n, p := uint64(o.parts), uint64(part)
	if row < singles {
		return row*n + p
	}
	return (row/dealt*n+p)*dealt + row%dealt
}

// Count returns how many of nodes 0 to nodes-1 a part owns.
func (o Owners) Count(nodes int64, part int) int64 {
	if o.ends != nil {
		return max(0, min(nodes, int64(o.ends[part]))-int64(o.start(part)))
	}
	n, p := int64(o.parts), int64(part)
	if nodes <= singles*n {
		return (nodes - p + n - 1) / n
	}
	rest := nodes - singles*n
	return singles + rest/(dealt*n)*dealt + min(max(rest%(dealt*n)-p*dealt, 0), dealt)
}

// Most returns the largest Count of a part.
func (o Owners) Most(nodes int64) int64 {
	most := o.Count(nodes, 0) // by rule, no other part has more
	for q := range o.ends {
		most = max(most, o.Count(nodes, q))
	}
	return most
}

// checkEnds returns an error unless ends divides so many nodes into a range for each part.
func checkEnds(ends []NodeID, parts int, nodes int64) error {
	if len(ends) != parts {
		return fmt.Errorf("%d ends of ranges for %d parts", len(ends), parts)
	}
	last := NodeID(0)
	for q, end := range ends {
		if end < last {
			return fmt.Errorf("the range of part %d ends at %d, before it begins at %d", q, end, last)
		}
		last = end
	}
	if int64(last) != nodes {
		return fmt.Errorf("the last range ends at %d, and there are %d nodes", last, nodes)
	}
	return nil
}

// Own has the nodes of a type that one part owns, or the rows of an edge table. The zero value
// owns all: a whole does.
type Own struct {
	Owners Owners
	index  int
}

// Nodes returns what the part owns of node type t of the manifest. A nil Part is a whole.
func (p *Part) Nodes(t int) Own {
	if p == nil || p.Owner != ByRange {
		return p.TableRows()
	}
	return Own{OwnersByRange(p.Ends[t]), p.Index}
}

// TableRows returns what the part owns of the rows of edge tables, which the rule deals out. A nil
// Part is a whole.
func (p *Part) TableRows() Own {
	if p == nil {
		return Own{}
	}
	return Own{OwnersByRule(p.Parts), p.Index}
}

// Whole reports whether o owns all.
func (o Own) Whole() bool { return o.Owners.parts == 0 }

// Row returns the row of node v, and whether the part owns v; if it does not, row means nothing. In
// a whole the row is v.
func (o Own) Row(v NodeID) (row NodeID, own bool) {
	if o.Whole() {
		return v, true
	}
	if o.Owners.ends != nil {
		start := o.Owners.start(o.index)
		return v - start, v >= start && v < o.Owners.ends[o.index]
	}
	return o.Owners.RowOf(v), o.Owners.Owner(v) == o.index
}

// MustRow returns the row of node v. It panics if another part owns v, which is the caller's bug.
func (o Own) MustRow(v NodeID) NodeID {
	row, own := o.Row(v)
	if !own {
		panic(fmt.Sprintf("store: node %d is not of part %d of %d", v, o.index, o.Owners.parts))
	}
	return row
}

// Node is the inverse of Row.
func (o Own) Node(row NodeID) NodeID { return NodeID(o.NodeAt(uint64(row))) }

// NodeAt is Node. If there is no such row, each node that the part owns is less than the result.
func (o Own) NodeAt(row uint64) uint64 {
	if o.Whole() {
		return row
	}
	return o.Owners.NodeAt(row, o.index)
}

// Count returns how many of nodes 0 to nodes-1 the part owns.
func (o Own) Count(nodes int64) int64 {
	if o.Whole() {
		return nodes
	}
	return o.Owners.Count(nodes, o.index)
}
