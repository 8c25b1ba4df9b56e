// Package storetest makes tiny sealed datasets for the tests of other packages. Start at [Build].
package storetest

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/gnnstore/gnnstore/store"
)

// Spec describes a homogeneous dataset of node type "node" and relation "to". The zero value of
// every field works.
type Spec struct {
	Nodes      int
	Neighbors  [][]store.NodeID // in-neighbours, sorted on writing; nil: none
	Dim        int              // default 4
	Elem       store.Elem       // default F16
	Row        func(v int) []float32
	Classes    int // default 2
	Class      func(v int) int32
	Bits       func(v int) []uint8 // v's cells, one for each class; makes the label multi-label
	Train      []store.NodeID
	Valid      []store.NodeID
	Test       []store.NodeID
	OtherSplit string                 // a second split, Valid and Test swapped; default none
	Original   func(v int) int64      // default v
	Name       func(v int) string     // the text that v is known by; default none
	Weight     func(v, i int) float32 // column "weight" of v's i-th neighbour; default none
	Columns    []Column               // of edges, behind Weight
	Number     func(v int) float32    // of v, NaN if missing, instead of a class; default none
	EdgeTable  *EdgeTable             // of edges, which have a column "id" then; default none
	EdgeSplit  *EdgeSplit             // of edges that are not among Neighbors; default none
	Symmetric  bool                   // declares Neighbors symmetric
	Unlabelled bool                   // no label and no split
	ShardBytes int64
}

// EdgeSplit holds edges out of a relation. Its name is "given".
type EdgeSplit struct{ Valid, Test HeldEdges }

// HeldEdges are one part of an EdgeSplit. A nil field is absent. All rows of negatives have one
// length.
type HeldEdges struct {
	Src, Dst                   []store.NodeID
	SrcNegatives, DstNegatives [][]store.NodeID // for each edge
	PoolSrc, PoolDst           []store.NodeID
	Values                     [][]float64 // for each column of the relation, of each edge; in both parts or in neither
}

// write writes s as the edge split of a relation that is written already. A nil s does nothing.
func (s *EdgeSplit) write(w *store.Writer, columns []Column, src, name, dst string) error {
	if s == nil {
		return nil
	}
	spec, parts := store.EdgeSplitSpec{Name: "given"}, [2]*HeldEdges{&s.Valid, &s.Test}
	for p, part := range parts {
		if len(part.SrcNegatives) > 0 {
			spec.SrcNegatives[p] = len(part.SrcNegatives[0])
		}
		if len(part.DstNegatives) > 0 {
			spec.DstNegatives[p] = len(part.DstNegatives[0])
		}
		spec.Pool[p] = part.PoolSrc != nil
		if part.Values != nil {
			spec.Columns = specs(columns)
		}
	}
	e, err := w.NewEdgeSplit(src, name, dst, spec)
	if err != nil {
		return err
	}
	for i, part := range parts {
		p := store.HeldPart(i)
		var own []Column
		for j, values := range part.Values {
			own = append(own, Column{Elem: columns[j].Elem, Value: func(_, i int) float64 { return values[i] }})
		}
		if err == nil {
			err = e.Append(p, part.Src, part.Dst, valuesOf(own, 0, len(part.Src))...)
		}
		if err == nil {
			err = e.AppendNegatives(p, slices.Concat(part.SrcNegatives...), slices.Concat(part.DstNegatives...))
		}
		if err == nil {
			err = e.AppendPool(p, part.PoolSrc, part.PoolDst)
		}
	}
	if err != nil {
		return err
	}
	return e.Close()
}

// EdgeTable is the table "edge_feat" of a relation's edges. An edge's "id" is its row.
type EdgeTable struct {
	Rows, Dim int
	Elem      store.Elem // default F32
	Row       func(i int) []float32
}

// write writes t as a table of a relation that is written already. A nil t does nothing.
func (t *EdgeTable) write(w *store.Writer, relation string) error {
	if t == nil {
		return nil
	}
	elem := cmp.Or(t.Elem, store.F32)
	f, err := w.AddEdgeTable("edge_feat", relation, elem, int64(t.Rows), t.Dim)
	if err != nil {
		return err
	}
	for i := range t.Rows {
		if err := f.PutRowsAt(int64(i), encode(t.Row(i), elem)); err != nil {
			return err
		}
	}
	return f.Close()
}

