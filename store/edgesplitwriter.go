package store

import (
	"cmp"
	"fmt"
	"slices"
)

// EdgeSplitSpec describes an edge split, apart from its edges.
type EdgeSplitSpec struct {
	Name    string       // see [EdgeSplit]
	Columns []ColumnSpec // columns of the relation that the held-out edges of both parts have too
	// SrcNegatives and DstNegatives count, by HeldPart, the nodes that replace the source and the
	// destination of each edge in a ranking; 0 if none are given.
	SrcNegatives, DstNegatives [2]int
	Pool                       [2]bool // by HeldPart: pairs that are not edges are given
}

// EdgeSplitWriter writes the held-out edges of a relation. Calls for the two parts may alternate.
type EdgeSplitWriter struct {
	w        *Writer
	relation *Relation // has only its three names
	split    EdgeSplit
	parts    [2]heldWriter
	err      error // the first error of beginning a section
}

// heldWriter writes one part. Sections that the part lacks are nil.
type heldWriter struct {
	ends    [6]*sectionWriter // in the order of HeldOut.ends
	columns []*sectionWriter
	edges   int64
	pool    int64 // pairs
}

// NewEdgeSplit begins the edge split of a relation. The relation must be written before Close; it
// may be written already.
func (w *Writer) NewEdgeSplit(src, name, dst string, spec EdgeSplitSpec) (*EdgeSplitWriter, error) {
	if err := checkNames("relation", src, name, dst); err != nil {
		return nil, err
	}
	s := &EdgeSplitWriter{w: w, relation: &Relation{Src: src, Name: name, Dst: dst}, split: EdgeSplit{Name: toValid(spec.Name)}}
	for i, part := range s.split.parts() {
		p, out := HeldPart(i), &s.parts[i]
		if spec.SrcNegatives[p] > 0 {
			part.SrcNegatives = new(File)
		}
		if spec.DstNegatives[p] > 0 {
			part.DstNegatives = new(File)
		}
		if spec.Pool[p] {
			part.PoolSrc, part.PoolDst = new(File), new(File)
		}
		for j, e := range part.ends() {
			cols := int64(1)
			switch {
			case e.file == nil:
				continue
			case e.file == part.SrcNegatives:
				cols = int64(spec.SrcNegatives[p])
			case e.file == part.DstNegatives:
				cols = int64(spec.DstNegatives[p])
			}
			out.ends[j] = s.begin(s.relation.heldPath(p, e.name), U32, cols)
		}
		for _, c := range spec.Columns {
			column := Column{Name: c.Name, Elem: c.Elem}
			part.Columns = append(part.Columns, column)
			out.columns = append(out.columns, s.begin(s.relation.heldColumnPath(p, column), c.Elem, 1))
		}
	}
	return s, s.err
}

func (s *EdgeSplitWriter) begin(path string, e Elem, cols int64) (section *sectionWriter) {
	if s.err == nil {
		section, s.err = s.w.section(path, e, cols, cols*int64(e.Size()), 0)
	}
	return section
}

// Append writes the next edges of a part, and for each column their values as little-endian bytes.
func (s *EdgeSplitWriter) Append(p HeldPart, src, dst []NodeID, columns ...[]byte) error {
	out := &s.parts[p]
	if len(src) != len(dst) || len(columns) != len(out.columns) {
		panic("store: held-out edges with ends or columns of another number")
	}
	for i, c := range out.columns {
		if len(columns[i]) != len(src)*c.spec.Elem.Size() {
			panic("store: values of column " + s.split.Valid.Columns[i].Name + " for another number of held-out edges")
		}
		if err := c.append(columns[i]); err != nil {
			return err
		}
	}
	out.edges += int64(len(src))
	if err := out.ends[0].append(bytesOf(src)); err != nil {
		return err
	}
	return out.ends[1].append(bytesOf(dst))
}

// AppendNegatives writes the nodes that replace the sources and destinations of the next edges of a
// part, before or after the edges themselves. For each edge there are the numbers of nodes that
// NewEdgeSplit was given, one row behind the other.
func (s *EdgeSplitWriter) AppendNegatives(p HeldPart, src, dst []NodeID) error {
	return s.appendBoth(p, 2, src, dst)
}

