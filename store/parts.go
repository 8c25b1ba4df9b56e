package store

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// AddNodeType writes the id map of a node type: original[v] is the id that users know stored node v by.
func (w *Writer) AddNodeType(name string, original []int64) error {
	if err := checkNames("node type", name); err != nil {
		return err
	}
	if int64(len(original)) > math.MaxUint32 {
		return fmt.Errorf("node type %s: %d nodes; ids are 32 bits, so at most %d",
			name, len(original), uint32(math.MaxUint32))
	}
	order := make([]NodeID, len(original))
	for i := range order {
		order[i] = NodeID(i)
	}
	slices.SortFunc(order, func(a, b NodeID) int {
		switch x, y := original[a], original[b]; {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	for k := 1; k < len(order); k++ {
		if original[order[k]] == original[order[k-1]] {
			return fmt.Errorf("node type %s: original id %d is used twice", name, original[order[k]])
		}
	}
	t := NodeType{Name: name, Count: int64(len(original))}
	var err error
	if t.Original, err = packed(w, t.originalPath(), I64, t.Count, 1, original); err != nil {
		return err
	}
	if t.Order, err = packed(w, t.orderPath(), U32, t.Count, 1, order); err != nil {
		return err
	}
	w.manifest.NodeTypes = append(w.manifest.NodeTypes, t)
	return nil
}

// GraphWriter writes a relation node by node.
type GraphWriter struct {
	w         *Writer
	relation  Relation
	offsets   *sectionWriter
	neighbors *sectionWriter
	nodes     int64
}

// AddRelation begins the topology of a relation.
func (w *Writer) AddRelation(src, name, dst string, symmetric bool) (*GraphWriter, error) {
	g := &GraphWriter{w: w, relation: Relation{Src: src, Name: name, Dst: dst, Symmetric: symmetric}}
	err := checkNames("relation", src, name, dst)
	if err != nil {
		return nil, err
	}
	if g.offsets, err = w.section(g.relation.offsetsPath(), U64, 1, 8, 0); err != nil {
		return nil, err
	}
	if g.neighbors, err = w.section(g.relation.neighborsPath(), U32, 1, 4, 0); err != nil {
		return nil, err
	}
	return g, g.offsets.append(bytesOf([]uint64{0}))
}

// Append writes the in-neighbours of the next node, ascending.
func (g *GraphWriter) Append(neighbors []NodeID) error {
	if err := g.neighbors.append(bytesOf(neighbors)); err != nil {
		return err
	}
	g.relation.Edges += int64(len(neighbors))
	g.nodes++
	return g.offsets.append(bytesOf([]uint64{uint64(g.relation.Edges)}))
}

// Close ends the relation.
func (g *GraphWriter) Close() error {
	var err, err2 error
	g.relation.Offsets, err = g.offsets.close(g.nodes + 1)
	g.relation.Neighbors, err2 = g.neighbors.close(g.relation.Edges)
	if err = errors.Join(err, err2); err == nil {
		g.w.manifest.Relations = append(g.w.manifest.Relations, g.relation)
	}
	return err
}

// FeatureWriter writes the rows of a table, in any order; rows that follow each other are written together.
type FeatureWriter struct {
	table    Table
	w        *Writer
	shards   []*sectionWriter
	shard    int64 // rows a shard
	rows     int64
	rowBytes int
	padded   []byte
}

// AddTable begins a feature table of rows × dim elements, F16 or F32.
func (w *Writer) AddTable(name, nodeType string, e Elem, rows int64, dim int) (*FeatureWriter, error) {
	if e != F16 && e != F32 {
		panic("store: features are F16 or F32")
	}
	if err := checkNames("table", nodeType, name); err != nil {
		return nil, err
	}
	if dim < 1 {
		return nil, fmt.Errorf("table %s: %d columns; a table has at least one", name, dim)
	}
	stride := rowStride(int64(dim) * int64(e.Size()))
	f := &FeatureWriter{
		table: Table{Name: name, NodeType: nodeType, Elem: e, Dim: int64(dim)}, w: w, rows: rows,
		shard: max(1, w.shardBytes/stride), rowBytes: dim * e.Size(), padded: make([]byte, stride),
	}
	for first, i := int64(0), 0; first < rows || i == 0; first, i = first+f.shard, i+1 {
		s, err := w.section(f.table.shardPath(i), e, int64(dim), stride, first)
		if err != nil {
			return nil, err
		}
		f.shards = append(f.shards, s)
	}
	return f, nil
}

// Put writes row v: dim elements as little-endian bytes.
func (f *FeatureWriter) Put(v NodeID, row []byte) error {
	if int64(v) >= f.rows || len(row) != f.rowBytes {
		panic("store: Put of a row that does not belong to the table")
	}
	copy(f.padded, row)
	return f.shards[int64(v)/f.shard].put(int64(v)%f.shard*int64(len(f.padded)), f.padded)
}

// Close ends the table. Rows that were never Put are zeros.
func (f *FeatureWriter) Close() error {
	for i, s := range f.shards {
		spec, err := s.close(min(f.shard, f.rows-int64(i)*f.shard))
		if err != nil {
			return err
		}
		f.table.Shards = append(f.table.Shards, spec)
	}
	f.w.manifest.Tables = append(f.w.manifest.Tables, f.table)
	return nil
}

// AddLabels writes a single-label target: the class of each stored node, -1 where it is missing.
func (w *Writer) AddLabels(name, nodeType string, class []int32, classes int, classNames []string) error {
	for v, c := range class {
		if c < -1 || int(c) >= classes {
			return fmt.Errorf("label %s: node %d has class %d of %d", name, v, c, classes)
		}
	}
	l := Label{Name: name, NodeType: nodeType, Classes: int64(classes), ClassNames: classNames}
	return addLabel(w, l, I32, len(class), 1, class)
}

// AddMultiLabels writes a multi-label target: classes cells a node, each 0, 1 or MissingBit.
func (w *Writer) AddMultiLabels(name, nodeType string, bits []uint8, classes int, classNames []string) error {
	for i, b := range bits {
		if b > 1 && b != MissingBit {
			return fmt.Errorf("label %s: node %d, class %d: %d is neither 0, 1 nor missing", name, i/classes, i%classes, b)
		}
	}
	l := Label{Name: name, NodeType: nodeType, Classes: int64(classes), Multi: true, ClassNames: classNames}
	return addLabel(w, l, U8, len(bits)/max(1, classes), classes, bits)
}

func addLabel[T scalar](w *Writer, l Label, e Elem, rows, cols int, values []T) (err error) {
	if err := checkNames("label", l.NodeType, l.Name); err != nil {
		return err
	}
	l.ClassNames = toValidAll(l.ClassNames)
	if l.Values, err = packed(w, l.path(), e, int64(rows), int64(cols), values); err != nil {
		return err
	}
	w.manifest.Labels = append(w.manifest.Labels, l)
	return nil
}

// AddSplit writes a split of stored ids, which it sorts. The same id twice in a part is refused.
func (w *Writer) AddSplit(name, nodeType string, train, valid, test []NodeID) error {
	if err := checkNames("split", nodeType, name); err != nil {
		return err
	}
	s := Split{Name: name, NodeType: nodeType}
	for i, part := range [][]NodeID{train, valid, test} {
		path := s.partPath(i)
		ids := slices.Sorted(slices.Values(part))
		for k := 1; k < len(ids); k++ {
			if ids[k] == ids[k-1] {
				return fmt.Errorf("%s: node %d is there twice", path, ids[k])
			}
		}
		var err error
		if *s.parts()[i], err = packed(w, path, U32, int64(len(ids)), 1, ids); err != nil {
			return err
		}
	}
	w.manifest.Splits = append(w.manifest.Splits, s)
	return nil
}