// Column is a value of each edge.
type Column struct {
	Name string
	Elem store.Elem // of 1, 4 or 8 bytes
	// Value returns the value of v's i-th neighbour: an integer, unless Elem is F32.
	Value func(v, i int) float64
}

// edgeColumns returns the column "weight", unless weight is nil, followed by more.
func edgeColumns(weight func(v, i int) float32, more []Column) (all []Column) {
	if weight != nil {
		all = append(all, Column{"weight", store.F32, func(v, i int) float64 { return float64(weight(v, i)) }})
	}
	return append(all, more...)
}

func specs(columns []Column) (all []store.ColumnSpec) {
	for _, c := range columns {
		all = append(all, store.ColumnSpec{Name: c.Name, Elem: c.Elem})
	}
	return all
}

// valuesOf returns the encoded values of v's edges, column by column.
func valuesOf(columns []Column, v, edges int) (all [][]byte) {
	for _, c := range columns {
		var b []byte
		for i := range edges {
			switch x := c.Value(v, i); {
			case c.Elem == store.F32:
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
			case c.Elem.Size() == 1:
				b = append(b, byte(int64(x)))
			case c.Elem.Size() == 4:
				b = binary.LittleEndian.AppendUint32(b, uint32(int64(x)))
			default:
				b = binary.LittleEndian.AppendUint64(b, uint64(int64(x)))
			}
		}
		all = append(all, b)
	}
	return all
}

// Build seals s in a directory of the test and returns its path.
func Build(t testing.TB, s Spec) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.gnn")
	w, err := store.Create(path, store.WriterOptions{FS: NoSync, ShardBytes: s.ShardBytes})
	require.NoError(t, err)
	_, err = Write(w, s)
	require.NoError(t, err)
	return path
}

