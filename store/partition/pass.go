package partition

import (
	"fmt"

	"github.com/gnnstore/gnnstore/store"
)

// pass writes parts lo, lo+1, … in one pass over the whole.
type pass struct {
	*writer
	lo    int
	parts []*store.Writer
}

// owner returns the owner of row v as a place in p.parts. ok is false if this pass does not write
// it.
func (p *pass) owner(o store.Owners, v uint32) (i int, ok bool) {
	i = o.Owner(v) - p.lo
	return i, i >= 0 && i < len(p.parts)
}

// stored returns how many of a whole's rows part i of p.parts has.
func (p *pass) stored(o store.Owners, rows int64, i int) int64 { return o.Count(rows, p.lo+i) }

// every is the number of nodes or rows between two reports of progress.
const every = 1 << 14

// nodes writes the original ids of each type.
func (p *pass) nodes() error {
	for t := range p.m.NodeTypes {
		node, ids, owners := &p.m.NodeTypes[t], p.ds.IDs(t), p.numbering.owners[t]
		types := make([]*store.NodeTypeWriter, len(p.parts))
		for i, part := range p.parts {
			var err error
			if types[i], err = part.NewPartOfNodes(node.Name, node.Count, p.stored(owners, node.Count, i)); err != nil {
				return err
			}
		}
		for k := range node.Count {
			v, nth := uint32(k), p.numbering.id(t, ids.Nth(int(k)))
			if i, ok := p.owner(owners, p.numbering.id(t, v)); ok { // a part's nodes are in the same order
				if err := types[i].AppendOriginal([]int64{ids.Original(v)}); err != nil {
					return err
				}
			}
			if i, ok := p.owner(owners, nth); ok {
				if err := types[i].AppendOrder([]uint32{owners.RowOf(nth)}); err != nil {
					return err
				}
			}
			if k%every == 0 {
				if err := p.progress("write ids", k, node.Count, "nodes"); err != nil {
					return err
				}
			}
		}
		for _, w := range types {
			if err := w.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// relations writes the neighbour lists and the columns of edges.
func (p *pass) relations() error {
	for r := range p.m.Relations {
		g := p.ds.Graph(r)
		src, dst := p.typeOf(g.Relation.Src), p.typeOf(g.Relation.Dst)
		owners := p.numbering.owners[dst]
		var lists sorter
		var specs []store.ColumnSpec
		var columns []*store.EdgeColumn
		for _, c := range g.Relation.Columns {
			specs = append(specs, store.ColumnSpec{Name: c.Name, Elem: c.Elem})
			columns = append(columns, g.Column(c.Name))
		}
		graphs := make([]*store.GraphWriter, len(p.parts))
		for i, part := range p.parts {
			var err error
			r := g.Relation
			graphs[i], err = part.AddRelation(r.Src, r.Name, r.Dst, r.Symmetric, specs...)
			if err != nil {
				return err
			}
			if of := g.Relation.ReverseOf; of != "" {
				graphs[i].ReverseOf(of)
			}
		}
		values, edge := make([][]byte, len(columns)), uint64(0)
		first, err := p.firstEdges(g, dst)
		if err != nil {
			return err
		}
		for n := range g.Nodes() {
			v := uint32(n)
			if i, ok := p.owner(owners, p.numbering.id(dst, v)); ok {
				if owners.BeginsBlock(owners.RowOf(p.numbering.id(dst, v))) {
					at := edge
					if first != nil {
						at = first[p.lo+i]
					}
					if err := graphs[i].AppendBlock(at); err != nil {
						return err
					}
				}
				list := g.Neighbors(v)
				for _, u := range list {
					if int(u) >= g.Sources() {
						return g.CorruptNeighbor(v, u)
					}
					if p.numbering.owners[src].Owner(p.numbering.id(src, u)) != p.lo+i {
						p.cross++
					}
				}
				p.edges += int64(len(list))
				for c := range columns {
					values[c] = columns[c].Bytes(v)
				}
				if p.numbering.ids != nil {
					list = lists.sort(p.numbering.ids[src], list, values)
				}
				if err := graphs[i].Append(list, values...); err != nil {
					return err
				}
			}
			edge += uint64(g.Degree(v))
			if n%every == 0 {
				if err := p.progress("write lists", int64(n), int64(g.Nodes()), "nodes"); err != nil {
					return err
				}
			}
		}
		for _, w := range graphs {
			if err := w.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// firstEdges returns the number of the first edge of each part, where the parts' nodes are
// renumbered and follow each other; else nil.
func (p *pass) firstEdges(g *store.Graph, dst int) ([]uint64, error) {
	if p.numbering.ids == nil {
		return nil, nil
	}
	first := make([]uint64, p.Parts+1)
	for n := range g.Nodes() {
		v := uint32(n)
		first[p.numbering.owners[dst].Owner(p.numbering.id(dst, v))+1] += uint64(g.Degree(v))
		if n%every == 0 {
			if err := p.progress("count edges", int64(n), int64(g.Nodes()), "nodes"); err != nil {
				return nil, err
			}
		}
	}
	for q := range p.Parts {
		first[q+1] += first[q]
	}
	return first, nil
}

// tables writes the rows of features, of nodes and of edges.
func (p *pass) tables() error {
	for t := range p.m.Tables {
		table, f := &p.m.Tables[t], p.ds.Features(t)
		owners, of := store.OwnersByRule(p.Parts), p.typeOf(table.NodeType)
		if of >= 0 {
			owners = p.numbering.owners[of]
		}
		tables := make([]*store.FeatureWriter, len(p.parts))
		for i, part := range p.parts {
			var err error
			if rows := p.stored(owners, int64(f.Rows()), i); table.Relation != "" {
				tables[i], err = part.AddEdgeTable(table.Name, table.Relation, table.Elem, rows, f.Dim())
			} else {
				tables[i], err = part.AddTable(table.Name, table.NodeType, table.Elem, rows, f.Dim())
			}
			if err != nil {
				return err
			}
		}
		for n := range f.Rows() {
			v, id := uint32(n), uint32(n)
			if of >= 0 {
				id = p.numbering.id(of, v)
			}
			if i, ok := p.owner(owners, id); ok {
				if err := tables[i].Put(owners.RowOf(id), f.Row(v)); err != nil {
					return err
				}
			}
			if n%every == 0 {
				if err := p.progress("write rows", int64(n), int64(f.Rows()), "rows"); err != nil {
					return err
				}
			}
		}
		for _, w := range tables {
			if err := w.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// labels copies the labels and the splits to each part, whole: a worker may get seeds that others
// own.
func (p *pass) labels() error {
	for n := range p.m.Labels {
		l := p.ds.Labels(n)
		t := p.typeOf(l.Label.NodeType)
		inverse := p.numbering.inverse(t)
		for _, part := range p.parts {
			if err := p.label(part, l, p.m.NodeTypes[t].Count, inverse); err != nil {
				return err
			}
		}
	}
	for n, s := range p.m.Splits {
		sets, t := p.ds.Split(n), p.typeOf(s.NodeType)
		for _, ids := range []*[]uint32{&sets.Train, &sets.Valid, &sets.Test} {
			for _, v := range *ids {
				if int64(v) >= p.m.NodeTypes[t].Count {
					return fmt.Errorf("%s: %w: split %s names node %d of %d; run gnnstore verify",
						p.ds.Path(), store.ErrCorrupt, s.Name, v, p.m.NodeTypes[t].Count)
				}
			}
			*ids = p.numbering.some(t, *ids)
		}
		for _, part := range p.parts {
			if err := part.AddSplit(s.Name, s.NodeType, sets.Train, sets.Valid, sets.Test); err != nil {
				return err
			}
		}
	}
	return nil
}

// label copies a target of so many nodes to a part. inverse has the nodes in the order of the
// parts, and is nil where that is their own.
func (p *pass) label(part *store.Writer, l *store.Labels, nodes int64, inverse []uint32) (err error) {
	var w *store.LabelWriter
	if l.Label.Numbers {
		w, err = part.NewNumbers(l.Label.Name, l.Label.NodeType, nodes)
	} else {
		w, err = part.NewLabels(l.Label.Name, l.Label.NodeType, nodes, l.Classes(), l.Label.Multi, l.Label.ClassNames)
	}
	if err != nil {
		return err
	}
	var numbers []float32
	var classes []int32
	for k := range uint32(nodes) {
		v := k
		if inverse != nil {
			v = inverse[k]
		}
		switch {
		case l.Label.Multi:
			err = w.AppendBits(l.Bits(v))
		case l.Label.Numbers:
			numbers = append(numbers, l.Number(v))
		default:
			classes = append(classes, l.Class(v))
		}
		if last := int64(k) == nodes-1; err == nil && (last || (k+1)%every == 0) {
			if l.Label.Numbers {
				err = w.AppendNumbers(numbers)
			} else if !l.Label.Multi {
				err = w.AppendClasses(classes)
			}
			numbers, classes = numbers[:0], classes[:0]
			if err == nil {
				err = p.progress("write labels", int64(k), nodes, "nodes")
			}
		}
		if err != nil {
			return err
		}
	}
	return w.Close(l.Classes())
}

// held copies the held-out edges to each part, whole: every worker measures all of them.
func (p *pass) held() error {
	for r := range p.m.Relations {
		of := &p.m.Relations[r]
		if of.EdgeSplit == nil {
			continue
		}
		for _, part := range p.parts {
			ids := func(t int) func(ids []store.NodeID) []store.NodeID {
				return func(ids []store.NodeID) []store.NodeID { return p.numbering.some(t, ids) }
			}
			if err := p.ds.CopyEdgeSplit(part, r, ids(p.typeOf(of.Src)), ids(p.typeOf(of.Dst))); err != nil {
				return err
			}
			if err := p.ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// encodings copies the encodings of columns to each part.
func (p *pass) encodings() error {
	e, err := p.ds.Encodings()
	if err != nil || e == nil {
		return err
	}
	for _, part := range p.parts {
		if err := part.AddEncodings(e); err != nil {
			return err
		}
	}
	return nil
}
