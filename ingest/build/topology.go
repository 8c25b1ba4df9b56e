package build

import (
	"context"
	"errors"

	"github.com/gnnstore/gnnstore/store"
)

// writeTopology sorts the relations with sections of their own into the dataset.
func (b *builder) writeTopology(s *sizes, do func(pass)) {
	_, shared := b.sharedGroups(s)
	for i, r := range b.relations() {
		if shared[i] {
			continue
		}
		n, f := s.stored[i], b.form(i)
		size := 4*n + 8*(s.nodes[f.dst.number]+1) + 2*sectionOverhead
		for _, c := range f.columns {
			size += n*int64(c.Elem.Size()) + sectionOverhead
		}
		do(pass{name: "write " + r.Key(), total: b.edgesLeft(i), unit: "edges",
			cost: cost{items: n, seconds: workerSeconds(n, rateWrite), spillRead: n * int64(f.width), written: size},
			run:  func(ctx context.Context) error { return b.writeRelation(ctx, i) }})
	}
}

func (b *builder) writeRelation(ctx context.Context, i int) error {
	f, rel := b.form(i), &b.state.Relations[i]
	var counts *counts
	if f.merge && b.Order == OrderOriginal { // they were not counted before, for they are merged only now
		var err error
		if counts, err = b.countsOf(&f); err != nil {
			return err
		}
	}
	g, err := b.w.AddRelation(f.Src, f.Name, f.Dst, f.reverse || rel.Symmetric, f.columns...)
	if err != nil {
		return err
	}
	g.ReverseOf(rel.ReverseOf)
	lists := listWriter{g: g, nodes: uint64(f.dst.count), counts: counts}
	err = b.sortBuckets(ctx, &f, rel, func(_ int, wait turn, m *merged) error {
		columns := f.columnsOf(m)
		if err := wait(); err != nil {
			return err
		}
		return lists.append(m, columns)
	})
	if err == nil {
		err = lists.finish()
	}
	if err != nil {
		return err
	}
	if err := g.Close(); err != nil {
		return err
	}
	if f.made {
		rel.Report.Duplicates, rel.Report.ReverseAdded = 0, rel.Report.Edges // none was read
	}
	b.discard(rel.Given...)
	b.discard(rel.Reverse...)
	b.discard(rel.Stored...)
	rel.Given, rel.Reverse, rel.Stored, rel.Starts = nil, nil, nil, nil
	return nil
}

// columnsOf are the columns of edges, one value behind the other.
func (f *edgeForm) columnsOf(m *merged) [][]byte {
	if len(f.columns) == 0 {
		return nil
	}
	columns := make([][]byte, 0, len(f.columns))
	at := 16
	if f.ids {
		at = 8
	}
	for _, c := range f.columns {
		size := c.Elem.Size()
		column := make([]byte, 0, len(m.items)*size)
		for r := at; r < len(m.records); r += f.width {
			column = append(column, m.records[r:r+size]...)
		}
		columns = append(columns, column)
		at += size
	}
	return columns
}

// listWriter writes neighbour lists, which may come in pieces, in ascending order.
type listWriter struct {
	g       *store.GraphWriter
	nodes   uint64
	next    uint64 // list that has not begun
	open    uint32 // length so far of the list before it
	isOpen  bool
	lengths []uint32
	counts  *counts
}

// append takes the lists of m.
func (w *listWriter) append(m *merged, columns [][]byte) error {
	if w.counts != nil {
		at := 0
		w.counts.mu.Lock()
		for l, n := range m.lengths {
			for _, u := range m.items[at : at+int(n)] {
				if w.counts.times != nil {
					w.counts.times[u]++
				}
			}
			if w.counts.degree != nil {
				w.counts.degree[int(m.list)+l] += n
			}
			at += int(n)
		}
		w.counts.mu.Unlock()
	}
	if err := w.g.AppendNeighbors(m.items, columns...); err != nil {
		return err
	}
	lengths := m.lengths
	w.lengths = w.lengths[:0]
	if w.isOpen && uint64(m.list) == w.next-1 {
		if w.open += lengths[0]; w.open < lengths[0] {
			return errors.New("a node has more than 4294967295 in-neighbours, duplicates included; merge them with {duplicates} merge")
		}
		lengths = lengths[1:]
	}
	if len(lengths) == 0 {
		return nil
	}
	if w.isOpen {
		w.lengths = append(w.lengths, w.open)
	}
	w.lengths = append(w.lengths, lengths...)
	last := len(w.lengths) - 1
	w.open, w.isOpen = w.lengths[last], true
	w.next = uint64(m.list) + uint64(len(m.lengths))
	return w.g.AppendLengths(w.lengths[:last])
}

// finish ends the last list.
func (w *listWriter) finish() error {
	if !w.isOpen {
		return nil
	}
	return w.g.AppendLengths([]uint32{w.open})
}
