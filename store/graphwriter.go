package store

import "cmp"

// GraphWriter writes a relation node by node.
type GraphWriter struct {
	w         *Writer
	relation  Relation
	offsets   *sectionWriter
	neighbors *sectionWriter
	columns   []*sectionWriter
	blocks    *sectionWriter // nil without AppendBlock
	nodes     int64
	end       uint64 // offset behind the last node's list
}

// ColumnSpec names a value that every edge of a relation has. Elements have 1, 4 or 8 bytes, and
// are not F64. A column "id", U32 or U64, holds the edge's number as it was read: its row in the
// tables of edges.
type ColumnSpec struct {
	Name string
	Elem Elem
}

// AddRelation begins the topology of a relation and its columns.
func (w *Writer) AddRelation(src, name, dst string, symmetric bool, columns ...ColumnSpec) (_ *GraphWriter, err error) {
	g := &GraphWriter{w: w, relation: Relation{Src: src, Name: name, Dst: dst, Symmetric: symmetric}}
	if err := checkNames("relation", src, name, dst); err != nil {
		return nil, err
	}
	for _, c := range columns {
		g.relation.Columns = append(g.relation.Columns, Column{Name: c.Name, Elem: c.Elem})
	}
	if err := g.relation.checkColumns(); err != nil {
		return nil, err
	}
	begin := func(path string, e Elem) (s *sectionWriter) {
		if err == nil {
			s, err = w.section(path, e, 1, int64(e.Size()), 0)
		}
		return s
	}
	g.offsets = begin(g.relation.offsetsPath(), U64)
	g.neighbors = begin(g.relation.neighborsPath(), U32)
	for i, c := range columns {
		g.columns = append(g.columns, begin(g.relation.columnPath(i), c.Elem))
	}
	if err != nil {
		return nil, err
	}
	return g, g.offsets.append(bytesOf([]uint64{0}))
}

// ReverseOf declares that the relation has the reversed edges of the relation with this Key: see
// [Relation].
func (g *GraphWriter) ReverseOf(key string) { g.relation.ReverseOf = key }

// AppendBlock writes the number that the first edge of the next block has in the whole: see
// [Relation].Blocks.
func (g *GraphWriter) AppendBlock(edge uint64) (err error) {
	if g.blocks == nil {
		g.relation.Blocks = new(File)
		if g.blocks, err = g.w.section(g.relation.blocksPath(), U64, 1, 8, 0); err != nil {
			return err
		}
	}
	return g.blocks.append(bytesOf([]uint64{edge}))
}

// Append writes the in-neighbours of the next node, ascending, and for each column the values of
// these edges as little-endian bytes.
func (g *GraphWriter) Append(neighbors []NodeID, columns ...[]byte) error {
	if err := g.AppendNeighbors(neighbors, columns...); err != nil {
		return err
	}
	return g.AppendLengths([]uint32{uint32(len(neighbors))})
}

// AppendNeighbors writes in-neighbours of the next nodes, one list behind the other, ascending
// within each, and for each column the values of these edges as little-endian bytes. One call may
// end in the middle of a list: AppendLengths sets where lists end.
func (g *GraphWriter) AppendNeighbors(neighbors []NodeID, columns ...[]byte) error {
	if err := g.appendEdges(neighbors, columns); err != nil {
		return err
	}
	g.relation.Edges += int64(len(neighbors))
	return nil
}

// AppendLengths writes the numbers of in-neighbours of the next len(lengths) nodes, before or after
// the neighbours themselves.
func (g *GraphWriter) AppendLengths(lengths []uint32) error {
	var offsets [1024]uint64
	for len(lengths) > 0 {
		n := min(len(lengths), len(offsets))
		for i, l := range lengths[:n] {
			g.end += uint64(l)
			offsets[i] = g.end
		}
		if err := g.offsets.append(bytesOf(offsets[:n])); err != nil {
			return err
		}
		lengths = lengths[n:]
		g.nodes += int64(n)
	}
	return nil
}

func (g *GraphWriter) appendEdges(neighbors []NodeID, columns [][]byte) error {
	if len(columns) != len(g.columns) {
		panic("store: values for another number of columns than the relation has")
	}
	for i, c := range g.columns {
		if len(columns[i]) != len(neighbors)*c.spec.Elem.Size() {
			panic("store: values of column " + g.relation.Columns[i].Name + " for another number of edges")
		}
		if err := c.append(columns[i]); err != nil {
			return err
		}
	}
	return g.neighbors.append(bytesOf(neighbors))
}

// Close ends the relation.
func (g *GraphWriter) Close() error {
	if g.end != uint64(g.relation.Edges) {
		panic("store: a relation's lists do not add up to its neighbours")
	}
	var err, err2 error // a full disk causes many errors; the first is reported
	g.relation.Offsets, err = g.offsets.close(g.nodes + 1)
	g.relation.Neighbors, err2 = g.neighbors.close(g.relation.Edges)
	err = cmp.Or(err, err2)
	for i, c := range g.columns {
		g.relation.Columns[i].Values, err2 = c.close(g.relation.Edges)
		err = cmp.Or(err, err2)
	}
	if g.blocks != nil {
		*g.relation.Blocks, err2 = g.blocks.close(g.blocks.next() / 8)
		err = cmp.Or(err, err2)
	}
	if err == nil {
		g.w.manifest.Relations = append(g.w.manifest.Relations, g.relation)
	}
	return err
}
