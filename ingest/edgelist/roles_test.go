package edgelist

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
)

const path4 = "src,dst\n5,6\n6,7\n7,8\n"

// withColumns is a table of the nodes of path4 with a feature and what rows have beside.
func withColumns(titles string, rows ...string) files {
	var b strings.Builder
	b.WriteString("id,f," + titles + "\n")
	for i, row := range rows {
		b.WriteString(string(rune('5'+i)) + ",0.5," + row + "\n")
	}
	return files{"edges.csv": path4, "n.csv": b.String()}
}

// TestGivenSplits: a split is taken by the names of columns where they hold one, or as options say;
// it is never a feature then.
func TestGivenSplits(t *testing.T) {
	f := func(c files, part string, want ...[]int64) {
		t.Helper()
		g, err := read(c.write(t), Options{Nodes: "n.csv", Part: part})
		require.NoError(t, err)
		require.Equal(t, 1, g.Schema.Tables[0].Dim)
		require.Equal(t, []ingest.Split{{Name: "given", NodeType: "node"}}, g.Schema.Splits)
		for part, ids := range want {
			require.Equal(t, ids, g.Splits[0][part].Numbers, ingest.Part(part))
		}
		if part == "" {
			require.Contains(t, strings.Join(g.Schema.Skipped, "\n"), "{part} none")
		}
	}
	masks := []string{"1,0,0", "0,1,0", "0,0,1", "1,0,0"}
	want := [][]int64{{5, 8}, {6}, {7}}
	f(withColumns("train_mask,val_mask,test_mask", masks...), "", want...)
	f(withColumns("is_train,is_valid,is_test", masks...), "", want...)
	f(withColumns("trainMask,valMask,testMask", "True,False,False", "False,True,False", "FALSE,false,TRUE", "true,,"), "", want...)
	f(withColumns("train,dev_set,test", masks...), "train,dev_set,test", want...)
	f(withColumns("train,valid,test", "1.0,0.0,0.0", "0.0,1.0,0.0", "0.0,0.0,1.0", "1.0,0.0,0.0"), "", want...)
	f(withColumns("split", "train", "val", "test", "Train"), "", want...)
	f(withColumns("set", "train", "dev", "test", "training"), "", want...)
	f(withColumns("split", "0", "1", "2", "0"), "split", want...)
	f(withColumns("train_mask", "1", "0", "0", "1"), "train_mask,,rest", []int64{5, 8}, nil, []int64{6, 7})
	f(withColumns("train_mask", "1", "0", "0", "1"), "train_mask,,", []int64{5, 8}, nil, nil)
}

// TestCountIsNoMask: a column of counts that is called test is a feature beside masks.
func TestCountIsNoMask(t *testing.T) {
	dir := withColumns("train_mask,val_mask,test", "1,0,7", "0,1,8", "0,0,9", "1,0,5").write(t)
	g, err := read(dir, Options{Nodes: "n.csv"})
	require.NoError(t, err)
	require.Equal(t, []int64{5, 8}, g.Splits[0][ingest.Train].Numbers)
	require.Equal(t, []int64{6}, g.Splits[0][ingest.Valid].Numbers)
}

// TestRolesAreAsked: names and values that do not agree are asked about, with an option for each
// answer, and each of these answers is one.
func TestRolesAreAsked(t *testing.T) {
	small := files{"edges.csv": "5,6\n6,7\n", "n.csv": "5,1\n6,0\n7,1\n"}
	many := withColumns("label", "0.5", "1.5", "2.5", "1")
	for _, c := range []struct {
		f       files
		says    string
		answers []Options
	}{
		{small, "is column 2 a label or a feature?", []Options{{Label: "2"}, {Columns: []string{"2"}}}},
		{many, "column label is called as a label, and holds numbers such as 0.5", []Options{{Label: "label:value"}, {Label: "none"}}},
		{withColumns("x,y", "1,2", "3,4", "5,6", "7,8"), "is column y a label, or a coordinate", []Options{{Label: "y"}, {Label: "y:value"}, {Label: "none"}}},
		{withColumns("split", "0", "1", "2", "0"), "is column split a split?", []Options{{Part: "split"}, {Part: "none"}}},
		{withColumns("fold", "0", "1", "2", "3"), "column fold is called as a split, and holds 0", []Options{{Part: "none"}}},
		{withColumns("train_mask", "1", "0", "0", "1"), "in which part are the others?",
			[]Options{{Part: "train_mask,,rest"}, {Part: "train_mask,,"}, {Part: "none"}}},
		{withColumns("val_mask", "1", "0", "0", "1"), "there is none of training nodes", []Options{{Part: "none"}}},
		{withColumns("train_mask,test_mask", "1,1", "0,1", "0,1", "1,0"), "the node is in train_mask and in test_mask", []Options{{Part: "none"}}},
		{withColumns("train_mask,test_mask", "0.3,1", "0,1", "0,1", "1,0"), `"0.3" in a mask, which is zeros and ones`, []Options{{Part: "none"}}},
		{withColumns("class", "a", "unknown", "b", "a"), `is "unknown" in column class a class, or no label?`,
			[]Options{{MissingWords: []string{"unknown"}}, {MissingWords: []string{"none"}}}},
		{withColumns("label", "1", "?", "2", "1"), `is "?" in column label a class, or no label?`, []Options{{MissingWords: []string{"?"}}}},
	} {
		dir := c.f.write(t)
		_, err := read(dir, Options{Nodes: "n.csv"})
		require.ErrorContains(t, err, filepath.Join(dir, "n.csv")+": ")
		require.ErrorContains(t, err, c.says)
		require.ErrorAs(t, err, new(*ingest.Question))
		for _, o := range c.answers {
			o.Nodes = "n.csv"
			_, err := read(dir, o)
			require.NoError(t, err, "%+v", o)
		}
	}
}

