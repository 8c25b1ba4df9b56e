package storetest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
)

// PartFiles returns files that deal out nodes at random, as TYPE=FILE for each node type. Each part
// has a node of the largest type.
func PartFiles(t testing.TB, ds *store.Dataset, parts int, seed uint64) (files []string) {
	t.Helper()
	rng, dir, most := rand.New(rand.NewPCG(seed, 3)), t.TempDir(), int64(0)
	for _, kind := range ds.Manifest().NodeTypes {
		most = max(most, kind.Count)
	}
	for i, kind := range ds.Manifest().NodeTypes {
		var text []byte
		for k := range kind.Count {
			q := int64(rng.IntN(parts))
			if kind.Count == most && k < int64(parts) {
				q = k
			}
			text = append(strconv.AppendInt(text, q, 10), '\n')
		}
		path := filepath.Join(dir, strconv.Itoa(i)+".part")
		require.NoError(t, os.WriteFile(path, text, 0o666))
		files = append(files, kind.Name+"="+path)
	}
	return files
}

// Join seals the whole of the parts in a directory, whose owners are ranges, and returns its path.
// It puts part behind part, and knows nothing of how nodes were renumbered. The whole has another
// seal than its parts record.
func Join(t testing.TB, dir string) string {
	t.Helper()
	count, err := store.CountParts(dir)
	require.NoError(t, err)
	var parts []*store.Dataset
	for q := range count {
		part, err := store.OpenPart(dir, q, count)
		require.NoError(t, err)
		defer part.Close()
		parts = append(parts, part)
	}
	path := filepath.Join(t.TempDir(), "joined.gnn")
	w, err := store.Create(path, store.WriterOptions{FS: NoSync})
	require.NoError(t, err)
	require.NoError(t, store.Guard(func() error { return join(w, parts) }))
	return path
}

func join(w *store.Writer, parts []*store.Dataset) (err error) {
	defer func() {
		if err != nil {
			w.Abort()
		}
	}()
	m := parts[0].Manifest()
	for i := range m.NodeTypes {
		var original []int64
		for _, part := range parts {
			for row := range part.Manifest().StoredNodes(i) {
				original = append(original, part.IDs(i).Original(store.NodeID(row)))
			}
		}
		if err := w.AddNodeType(m.NodeTypes[i].Name, original); err != nil {
			return err
		}
	}
	for i := range m.Relations {
		if err := joinRelation(w, parts, i); err != nil {
			return err
		}
	}
	for i, r := range m.Relations {
		if r.EdgeSplit == nil {
			continue
		}
		same := func(ids []store.NodeID) []store.NodeID { return ids }
		if err := parts[0].CopyEdgeSplit(w, i, same, same); err != nil {
			return err
		}
	}
	for i := range m.Tables {
		if err := joinTable(w, parts, i); err != nil {
			return err
		}
	}
	for i := range m.Labels {
		if err := copyLabels(w, parts[0], i); err != nil {
			return err
		}
	}
	for i, s := range m.Splits {
		sets := parts[0].Split(i)
		if err := w.AddSplit(s.Name, s.NodeType, sets.Train, sets.Valid, sets.Test); err != nil {
			return err
		}
	}
	if e, err := parts[0].Encodings(); err != nil || e != nil {
		if err == nil {
			err = w.AddEncodings(e)
		}
		if err != nil {
			return err
		}
	}
	_, err = w.Seal(store.Manifest{Name: m.Name, Order: m.Order, Provenance: m.Provenance})
	return err
}

func joinRelation(w *store.Writer, parts []*store.Dataset, i int) error {
	r := parts[0].Graph(i).Relation
	var columns []store.ColumnSpec
	for _, c := range r.Columns {
		columns = append(columns, store.ColumnSpec{Name: c.Name, Elem: c.Elem})
	}
	g, err := w.AddRelation(r.Src, r.Name, r.Dst, r.Symmetric, columns...)
	if err != nil {
		return err
	}
	if r.ReverseOf != "" {
		g.ReverseOf(r.ReverseOf)
	}
	for _, part := range parts {
		own := part.Graph(i)
		for v := range store.NodeID(own.Nodes()) {
			var values [][]byte
			for _, c := range columns {
				values = append(values, own.Column(c.Name).Bytes(v))
			}
			if err := g.Append(own.Neighbors(v), values...); err != nil {
				return err
			}
		}
	}
	return g.Close()
}

func joinTable(w *store.Writer, parts []*store.Dataset, i int) error {
	t := &parts[0].Manifest().Tables[i]
	add, owner, rows := w.AddEdgeTable, t.Relation, parts[0].Manifest().RowsOf(i)
	if t.NodeType != "" {
		of, _ := parts[0].NodeType(t.NodeType)
		add, owner, rows = w.AddTable, t.NodeType, of.Count
	}
	f, err := add(t.Name, owner, t.Elem, rows, int(t.Dim))
	if err != nil {
		return err
	}
	next := store.NodeID(0)
	for _, part := range parts {
		own := part.Manifest().Part.TableRows()
		for row := range store.NodeID(part.Features(i).Rows()) {
			at := next
			if t.Relation != "" {
				at = own.Node(row)
			}
			if err := f.Put(at, part.Features(i).Row(row)); err != nil {
				return err
			}
			next++
		}
	}
	return f.Close()
}

// copyLabels copies labels, which each part has whole.
func copyLabels(w *store.Writer, from *store.Dataset, i int) error {
	l := from.Labels(i)
	of, _ := from.NodeType(l.Label.NodeType)
	var classes []int32
	var numbers []float32
	var bits []uint8
	for v := range store.NodeID(of.Count) {
		switch {
		case l.Label.Multi:
			bits = append(bits, l.Bits(v)...)
		case l.Label.Numbers:
			numbers = append(numbers, l.Number(v))
		default:
			classes = append(classes, l.Class(v))
		}
	}
	switch {
	case l.Label.Multi:
		return w.AddMultiLabels(l.Label.Name, l.Label.NodeType, bits, l.Classes(), l.Label.ClassNames)
	case !l.Label.Numbers:
		return w.AddLabels(l.Label.Name, l.Label.NodeType, classes, l.Classes(), l.Label.ClassNames)
	}
	n, err := w.NewNumbers(l.Label.Name, l.Label.NodeType, of.Count)
	if err == nil {
		err = n.AppendNumbers(numbers)
	}
	if err != nil {
		return err
	}
	return n.Close(0)
}
