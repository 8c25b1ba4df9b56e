package planetoid

import (
	"context"
	"fmt"
	"os"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/pickle"
)

const validNodes = 500 // of the public split

// Source is a graph in Planetoid's files.
type Source struct {
	ingest.Plain
	prefix  string // DIR/ind.cora
	schema  ingest.Schema
	nodes   int64
	known   int64   // nodes of allx: 0…known-1
	train   int64   // nodes of y
	test    []int64 // test.index
	class   []int32 // of all nodes
	rowOf   []int32 // row of tx of a node from known on, -1 without one
	pickles pickle.Dialect
}

var _ ingest.Source = (*Source)(nil)

// Open opens the graph of a folder, or the one of several whose prefix, "DIR/ind.cora", or file is
// named. It reads all files and checks them against each other.
//
// memory is the bytes of the whole ingest, 0 for 1 GiB. A pickle may take [pickle.Share] of it.
func Open(path string, memory int64) (*Source, error) {
	prefix, name, err := findPrefix(path)
	if err != nil {
		return nil, err
	}
	s := &Source{prefix: prefix, pickles: pickle.Dialect{Memory: memory}, schema: ingest.Schema{Name: name}}
	if s.test, err = readTestIndex(s.file("test.index")); err != nil {
		return nil, err
	}
	classes, err := s.readLabels()
	if err != nil {
		return nil, err
	}
	cols, err := s.checkFeatures()
	if err != nil {
		return nil, err
	}
	edges, largest, listed := int64(0), int64(-1), int64(0)
	err = s.eachNode(func(node int64, neighbors []any) error {
		listed++
		edges += int64(len(neighbors))
		largest = max(largest, node)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := s.number(largest, listed); err != nil {
		return nil, err
	}
	s.schema.NodeTypes = []ingest.NodeType{{Name: "node", Count: s.nodes}}
	s.schema.Relations = []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: edges}}
	s.schema.Tables = []ingest.Table{{Name: "feat", NodeType: "node", Dim: int(cols)}}
	s.schema.Labels = []ingest.Label{{Name: "label", NodeType: "node", Classes: int(classes)}}
	s.schema.Splits = []ingest.Split{{Name: "public", NodeType: "node"}}
	return s, nil
}

func (s *Source) file(suffix string) string { return s.prefix + "." + suffix }

// readLabels reads y, ally and ty. It leaves the rows of ally and then of ty in s.class; number
// puts them in the order of nodes.
func (s *Source) readLabels() (int64, error) {
	ally, classes, err := s.readClasses(s.file("ally"))
	if err != nil {
		return 0, err
	}
	y, trainClasses, err := s.readClasses(s.file("y"))
	if err != nil {
		return 0, err
	}
	ty, testClasses, err := s.readClasses(s.file("ty"))
	if err != nil {
		return 0, err
	}
	for _, c := range []struct {
		suffix  string
		classes int64
	}{{"y", trainClasses}, {"ty", testClasses}} {
		if c.classes != classes {
			return 0, fmt.Errorf("%s: %d classes, and %s has %d; fetch both again", s.file(c.suffix), c.classes, s.file("ally"), classes)
		}
	}
	if len(ty) != len(s.test) {
		return 0, fmt.Errorf("%s: %d rows, and %s lists %d nodes; fetch both again", s.file("ty"), len(ty), s.file("test.index"), len(s.test))
	}
	if len(y) > len(ally) {
		return 0, fmt.Errorf("%s: %d rows, and %s, which starts with them, has %d; fetch both again", s.file("y"), len(y), s.file("ally"), len(ally))
	}
	for i, class := range y {
		if class != ally[i] {
			return 0, fmt.Errorf("%s: row %d (counting from 0) has class %d, and in %s it has %d; fetch both again", s.file("y"), i, class, s.file("ally"), ally[i])
		}
	}
	s.known, s.train = int64(len(ally)), int64(len(y))
	s.class = append(ally, ty...)
	return classes, nil
}

