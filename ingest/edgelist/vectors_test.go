package edgelist

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// TestDecimalComma: a table gives the same graph with decimal commas as with points.
func TestDecimalComma(t *testing.T) {
	plain := files{"edges.csv": "src;dst;w;n\n1;2;0.5;1200\n2;3;1234.5;-7\n", "n.csv": "id;a;b\n1;0.25;1000\n2;-3;12.5\n3;1;0\n"}
	want, err := read(plain.write(t), Options{Nodes: "n.csv", Weight: "w", EdgeColumns: []string{"n"}})
	require.NoError(t, err)
	for _, c := range []struct {
		files
		o Options
	}{
		{files{"edges.csv": "src;dst;w;n\n1;2;0,5;1.200\n2;3;1.234,5;-7\n", "n.csv": "id;a;b\n1;0,25;1.000\n2;-3;12,5\n3;1,0;0\n"}, Options{Decimal: "comma"}},
		{files{"edges.csv": "src\tdst\tw\tn\n1\t2\t0,5\t1200,0\n2\t3\t1234,5\t-7\n", "n.csv": "id,a,b\n1,\"0,25\",\"1.000\"\n2,-3,\"12,5\"\n3,1,0\n"}, Options{Decimal: "comma"}},
		{files{"edges.csv": "src dst w n\n1 2 0,5 1200\n2 3 1234,5 -7\n", "n.csv": "id;a;b\n1,0;0,25;1 000\n2,0;-3;12,5\n3,0;1;0\n"}, Options{Decimal: "comma", Thousands: "blank"}},
		{files{"edges.csv": "src,dst,w,n\n1,2,0.5,\"1,200\"\n2,3,\"1,234.5\",-7\n", "n.csv": "id,a,b\n1,0.25,\"1,000\"\n2,-3,12.5\n3,1,0\n"}, Options{Thousands: ","}},
	} {
		c.o.Nodes, c.o.Weight, c.o.EdgeColumns = "n.csv", "w", []string{"n"}
		got, err := read(c.files.write(t), c.o)
		require.NoError(t, err)
		require.Equal(t, want.Rows, got.Rows)
		require.Equal(t, want.NodeIDs, got.NodeIDs)
		require.Equal(t, want.Edges[0].Values, got.Edges[0].Values)
		require.Equal(t, want.Edges[0].Src, got.Edges[0].Src)
	}
	// Without a header the commas of the first row are no delimiters.
	for text, o := range map[string]Options{
		"1;2;0,5\n2;3;1234,5\n": {Decimal: "comma", Weight: "3"}, "1 2 0,5\n2 3 1.234,5\n": {Decimal: "comma", Weight: "3"},
		"a;b;0,5\nb;c;1.234,5\n": {Decimal: "comma", Weight: "3"},
	} {
		got, err := read(files{"edges.csv": text}.write(t), o)
		require.NoError(t, err, text)
		require.Equal(t, want.Edges[0].Values[:1], got.Edges[0].Values, text)
	}
	g, err := read(files{"edges.csv": "1,2\n2,3\n"}.write(t), Options{Decimal: "comma"})
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2}, g.Edges[0].Src)
	// Times of events are read so too, and dates stay dates.
	for text, o := range map[string]Options{
		"u;v;t\n1;2;0,5\n1;2;1.000,25\n": {Decimal: "comma"}, "u,v,t\n1,2,0.5\n1,2,1000.25\n": {},
		"u;v;t\n1;2;1970-01-01 00:00:00,5\n1;2;1970-01-01 00:16:40,25\n": {Decimal: "comma"},
	} {
		o.Events = true
		g, err := read(files{"edges.csv": text}.write(t), o)
		require.NoError(t, err, text)
		require.Equal(t, []uint64{0x3fe0000000000000, 0x408f420000000000}, g.Edges[0].Values[0], text)
	}
}

