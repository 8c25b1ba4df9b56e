package table

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
)

// TestMultiLabel reads labels from lists and from columns of zeros and ones, in each format.
func TestMultiLabel(t *testing.T) {
	type row struct {
		ID     int64
		Topics []int32
	}
	for _, c := range []struct {
		entry, file, text string
		names             []string
		want              []int32
	}{
		{"labels: topics", "n.csv", "id,topics\n0,war|spy\n1,love\n2,\n3,spy\n", []string{"love", "spy", "war"}, []int32{0, 1, 1, 1, 0, 0, -1, -1, -1, 0, 1, 0}},
		{"labels: topics, missing_words: [unknown]", "n.csv", "id,topics\n0,a;b\n1,unknown\n2,[]\n", []string{"a", "b"}, []int32{1, 1, -1, -1, 0, 0}},
		{"labels: topics", "n.jsonl", `{"id": 0, "topics": ["new wave", "war, cold"]}` + "\n" + `{"id": 1, "topics": []}` + "\n" + `{"id": 2}` + "\n" + `{"id": 3, "topics": "new wave"}` + "\n",
			[]string{"new wave", "war, cold"}, []int32{1, 1, 0, 0, -1, -1, 1, 0}},
		{"labels: topics", "n.jsonl", `{"id": 0, "topics": [3, 20]}` + "\n" + `{"id": 1, "topics": [20]}` + "\n", []string{"3", "20"}, []int32{1, 1, 0, 1}},
		{"labels: Topics", "n.parquet", inParquet(t, row{0, []int32{7, 1000000}}, row{1, nil}, row{2, []int32{7}}), []string{"7", "1000000"}, nil},
		{"labels: [war, spy]", "n.csv", "id,spy,x,war\n0,1,5,1\n1,,5,0\n2,0,6,True\n", []string{"war", "spy"}, []int32{1, 1, 0, -1, 1, 0}},
	} {
		id := "id: id"
		if c.file == "n.parquet" {
			id = "id: ID"
		}
		dir := files{"s.yaml": "nodes: [{type: a, files: " + c.file + ", " + id + ", " + c.entry + "}]\n" + pairs, c.file: c.text, "e.csv": "x,y\n0,0\n"}.write(t)
		g, err := read(dir, Options{})
		require.NoError(t, err, c.text)
		require.Equal(t, []ingest.Label{{Name: "label", NodeType: "a", Multi: true, Classes: len(c.names), ClassNames: c.names}}, g.schema.Labels)
		if c.want != nil {
			require.Equal(t, c.want, g.labels["a"], c.text)
		}
	}
}

// TestMultiLabelRefused refuses labels that are none, and notes lists that are read as one class.
func TestMultiLabelRefused(t *testing.T) {
	of := func(entry, text string) (graph, error) {
		return read(files{"s.yaml": "nodes: [{type: a, files: n.csv, id: id, " + entry + "}]\n" + pairs, "n.csv": text, "e.csv": "x,y\n0,0\n"}.write(t), Options{})
	}
	for _, c := range [][3]string{
		{"labels: l", "id,l\n0,\n", "labels: column l: no node has a label"},
		{"labels: l", "id,l\n0,['a]\n", "n.csv: line 2: column l: a list has the quote ' without its end"},
		{"labels: l", "id,l\n0,1\n1,0\n", "labels: column l: it has zeros and ones and no lists; name such a column for each label, A,B,C"},
		{"labels: [l, m]", "id,l,m\n0,1,2\n", `n.csv: line 2: column m: "2" is neither 0 nor 1; mend it, or choose other columns`},
		{"labels: [l]", "id,l,m\n0,1,2\n", "labels: name a column whose cells list labels, or two columns of zeros and ones or more"},
		{"labels: [l, l]", "id,l,m\n0,1,2\n", "labels: l is there twice"},
		{"labels: l, label: m", "id,l,m\n0,1,2\n", "labels beside label or value: nodes of type a learn one of them"},
		{"labels: [l, z]", "id,l,m\n0,1,2\n", `there is no column "z"`},
		{"labels: l, features: [m, l]", "id,l,m\n0,1,2\n", "column l of "},
		{"labels: [l, m], features: [m]", "id,l,m\n0,1,1\n", "is the label as well, and a network would read what it is to learn"},
	} {
		_, err := of(c[0], c[1])
		require.ErrorContains(t, err, c[2], c)
	}
	g, err := of("label: l", "id,l\n0,a|b\n1,a\n2,b\n")
	require.NoError(t, err)
	require.Len(t, g.schema.Skipped, 1)
	require.Contains(t, g.schema.Skipped[0], `label: column l: "a|b" is a class of its own; labels: l reads it as a list of classes`)
}

// TestMultiLabelFollowed reads the classes that another dataset has, in its order.
func TestMultiLabelFollowed(t *testing.T) {
	for _, c := range [][4]string{
		{"labels: l", "id,l\n0,a|b\n1,c\n", "id,l\n0,c\n1,a\n", ""},
		{"labels: [b, a, c]", "id,a,b,c\n0,1,1,0\n1,0,0,1\n", "id,c,b,a\n0,1,0,0\n1,0,0,1\n", ""},
		{"labels: l", "id,l\n0,a|b\n1,c\n", "id,l\n0,c|d\n", `"d" is none of the classes of shop.gnn`},
	} {
		yaml := "nodes: [{type: a, files: n.csv, id: id, " + c[0] + "}]\n" + pairs
		dir := files{"s.yaml": yaml, "n.csv": c[1], "e.csv": "x,y\n0,0\n"}.write(t)
		l := learnt(t, dir)
		if c[3] == "" { // the same columns in another order
			yaml = "nodes: [{type: a, files: n.csv, id: id, labels: " + map[bool]string{true: "l", false: "[c, a, b]"}[c[0] == "labels: l"] + "}]\n" + pairs
		}
		g, err := read(files{"s.yaml": yaml, "n.csv": c[2], "e.csv": "x,y\n0,0\n"}.write(t), Options{Like: l})
		if c[3] != "" {
			require.ErrorContains(t, err, c[3])
			continue
		}
		require.NoError(t, err)
		require.Equal(t, l.Labels[0].ClassNames, g.schema.Labels[0].ClassNames)
		want := []int32{0, 0, 1, 1, 0, 0}
		if c[0] != "labels: l" {
			want = []int32{0, 0, 1, 0, 1, 0}
		}
		require.Equal(t, want, g.labels["a"])
	}
	dir := files{"s.yaml": "nodes: [{type: a, files: n.csv, id: id, labels: [a, b]}]\n" + pairs, "n.csv": "id,a,b\n0,1,1\n", "e.csv": "x,y\n0,0\n"}.write(t)
	l := learnt(t, dir)
	_, err := read(files{"s.yaml": "nodes: [{type: a, files: n.csv, id: id, labels: [a, z]}]\n" + pairs, "n.csv": "id,a,z\n0,1,1\n", "e.csv": "x,y\n0,0\n"}.write(t), Options{Like: l})
	require.ErrorContains(t, err, "labels of node type a are a, b there; name the same columns")
	_, err = read(files{"s.yaml": "nodes: [{type: a, files: n.csv, id: id, label: a}]\n" + pairs, "n.csv": "id,a,z\n0,1,1\n", "e.csv": "x,y\n0,0\n"}.write(t), Options{Like: l})
	require.ErrorContains(t, err, "node type a has labels there; write labels: COLUMN in the schema")
}
