package store

import (
	"cmp"
	"fmt"
	"slices"
)

// EdgeSplitSpec says what an edge split has beside the ends of its edges.
type EdgeSplitSpec struct {
	Name    string       // see [EdgeSplit]
	Columns []ColumnSpec // of both parts, each one of the relation's
	// SrcNegatives and DstNegatives are the numbers of nodes that take the place of the source and
	// of the destination of each edge, by HeldPart; 0: none are given.
	SrcNegatives, DstNegatives [2]int
	Pool                       [2]bool // pairs that are no edges are given
}

// EdgeSplitWriter writes the held-out edges of a relation, in any order of the two parts.
type EdgeSplitWriter struct {
	w        *Writer
	relation *Relation // by its names alone
	split    EdgeSplit
	parts    [2]heldWriter
	err      error // the first of a section that could not be begun
}

// heldWriter writes one part; what is not there is nil.
type heldWriter struct {
	ends    [6]*sectionWriter // as HeldOut.ends has them
	columns []*sectionWriter
	edges   int64
	pool    int64 // pairs
}

// NewEdgeSplit begins the edge split of a relation, whose topology has been written or will be
// before Close.
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

// Append writes the next edges of a part, and for each column their values, as little-endian bytes.
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

// AppendNegatives writes the nodes that take the place of the sources and destinations of the next
// edges of a part, before or after the edges themselves: rows of as many as NewEdgeSplit was told,
// one behind the other.
func (s *EdgeSplitWriter) AppendNegatives(p HeldPart, src, dst []NodeID) error {
	return s.appendBoth(p, 2, src, dst)
}

// AppendPool writes pairs that are no edges.
func (s *EdgeSplitWriter) AppendPool(p HeldPart, src, dst []NodeID) error {
	s.parts[p].pool += int64(len(src))
	return s.appendBoth(p, 4, src, dst)
}

// appendBoth appends to sections first and first+1 of ends; to one that is not there nothing can be
// appended.
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

// Close ends the split. The relation has been closed before.
func (s *EdgeSplitWriter) Close() error {
	var err, err2 error // of many that a full disk makes, the first says it
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
