package storetest

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
)

// TypedSpec describes a dataset of several node types. One type has a label and a split.
type TypedSpec struct {
	Types     []TypedNodes
	Relations []TypedRelation
	// Shared makes relations share their sections: see [store.Shared]. Then all are from one type
	// to one type, all or none have an EdgeSplit, and edges have no columns and no rows.
	Shared bool

	Target             string // the type that has the label and the split; default none
	Classes            int
	Class              func(v int) int32
	Train, Valid, Test []store.NodeID
}

// TypedNodes is a node type. If Dim is 0, it has no table.
type TypedNodes struct {
	Name       string
	Nodes, Dim int
	Elem       store.Elem // default F16
	Row        func(v int) []float32
}

// TypedRelation is a relation. Neighbors holds a list of in-neighbours for each node of type Dst,
// which are sorted on writing. Nodes beyond the lists have none.
type TypedRelation struct {
	Src, Name, Dst string
	Neighbors      [][]store.NodeID
	Weight         func(v, i int) float32 // column "weight" of v's i-th neighbour; default none
	Columns        []Column               // of edges, behind Weight
	EdgeTable      *EdgeTable             // of edges, which have a column "id" then; default none
	EdgeSplit      *EdgeSplit             // of edges that are not among Neighbors; default none
	ReverseOf      string                 // Key of the relation whose edges these are, reversed; default none
}

// BuildTyped seals s in a directory of the test and returns its path.
func BuildTyped(t testing.TB, s TypedSpec) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "typed.gnn")
	w, err := store.Create(path, store.WriterOptions{FS: NoSync})
	require.NoError(t, err)
	require.NoError(t, WriteTyped(w, s))
	return path
}

// WriteTyped writes s to w and seals it. On an error it aborts.
func WriteTyped(w *store.Writer, s TypedSpec) (err error) {
	defer func() {
		if err != nil {
			w.Abort()
		}
	}()
	nodes := map[string]int{}
	for _, t := range s.Types {
		nodes[t.Name] = t.Nodes
		original := make([]int64, t.Nodes)
		for v := range original {
			original[v] = int64(v)
		}
		if err := w.AddNodeType(t.Name, original); err != nil {
			return err
		}
	}
	if s.Shared {
		err = s.writeShared(w)
	} else {
		for _, r := range s.Relations {
			if err == nil {
				err = r.write(w, nodes[r.Dst])
			}
		}
	}
	if err != nil {
		return err
	}
	for _, t := range s.Types {
		if err := t.write(w); err != nil {
			return err
		}
	}
	if s.Target != "" {
		class := make([]int32, nodes[s.Target])
		for v := range class {
			class[v] = s.Class(v)
		}
		if err := w.AddLabels("label", s.Target, class, s.Classes, nil); err != nil {
			return err
		}
		if err := w.AddSplit("given", s.Target, s.Train, s.Valid, s.Test); err != nil {
			return err
		}
	}
	_, err = w.Seal(store.Manifest{Name: "typed", Order: "original", Provenance: store.Provenance{Tool: "storetest"}})
	return err
}

func (r *TypedRelation) write(w *store.Writer, nodes int) error {
	columns := edgeColumns(r.Weight, r.Columns)
	g, err := w.AddRelation(r.Src, r.Name, r.Dst, false, specs(columns)...)
	if err != nil {
		return err
	}
	if r.ReverseOf != "" {
		g.ReverseOf(r.ReverseOf)
	}
	for v := range nodes {
		var list []store.NodeID
		if v < len(r.Neighbors) {
			list = slices.Sorted(slices.Values(r.Neighbors[v]))
		}
		if err := g.Append(list, valuesOf(columns, v, len(list))...); err != nil {
			return err
		}
	}
	if err := g.Close(); err != nil {
		return err
	}
	if err := r.EdgeTable.write(w, r.Src+"__"+r.Name+"__"+r.Dst); err != nil {
		return err
	}
	return r.EdgeSplit.write(w, columns, r.Src, r.Name, r.Dst)
}

