package edgelist

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
	"github.com/gnnstore/gnnstore/store"
)

// TestMultiLabel reads labels from a column of lists and from columns of zeros and ones.
func TestMultiLabel(t *testing.T) {
	topics := func(cells ...string) files { return withColumns("topics", cells...) }
	bits := func(rows ...string) files { return withColumns("war,love,spy", rows...) }
	for _, c := range []struct {
		f     files
		o     Options
		multi bool
		names []string
		want  []int32
	}{
		{topics("war|spy", "love", "", "spy"), Options{Label: "topics", MultiLabel: true}, true,
			[]string{"love", "spy", "war"}, []int32{0, 1, 1, 1, 0, 0, -1, -1, -1, 0, 1, 0}},
		{topics("war|spy", "spy", "unknown", "war"), Options{Label: "topics", MultiLabel: true, MissingWords: []string{"unknown"}}, true,
			[]string{"spy", "war"}, []int32{1, 1, 1, 0, -1, -1, 0, 1}},
		{topics(`"[1, 3]"`, "[]", "[3]", "3"), Options{Label: "topics", MultiLabel: true}, true,
			[]string{"1", "3"}, []int32{1, 1, 0, 0, 0, 1, 0, 1}},
		{topics("war|spy", "war", "spy", "war"), Options{Label: "topics", OneLabel: true}, false,
			[]string{"spy", "war", "war|spy"}, []int32{2, 1, 0, 1}},
		{bits("1,0,1", "0,0,0", "0,1,0", ",,"), Options{Label: "war,love,spy"}, true,
			[]string{"war", "love", "spy"}, []int32{1, 0, 1, 0, 0, 0, 0, 1, 0, -1, -1, -1}},
		{bits("1,0,0", "0,0,1", ",,", "0,1,0"), Options{Label: "war,love,spy"}, false,
			[]string{"war", "love", "spy"}, []int32{0, 2, -1, 1}},
		{bits("1,0,0", "0,0,1", ",,", "0,1,0"), Options{Label: "war, love, 5", MultiLabel: true}, true,
			[]string{"war", "love", "spy"}, []int32{1, 0, 0, 0, 0, 1, -1, -1, -1, 0, 1, 0}},
		{bits("True,0,", "0,0,1", "0,0,0", "0,1,0"), Options{Label: "war,spy"}, true,
			[]string{"war", "spy"}, []int32{1, -1, 0, 1, 0, 0, 0, 0}},
	} {
		c.o.Nodes = "n.csv"
		g, err := read(c.f.write(t), c.o)
		require.NoError(t, err, c.f)
		require.Equal(t, []ingest.Label{{Name: "label", NodeType: "node", Multi: c.multi, Classes: len(c.names), ClassNames: c.names}}, g.Schema.Labels)
		require.Equal(t, c.want, g.Labels[0], c.f)
		want := 1
		if c.o.Label == "war,spy" {
			want = 2 // love is left, and a feature
		}
		require.Equal(t, want, g.Schema.Tables[0].Dim, "labels are no features")
	}
}

// TestMultiLabelRefused asks about lists, and refuses what are none.
func TestMultiLabelRefused(t *testing.T) {
	var question *ingest.Question
	for _, cells := range [][]string{{"a", "b", "a|b", "a"}, {"a", "b", `"a, b"`, ""}, {"a", "b", "b;a", "a"}, {"a|b", "b", "a|c", "b"}} {
		_, err := read(withColumns("l", cells...).write(t), Options{Nodes: "n.csv", Label: "l"})
		require.True(t, errors.As(err, &question), err)
		require.ErrorContains(t, err, `several labels of one node? {multi_label} reads each as a class, and {multi_label}=false makes a class of each text`)
	}
	for _, c := range []struct {
		cells []string
		o     Options
		want  string
	}{
		{[]string{"1", "2", "1", "2"}, Options{Label: "a,none", MultiLabel: true}, "{label} none: there is no such column"},
		{[]string{"1", "2", "1", "2"}, Options{Label: "l,l"}, "{label} l,l: column l is named twice"},
		{[]string{"1", "2", "1", "2"}, Options{Label: "l,id"}, "column id holds both ids and labels; choose others with {id} and {label}"},
		{[]string{"1", "0", "2", "0"}, Options{Label: "f,l"}, `line 2, column 2: "0.5" is neither 0 nor 1; mend it, or choose other columns with {label}`},
		{[]string{"1.5", "2.5", "1", "2"}, Options{Label: "l:value", MultiLabel: true}, "{label} l:value: a node has several classes or a number; leave {multi_label} or :value out"},
		{[]string{"1.5", "2.5", "1", "2"}, Options{Label: "none", MultiLabel: true}, "{multi_label}: there is no column of labels; name one with {label}"},
		{[]string{"[[1]]", "a", "b", "c"}, Options{Label: "l", MultiLabel: true}, "line 2, column 3: a list of labels has '[' in it"},
		{[]string{"1", "0", "", "1"}, Options{Label: "l", MultiLabel: true}, "{label}: column l: it has zeros and ones and no lists; name such a column for each label, A,B,C"},
		{[]string{"", "", "[]", ""}, Options{Label: "l", MultiLabel: true}, "{label}: column l: no node has a label"},
	} {
		c.o.Nodes = "n.csv"
		f := withColumns("l", c.cells...)
		if c.o.Label == "a,none" {
			f = withColumns("a", c.cells...)
		}
		_, err := read(f.write(t), c.o)
		require.ErrorContains(t, err, c.want)
	}
}