// checkFeatures checks the sizes of the three matrices against the labels.
func (s *Source) checkFeatures() (cols int64, err error) {
	for _, c := range []struct {
		suffix, labels string
		rows           int64
	}{{"allx", "ally", s.known}, {"tx", "ty", int64(len(s.test))}, {"x", "y", s.train}} {
		m, err := s.readCSR(s.file(c.suffix))
		if err != nil {
			return 0, err
		}
		if m.rows != c.rows {
			return 0, fmt.Errorf("%s: %d rows, and %s has %d; fetch both again", s.file(c.suffix), m.rows, s.file(c.labels), c.rows)
		}
		if cols == 0 {
			cols = m.cols
		}
		if m.cols != cols {
			return 0, fmt.Errorf("%s: %d columns, and %s has %d; fetch both again", s.file(c.suffix), m.cols, s.file("allx"), cols)
		}
	}
	return cols, nil
}

// number counts the nodes and finds the row of each: first the nodes of allx, then the nodes of
// test.index, then nodes without a row.
func (s *Source) number(largest, listed int64) error {
	rows := s.known + int64(len(s.test))
	if rows == 0 {
		return fmt.Errorf("%s: there are no nodes", s.file("allx"))
	}
	// Some nodes have no row. If most have none, an id is wrong.
	most := 2*rows + listed
	if largest >= most {
		return fmt.Errorf("%s: node %d, and there are %d rows of features; fetch both again", s.file("graph"), largest, rows)
	}
	s.nodes = max(largest+1, s.known)
	for i, v := range s.test {
		if v < s.known || v >= most {
			return fmt.Errorf("%s: row %d (counting from 0): node %d, and test nodes follow the %d of %s; fetch both again",
				s.file("test.index"), i, v, s.known, s.file("allx"))
		}
		s.nodes = max(s.nodes, v+1)
	}
	s.rowOf = make([]int32, s.nodes-s.known)
	class := make([]int32, s.nodes)
	copy(class, s.class[:s.known])
	for i := range s.rowOf {
		s.rowOf[i], class[s.known+int64(i)] = -1, -1
	}
	for i, v := range s.test {
		if s.rowOf[v-s.known] >= 0 {
			return fmt.Errorf("%s: row %d (counting from 0): node %d is already that of row %d", s.file("test.index"), i, v, s.rowOf[v-s.known])
		}
		s.rowOf[v-s.known], class[v] = int32(i), s.class[s.known+int64(i)]
	}
	s.class = class
	if without := s.nodes - rows; without > 0 {
		s.schema.Skipped = append(s.schema.Skipped,
			fmt.Sprintf("test.index: it skips %d nodes, which have no label and features of zeros", without))
	}
	return nil
}

// eachNode reads the graph: visit gets each node and its neighbours, which are integers from 0 on.
func (s *Source) eachNode(visit func(node int64, neighbors []any) error) error {
	path := s.file("graph")
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	v, err := s.pickles.ReadFile(path)
	if err != nil {
		return err
	}
	graph, ok := v.(*pickle.Dict)
	if !ok {
		return fmt.Errorf("%s: it holds %s, and a dict of lists is expected", path, pickle.Kind(v))
	}
	seen, left := make(map[int64]bool, len(graph.Keys)), info.Size()
	for i, key := range graph.Keys {
		node, ok := key.(int64)
		if !ok || node < 0 {
			return fmt.Errorf("%s: item %d (counting from 0) is of %s, and nodes are integers from 0", path, i, pickle.Kind(key))
		}
		if seen[node] {
			return fmt.Errorf("%s: node %d has two lists of neighbours", path, node)
		}
		seen[node] = true
		list, ok := graph.Values[i].(*pickle.List)
		if !ok {
			return fmt.Errorf("%s: node %d has %s, and a list of neighbours is expected", path, node, pickle.Kind(graph.Values[i]))
		}
		if left -= int64(len(list.Items)); left < 0 { // a neighbour takes two bytes, unless lists are shared
			return fmt.Errorf("%s: more neighbours than the file has bytes; this file is refused", path)
		}
		for k, neighbor := range list.Items {
			if u, ok := neighbor.(int64); !ok || u < 0 {
				return fmt.Errorf("%s: node %d: neighbour %d (counting from 0) is %v, and nodes are integers from 0", path, node, k, describe(neighbor))
			}
		}
		if err := visit(node, list.Items); err != nil {
			return err
		}
	}
	return nil
}