// writeShared writes the relations of s to shared sections.
func (s *TypedSpec) writeShared(w *store.Writer) error {
	first, split := &s.Relations[0], ""
	if first.EdgeSplit != nil {
		split = "given"
	}
	to, err := w.NewShared(first.Src, first.Dst, split != "")
	if err != nil {
		return err
	}
	for _, r := range s.Relations {
		if err := to.Begin(r.Name, false, r.ReverseOf, split); err != nil {
			return err
		}
		for v, list := range r.Neighbors {
			if len(list) == 0 {
				continue
			}
			if err := to.AppendList(store.NodeID(v), slices.Sorted(slices.Values(list))); err != nil {
				return err
			}
		}
		if split == "" {
			continue
		}
		for p, held := range []HeldEdges{r.EdgeSplit.Valid, r.EdgeSplit.Test} {
			if err := to.AppendHeld(store.HeldPart(p), held.Src, held.Dst); err != nil {
				return err
			}
		}
	}
	return to.Close()
}

func (t *TypedNodes) write(w *store.Writer) error {
	if t.Dim == 0 {
		return nil
	}
	elem := t.Elem
	if elem == 0 {
		elem = store.F16
	}
	f, err := w.AddTable("feat", t.Name, elem, int64(t.Nodes), t.Dim)
	if err != nil {
		return err
	}
	for v := range t.Nodes {
		if err := f.Put(store.NodeID(v), encode(t.Row(v), elem)); err != nil {
			return err
		}
	}
	return f.Close()
}

// Library returns a graph that a typed network can learn. Papers mostly cite papers, and have
// authors, of their own class. A venue's one column is its class. Authors have no table, and there
// are no reviewers. Shops only receive edges, so no paper can reach one. A fifth of the papers
// validates, and a fifth tests.
func Library(papers, classes int, seed uint64) TypedSpec {
	rng := rand.New(rand.NewPCG(seed, 23))
	authors, venues := papers/2, 2*classes
	alike := func(v, n int) store.NodeID { // one of n, mostly of v's class
		u := rng.IntN(n)
		if rng.Float64() < 0.8 {
			u = min(u/classes*classes+v%classes, n-1)
		}
		return store.NodeID(u)
	}
	lists := func(nodes, degree, of int) [][]store.NodeID {
		all := make([][]store.NodeID, nodes)
		for v := range all {
			for range rng.IntN(2 * degree) {
				all[v] = append(all[v], alike(v, of))
			}
		}
		return all
	}
	writes := lists(papers, 4, authors)
	written := make([][]store.NodeID, authors)
	for v, list := range writes {
		for _, u := range list {
			written[u] = append(written[u], store.NodeID(v))
		}
	}
	rows := make([][]float32, papers)
	for v := range rows {
		rows[v] = make([]float32, 16)
		for c := range rows[v] {
			rows[v][c] = float32(rng.NormFloat64())
		}
		rows[v][v%classes]++
	}
	s := TypedSpec{
		Types: []TypedNodes{
			{Name: "author", Nodes: authors},
			{Name: "paper", Nodes: papers, Dim: 16, Row: func(v int) []float32 { return rows[v] }},
			{Name: "shop", Nodes: 3, Dim: 2, Row: func(int) []float32 { return []float32{1, 2} }},
			{Name: "venue", Nodes: venues, Dim: 1, Elem: store.F32, Row: func(v int) []float32 { return []float32{float32(v % classes)} }},
			{Name: "reviewer", Nodes: 0},
		},
		Relations: []TypedRelation{
			{Src: "author", Name: "writes", Dst: "paper", Neighbors: writes},
			{Src: "paper", Name: "cites", Dst: "paper", Neighbors: lists(papers, 6, papers)},
			{Src: "paper", Name: "written_by", Dst: "author", Neighbors: written},
			{Src: "venue", Name: "prints", Dst: "paper", Neighbors: lists(papers, 1, venues)},
			{Src: "reviewer", Name: "reviews", Dst: "paper"},
			{Src: "paper", Name: "sold_by", Dst: "shop", Neighbors: lists(3, 9, papers)},
		},
		Target: "paper", Classes: classes, Class: func(v int) int32 { return int32(v % classes) },
	}
	for v := range papers {
		switch v % 5 {
		case 3:
			s.Valid = append(s.Valid, store.NodeID(v))
		case 4:
			s.Test = append(s.Test, store.NodeID(v))
		default:
			s.Train = append(s.Train, store.NodeID(v))
		}
	}
	return s
}