// TestUnreadNumbers: a message about numbers in another way names their column, a cell and a
// remedy.
func TestUnreadNumbers(t *testing.T) {
	const nodes = "id;x;z;price;name\n1;0,5;3;5 %;a\n2;0,7;4;7 %;b\n"
	g, err := read(files{"edges.csv": edges5, "n.csv": nodes}.write(t), Options{Nodes: "n.csv"})
	require.NoError(t, err)
	require.Equal(t, []float32{3, 4}, g.Rows[0])
	said := fmt.Sprint(g.Schema.Skipped)
	require.Contains(t, said, `n.csv: column x: numbers with a decimal comma, such as "0,5"; say {decimal} comma`)
	require.Contains(t, said, `n.csv: column price: numbers with the sign %, such as "5 %"; write them without it: sed 's/%//g' FILE > PLAIN`)
	require.Contains(t, said, "columns name: they do not hold numbers")
	g, err = read(files{"edges.csv": edges5, "n.csv": "id;x;y\n1;0,5;1,25\n2;0,7;2,5\n"}.write(t), Options{Nodes: "n.csv"})
	require.NoError(t, err)
	require.Contains(t, g.Schema.NoFeatures, `n.csv: columns x, y: numbers with a decimal comma, such as "0,5"; say {decimal} comma`)
	require.Empty(t, g.Schema.Labels)
	for _, c := range []struct {
		files
		o    Options
		want string
	}{
		{files{"n.csv": nodes}, Options{Nodes: "n.csv", Columns: []string{"x"}}, `n.csv: line 2, column 2: "0,5" is not a number; say {decimal} comma`},
		{files{"n.csv": nodes}, Options{Nodes: "n.csv", Label: "x:value"}, `"0,5" is not a finite number of 32 bits; say {decimal} comma`},
		{files{"n.csv": "id;x\n1;0.5\n"}, Options{Nodes: "n.csv", Columns: []string{"x"}, Decimal: "comma"}, `"0.5" is not a number; {decimal} comma is for all columns, so write all numbers in one way`},
		{files{"edges.csv": "1;2;0,5\n"}, Options{Weight: "3"}, `edges.csv: line 1, column 3: "0,5" is not a number; say {decimal} comma`},
		{files{"edges.csv": "1,2,\"1,234.5\"\n"}, Options{EdgeColumns: []string{"n=3:i64"}}, `"1,234.5" is not an integer, as the values of n are; say {thousands} comma`},
		{files{"edges.csv": "1;2;3,5\n"}, Options{Events: true}, `line 1, column 3: "3,5" is not a number; say {decimal} comma`},
		{files{"edges.csv": "1;2;3.5\n"}, Options{Events: true, Decimal: "comma"}, `line 1, column 3: "3.5" is not a number; {decimal} comma is for all columns`},
		{nil, Options{Decimal: "dot"}, `{decimal} "dot": choose point or comma`},
	} {
		all := files{"edges.csv": edges5}
		for name, text := range c.files {
			all[name] = text
		}
		_, err := read(all.write(t), c.o)
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "\n")
	}
}

