package export

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/x448/float16"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// writeParquet writes the folder of tables.
func (e *exporter) writeParquet() error {
	m := e.newManifest()
	for i, n := range e.types {
		to := &m.NodeTypes[i]
		to.IDs = "id"
		e.report.NodeTypes[i].IDs = to.IDs
		if err := e.parquetNodes("nodes-"+n.typ.Name+".parquet", n, to); err != nil {
			return err
		}
		if n.ids.HasNames() {
			to.Names = "names-" + n.typ.Name + ".parquet"
			if err := e.parquetNames(to.Names, n); err != nil {
				return err
			}
		}
	}
	for i := range e.m.Relations {
		m.Relations[i].File = "edges-" + m.Relations[i].Name + ".parquet"
		if err := e.parquetEdges(i, &m.Relations[i]); err != nil {
			return err
		}
		if e.m.Relations[i].EdgeSplit != nil {
			e.skip("%s: held-out edges are not written as parquet; {format} npy and graphbolt write them", m.Relations[i].Name)
		}
	}
	for i := range e.m.Streams {
		if e.Sample > 0 {
			break // which settle says
		}
		s, err := e.parquetStream(i)
		if err != nil {
			return err
		}
		m.Streams, e.report.Streams = append(m.Streams, s), append(e.report.Streams, s.StreamReport)
	}
	return e.writeManifest(m)
}

// sheet is a parquet file whose rows are being written. Its cells are added in any order within a
// row.
type sheet struct {
	columns parquet.Group
	w       *parquet.GenericWriter[any]
	index   map[string]int // of the leaf of a column
	level   []int          // of definition, of a value that is there; by leaf
	cells   [][]parquet.Value
	rows    [1]parquet.Row
	size    int // bytes of a row, about
	group   int // bytes of a row group, which is in memory until it is whole
}

func newSheet() *sheet {
	return &sheet{columns: parquet.Group{}, index: map[string]int{}, group: blockBytes}
}

// column adds a column and gives the name that it has: its own, or one that is free.
func (s *sheet) column(name, kind string, node parquet.Node, size int) string {
	if s.columns[name] != nil {
		name += "-" + kind
	}
	s.columns[name] = node
	s.size += size
	return name
}

// A column has a page in memory.
const (
	pageBytes = 256 << 10
	leastPage = 16 << 10
)

// begin starts the file, when all columns are there.
func (s *sheet) begin(f *file, name string) {
	schema := parquet.NewSchema(name, s.columns)
	s.level, s.cells = make([]int, len(s.columns)), make([][]parquet.Value, len(s.columns))
	for c := range s.columns {
		leaf, ok := schema.Lookup(c)
		if !ok {
			leaf, _ = schema.Lookup(c, "list", "element")
		}
		s.index[c] = leaf.ColumnIndex
		s.level[leaf.ColumnIndex] = int(leaf.MaxDefinitionLevel)
	}
	s.w = parquet.NewGenericWriter[any](f.w, schema, parquet.Compression(&parquet.Snappy),
		parquet.MaxRowsPerRowGroup(int64(max(s.group/s.size, 1))), parquet.PageBufferSize(max(min(pageBytes, s.group/len(s.columns)), leastPage)))
}

// set gives a leaf its only value in this row; null is the zero Value.
func (s *sheet) set(leaf int, v parquet.Value) {
	level := s.level[leaf]
	if v.IsNull() {
		level = 0
	}
	s.cells[leaf] = append(s.cells[leaf][:0], v.Level(0, level, leaf))
}

// list begins the list of a leaf in this row, and add adds to it.
func (s *sheet) list(leaf int) { s.cells[leaf] = s.cells[leaf][:0] }

func (s *sheet) add(leaf int, v parquet.Value) {
	s.cells[leaf] = append(s.cells[leaf], v.Level(min(len(s.cells[leaf]), 1), s.level[leaf], leaf))
}

// end writes the row.
func (s *sheet) end() error {
	s.rows[0] = s.rows[0][:0]
	for _, cells := range s.cells {
		s.rows[0] = append(s.rows[0], cells...)
	}
	_, err := s.w.WriteRows(s.rows[:])
	return err
}

