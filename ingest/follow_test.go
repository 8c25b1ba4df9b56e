package ingest_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/edgelist"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
	"github.com/gnnstore/gnnstore/ingest/triples"
	"github.com/gnnstore/gnnstore/store"
)

// memory is a source of two nodes, an edge, and the other sections of its schema.
type memory struct {
	ingest.Plain
	schema ingest.Schema
	labels [][]int32
	said   ingest.Description
}

func (m *memory) Schema(context.Context) (*ingest.Schema, error) { return new(m.schema), nil }

func (m *memory) Extras() ingest.Extras {
	return ingest.Extras{Describe: func() ingest.Description { return m.said }}
}

func (m *memory) Edges(_ context.Context, i int, emit func(ingest.EdgeChunk) error) error {
	return emit(ingest.EdgeChunk{Place: ingest.Place{File: "e.npy"}, Src: []int64{int64(i)}, Dst: []int64{1}})
}

func (m *memory) Rows(_ context.Context, i int, emit func(ingest.RowChunk) error) error {
	return emit(ingest.RowChunk{Place: ingest.Place{File: "x.npy"}, Values: make([]float32, 2*m.schema.Tables[i].Dim)})
}

func (m *memory) Labels(_ context.Context, i int, emit func(ingest.LabelChunk) error) error {
	return emit(ingest.LabelChunk{Place: ingest.Place{File: "y.npy"}, Values: append([]int32{}, m.labels[i]...)})
}

func (m *memory) Split(context.Context, int, ingest.Part, func(ingest.IDChunk) error) error {
	return nil
}

// graph returns a memory with tables, labels and relations of one node type.
func graph(names ...string) *memory {
	m := &memory{schema: ingest.Schema{Name: "here", Identity: "1\n", NodeTypes: []ingest.NodeType{{Name: "p", Count: 2}}}}
	for _, name := range names {
		m.schema.Relations = append(m.schema.Relations, ingest.Relation{Src: "p", Name: name, Dst: "p", Edges: 1})
	}
	return m
}

func there(relations ...string) *ingest.Like {
	l := &ingest.Like{Name: "old.gnn", Identity: "seal", Encodings: new(store.Encodings)}
	for _, name := range relations {
		l.Encodings.Relations = append(l.Encodings.Relations, store.RelationEncoding{Relation: "p__" + name + "__p"})
	}
	return l
}

// TestFollowClasses: a class gets the number of the class with its name in the other dataset,
// whether the source has names or numbers.
func TestFollowClasses(t *testing.T) {
	for _, c := range []struct {
		here, there []string
		classes     int64 // there
		values      []int32
		want        []int32
		err         string
	}{
		{here: []string{"b", "c"}, there: []string{"a", "b", "c"}, classes: 3, values: []int32{1, 0}, want: []int32{2, 1}},
		{here: []string{"a", "b", "c"}, there: []string{"c", "b", "a"}, classes: 3, values: []int32{0, -1}, want: []int32{2, -1}},
		{here: []string{"b", "d"}, there: []string{"a", "b"}, classes: 2, err: `{like} old.gnn: label y of p: "d" is none of the classes there: a, b`},
		{classes: 3, values: []int32{2, 0}, want: []int32{2, 0}},
		{classes: 3, values: []int32{0, 3}, err: "y.npy: row 1 (counting from 0): label: 3 is none of the classes of the dataset to follow, 0 to 2"},
		{here: []string{"1", "2"}, classes: 3, values: []int32{0, 1}, want: []int32{1, 2}},
		{here: []string{"1", "3"}, classes: 3, err: `"3" is none of the classes there: 0 to 2`},
		{there: []string{"1990", "2000"}, classes: 2, values: []int32{2000, 1990}, want: []int32{1, 0}},
		{there: []string{"1990", "2000"}, classes: 2, values: []int32{2000, 1}, err: `y.npy: row 1 (counting from 0): label: "1" is none of the classes of old.gnn`},
		{here: []string{"-0", "x"}, classes: 2, err: `"-0" is none`},
	} {
		m, l := graph("to"), there("to")
		m.schema.Labels, m.labels = []ingest.Label{{Name: "y", NodeType: "p", Classes: len(c.here), ClassNames: c.here}}, [][]int32{c.values}
		l.Labels = []store.LabelEncoding{{Name: "label", NodeType: "p", Classes: c.classes, ClassNames: c.there}}
		g, err := sourcetest.Read(ingest.Follow(m, "here.npz", l))
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, g.Labels[0])
		require.Equal(t, ingest.Label{Name: "label", NodeType: "p", Classes: int(c.classes), ClassNames: c.there}, g.Schema.Labels[0])
	}
}