// AppendPool writes pairs that are not edges.
func (s *EdgeSplitWriter) AppendPool(p HeldPart, src, dst []NodeID) error {
	s.parts[p].pool += int64(len(src))
	return s.appendBoth(p, 4, src, dst)
}

// appendBoth appends src and dst to sections first and first+1 of ends. For a section that the part
// lacks, the ids must be empty.
func (s *EdgeSplitWriter) appendBoth(p HeldPart, first int, src, dst []NodeID) error {
	for i, ids := range [][]NodeID{src, dst} {
		if len(ids) == 0 {
			continue
		}
		if err := s.parts[p].ends[first+i].append(bytesOf(ids)); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the split. The relation must be closed already.
func (s *EdgeSplitWriter) Close() error {
	var err, err2 error // a full disk causes many errors; the first is reported
	for i, part := range s.split.parts() {
		out := &s.parts[i]
		for j, e := range part.ends() {
			if e.file == nil {
				continue
			}
			rows := out.edges
			if e.file == part.PoolSrc || e.file == part.PoolDst {
				rows = out.pool
			}
			if have := max(out.ends[j].end, out.ends[j].next()); have != rows*out.ends[j].spec.Stride && err == nil {
				err = fmt.Errorf("%s: %d bytes written for %d rows of %d; please report it", out.ends[j].spec.Path, have, rows, out.ends[j].spec.Stride)
			}
			*e.file, err2 = out.ends[j].close(rows)
			err = cmp.Or(err, err2)
		}
		part.Edges = out.edges
		for j, c := range out.columns {
			part.Columns[j].Values, err2 = c.close(out.edges)
			err = cmp.Or(err, err2)
		}
	}
	if err != nil {
		return err
	}
	i := slices.IndexFunc(s.w.manifest.Relations, func(r Relation) bool { return r.Key() == s.relation.Key() })
	if i < 0 {
		panic("store: an edge split of a relation that is not written: " + s.relation.Key())
	}
	s.w.manifest.Relations[i].EdgeSplit = &s.split
	return nil
}

// CopyEdgeSplit writes the edge split of relation i of d to w, which must have that relation. src
// and dst return the ids that sources and destinations have there, and may return what they get.
// It is called inside [Guard].
func (d *Dataset) CopyEdgeSplit(w *Writer, i int, src, dst func(ids []NodeID) []NodeID) error {
	r := &d.manifest.Relations[i]
	spec := EdgeSplitSpec{Name: r.EdgeSplit.Name}
	for _, c := range r.EdgeSplit.Valid.Columns { // both parts have the same
		spec.Columns = append(spec.Columns, ColumnSpec{Name: c.Name, Elem: c.Elem})
	}
	for p, part := range r.EdgeSplit.parts() {
		if part.SrcNegatives != nil {
			spec.SrcNegatives[p] = int(part.SrcNegatives.Cols)
		}
		if part.DstNegatives != nil {
			spec.DstNegatives[p] = int(part.DstNegatives.Cols)
		}
		spec.Pool[p] = part.PoolSrc != nil
	}
	s, err := w.NewEdgeSplit(r.Src, r.Name, r.Dst, spec)
	if err != nil {
		return err
	}
	for p := range HeldTest + 1 {
		h, _ := d.HeldEdges(i, p)
		from, to := h.Ends()
		var columns [][]byte
		for _, c := range spec.Columns {
			columns = append(columns, h.Column(c.Name))
		}
		if err := s.Append(p, src(from), dst(to), columns...); err != nil {
			return err
		}
		for n := range h.Len() {
			if err := s.AppendNegatives(p, src(h.SrcNegatives(n)), dst(h.DstNegatives(n))); err != nil {
				return err
			}
		}
		from, to = h.Pool()
		if err := s.AppendPool(p, src(from), dst(to)); err != nil {
			return err
		}
	}
	return s.Close()
}
