package edgelist

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

// matrixOf is an .npy file of n rows, i and i/2 in row i.
func matrixOf(n int) string { return wideMatrix(n, 2) }

// wideMatrix is an .npy file of n rows: i, i/2, i/3 and so on in row i.
func wideMatrix(n, dim int) string {
	b := npy.AppendHeader(nil, "<f4", int64(n), int64(dim))
	for i := range n {
		for j := range dim {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i)/float32(j+1)))
		}
	}
	return string(b)
}

// TestFeatureArray reads the features of nodes from an array, by their ids or by the rows of the
// table of nodes.
func TestFeatureArray(t *testing.T) {
	const edges, named = "src,dst\n0,2\n2,1\n", "src,dst\na,b\nb,c\n"
	inOrder, shuffled := "id,y\n0,1\n1,0\n2,1\n", "id,y\n2,1\n0,0\n1,1\n"
	rows := func(ids ...float32) (values []float32) {
		for _, id := range ids {
			values = append(values, id, id/2)
		}
		return values
	}
	for _, c := range []struct {
		name   string
		f      files
		o      Options
		want   []float32
		ids    ingest.IDs
		unused bool
	}{
		{name: "no table", f: files{"edges.csv": edges, "x.npy": matrixOf(5)}, want: rows(0, 1, 2, 3, 4)},
		{name: "count", f: files{"edges.csv": edges, "x.npy": matrixOf(3)}, o: Options{Count: 3}, want: rows(0, 1, 2)},
		{name: "table", f: files{"edges.csv": edges, "n.csv": inOrder, "x.npy": matrixOf(3)}, o: Options{Nodes: "n.csv"}, want: rows(0, 1, 2)},
		{name: "text", f: files{"edges.csv": named, "n.csv": "id\nc\na\nb\n", "x.npy": matrixOf(3)}, o: Options{Nodes: "n.csv"}, want: rows(0, 1, 2), ids: ingest.TextIDs},
		{name: "far ids", f: files{"edges.csv": "7,900\n", "n.csv": "id,y\n900,1\n7,1\n", "x.npy": matrixOf(2)}, o: Options{Nodes: "n.csv"}, want: rows(0, 1), ids: ingest.IntIDs},
		{name: "by table", f: files{"edges.csv": edges, "n.csv": shuffled, "x.npy": matrixOf(3)}, o: Options{Nodes: "n.csv", FeatureRows: ByTable}, want: rows(0, 1, 2), ids: ingest.IntIDs},
		{name: "by id", f: files{"edges.csv": edges, "n.csv": shuffled, "x.npy": matrixOf(3)}, o: Options{Nodes: "n.csv", FeatureRows: ByID}, want: rows(2, 0, 1), ids: ingest.IntIDs},
		{name: "by id of some", f: files{"edges.csv": edges, "n.csv": shuffled, "x.npy": matrixOf(9)}, o: Options{Nodes: "n.csv", FeatureRows: ByID}, want: rows(2, 0, 1), ids: ingest.IntIDs, unused: true},
		{name: "of some in order", f: files{"edges.csv": edges, "n.csv": inOrder, "x.npy": matrixOf(9)}, o: Options{Nodes: "n.csv", FeatureRows: ByID}, want: rows(0, 1, 2), unused: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Features = "x.npy"
			g, err := read(c.f.write(t), c.o)
			require.NoError(t, err)
			require.Equal(t, [][]float32{c.want}, g.Rows)
			require.Equal(t, c.ids, g.Schema.NodeTypes[0].IDs)
			require.Equal(t, []ingest.Table{{Name: "feat", NodeType: "node", Dim: 2}}, g.Schema.Tables)
			require.Equal(t, c.unused, strings.Contains(strings.Join(g.Schema.Skipped, "\n"), "x.npy: 6 of its 9 rows have no node"))
		})
	}
	for _, c := range []struct {
		f    files
		o    Options
		want string
	}{
		{files{"edges.csv": edges, "x.npy": matrixOf(5)}, Options{Count: 3}, "DIR/x.npy: 5 rows, and there are 3 nodes; are they of one graph?"},
		{files{"edges.csv": named, "x.npy": matrixOf(3)}, Options{}, "DIR/edges.csv: its ids are text, and the rows of DIR/x.npy are for the ids from 0 on, or in the order of a table of nodes; name that table with {nodes}, or if ids are integers, say {id_type} int"},
		{files{"edges.csv": named, "n.csv": "id\na\nb\nc\n", "x.npy": matrixOf(3)}, Options{Nodes: "n.csv", FeatureRows: ByID}, "{feature_rows} id: the ids of DIR/n.csv are text; say {feature_rows} table, or leave it out"},
		{files{"edges.csv": named, "n.csv": "id\na\nb\nc\n", "x.npy": matrixOf(4)}, Options{Nodes: "n.csv"}, "DIR/x.npy: 4 rows, and DIR/n.csv lists 3 nodes; are they of one graph?"},
		{files{"edges.csv": edges, "n.csv": shuffled, "x.npy": matrixOf(3)}, Options{Nodes: "n.csv"}, "DIR/x.npy: which node has row 0, the first in DIR/n.csv or the one with id 0? {feature_rows} table takes rows in the order of the table, {feature_rows} id in the order of ids"},
		{files{"edges.csv": edges, "n.csv": inOrder, "x.npy": matrixOf(4)}, Options{Nodes: "n.csv"}, "DIR/x.npy: 4 rows, and DIR/n.csv lists 3 nodes; if row 0 has the features of the node with id 0 and so on, say {feature_rows} id"},
		{files{"edges.csv": "7,9\n", "n.csv": "id\n7\n9\n", "x.npy": matrixOf(4)}, Options{Nodes: "n.csv"}, "DIR/x.npy: 4 rows, and DIR/n.csv lists 2 nodes; are they of one graph?"},
		{files{"edges.csv": "7,9\n", "n.csv": "id\n7\n9\n", "x.npy": matrixOf(8)}, Options{Nodes: "n.csv", FeatureRows: ByID}, "DIR/x.npy: 8 rows, for the ids from 0 on, and DIR/n.csv lists the id 9; {feature_rows} table takes rows in the order of the table"},
		{files{"edges.csv": edges, "n.csv": "id\n2\n2\n0\n", "x.npy": matrixOf(3)}, Options{Nodes: "n.csv", FeatureRows: ByID}, "DIR/n.csv: the id 2 is there twice"},
		{files{"edges.csv": edges, "x.npy": matrixOf(3)[:80]}, Options{}, "DIR/x.npy: truncated: npy header: 118 bytes expected, found 70"},
		{files{"edges.csv": edges}, Options{}, "stat DIR/x.npy: no such file or directory"},
		{files{"edges.csv": edges}, Options{FeatureRows: ByTable}, "{feature_rows} table: there is no table; name one with {nodes}"},
		{files{"edges.csv": edges}, Options{FeatureRows: "rows"}, `{feature_rows} "rows": choose id or table`},
		{files{"edges.csv": edges}, Options{Missing: "zeros"}, "{missing_features} and {node_features} DIR/x.npy: an array has a row for each node; leave {missing_features} out"},
	} {
		dir := c.f.write(t)
		c.o.Features = "x.npy"
		_, err := read(dir, c.o)
		require.EqualError(t, err, strings.ReplaceAll(c.want, "DIR", dir))
	}
	for head, ext := range map[string]string{"PK\x03\x04": ".npz or .pt", "\x93NUMPY": ".npy"} {
		dir := files{"edges.csv": edges, "x.bin": head + "\x01"}.write(t)
		_, err := read(dir, Options{Features: "x.bin"})
		require.ErrorContains(t, err, dir+"/x.bin: ")
		require.ErrorContains(t, err, "; if it holds an array of features, rename it to end in "+ext)
	}
	_, err := read(files{"edges.csv": edges}.write(t), Options{FeatureRows: ByID})
	require.EqualError(t, err, "{feature_rows}: it goes with {node_features} and an array; leave it out")
	var question *ingest.Question
	_, err = read(files{"edges.csv": edges, "n.csv": shuffled, "x.npy": matrixOf(3)}.write(t), Options{Nodes: "n.csv", Features: "x.npy"})
	require.ErrorAs(t, err, &question)
}

func TestFeatureArrayConforms(t *testing.T) {
	const dim = 64
	const n = ingest.ChunkBytes/4/dim + 11
	var edges, nodes strings.Builder
	edges.WriteString("src,dst\n0,1\n")
	nodes.WriteString("id,y\n")
	for i := range n {
		nodes.WriteString(strconv.Itoa(i*7%n) + ",1\n")
	}
	dir := files{"edges.csv": edges.String(), "n.csv": nodes.String(), "x.npy": wideMatrix(n, dim)}.write(t)
	open := func(o Options) func() (ingest.Source, error) {
		o.Features = filepath.Join(dir, "x.npy")
		return func() (ingest.Source, error) { return Open(filepath.Join(dir, "edges.csv"), o) }
	}
	sourcetest.Conform(t, open(Options{}), open(Options{Nodes: filepath.Join(dir, "n.csv"), FeatureRows: ByID}))
}