// TestFollowLabels: labels of another kind are refused, and labels that the other dataset lacks are
// left out with a remark.
func TestFollowLabels(t *testing.T) {
	numbers := ingest.Label{Name: "y", NodeType: "p", Numbers: true}
	multi := ingest.Label{Name: "y", NodeType: "p", Multi: true, Classes: 2}
	for _, c := range []struct {
		here  ingest.Label
		there []store.LabelEncoding
		err   string
	}{
		{here: numbers, there: []store.LabelEncoding{{NodeType: "p", Numbers: true}}},
		{here: multi, there: []store.LabelEncoding{{NodeType: "p", Multi: true, Classes: 2}}},
		{here: numbers, there: []store.LabelEncoding{{NodeType: "p", Classes: 2}}, err: "label y of p has numbers, and has classes there"},
		{here: multi, there: []store.LabelEncoding{{NodeType: "p", Classes: 2}}, err: "has several classes a node, and has classes there"},
		{here: multi, there: []store.LabelEncoding{{NodeType: "p", Multi: true, Classes: 3}}, err: "has 2 classes a node, and 3 there"},
	} {
		m, l := graph("to"), there("to")
		m.schema.Labels, l.Labels = []ingest.Label{c.here}, c.there
		m.labels = [][]int32{([]int32{0, 1, 0, 1})[:2*c.here.Width()]}
		g, err := sourcetest.Read(ingest.Follow(m, "here.npz", l))
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, m.labels, g.Labels)
	}
	m, l := graph("to"), there("to")
	m.schema.Labels, m.labels = []ingest.Label{{Name: "z", NodeType: "p"}, {Name: "y", NodeType: "p"}}, [][]int32{{7, 7}, {0, 1}}
	m.said.Labels = []string{"from z", "from y"}
	l.Labels = []store.LabelEncoding{{Name: "y", NodeType: "p", Classes: 2}, {Name: "x", NodeType: "p", Classes: 2}}
	f := ingest.Follow(m, "here.npz", l)
	g, err := sourcetest.Read(f)
	require.NoError(t, err)
	require.Equal(t, [][]int32{{0, 1}}, g.Labels)
	require.Equal(t, []string{"label z of p is left out: there is none in old.gnn"}, f.Extras().Remarks())
	require.Equal(t, []string{"from y"}, f.Extras().Describe().Labels)
	l.Labels, l.LabelsErr = nil, os.ErrNotExist
	f = ingest.Follow(m, "here.npz", l)
	g, err = sourcetest.Read(f)
	require.NoError(t, err)
	require.Empty(t, g.Labels)
	require.Contains(t, f.Extras().Remarks(), "label y of p is left out: file does not exist")
}

// TestFollowRelations: relations have the numbers that they have in the other dataset.
func TestFollowRelations(t *testing.T) {
	l := there("cites", "likes", "rev_likes", "owns")
	f := ingest.Follow(graph("owns", "cites"), "here.npz", l)
	g, err := sourcetest.Read(f)
	require.NoError(t, err)
	var keys []string
	for _, r := range g.Schema.Relations {
		keys = append(keys, r.Key())
	}
	require.Equal(t, []string{"p__cites__p", "p__likes__p", "p__owns__p"}, keys, "ingest made rev_likes")
	require.Equal(t, []int64{1}, g.Edges[0].Src)
	require.Empty(t, g.Edges[1].Src)
	require.Equal(t, []int64{0}, g.Edges[2].Src)
	require.Equal(t, "1\nlike seal\n", g.Schema.Identity)
	require.Equal(t, []string{"relations without an edge here, and with some in old.gnn: likes"}, f.Extras().Remarks())
	_, err = sourcetest.Read(ingest.Follow(graph("owns", "hates"), "here.npz", l))
	require.EqualError(t, err, "{like} old.gnn: here.npz: relation hates from p to p is not there; there are cites, likes, owns; leave its edges out")

	l = there("cites", "likes")
	l.Encodings.Relations[1].Columns = []store.ColumnEncoding{{Name: "at", Elem: store.I64}}
	g, err = sourcetest.Read(ingest.Follow(graph("cites"), "here.npz", l))
	require.NoError(t, err)
	require.Equal(t, []ingest.EdgeColumn{{Name: "at", Elem: store.I64}}, g.Schema.Relations[1].Columns)
	_, err = sourcetest.Read(ingest.Follow(graph("cites", "likes"), "here.npz", l))
	require.ErrorContains(t, err, "edges of relation likes have no column at, which they have there")
	m := graph("cites", "likes")
	m.schema.Relations[1].Columns = []ingest.EdgeColumn{{Name: "at", Elem: store.F32}}
	_, err = sourcetest.Read(ingest.Follow(m, "here.npz", l))
	require.ErrorContains(t, err, "edges of relation likes have a column at of f32, and it is of i64 there")
	l.Encodings.Tables = []store.TableEncoding{{Name: "feat", Relation: "p__likes__p", Columns: store.NumberColumns([]string{"a"})}}
	_, err = sourcetest.Read(ingest.Follow(graph("cites"), "here.npz", l))
	require.ErrorContains(t, err, "there is no relation likes from p to p, which is there")
}