var (
	int64Node  = parquet.Int(64)
	classNode  = parquet.Optional(parquet.Int(32))
	numberNode = parquet.Optional(parquet.Leaf(parquet.FloatType))
	partNode   = parquet.Optional(parquet.String())
	floatsNode = parquet.List(parquet.Leaf(parquet.FloatType))
	bitsNode   = parquet.List(parquet.Int(8))
)

// parquetNodes writes a row for each node: id, a list for each table, labels, and the part of each
// split.
func (e *exporter) parquetNodes(name string, n *numbering, to *manifestType) error {
	s := newSheet()
	s.column("id", "", int64Node, 8)
	type table struct {
		rows
		column string
		bytes  []byte
	}
	var tables []*table
	block := edgeChunk
	for k, t := range e.m.Tables {
		if t.NodeType == n.typ.Name {
			f := e.ds.Features(k)
			column := s.column(t.Name, "table", floatsNode, 4*f.Dim())
			tables = append(tables, &table{rows: rows{features: f}, column: column})
			to.Tables[t.Name] = column
		}
	}
	for _, t := range tables {
		block = min(block, max(blockBytes/len(tables)/t.features.RowBytes(), 1))
	}
	var labels []*store.Labels
	for k, l := range e.m.Labels {
		if l.NodeType == n.typ.Name {
			node, size := parquet.Node(classNode), 4
			if l.Multi {
				node, size = bitsNode, 4*int(l.Classes)
			}
			if l.Numbers {
				node = parquet.Node(numberNode)
			}
			labels = append(labels, e.ds.Labels(k))
			to.Labels[l.Name] = manifestLabel{s.column(l.Name, "label", node, size), l.Classes, l.Multi, l.Numbers, l.ClassNames}
		}
	}
	type split struct {
		column string
		parts  [3][]store.NodeID
	}
	var splits []split
	for k, p := range e.m.Splits {
		if p.NodeType == n.typ.Name {
			sets := e.ds.Split(k)
			to.Splits[p.Name] = s.column(p.Name, "split", partNode, 4)
			splits = append(splits, split{to.Splits[p.Name], [3][]store.NodeID{sets.Train, sets.Valid, sets.Test}})
		}
	}
	return e.writeFile(name, func(f *file) error {
		s.begin(f, n.typ.Name)
		id := s.index["id"]
		err := n.each(block, func(first int64, nodes []store.NodeID) error {
			if err := e.progress("write nodes", first, n.count, "nodes"); err != nil {
				return err
			}
			for _, t := range tables {
				t.bytes = t.gather(len(nodes), func(i int) uint64 { return uint64(nodes[i]) })
			}
			for i, v := range nodes {
				s.set(id, parquet.Int64Value(n.ids.Original(v)))
				for _, t := range tables {
					size := t.features.RowBytes()
					s.addFloats(s.index[t.column], t.bytes[i*size:(i+1)*size], t.features.Elem())
				}
				for _, l := range labels {
					s.addLabel(s.index[to.Labels[l.Label.Name].File], l, v)
				}
				for _, p := range splits {
					s.set(s.index[p.column], parquet.Value{})
					for part, ids := range p.parts {
						if _, in := slices.BinarySearch(ids, v); in {
							s.set(s.index[p.column], parquet.ByteArrayValue([]byte(ingest.Part(part).String())))
						}
					}
				}
				if err := s.end(); err != nil {
					return err
				}
			}
			return nil
		})
		return cmp.Or(err, s.w.Close())
	})
}

func (s *sheet) addFloats(leaf int, row []byte, elem store.Elem) {
	s.list(leaf)
	for c := range len(row) / elem.Size() {
		s.add(leaf, parquet.FloatValue(floatAt(row, c, elem)))
	}
}

// floatAt is column c of a row.
func floatAt(row []byte, c int, elem store.Elem) float32 {
	if elem == store.F16 {
		return float16.Frombits(binary.LittleEndian.Uint16(row[2*c:])).Float32()
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(row[4*c:]))
}

