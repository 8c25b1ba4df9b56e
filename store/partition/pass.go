package partition

import (
	"github.com/gnnstore/gnnstore/store"
)

// pass writes parts lo, lo+1, … in one pass over the whole.
type pass struct {
	*writer
	lo    int
	parts []*store.Writer
}

// owner returns the owner of v as a place in p.parts. ok is false if this pass does not write it.
func (p *pass) owner(v uint32) (i int, ok bool) {
	i = p.owners.Owner(v) - p.lo
	return i, i >= 0 && i < len(p.parts)
}

// stored returns how many of a whole's rows part i of p.parts has.
func (p *pass) stored(rows int64, i int) int64 { return p.owners.Count(rows, p.lo+i) }

// every is the number of nodes or rows between two reports of progress.
const every = 1 << 14

// nodes writes the original ids of each type.
func (p *pass) nodes() error {
	for t := range p.m.NodeTypes {
		node, ids := &p.m.NodeTypes[t], p.ds.IDs(t)
		types := make([]*store.NodeTypeWriter, len(p.parts))
		for i, part := range p.parts {
			var err error
			if types[i], err = part.NewPartOfNodes(node.Name, node.Count, p.stored(node.Count, i)); err != nil {
				return err
			}
		}
		for k := range node.Count {
			v, nth := uint32(k), ids.Nth(int(k))
			if i, ok := p.owner(v); ok {
				if err := types[i].AppendOriginal([]int64{ids.Original(v)}); err != nil {
					return err
				}
			}
			if i, ok := p.owner(nth); ok {
				if err := types[i].AppendOrder([]uint32{p.owners.RowOf(nth)}); err != nil {
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
		for n := range g.Nodes() {
			v := uint32(n)
			if i, ok := p.owner(v); ok {
				if p.owners.BeginsBlock(p.owners.RowOf(v)) {
					if err := graphs[i].AppendBlock(edge); err != nil {
						return err
					}
				}
				list := g.Neighbors(v)
				for _, u := range list {
					if int(u) >= g.Sources() {
						return g.CorruptNeighbor(v, u)
					}
					if p.owners.Owner(u) != p.lo+i {
						p.cross++
					}
				}
				p.edges += int64(len(list))
				for c := range columns {
					values[c] = columns[c].Bytes(v)
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

// tables writes the rows of features, of nodes and of edges.
func (p *pass) tables() error {
	for t := range p.m.Tables {
		table, f := &p.m.Tables[t], p.ds.Features(t)
		tables := make([]*store.FeatureWriter, len(p.parts))
		for i, part := range p.parts {
			var err error
			if rows := p.stored(int64(f.Rows()), i); table.Relation != "" {
				tables[i], err = part.AddEdgeTable(table.Name, table.Relation, table.Elem, rows, f.Dim())
			} else {
				tables[i], err = part.AddTable(table.Name, table.NodeType, table.Elem, rows, f.Dim())
			}
			if err != nil {
				return err
			}
		}
		for n := range f.Rows() {
			v := uint32(n)
			if i, ok := p.owner(v); ok {
				if err := tables[i].Put(p.owners.RowOf(v), f.Row(v)); err != nil {
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

// labels copies the labels and the splits to each part, whole: a step's seeds are dealt out among
// all workers, whoever owns them.
func (p *pass) labels() error {
	for n := range p.m.Labels {
		l := p.ds.Labels(n)
		for _, part := range p.parts {
			if err := p.label(part, l, p.nodesOf(l.Label.NodeType)); err != nil {
				return err
			}
		}
	}
	for n, s := range p.m.Splits {
		sets := p.ds.Split(n)
		for _, part := range p.parts {
			if err := part.AddSplit(s.Name, s.NodeType, sets.Train, sets.Valid, sets.Test); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *pass) nodesOf(name string) int64 {
	t, _ := p.ds.NodeType(name)
	return t.Count
}

// label copies a target of so many nodes to a part.
func (p *pass) label(part *store.Writer, l *store.Labels, nodes int64) (err error) {
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
	for v := range uint32(nodes) {
		switch {
		case l.Label.Multi:
			err = w.AppendBits(l.Bits(v))
		case l.Label.Numbers:
			numbers = append(numbers, l.Number(v))
		default:
			classes = append(classes, l.Class(v))
		}
		if last := int64(v) == nodes-1; err == nil && (last || (v+1)%every == 0) {
			if l.Label.Numbers {
				err = w.AppendNumbers(numbers)
			} else if !l.Label.Multi {
				err = w.AppendClasses(classes)
			}
			numbers, classes = numbers[:0], classes[:0]
			if err == nil {
				err = p.progress("write labels", int64(v), nodes, "nodes")
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
			if err := p.ds.CopyEdgeSplit(part, r); err != nil {
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
