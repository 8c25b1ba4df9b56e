package store

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// withReverse adds a relation that is the reverse of the first.
func withReverse(m *Manifest) *Relation {
	r := m.Relations[0]
	r.Name, r.ReverseOf = "back", m.Relations[0].Key()
	r.Offsets.Path, r.Neighbors.Path = r.offsetsPath(), r.neighborsPath()
	m.Relations = append(m.Relations, r)
	return &m.Relations[1]
}

func TestReverseInManifest(t *testing.T) {
	m, err := decodeManifest(sealed(t, func(m *Manifest) { withReverse(m) }))
	require.NoError(t, err)
	require.Equal(t, "node__to__node", m.Relations[1].ReverseOf)
	for _, c := range []struct {
		change func(r *Relation, m *Manifest)
		want   string
	}{
		{func(r *Relation, _ *Manifest) { r.ReverseOf = "node__on__node" }, `reverse of "node__on__node", and there is no such relation`},
		{func(r *Relation, _ *Manifest) { r.ReverseOf = r.Key() }, "it cannot be the reverse of node__back__node"},
		{func(r *Relation, _ *Manifest) { r.Edges, r.Neighbors.Rows = 1, 1 }, "relation node__back__node: 1 edges, and it cannot be the reverse of node__to__node with 2"},
		{func(_ *Relation, m *Manifest) { m.Relations[0].ReverseOf = "node__back__node" }, "it cannot be the reverse of"},
		{func(r *Relation, m *Manifest) { // between other types
			other := m.NodeTypes[0]
			other.Name = "other"
			other.Original.Path, other.Order.Path = other.originalPath(), other.orderPath()
			m.NodeTypes = append(m.NodeTypes, other)
			r.Src = "other"
			r.Offsets.Path, r.Neighbors.Path = r.offsetsPath(), r.neighborsPath()
		}, "relation other__back__node: 2 edges, and it cannot be the reverse of"},
	} {
		_, err := decodeManifest(sealed(t, func(m *Manifest) { c.change(withReverse(m), m) }))
		require.ErrorContains(t, err, c.want)
	}
}

// TestVerifyReverse finds a relation that does not reverse the other, and an id beyond the rows of
// the other's table.
func TestVerifyReverse(t *testing.T) {
	for _, c := range []struct {
		back [][]NodeID // lists of the relation "back"
		ids  []byte
		want string
	}{
		{[][]NodeID{{2}, {0, 0}, nil, {2}}, []byte{2, 0, 1, 3}, ""},
		{[][]NodeID{{2}, {0, 0}, {2}, nil}, []byte{2, 0, 1, 3}, "its edges are not those of node__to__node the other way round"},
		{[][]NodeID{{2}, {0}, {0}, {2}}, []byte{2, 0, 1, 3}, "its edges are not those of node__to__node the other way round"},
		{[][]NodeID{{2}, {0, 0}, nil, {2}}, []byte{2, 0, 1, 4}, "edge 3 has id 4, and its table has 4 rows"},
	} {
		path := filepath.Join(t.TempDir(), "x.gnn")
		w, err := Create(path, WriterOptions{})
		require.NoError(t, err)
		require.NoError(t, w.AddNodeType("node", []int64{0, 1, 2, 3}))
		add := func(name, of string, lists [][]NodeID, ids []byte) {
			g, err := w.AddRelation("node", name, "node", false, ColumnSpec{EdgeID, U32})
			require.NoError(t, err)
			g.ReverseOf(of)
			for _, list := range lists {
				var column []byte
				for range list {
					column, ids = append(column, ids[0], 0, 0, 0), ids[1:]
				}
				require.NoError(t, g.Append(list, column))
			}
			require.NoError(t, g.Close())
		}
		add("to", "", [][]NodeID{{1, 1}, nil, {0, 3}, nil}, []byte{0, 1, 2, 3})
		add("back", "node__to__node", c.back, c.ids)
		f, err := w.AddEdgeTable("feat", "node__to__node", F16, 4, 1)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		_, err = w.Seal(Manifest{Name: "test", Order: "original"})
		require.NoError(t, err)
		d, err := Open(path)
		require.NoError(t, err)
		problems, err := d.Verify(context.Background(), nil)
		require.NoError(t, err)
		if c.want == "" {
			require.Empty(t, problems)
		} else {
			require.Len(t, problems, 1)
			require.ErrorContains(t, problems[0], c.want)
		}
		require.NoError(t, d.Close())
	}
}