func describe(v any) string {
	if n, ok := v.(int64); ok {
		return fmt.Sprint(n)
	}
	return pickle.Kind(v)
}

// Schema returns the schema that Open made.
func (s *Source) Schema(context.Context) (*ingest.Schema, error) { return new(s.schema), nil }

// Edges streams the neighbour lists in the order of the dict.
func (s *Source) Edges(ctx context.Context, relation int, emit func(ingest.EdgeChunk) error) error {
	if relation != 0 {
		panic("planetoid: no such relation")
	}
	out := ingest.Chunks(ctx, emit)
	c := &out.Chunk
	c.File = s.file("graph")
	return out.End(s.eachNode(func(node int64, neighbors []any) error {
		for _, u := range neighbors {
			c.Src, c.Dst = append(c.Src, node), append(c.Dst, u.(int64))
			if err := out.Added(); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Rows streams allx, then the rows of tx where test.index puts them.
func (s *Source) Rows(ctx context.Context, table int, emit func(ingest.RowChunk) error) error {
	if table != 0 {
		panic("planetoid: no such table")
	}
	allx, err := s.readCSR(s.file("allx"))
	if err != nil {
		return err
	}
	tx, err := s.readCSR(s.file("tx"))
	if err != nil {
		return err
	}
	cols := int64(s.schema.Tables[0].Dim)
	if allx.rows != s.known || tx.rows != int64(len(s.test)) || allx.cols != cols || tx.cols != cols {
		return fmt.Errorf("%s: it or %s changed while it was read", s.file("allx"), s.file("tx"))
	}
	chunkRows := min(s.nodes, max(ingest.ChunkBytes/4/cols, 1))
	chunk := make([]float32, chunkRows*cols)
	for first, n := int64(0), int64(0); first < s.nodes; first += n {
		if err := ctx.Err(); err != nil {
			return err
		}
		place, end := ingest.Place{File: s.file("allx"), First: first}, s.known
		if first >= s.known {
			place.File, end = s.file("tx"), s.nodes
		}
		n = min(chunkRows, end-first)
		values := chunk[:n*cols]
		clear(values)
		for v := first; v < first+n; v++ {
			row := values[(v-first)*cols : (v-first+1)*cols]
			if v < s.known {
				allx.addRow(row, v)
			} else if i := s.rowOf[v-s.known]; i >= 0 {
				tx.addRow(row, int64(i))
			}
		}
		if err := emit(ingest.RowChunk{Place: place, Values: values}); err != nil {
			return err
		}
	}
	return nil
}

// Labels gives the classes.
func (s *Source) Labels(ctx context.Context, label int, emit func(ingest.LabelChunk) error) error {
	if label != 0 {
		panic("planetoid: no such label")
	}
	return ingest.Parts(ctx, s.file("ally"), s.class, func(place ingest.Place, classes []int32) error {
		return emit(ingest.LabelChunk{Place: place, Values: classes})
	})
}

// Split gives a part of the public split.
func (s *Source) Split(ctx context.Context, split int, part ingest.Part, emit func(ingest.IDChunk) error) error {
	if split != 0 {
		panic("planetoid: no such split")
	}
	file, ids := s.file("test.index"), s.test
	if part != ingest.Test {
		file, ids = s.file("y"), nil
		from, to := int64(0), s.train
		if part == ingest.Valid {
			from, to = s.train, min(s.train+validNodes, s.known)
		}
		for v := from; v < to; v++ {
			ids = append(ids, v)
		}
	}
	return ingest.Parts(ctx, file, ids, func(place ingest.Place, ids []int64) error {
		return emit(ingest.IDChunk{Place: place, IDs: ids})
	})
}
