package table

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNumerals: tables of a schema write numbers in their own ways, and vectors in brackets.
func TestNumerals(t *testing.T) {
	schema := func(nodeKeys, edgeKeys string) string {
		return "nodes: [{type: a, files: n.csv, delimiter: \";\", id: id, features: [x, vec], value: v" + nodeKeys + "}]\n" +
			"edges: [{type: \"a:to:a\", files: e.csv, delimiter: \";\", src: s, dst: d, weight: w, columns: [{name: n, type: i64}]" + edgeKeys + "}]\n"
	}
	f := func(s, n, e string, o Options) (graph, error) {
		return read(files{"s.yaml": s, "n.csv": "id;x;vec;v\n" + n, "e.csv": "s;d;w;n\n" + e}.write(t), o)
	}
	want, err := f(schema("", ""), "1;0.5;[1 2.5];1000\n2;1234.5;[3, -4];\n", "1;2;0.25;1200\n", Options{})
	require.NoError(t, err)
	require.Equal(t, []float32{0.5, 1, 2.5, 1234.5, 3, -4}, want.rows["a/feat"])
	for _, c := range []struct {
		s, n, e string
		o       Options
	}{
		{schema(", decimal: comma", ""), "1;0,5;[1 2,5];1.000\n2;1.234,5;[3, -4];\n", "1;2;0.25;1200\n", Options{}},
		{schema(", decimal: comma", ", thousands: comma"), "1,0;0,5;\"1; 2,5\";1000\n2;1234,5;[3 -4];\n", "1;2;0.25;1,200\n", Options{}},
		{schema("", ""), "1;0,5;[1 2,5];1.000\n2;1.234,5;[3 -4];\n", "1;2;0,25;1.200,0\n", Options{Decimal: "comma"}},
		{schema("", ", decimal: point"), "1;0,5;[1 2,5];1.000\n2;1.234,5;[3 -4];\n", "1;2;0.25;1200\n", Options{Decimal: "comma"}},
	} {
		got, err := f(c.s, c.n, c.e, c.o)
		require.NoError(t, err, c.s)
		require.Equal(t, want.rows, got.rows)
		require.Equal(t, want.labels, got.labels)
		require.Equal(t, want.edges, got.edges)
		require.Equal(t, want.ids, got.ids)
	}
	for _, c := range []struct {
		s, n, e string
		want    string
	}{
		{schema(", decimal: dot", ""), "1;1;1;1\n", "1;1;1;1\n", `s.yaml: line 1: decimal "dot": choose point or comma`},
		{schema(", thousands: point", ""), "1;1;1;1\n", "1;1;1;1\n", `s.yaml: line 1: thousands: point: that is the decimal mark; choose the other with decimal`},
		{schema("", ""), "1;0,5;1;1\n", "1;1;1;1\n", `column x of DIR/n.csv: "0,5" is not a number; say {decimal} comma`},
		{schema("", ""), "1;1;1;1\n", "1;1;0,5;1\n", `e.csv: line 2: column w: "0,5" is not a number; say {decimal} comma`},
		{schema("", ""), "1;1;1;1\n", "1;1;1;1,200\n", `e.csv: line 2: column n: "1,200" is not a number; say {decimal} comma if a fraction follows it, or {thousands} comma if not`},
		{schema("", ""), "1;1;1;1\n2;1;[1 2];2\n3;1;7;3\n", "1;1;1;1\n", `n.csv: line 3: column vec: 2 numbers, and 1 in most rows; vectors are of one length`},
		{schema("", ""), "1;1;[1 2];1\n2;1;[[1] 2];2\n3;1;[3 4];3\n", "1;1;1;1\n", `n.csv: line 3: column vec: "[[1] 2]": a list within a list`},
		{schema("", ""), "1;1;[1 2];1\n2;1;[1 nan];2\n", "1;1;1;1\n", `n.csv: line 3: column vec: "nan" in a vector is not a finite number`},
	} {
		dir := files{"s.yaml": c.s, "n.csv": "id;x;vec;v\n" + c.n, "e.csv": "s;d;w;n\n" + c.e}.write(t)
		_, err := read(dir, Options{})
		require.ErrorContains(t, err, strings.ReplaceAll(c.want, "DIR", dir))
	}
}

// TestInferNumerals: Infer writes how a table writes its numbers where columns tell it, and names
// the columns that it leaves out for that.
func TestInferNumerals(t *testing.T) {
	var comma, mixed, edges strings.Builder
	comma.WriteString("id;x;big;vec;share;phone\n")
	mixed.WriteString("id;x;z\n")
	edges.WriteString("src,dst,w\n")
	for i := range 30 {
		fmt.Fprintf(&comma, "%d;%d,%d5;1.%03d;[0,5 %d];%d %%;555 %03d\n", 100+i, i%3, i, i, i, i%3, i)
		fmt.Fprintf(&mixed, "%d;%d,5;%d.5\n", 500+i, i%3, i)
		fmt.Fprintf(&edges, "%d,%d,\"%d,5\"\n", 100+i, 500+i, i%3)
	}
	yaml, g := inferAndRead(t, files{"people.csv": comma.String(), "things.csv": mixed.String(), "edges.csv": edges.String()}.write(t))
	require.Contains(t, yaml, `    decimal: comma # column x has "0,05"`+"\n")
	require.Contains(t, yaml, "features: [x, big, vec] # columns of numbers\n")
	require.Contains(t, yaml, `share (numbers with the sign %, such as "0 %"; write them without it: sed 's/%//g' FILE > PLAIN), phone (numbers with a decimal comma, such as "555 000"; say decimal: comma and thousands: blank)`)
	require.Contains(t, yaml, `x (numbers with a decimal comma, such as "0,5"; say decimal: comma)`)
	require.Contains(t, yaml, "weight: w")
	require.Equal(t, []float32{1.15, 0.5, 1}, []float32{g.rows["people/feat"][4], g.rows["people/feat"][6], g.rows["people/feat"][7]})
	require.Contains(t, yaml, "scale: {big: standard} # big: up to 1029, and best near 1")
	require.Equal(t, 1, strings.Count(yaml, "things"), yaml)
}