// TestRolesByName: what is a role by its name only stays what it was.
func TestRolesByName(t *testing.T) {
	f := func(c files, o Options, dim int) {
		t.Helper()
		o.Nodes = "n.csv"
		g, err := read(c.write(t), o)
		require.NoError(t, err)
		require.Equal(t, dim, g.Schema.Tables[0].Dim)
		require.Empty(t, g.Schema.Splits)
	}
	f(withColumns("train", "17", "0", "3", "1"), Options{}, 2) // a number of trains
	f(withColumns("valid", "1", "0", "1", "1"), Options{}, 2)
	f(withColumns("set", "3", "0", "3", "1"), Options{}, 2)
	f(withColumns("train_mask,val_mask,test_mask", "1,0,0", "0,1,0", "0,0,1", "1,0,0"), Options{Part: "none"}, 4)
	f(withColumns("label", "1", "0", "1", "1"), Options{Label: "none"}, 2)
	f(withColumns("label,y", "1,0", "0,1", "1,0", "1,0"), Options{}, 1) // y tells the label
	f(withColumns("label,x,y", "1,0,2", "0,1,3", "1,0,4", "1,0,5"), Options{}, 3)

	g, err := read(withColumns("class", "a", "unknown", "b", "a").write(t), Options{Nodes: "n.csv", MissingWords: []string{"unknown"}})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, g.Schema.Labels[0].ClassNames)
	require.Equal(t, []int32{0, -1, 1, 0}, g.Labels[0])
}

func TestSplitsRefuse(t *testing.T) {
	late := []string{"train,0", "valid,1"}
	for _, c := range []struct {
		f    files
		part string
		want string
	}{
		{withColumns("part,g", late...), "nope", "n.csv: {part} nope: there is no such column; there are id, f, part, g"},
		{withColumns("part,g", late...), "part,g", "n.csv: {part} part,g: name one column of parts, or three masks, TRAIN,VALID,TEST, whose names may be empty"},
		{withColumns("part,g", late...), "id", "n.csv: {part}: column id holds ids or labels, or is named twice; choose another"},
		{withColumns("part,g", late...), "g,,g", "n.csv: {part}: column g holds ids or labels, or is named twice; choose another"},
		{withColumns("part,g", late...), ",g,", "n.csv: {part} ,g,: there are no training nodes; name the first mask"},
		{withColumns("part,g", late...), "g,rest,rest", "n.csv: {part} g,rest,rest: the rest is one part"},
		{withColumns("part,g", "train,0", "later,1"), "part", `n.csv: line 3, column 3: "later" is no part of a split: there are train, valid and test, ` +
			"or with {part} 0, 1 and 2, and nothing for none; {part} none takes no split"},
		{withColumns("a,b", "1,0", "1,1"), "a,b,", "n.csv: line 3, column 4: the node is in a and in b, and a node is in one part of a split; {part} none takes no split"},
	} {
		dir := c.f.write(t)
		_, err := read(dir, Options{Nodes: "n.csv", Part: c.part})
		require.EqualError(t, err, filepath.Join(dir, c.want))
		require.False(t, errors.As(err, new(*ingest.Question)))
	}
	require.EqualError(t, (&Options{Part: "x"}).Validate(), "{part}: it names a column of the table of nodes; say which file that is with {nodes}")
}