// TestVectorCells: vectors in cells become columns of features, of nodes and of edges.
func TestVectorCells(t *testing.T) {
	want := []float32{1, 0.5, 2, 7, 0.25, -3}
	for _, nodes := range []string{
		"id,n,vec\n1,1,[0.5 2]\n2,7,[0.25 -3]\n", "id,n,vec\n1,1,\"[0.5, 2]\"\n2,7,\"[0.25,-3]\"\n", "id,n,vec\n1,1,0.5;2\n2,7,0.25;-3\n", "id;n;vec\n1;1;[0.5, 2]\n2;7;(0.25, -3)\n",
		"id\tn\tvec\n1\t1\t[0.5\t2]\n", "1,1,[0.5 2]\n2,7,[0.25 -3]\n", "id,n,vec\n1,1,\"[0.5\n 2]\"\n2,7,\"[0.25\n -3]\"\n",
	} {
		g, err := read(files{"edges.csv": "1,2\n", "n.csv": nodes}.write(t), Options{Nodes: "n.csv"})
		if err != nil {
			require.Contains(t, nodes, "\t2]", err) // tabs part cells, in brackets too
			require.ErrorContains(t, err, `put each vector in quotes, as in "[0.1, 0.2]"`)
			continue
		}
		require.Equal(t, want, g.Rows[0], nodes)
		require.Equal(t, 3, g.Schema.Tables[0].Dim)
	}
	dir := files{"edges.csv": "src,dst,vec,w\n1,2,[0.5 2],1\n2,1,[0.25 -3],7\n", "n.csv": "id,vec,n\n1,[0.5 2],1\n2,[0.25 -3],7\n"}.write(t)
	s, err := Open(filepath.Join(dir, "edges.csv"), Options{Nodes: filepath.Join(dir, "n.csv"), EdgeFeatures: []string{"w", "vec"}})
	require.NoError(t, err)
	schema, err := s.Schema(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, schema.Tables[1].Dim)
	columns := s.Describe().Tables
	require.Equal(t, []store.Encoding{{Name: "vec", Kind: store.VectorColumn, Width: 2}, {Name: "n", Kind: store.NumberColumn, Width: 1}}, columns[0])
	require.Equal(t, []store.Encoding{{Name: "w", Kind: store.NumberColumn, Width: 1}, {Name: "vec", Kind: store.VectorColumn, Width: 2}}, columns[1])
	like := &ingest.Like{Name: "old.gnn", Encodings: &store.Encodings{Tables: []store.TableEncoding{
		{Name: "feat", NodeType: "node", Columns: columns[0]}, {Name: "edge_feat", Relation: edgeKey, Columns: columns[1]},
	}}}
	g, err := read(files{"edges.csv": "vec,w,src,dst\n[5 6],4,1,2\n", "n.csv": "n,other,vec,id\n3,9,[1 2],1\n"}.write(t), Options{Nodes: "n.csv", Like: like})
	require.NoError(t, err)
	require.Equal(t, [][]float32{{1, 2, 3}, {4, 5, 6}}, g.Rows)
	for want, f := range map[string]files{
		"n.csv: column vec has 3 numbers in a cell, and 2 there": {"edges.csv": "vec,w,src,dst\n[5 6],4,1,2\n", "n.csv": "n,vec,id\n3,[1 2 3],1\n"},
		"edges.csv: column vec has 1 numbers in a cell, and 2":   {"edges.csv": "vec,w,src,dst\n5,4,1,2\n", "n.csv": "n,vec,id\n3,[1 2],1\n"},
	} {
		_, err = read(f.write(t), Options{Nodes: "n.csv", Like: like})
		require.ErrorContains(t, err, want)
	}
	for cell, want := range map[string]string{
		"[1 2 3]": "line 3, column 2: a vector of 3, and most cells of column vec have 2 numbers; vectors are of one length", "[[1] [2]]": "line 3, column 2: \"[[1] [2]]\": a list within a list",
		"[]": `line 3, column 2: "[]" is a vector without numbers`, "[1 2": `line 3, column 2: "[1 2": the bracket of the vector does not close`,
		"[1 nan]": `line 3, column 2: "nan" in a vector is not a finite number of 32 bits`, "5": "line 3, column 2: one number, and most cells of column vec have vectors of 2",
	} {
		_, err := read(files{"edges.csv": "1,2\n", "n.csv": "id,vec\n1,[1 2]\n2," + cell + "\n3,[3 4]\n"}.write(t), Options{Nodes: "n.csv"})
		require.ErrorContains(t, err, want)
		_, err = read(files{"edges.csv": "src,vec,dst\n1,[1 2],1\n2," + cell + ",1\n3,[3 4],1\n"}.write(t), Options{EdgeFeatures: []string{"vec"}})
		require.ErrorContains(t, err, want)
	}
	// A note names a column of broken vectors. A column of lists of words is text.
	for cell, want := range map[string]string{"[[1 2]]": "n.csv: column vec: \"[[1 2]]\": a list within a list", "[a b]": "", "[1]": "n.csv: column vec: its lists have different lengths"} {
		g, err := read(files{"edges.csv": "1,2\n", "n.csv": "id,vec\n1," + cell + "\n2," + strings.ReplaceAll(cell, "[1]", "[1 2]") + "\n"}.write(t), Options{Nodes: "n.csv"})
		require.NoError(t, err)
		require.Contains(t, g.Schema.NoFeatures, want)
		require.Equal(t, want == "", g.Schema.NoFeatures == "")
	}
}