// Write writes s to w and seals it. On an error it aborts.
func Write(w *store.Writer, s Spec) (_ *store.Manifest, err error) {
	defer func() {
		if err != nil {
			w.Abort()
		}
	}()
	if s.Dim == 0 {
		s.Dim = 4
	}
	if s.Elem == 0 {
		s.Elem = store.F16
	}
	if s.Classes == 0 {
		s.Classes = 2
	}
	original := make([]int64, s.Nodes)
	class := make([]int32, s.Nodes)
	for v := range s.Nodes {
		original[v] = int64(v)
		if s.Original != nil {
			original[v] = s.Original(v)
		}
		class[v] = int32(v % s.Classes)
		if s.Class != nil {
			class[v] = s.Class(v)
		}
	}
	if err := s.addNodes(w, original); err != nil {
		return nil, err
	}
	columns := edgeColumns(s.Weight, s.Columns)
	g, err := w.AddRelation("node", "to", "node", s.Symmetric, specs(columns)...)
	if err != nil {
		return nil, err
	}
	for v := range s.Nodes {
		var list []store.NodeID
		if v < len(s.Neighbors) {
			list = slices.Sorted(slices.Values(s.Neighbors[v]))
		}
		if err := g.Append(list, valuesOf(columns, v, len(list))...); err != nil {
			return nil, err
		}
	}
	if err := g.Close(); err != nil {
		return nil, err
	}
	if err := s.EdgeTable.write(w, "node__to__node"); err != nil {
		return nil, err
	}
	if err := s.EdgeSplit.write(w, columns, "node", "to", "node"); err != nil {
		return nil, err
	}
	f, err := w.AddTable("feat", "node", s.Elem, int64(s.Nodes), s.Dim)
	if err != nil {
		return nil, err
	}
	for v := range s.Nodes {
		row := make([]float32, s.Dim)
		for c := range row {
			row[c] = float32(v%1000) + float32(c)/16
		}
		if s.Row != nil {
			row = s.Row(v)
		}
		if err := f.Put(store.NodeID(v), encode(row, s.Elem)); err != nil {
			return nil, err
		}
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	if !s.Unlabelled {
		if err := s.addLabels(w, class); err != nil {
			return nil, err
		}
		if err := w.AddSplit("given", "node", s.Train, s.Valid, s.Test); err != nil {
			return nil, err
		}
		if s.OtherSplit != "" {
			if err := w.AddSplit(s.OtherSplit, "node", s.Train, s.Test, s.Valid); err != nil {
				return nil, err
			}
		}
	}
	return w.Seal(store.Manifest{Name: "test", Order: "original", Provenance: store.Provenance{Tool: "storetest"}})
}

func (s *Spec) addNodes(w *store.Writer, original []int64) error {
	if s.Name == nil {
		return w.AddNodeType("node", original)
	}
	n, err := w.NewNodeType("node", int64(len(original)))
	if err != nil {
		return err
	}
	by := func(less func(a, b store.NodeID) int) []store.NodeID {
		order := make([]store.NodeID, len(original))
		for v := range order {
			order[v] = store.NodeID(v)
		}
		slices.SortFunc(order, less)
		return order
	}
	err = n.AppendOriginal(original)
	if err == nil {
		err = n.AppendOrder(by(func(a, b store.NodeID) int { return cmp.Compare(original[a], original[b]) }))
	}
	for v := range original {
		if err == nil {
			err = n.AppendText([]byte(s.Name(v)))
		}
	}
	for _, v := range by(func(a, b store.NodeID) int { return cmp.Compare(s.Name(int(a)), s.Name(int(b))) }) {
		if err == nil {
			err = n.AppendName([]byte(s.Name(int(v))), v)
		}
	}
	if err != nil {
		return err
	}
	return n.Close()
}

func (s *Spec) addLabels(w *store.Writer, class []int32) error {
	if s.Number != nil {
		l, err := w.NewNumbers("label", "node", int64(s.Nodes))
		if err != nil {
			return err
		}
		numbers := make([]float32, s.Nodes)
		for v := range numbers {
			numbers[v] = s.Number(v)
		}
		if err := l.AppendNumbers(numbers); err != nil {
			return err
		}
		return l.Close(0)
	}
	if s.Bits == nil {
		return w.AddLabels("label", "node", class, s.Classes, nil)
	}
	var bits []uint8
	for v := range s.Nodes {
		bits = append(bits, s.Bits(v)...)
	}
	return w.AddMultiLabels("label", "node", bits, s.Classes, nil)
}

func encode(row []float32, e store.Elem) []byte {
	var b []byte
	for _, x := range row {
		if e == store.F16 {
			b = binary.LittleEndian.AppendUint16(b, float16.Fromfloat32(x).Bits())
		} else {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return b
}

// Communities returns a graph that a GNN can learn. Classes are communities, and most edges stay
// inside one. A row is noise plus 1 in the column of its class. A tenth of the nodes validates, a
// tenth tests, and the rest trains.
func Communities(nodes, classes, degree, dim int, seed uint64) Spec {
	rng := rand.New(rand.NewPCG(seed, 17))
	s := Spec{Nodes: nodes, Classes: classes, Dim: dim, Class: func(v int) int32 { return int32(v % classes) }}
	rows := make([][]float32, nodes)
	s.Neighbors = make([][]store.NodeID, nodes)
	for v := range nodes {
		for range degree {
			u := rng.IntN(nodes)
			if rng.Float64() < 0.8 { // homophily
				u = u/classes*classes + v%classes
			}
			s.Neighbors[v] = append(s.Neighbors[v], store.NodeID(min(u, nodes-1)))
		}
		rows[v] = make([]float32, dim)
		for c := range rows[v] {
			rows[v][c] = float32(rng.NormFloat64())
		}
		rows[v][v%classes%dim]++
		switch v % 10 {
		case 8:
			s.Valid = append(s.Valid, store.NodeID(v))
		case 9:
			s.Test = append(s.Test, store.NodeID(v))
		default:
			s.Train = append(s.Train, store.NodeID(v))
		}
	}
	s.Row = func(v int) []float32 { return rows[v] }
	return s
}
