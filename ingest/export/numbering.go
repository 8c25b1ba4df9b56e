package export

import (
	"slices"

	"github.com/gnnstore/gnnstore/store"
)

// none is the row of a node that is not written; no type has so many nodes.
const none = ^uint32(0)

// numbering gives the nodes of one type their rows.
type numbering struct {
	typ   *store.NodeType
	ids   store.IDs
	order []store.NodeID // stored ids by ascending original id; borrowed
	row   []uint32       // of a stored id
	count int64          // of rows
	dense bool           // a row is the original id
}

// number finds the rows of all nodes, or of a sample.
func (e *exporter) number() error {
	for i := range e.m.NodeTypes {
		t := &e.m.NodeTypes[i]
		n := &numbering{typ: t, ids: e.ds.IDs(i), row: make([]uint32, t.Count)}
		n.order = n.ids.Order()
		for v := range n.row {
			n.row[v] = none
		}
		e.types = append(e.types, n)
	}
	if e.Sample > 0 && e.Sample < e.nodes() {
		if err := e.burn(e.Sample); err != nil {
			return err
		}
	} else {
		for _, n := range e.types {
			clear(n.row)
		}
	}
	for _, n := range e.types {
		e.assign(n)
		report := NodeTypeReport{Name: n.typ.Name, Count: n.count, Of: n.typ.Count, IDs: "rows"}
		e.report.NodeTypes = append(e.report.NodeTypes, report)
	}
	return nil
}

// assign numbers the nodes whose row is not none, by ascending original id.
func (e *exporter) assign(n *numbering) {
	n.count, n.dense = 0, true
	for _, v := range n.order {
		if int(v) >= len(n.row) {
			panic(&store.SectionError{Dataset: e.ds.Path(), Section: n.typ.Order.Path, Offset: -1, Err: errNoNode})
		}
		if n.row[v] == none {
			continue
		}
		n.dense = n.dense && n.ids.Original(v) == n.count
		n.row[v] = uint32(n.count)
		n.count++
	}
}

// each gives the stored ids of rows first, first+1, …, a block at a time. The block is lent for the
// call.
func (n *numbering) each(block int, emit func(first int64, nodes []store.NodeID) error) error {
	nodes := make([]store.NodeID, 0, min(int64(block), n.count))
	first := int64(0)
	flush := func() error {
		err := emit(first, nodes)
		first += int64(len(nodes))
		nodes = nodes[:0]
		return err
	}
	for _, v := range n.order {
		if n.row[v] == none {
			continue
		}
		if nodes = append(nodes, v); len(nodes) == block {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	return flush()
}

// nodes returns the number of the dataset's nodes.
func (e *exporter) nodes() (n int64) {
	for _, t := range e.m.NodeTypes {
		n += t.Count
	}
	return n
}

// typeIndex returns the index of a node type that the dataset has.
func (e *exporter) typeIndex(name string) int {
	return slices.IndexFunc(e.m.NodeTypes, func(t store.NodeType) bool { return t.Name == name })
}

// typeOf returns the numbering of a node type.
func (e *exporter) typeOf(name string) *numbering { return e.types[e.typeIndex(name)] }