// TestMultiLabelFollowed reads the classes that another dataset has, in its order.
func TestMultiLabelFollowed(t *testing.T) {
	like := func(of store.LabelEncoding) *ingest.Like {
		of.Name, of.NodeType = "label", "node"
		l := &ingest.Like{Name: "spring.gnn", Encodings: &store.Encodings{Tables: []store.TableEncoding{{
			Name: "feat", NodeType: "node", Columns: []store.Encoding{{Name: "f", Width: 1, Kind: store.NumberColumn}},
		}}, Relations: []store.RelationEncoding{{Relation: "node__to__node"}}}}
		l.Labels = []store.LabelEncoding{of}
		return l
	}
	lists := store.LabelEncoding{From: "topics", Multi: true, Classes: 3, ClassNames: []string{"love", "spy", "war"}}
	columns := store.LabelEncoding{From: "war,love,spy", Multi: true, Classes: 3, ClassNames: []string{"war", "love", "spy"}}
	one := columns
	one.Multi = false
	for _, c := range []struct {
		f    files
		of   store.LabelEncoding
		want []int32 // nil: there are no labels
	}{
		{withColumns("other", "x", "y", "z", "x"), lists, nil},
		{withColumns("spy,war", "0,1", "1,0", "1,1", "0,0"), columns, nil},
		{withColumns("topics", "spy", "spy", "love", ""), lists, []int32{0, 1, 0, 0, 1, 0, 1, 0, 0, -1, -1, -1}},
		{withColumns("spy,war,love", "1,0,0", "0,1,0", "0,1,0", ",,"), columns, []int32{0, 0, 1, 1, 0, 0, 1, 0, 0, -1, -1, -1}},
		{withColumns("spy,war,love", "1,0,0", "0,1,0", "0,1,0", ",,"), one, []int32{2, 0, 0, -1}},
	} {
		l := like(c.of)
		dir := c.f.write(t)
		s, err := Open(dir+"/edges.csv", Options{Nodes: dir + "/n.csv", Like: l})
		require.NoError(t, err)
		defer s.Close()
		g, err := sourcetest.Read(ingest.Follow(s, dir+"/edges.csv", l))
		require.NoError(t, err)
		if c.want == nil {
			require.Empty(t, g.Schema.Labels)
			continue
		}
		require.Equal(t, c.of.ClassNames, g.Schema.Labels[0].ClassNames)
		require.Equal(t, c.want, g.Labels[0])
	}
	// A label that the user names has the classes of the other dataset as well.
	dir := withColumns("topics", "spy", "spy", "love", "").write(t)
	l := like(lists)
	s, err := Open(dir+"/edges.csv", Options{Nodes: dir + "/n.csv", Label: "topics", Like: l})
	require.NoError(t, err)
	defer s.Close()
	g, err := sourcetest.Read(ingest.Follow(s, dir+"/edges.csv", l))
	require.NoError(t, err)
	require.Equal(t, []int32{0, 1, 0, 0, 1, 0, 1, 0, 0, -1, -1, -1}, g.Labels[0])

	dir = withColumns("topics", "spy", "spies", "love", "").write(t)
	s, err = Open(dir+"/edges.csv", Options{Nodes: dir + "/n.csv", Like: l})
	require.NoError(t, err)
	defer s.Close()
	_, err = sourcetest.Read(ingest.Follow(s, dir+"/edges.csv", l))
	require.ErrorContains(t, err, `line 3, column 3: "spies" is none of the classes of spring.gnn`)
}