func (s *sheet) addLabel(leaf int, l *store.Labels, v store.NodeID) {
	if l.Label.Numbers {
		if x := l.Number(v); x == x {
			s.set(leaf, parquet.FloatValue(x))
		} else {
			s.set(leaf, parquet.Value{})
		}
		return
	}
	if !l.Label.Multi {
		if class := l.Class(v); class >= 0 {
			s.set(leaf, parquet.Int32Value(class))
		} else {
			s.set(leaf, parquet.Value{})
		}
		return
	}
	s.list(leaf)
	for _, x := range l.Bits(v) {
		value := int32(x)
		if x == store.MissingBit {
			value = -1
		}
		s.add(leaf, parquet.Int32Value(value))
	}
}

// parquetNames writes the texts that nodes are called by beside their ids, in the order of the
// dataset.
func (e *exporter) parquetNames(name string, n *numbering) error {
	s := newSheet()
	s.column("id", "", int64Node, 8)
	s.column("name", "", parquet.String(), 32)
	return e.writeFile(name, func(f *file) error {
		s.begin(f, n.typ.Name)
		err := n.ids.EachName(e.ctx, func(v store.NodeID, text []byte) error {
			if n.row[v] == none {
				return nil
			}
			s.set(s.index["id"], parquet.Int64Value(n.ids.Original(v)))
			s.set(s.index["name"], parquet.ByteArrayValue(text))
			return s.end()
		})
		return cmp.Or(err, s.w.Close())
	})
}

// parquetColumn returns the Parquet type of a column of edges.
func parquetColumn(elem store.Elem) parquet.Node {
	switch elem {
	case store.U8:
		return parquet.Uint(8)
	case store.I32:
		return parquet.Int(32)
	case store.U32:
		return parquet.Uint(32)
	case store.I64:
		return parquet.Int(64)
	case store.U64:
		return parquet.Uint(64)
	}
	return parquet.Leaf(parquet.FloatType)
}

func parquetValue(b []byte, k int, elem store.Elem) parquet.Value {
	switch elem {
	case store.U8:
		return parquet.Int32Value(int32(b[k]))
	case store.I32, store.U32:
		return parquet.Int32Value(int32(binary.LittleEndian.Uint32(b[4*k:])))
	case store.I64, store.U64:
		return parquet.Int64Value(int64(binary.LittleEndian.Uint64(b[8*k:])))
	}
	return parquet.FloatValue(math.Float32frombits(binary.LittleEndian.Uint32(b[4*k:])))
}

// parquetEdges writes a row for each edge: src and dst by original ids, the columns but "id", and a
// list for each table.
func (e *exporter) parquetEdges(i int, to *manifestRelation) error {
	r := &e.m.Relations[i]
	src, dst := e.typeOf(r.Src), e.typeOf(r.Dst)
	s := newSheet()
	s.column("src", "", int64Node, 8)
	s.column("dst", "", int64Node, 8)
	columns := make([]string, len(r.Columns))
	for k, c := range r.Columns {
		if c.Name != "id" {
			columns[k] = s.column(c.Name, "column", parquetColumn(c.Elem), 8)
			to.Columns[c.Name] = columns[k]
		}
	}
	var tables []*rows
	var names []string
	for k, t := range e.m.Tables {
		if t.Relation == r.Key() {
			tables = append(tables, &rows{features: e.ds.Features(k)})
			names = append(names, s.column(t.Name, "table", floatsNode, 4*int(t.Dim)))
			to.Tables[t.Name] = names[len(names)-1]
		}
	}
	return e.writeFile(to.File, func(f *file) error {
		s.begin(f, r.Key())
		from, into, leaves := s.index["src"], s.index["dst"], make([]int, len(columns))
		for j, column := range columns {
			leaves[j] = -1
			if column != "" {
				leaves[j] = s.index[column]
			}
		}
		err := e.eachEdge(i, func(c *edges) error {
			for k := range c.src {
				s.set(from, parquet.Int64Value(src.ids.Original(c.from[k])))
				s.set(into, parquet.Int64Value(dst.ids.Original(c.to[k])))
				for j, leaf := range leaves {
					if leaf >= 0 {
						s.set(leaf, parquetValue(c.columns[j], k, r.Columns[j].Elem))
					}
				}
				for j, t := range tables {
					row := t.gather(1, func(int) uint64 { return c.ids[k] })
					s.addFloats(s.index[names[j]], row, t.features.Elem())
				}
				if err := s.end(); err != nil {
					return err
				}
			}
			return nil
		})
		return cmp.Or(err, s.w.Close())
	})
}