func TestEdgeSum(t *testing.T) {
	sum := func(edges ...[2]NodeID) (s EdgeSum) {
		for _, e := range edges {
			s.Add(e[0], e[1])
		}
		return s
	}
	ab, ba, bb := [2]NodeID{1, 2}, [2]NodeID{2, 1}, [2]NodeID{2, 2}
	require.Equal(t, sum(ab, ba, ab, bb), sum(bb, ab, ab, ba))
	for _, other := range []EdgeSum{sum(ba), sum(ab, ab), sum(bb), sum()} {
		require.NotEqual(t, sum(ab), other)
	}
	all := sum(ab)
	all.AddSum(sum(ba, bb))
	require.Equal(t, sum(ab, ba, bb), all)
}

// TestReadBack reads parts of finished relations and tables back, in any order, with padding and
// across shards.
func TestReadBack(t *testing.T) {
	const nodes, dim = 3000, 5 // rows of 10 bytes, 16 bytes apart
	w, err := Create(filepath.Join(t.TempDir(), "x.gnn"), WriterOptions{ShardBytes: 16 << 10})
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Abort()) }()
	g, err := w.AddRelation("node", "to", "node", false)
	require.NoError(t, err)
	var neighbors []NodeID
	offsets := []uint64{0}
	for v := range nodes {
		var list []NodeID
		for i := range v % 400 {
			list = append(list, NodeID(v/2+i))
		}
		neighbors = append(neighbors, list...)
		offsets = append(offsets, uint64(len(neighbors)))
		require.NoError(t, g.Append(list))
	}
	require.NoError(t, g.Close())
	f, err := w.AddTable("feat", "node", F16, nodes, dim)
	require.NoError(t, err)
	rows := make([]byte, nodes*2*dim)
	for i := range rows {
		rows[i] = byte(i * 7 >> 3)
	}
	require.NoError(t, f.PutRows(0, rows))
	require.NoError(t, f.Close())

	gotOffsets, gotNeighbors, err := w.ReadRelation("node__to__node")
	require.NoError(t, err)
	require.Equal(t, offsets, gotOffsets)
	require.Equal(t, neighbors, gotNeighbors)
	r, err := w.OpenRelation("node__to__node")
	require.NoError(t, err)
	require.EqualValues(t, len(neighbors), r.Edges())
	table := w.OpenTable("feat", "node")
	for _, part := range [][2]int{{0, 1}, {2999, 3000}, {0, 3000}, {1000, 1700}, {1023, 1025}, {5, 5}, {1, 3000}, {0, 7}} {
		lo, end := part[0], part[1]
		got := make([]uint64, end-lo+1)
		require.NoError(t, r.Offsets(int64(lo), got))
		require.Equal(t, offsets[lo:end+1], got)
		lists := make([]NodeID, got[end-lo]-got[0])
		require.NoError(t, r.Neighbors(int64(got[0]), lists))
		require.Equal(t, neighbors[got[0]:got[end-lo]], lists)
		some := make([]byte, (end-lo)*2*dim)
		require.NoError(t, table.ReadRows(int64(lo), some))
		require.Equal(t, rows[lo*2*dim:end*2*dim], some)
	}
	require.Error(t, r.Neighbors(int64(len(neighbors))+2048, make([]NodeID, 1)), "past the end")
	require.NoError(t, r.Close())
	require.NoError(t, table.Close())
	require.Panics(t, func() { _, _ = w.OpenRelation("a__b__c") })
	require.Panics(t, func() { w.OpenTable("feat", "author") })
	require.Panics(t, func() { _ = table.ReadRows(nodes, make([]byte, 2*dim)) })
	require.Panics(t, func() { _ = table.ReadRows(0, make([]byte, 1)) })
}
