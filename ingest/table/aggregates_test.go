package table

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/store"
)

const (
	visits = "edges: [{type: a:visits:b, files: e.csv, src: x, dst: y, weight: w}, {type: a:likes:a, files: e.csv, src: x, dst: y}]\n"
	typeB  = "- {type: b}\n"
)

// TestAggregateKeys: counts, sums and means become what build.Build reads.
func TestAggregateKeys(t *testing.T) {
	for keys, want := range map[string][]string{
		"counts: all":                {"count:*"},
		"counts: none":               nil,
		"counts: [visits, likes:in]": {"count:visits", "count:likes:in"},
		"sums: [visits.weight]":      {"sum:visits.weight"},
		"counts: visits, means: [a__visits__b.weight:out]": {"count:visits", "mean:a__visits__b.weight:out"},
	} {
		dir := files{"s.yaml": "reverse: yes\nnodes:\n- {type: a, files: n.csv, features: [f], " + keys + "}\n" + typeB + visits,
			"n.csv": "f\n1\n2\n", "e.csv": "x,y,w\n0,1,2\n"}.write(t)
		s, err := Open(filepath.Join(dir, "s.yaml"), Options{})
		require.NoError(t, err, keys)
		form, err := s.Schema(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, form.NodeTypes[0].Aggregates, keys)
		require.True(t, form.BackWanted)
		require.NoError(t, s.Close())
	}
}

func TestAggregateKeysRefused(t *testing.T) {
	for keys, want := range map[string]string{
		"counts: [visit]":            "line 2: counts visit: no relation visit begins or ends at node type a; there are visits, likes",
		"counts: [visits.weight]":    `line 2: counts "visits.weight": write RELATION, as in buys, or buys:in or buys:out for one direction; or all or none`,
		"counts: [visits:both]":      `line 2: counts "visits:both": write RELATION`,
		"sums: [visits]":             `line 2: sums "visits": write RELATION.COLUMN, as in buys.weight, with a column of the edges`,
		"sums: [visits.price]":       "line 2: sums visits.price: edges of relation visits have no column price; there are weight",
		"means: [likes.weight]":      "line 2: means likes.weight: edges of relation likes have no column weight; list it there under columns, or as weight",
		"counts: {visits: in}":       "line 2: the value of counts, or a list, is expected here",
		"counts: all, reverse: both": `line 2: an entry of nodes has no key "reverse"`,
	} {
		dir := files{"s.yaml": "nodes:\n- {type: a, files: n.csv, features: [f], " + keys + "}\n" + typeB + visits,
			"n.csv": "f\n1\n", "e.csv": "x,y,w\n0,0,2\n"}.write(t)
		_, err := Open(filepath.Join(dir, "s.yaml"), Options{})
		require.ErrorContains(t, err, filepath.Join(dir, "s.yaml")+": "+want, keys)
		require.NotContains(t, err.Error(), "\n")
	}
	dir := files{"s.yaml": "reverse: maybe\n" + pairs, "e.csv": "x,y\n0,0\n"}.write(t)
	_, err := Open(filepath.Join(dir, "s.yaml"), Options{})
	require.ErrorContains(t, err, `line 1: reverse "maybe": choose yes or no`)
}

// TestLikeAggregates: new tables get the columns of edges of the dataset to follow, and no others.
func TestLikeAggregates(t *testing.T) {
	make := func(keys string, l *ingest.Like) (*store.Encodings, error) {
		dir := files{"s.yaml": "nodes:\n- {type: a, files: n.csv, features: [f], " + keys + "}\n" + typeB + visits,
			"n.csv": "f\n1\n2\n", "e.csv": "x,y,w\n0,1,2\n"}.write(t)
		o := build.Options{Counts: ""}
		if l != nil {
			o.LikeAggregates = l.Aggregates
		}
		s, err := Open(filepath.Join(dir, "s.yaml"), Options{Like: l})
		if err != nil {
			return nil, err
		}
		defer s.Close()
		var from ingest.Source = s
		if l != nil {
			from = ingest.Follow(s, dir, l)
		}
		if _, err = build.Build(t.Context(), from, filepath.Join(dir, "d.gnn"), o); err != nil {
			return nil, err
		}
		d, err := store.Open(filepath.Join(dir, "d.gnn"))
		require.NoError(t, err)
		defer d.Close()
		return d.Encodings()
	}
	first, err := make("counts: [visits], sums: [visits.weight]", nil)
	require.NoError(t, err)
	l := &ingest.Like{Name: "first.gnn", Encodings: first}
	l.TakeAggregates()
	require.Equal(t, map[string][]string{"a": {"count:visits:out", "sum:visits.weight:out"}}, l.Aggregates)
	require.Len(t, l.Encodings.Tables[0].Columns, 1)
	require.Len(t, first.Tables[0].Columns, 3)
	for _, keys := range []string{"counts: none", "counts: all", "sums: [visits.weight]"} {
		again, err := make(keys, l)
		require.NoError(t, err, keys)
		require.Equal(t, first.Tables, again.Tables, keys)
	}
	_, err = make("features: [g], counts: all", l)
	require.Error(t, err)
	require.False(t, strings.Contains(err.Error(), "count:"))
}