// TestFollowTables: a table must have the columns that it has in the other dataset, in their order.
func TestFollowTables(t *testing.T) {
	plain := func(width int64) []store.Encoding {
		return []store.Encoding{{Kind: store.VectorColumn, Width: width}}
	}
	many := func(last string) []store.Encoding {
		names := make([]string, 70_000)
		names[0] = last
		return store.NumberColumns(names)
	}
	names := func(names ...string) []store.Encoding { return store.NumberColumns(names) }
	// in gives the last of the named columns a unit.
	in := func(unit string, all ...string) []store.Encoding {
		columns := names(all...)
		columns[len(columns)-1].Unit = unit
		return columns
	}
	for _, c := range []struct {
		here, there []store.Encoding
		err, remark string
	}{
		{here: names("a", "b"), there: names("a", "b")},
		{here: plain(2), there: plain(2)},
		{here: many("x"), there: many("x")},
		{here: names("a", "b"), there: plain(2), remark: "table feat of p: its columns have names here or in old.gnn, and not in both: they are taken in their order"},
		{here: names("b", "a"), there: names("a", "b"), err: "{like} old.gnn: here.npz: table feat of p has the columns b, a, and they are a, b there; choose these, in that order"},
		{here: names("a"), there: names("a", "b"), err: "has 1 columns, a, and 2 there, a, b; choose the same columns"},
		{here: plain(3), there: names("a", "b"), err: "has 3 columns, and 2 there; choose the same columns"},
		{here: many("x"), there: many("y"), err: "has other columns than there, or in another order"},
		{here: in("m", "a", "b"), there: in("m", "a", "b")},
		{here: in("m", "a", "b"), there: names("a", "b")},
		{here: names("a", "b"), there: in("m", "a", "b")},
		{here: in("ft", "a", "b"), there: in("m", "a", "b"),
			err: "table feat of p has column b in ft, and it is in m there; convert its numbers to m, and say so in the schema"},
		{here: names("a"), err: "table feat of p is not there; leave its columns out"},
		{there: names("a", "b"), err: "there is no table feat of p with the columns a, b, which is there"},
	} {
		m, l := graph("to"), there("to")
		if width := int64(0); c.here != nil {
			for _, column := range c.here {
				width += column.Width
			}
			m.schema.Tables, m.said.Tables = []ingest.Table{{Name: "feat", NodeType: "p", Dim: int(width)}}, [][]store.Encoding{c.here}
		}
		if c.there != nil {
			l.Encodings.Tables = []store.TableEncoding{{Name: "feat", NodeType: "p", Columns: c.there}, {Name: "feat", NodeType: "q", Columns: plain(9)}}
		}
		f := ingest.Follow(m, "here.npz", l)
		_, err := sourcetest.Read(f)
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		if c.remark != "" {
			require.Equal(t, []string{c.remark}, f.Extras().Remarks())
		} else {
			require.Empty(t, f.Extras().Remarks())
		}
	}
}

// TestFollowConforms: a Source that follows a dataset keeps the contract of a Source.
func TestFollowConforms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kg.tsv")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("ann\tlikes\tbo\nbo\tcites\tann\n", ingest.ChunkRows+9)), 0o666))
	list := filepath.Join(t.TempDir(), "events.csv")
	require.NoError(t, os.WriteFile(list, []byte("src,dst,time,mood\n1,2,5,glad\n2,1,6,\n1,3,7,sad\n"), 0o666))
	l := there()
	for _, key := range []string{"entity__cites__entity", "entity__owns__entity", "entity__likes__entity"} {
		l.Encodings.Relations = append(l.Encodings.Relations, store.RelationEncoding{Relation: key})
	}
	events := there()
	events.Encodings.Streams = []store.StreamEncoding{{Stream: "events", Src: "node", Dst: "node", TimeScale: 1, Classes: 3, ClassNames: []string{"sad", "calm", "glad"}}}
	long := filepath.Join(t.TempDir(), "long.csv")
	require.NoError(t, os.WriteFile(long, []byte("src,dst,time,mood\n"+strings.Repeat("1,2,5,glad\n2,1,6,\n", ingest.ChunkRows+9)), 0o666))
	sourcetest.Conform(t,
		func() (ingest.Source, error) {
			s, err := triples.Options{}.Open(path)
			return ingest.Follow(s, path, l), err
		},
		func() (ingest.Source, error) {
			s, err := edgelist.Open(long, edgelist.Options{Events: true, EventLabel: "mood", Like: events})
			return ingest.Follow(s, long, events), err
		})
	s, err := edgelist.Open(list, edgelist.Options{Events: true, EventLabel: "mood", Like: events})
	require.NoError(t, err)
	g, err := sourcetest.Read(ingest.Follow(s, list, events))
	require.NoError(t, err)
	require.Equal(t, []uint64{2, math.MaxUint32, 0}, g.Edges[0].Values[1], "labels are numbered as in the other dataset")
	require.Equal(t, []string{"sad", "calm", "glad"}, g.Schema.Relations[0].Stream.ClassNames)
}
