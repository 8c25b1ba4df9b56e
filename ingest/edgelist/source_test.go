package edgelist

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
	"github.com/gnnstore/gnnstore/store"
)

// files is a folder by name.
type files map[string]string

func (f files) write(t testing.TB) string { return f.writeTo(t, t.TempDir()) }

// writeTo writes over what an earlier call has left there.
func (f files) writeTo(t testing.TB, dir string) string {
	for name, body := range f {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(body), 0o644))
	}
	return dir
}

// read reads DIR/edges.csv; files that Options name are in DIR.
func read(dir string, o Options) (sourcetest.Graph, error) {
	for _, path := range []*string{&o.Nodes, &o.Features} {
		if *path != "" {
			*path = filepath.Join(dir, *path)
		}
	}
	s, err := Open(filepath.Join(dir, "edges.csv"), o)
	if err != nil {
		return sourcetest.Graph{}, err
	}
	defer s.Close()
	return sourcetest.Read(s)
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

func TestEdges(t *testing.T) {
	src, dst := []int64{0, 2, 1}, []int64{1, 0, 1}
	f := func(text string, o Options) {
		t.Helper()
		g, err := read(files{"edges.csv": text}.write(t), o)
		require.NoError(t, err, "%q", text)
		require.Equal(t, src, g.Edges[0].Src, "%q", text)
		require.Equal(t, dst, g.Edges[0].Dst, "%q", text)
		require.Equal(t, []ingest.NodeType{{Name: "node", IDs: ingest.IntIDs, Gathered: true}}, g.Schema.NodeTypes)
		require.Equal(t, []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: -1, Left: g.Schema.Relations[0].Left}}, g.Schema.Relations)
	}
	var auto Options
	f("0,1\n2,0\n1,1\n", auto)
	f("0,1\r\n2,0\r\n1,1", auto)
	f("\xef\xbb\xbf0,1\n2,0\n1,1\n", auto)
	f("\xef\xbb\xbfid_1,id_2\n0,1\n2,0\n1,1\n\n", auto)
	f("a;b\n0;1\n2;0\n1;1\n", auto)
	f("0 1\n2   0\n 1 1 \n", auto)
	f("0\t1\n2\t0\n1\t1\n", auto)
	f("# Directed graph\n# FromNodeId\tToNodeId\n0\t1\n# more\n2\t0\n\n1\t1\n", auto)
	f("% a comment\n0 1 1.5\n2 0 0.25\n1 1 x\n", auto)
	f("\"0\",\"1\"\n 2 , 0\n1.0,1\n", auto)
	f("0.0e+00,1.0e+00\n2.0e+00,0.0e+00\n1.0e+00,1.0e+00\n", auto)
	f("0.000000000000000000e+00 1.000000000000000000e+00\n2. 0.\n1 1\n", auto) // numpy.savetxt
	f(zipped("0,1\n2,0\n1,1\n"), auto)
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	f(string(w.EncodeAll([]byte("0,1\n2,0\n1,1\n"), nil)), auto)
	// Columns by name and by number.
	f(",src,dst,time,int_roll,ext_roll\n0,0,1,0.5,0,0\n1,2,0,0.7,0,0\n2,1,1,1e9,0,0\n", auto)
	f("timestamp,Source,Target\n5,0,1\n6,2,0\n7,1,1\n", auto)
	f("to,from\n1,0\n0,2\n1,1\n", auto)
	f("b,a\n1,0\n0,2\n1,1\n", Options{Src: "a", Dst: "b"})
	f("b,A\n1,0\n0,2\n1,1\n", Options{Src: "a", Dst: "B"})
	f("b,a\n1,0\n0,2\n1,1\n", Options{Src: "2", Dst: "1"})
	f("7 1 0\n7 0 2\n7 1 1\n", Options{Src: "3", Dst: "2"})
	f("note,src,dst\n\"a, \"\"b\"\"\",0,1\n,2,0\n\"\",1,1\n", auto)
	f("edge_id,u,v\n7,0,1\n8,2,0\n9,1,1\n", auto)
	f("edge_id,FromNodeId,ToNodeId\n7,0,1\n8,2,0\n9,1,1\n", auto)
	f("time,Source ID,Target ID\n7,0,1\n8,2,0\n9,1,1\n", auto)
	f("head,relation,tail\n0,7,1\n2,7,0\n1,8,1\n", auto)
	f(":START_ID,w,:END_ID\n0,7,1\n2,7,0\n1,8,1\n", auto)
	f("t,b,a\n7,1,0\n7,0,2\n8,1,1\n", Options{Ends: []string{"a", "2"}})
	f("7,1,0\n7,0,2\n8,1,1\n", Options{Ends: []string{"3", "2"}})
	// A header of numbers, and a first row that is none.
	f("7,8\n0,1\n2,0\n1,1\n", Options{Header: "yes"})
	f("0,1\n2,0\n1,1\n", Options{Header: "no"})

	// Rows that go on for several lines, and rare delimiters.
	f("src,dst,note\n0,1,\"a\r\n\n#b\"\n2,0,\"c\"\"\nd\"\n1,1,\n", auto)
	f("\"src\",\"dst\nof it\"\n0,1\n2,0\n1,1\n", auto)
	f("0,1,\"a\nb\"\n2,0,c\n1,1,\"d\ne\"", auto)
	f("0::1::5::978300760\n2::0::3::978302109\n1::1::4::978301968\n", auto)
	f("0::1\n2::0\n1::1\n", auto)
	f("0|1|x y\n2|0|z\n1|1|\n", auto)
	f("0|1\n2|0\n1|1\n", auto)
	f("0 1  5\n2   0\t5\n 1 1 5 \n", auto)
	// A first line of numbers that are no edge.
	f("3 3\n0 1\n2 0\n1 1\n", Options{Header: "yes"})
	f("3\n0 1\n2 0\n1 1\n", Options{Header: "yes"})
	f("3 3\n0,1,0.5\n2,0,0.5\n1,1,0.5\n", Options{Header: "yes"})

	// Nodes that a number is declared of are rows, isolated ones included.
	for text, o := range map[string]Options{"0 1\n3 0\n": {Count: 5}, "# Nodes: 5 Edges: 2\n0 1\n3 0\n": auto, "% nodes:\t5\n# x\n0 1\n3 0\n": auto} {
		g, err := read(files{"edges.csv": text}.write(t), o)
		require.NoError(t, err)
		require.Equal(t, []ingest.NodeType{{Name: "node", Count: 5}}, g.Schema.NodeTypes)
	}
	// A declared number that does not hold is passed over, and told.
	g, err := read(files{"edges.csv": "# Nodes: 3\n0 1\n# Nodes: 99\n3 0\n"}.write(t), auto)
	require.NoError(t, err)
	require.Equal(t, []ingest.NodeType{{Name: "node", IDs: ingest.IntIDs, Gathered: true}}, g.Schema.NodeTypes)
	require.Contains(t, g.Schema.Skipped[0], "edges.csv: the count of 3 nodes: there is an id 3, so the nodes are those that edges name")

	g, err = read(files{"edges.csv": "a,src,dst,w\n0,0,1,3\n"}.write(t), auto)
	require.NoError(t, err)
	require.Len(t, g.Schema.Skipped, 1)
	require.Equal(t, []string{"a", "w"}, g.Schema.Relations[0].Left)
	require.Contains(t, g.Schema.Skipped[0], "edges.csv: 2 of the edges' columns are left behind (a, w); {edge_columns} keeps those of numbers")
}

func TestFolder(t *testing.T) {
	dir := files{"p/part_10.csv": "2,3\n", "p/part_2.csv": "1,2\n", "p/part_1.csv.gz": zipped("src,dst\n0,1\n"), "p/part_3.csv": "", "p/_SUCCESS": "", "p/.crc": "x", "p/more/x": ""}.write(t)
	s, err := Open(filepath.Join(dir, "p"), Options{})
	require.NoError(t, err)
	g, err := sourcetest.Read(s)
	require.NoError(t, err)
	require.Equal(t, "p", g.Schema.Name)
	require.Equal(t, []int64{0, 1, 2}, g.Edges[0].Src)
	_, err = Open(filepath.Join(dir, "p", "more"), Options{})
	require.ErrorContains(t, err, "more: nothing in it; name an edge list, or a folder of its parts")
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"g.adjlist": "an adjacency list, a node and", "g.adjlist.gz": "an adjacency list, a node and", "G.MTX": "a matrix in the Matrix Market format by its name",
		"g.metis": "a graph of METIS, the neighbours", "g.graphml": "a graph in GraphML by its name",
	} {
		path := filepath.Join(files{name: "1 2\n2 3\n"}.write(t), name)
		_, err := Open(path, Options{})
		require.ErrorContains(t, err, path+": "+want)
	}
}

func TestIDsWithGaps(t *testing.T) {
	f := files{"edges.csv": "7,9223372036854775807\n3000000000,7\n3000000000,0\n"}
	g, err := read(f.write(t), Options{})
	require.NoError(t, err)
	require.Equal(t, []ingest.NodeType{{Name: "node", IDs: ingest.IntIDs, Gathered: true}}, g.Schema.NodeTypes)
	require.Equal(t, []int64{7, 3000000000, 3000000000}, g.Edges[0].Src)
	f["f.json"] = "{}"
	g, err = read(f.write(t), Options{Features: "f.json"})
	require.NoError(t, err)
	require.Equal(t, []int64{0, 7, 3000000000, 9223372036854775807}, g.NodeIDs[0].Numbers)
	require.Equal(t, []ingest.NodeType{{Name: "node", Count: 4, IDs: ingest.IntIDs}}, g.Schema.NodeTypes)
}

// TestTextIDs: ids that are no integers are text as it stands.
func TestTextIDs(t *testing.T) {
	f := func(text string, o Options, ends ...string) {
		t.Helper()
		g, err := read(files{"edges.csv": text}.write(t), o)
		require.NoError(t, err, "%q", text)
		require.Equal(t, ends, g.Edges[0].Lines(), "%q", text)
		require.Equal(t, []ingest.NodeType{{Name: "node", IDs: ingest.TextIDs, Gathered: true}}, g.Schema.NodeTypes)
	}
	f("src,dst\nalice,bob\nbob,carol\n", Options{}, "alice>bob", "bob>carol")
	f("alice,bob\nbob,carol\n", Options{Header: "no"}, "alice>bob", "bob>carol")
	f("00260881\t00260622\n01332730\t7\n", Options{}, "00260881>00260622", "01332730>7")
	f("a,b\nalice,bob\n", Options{Src: "b", Dst: "A"}, "bob>alice")
	f("a,b,n\nalice,bob,3\n", Options{Ends: []string{"a", "b"}}, "alice>bob") // a number where the first row has none
	f("src,dst\n\" a, \"\"b\"\"\",ü n\n", Options{}, " a, \"b\">ü n")
	f("0,1\n2,x\n", Options{IDType: "text"}, "0>1", "2>x")
	f("# Nodes: 2\nu1 u2\n", Options{Header: "no"}, "u1>u2")
	f("src,dst\n#alice,bob\n%x,#alice\n", Options{}, "#alice>bob", "%x>#alice") // no comments: ids that start as they do
	f("# x\nalice,bob\n#bob,carol\n", Options{Header: "no"}, "alice>bob", "#bob>carol")
	f("src,dst\n\"a\n#b\",c\n", Options{}, "a\n#b>c")
	f("fe80::1 fe80::2\nfe80::2 fe80::3\n", Options{Header: "no"}, "fe80::1>fe80::2", "fe80::2>fe80::3")
	f("fe80::1,fe80::2\n", Options{Header: "no"}, "fe80::1>fe80::2")
	f("sp|P1|A sp|P2|B\n", Options{Header: "no"}, "sp|P1|A>sp|P2|B")
	f("src,dst\n"+strings.Repeat("é", 2048)+",b\n", Options{}, strings.Repeat("é", 2048)+">b")

	table := "id,name,label,x\nu1,ten,cat,1\nu2,b,dog,2\n007,x,cat,3\n"
	g, err := read(files{"edges.csv": "src,dst\nu1,u2\nu2,007\n", "n.csv": table}.write(t), Options{Nodes: "n.csv"})
	require.NoError(t, err)
	require.Equal(t, []string{"u1", "u2", "007"}, g.NodeIDs[0].Texts)
	require.Equal(t, []ingest.NodeType{{Name: "node", Count: 3, IDs: ingest.TextIDs}}, g.Schema.NodeTypes)
	require.Equal(t, []float32{1, 2, 3}, g.Rows[0])
	require.Equal(t, []int32{0, 1, 0}, g.Labels[0])
	// Integers in one of the tables are text when they are in the other.
	g, err = read(files{"edges.csv": "1,2\n2,3\n", "n.csv": table}.write(t), Options{Nodes: "n.csv"})
	require.NoError(t, err)
	require.Equal(t, []string{"1>2", "2>3"}, g.Edges[0].Lines())
}

// TestTrapTwoIDSpaces: 1-based ids are no rows, with a declared number of nodes or without.
func TestTrapTwoIDSpaces(t *testing.T) {
	g, err := read(files{"edges.csv": "# Nodes: 3\n1 2\n2 3\n"}.write(t), Options{})
	require.NoError(t, err)
	require.Equal(t, []ingest.NodeType{{Name: "node", IDs: ingest.IntIDs, Gathered: true}}, g.Schema.NodeTypes)
}

func TestWeights(t *testing.T) {
	g, err := read(files{"edges.csv": "src,dst,w,t\n0,1,-1.5,x\n1,0,2e3,y\n"}.write(t), Options{Weight: "w"})
	require.NoError(t, err)
	require.Equal(t, []ingest.EdgeColumn{{Name: "weight", Elem: store.F32}}, g.Schema.Relations[0].Columns)
	require.Equal(t, []float32{-1.5, 2000}, g.Edges[0].Floats(0))
	require.Contains(t, g.Schema.Skipped[0], "edges.csv: 1 of the edges' columns are left behind (t); {edge_columns} keeps those of numbers")
	g, err = read(files{"edges.csv": "t,w,to,from\n9,-1.5,1,0\n9,2e3,0,1\n"}.write(t), Options{Ends: []string{"from", "to", "w"}})
	require.NoError(t, err)
	require.Equal(t, []int64{0, 1}, g.Edges[0].Src)
	require.Equal(t, []float32{-1.5, 2000}, g.Edges[0].Floats(0))
	g, err = read(files{"edges.csv": "a b 1\nb c 2\n"}.write(t), Options{Weight: "3"})
	require.NoError(t, err)
	require.Equal(t, []string{"a>b", "b>c"}, g.Edges[0].Lines())
	require.Equal(t, []float32{1, 2}, g.Edges[0].Floats(0))
}

// TestEdgeColumns: edges keep the columns that are asked for, integers where the first rows are
// such and nothing else is said.
func TestEdgeColumns(t *testing.T) {
	column := func(name string, e store.Elem) ingest.EdgeColumn { return ingest.EdgeColumn{Name: name, Elem: e} }
	text := "src,rating,dst,time,score\n0,-3,1,1.5,7\n1,10,0,2e3,8\n"
	g, err := read(files{"edges.csv": text}.write(t), Options{Weight: "score", EdgeColumns: []string{"stars=2", "time", "again=rating:f32", "s=score:u8"}})
	require.NoError(t, err)
	require.Equal(t, []ingest.EdgeColumn{column("weight", store.F32), column("stars", store.I64), column("time", store.F32),
		column("again", store.F32), column("s", store.U8)}, g.Schema.Relations[0].Columns)
	require.Equal(t, []float32{7, 8}, g.Edges[0].Floats(0))
	minus3 := int64(-3)
	require.Equal(t, []uint64{uint64(minus3), 10}, g.Edges[0].Values[1])
	require.Equal(t, []float32{1.5, 2000}, g.Edges[0].Floats(2))
	require.Equal(t, []float32{-3, 10}, g.Edges[0].Floats(3))
	require.Equal(t, []uint64{7, 8}, g.Edges[0].Values[4])
	require.Empty(t, g.Schema.Skipped)

	// Text ids, a list without a header, and the first rows of several files.
	g, err = read(files{"edges.csv": "a b 1\nb c 2\n"}.write(t), Options{EdgeColumns: []string{"n=3"}})
	require.NoError(t, err)
	require.Equal(t, []string{"a>b", "b>c"}, g.Edges[0].Lines())
	require.Equal(t, []ingest.EdgeColumn{column("n", store.I64)}, g.Schema.Relations[0].Columns)
	s, err := Open(files{"1.csv": "0,1,2\n", "2.csv": "1,0,2.5\n"}.write(t), Options{EdgeColumns: []string{"n=3"}})
	require.NoError(t, err)
	schema, err := s.Schema(t.Context())
	require.NoError(t, err)
	require.Equal(t, []ingest.EdgeColumn{column("n", store.F32)}, schema.Relations[0].Columns)

	for want, o := range map[string][]string{
		`{edge_columns} "x=": write NAME=COLUMN, the column by its name or by its number from 1, as in rating=3`:                                                {"x="},
		`{edge_columns} 3: a column by its number needs a name in the dataset: write NAME=3`:                                                                    {"3"},
		`{edge_columns} id=3: id is an edge's number; choose another name, as in edge-id=3`:                                                                     {"id=3"},
		`{edge_columns} a b=3: "a b" cannot be the name of a column; write a_b=3`:                                                                               {"a b=3"},
		`{edge_columns}: there are two columns x; give one of them another name`:                                                                                {"x=2", "x=3"},
		`DIR/edges.csv: {edge_columns} votes: there is no such column; there are src, rating, dst, time, score`:                                                 {"votes"},
		`DIR/edges.csv: column dst holds both ids and values; choose another {edge_columns}`:                                                                    {"to=dst"},
		`DIR/edges.csv: line 2, column 2: -3 is not a value of u8, which go from 0 to 255; choose another type in {edge_columns}`:                               {"rating:u8"},
		`DIR/edges.csv: line 2, column 4: "1.5" is not an integer, as the values of time are; to keep numbers with fractions, say {edge_columns} time=time:f32`: {"time:i64"},
	} {
		dir := files{"edges.csv": text}.write(t)
		_, err := read(dir, Options{EdgeColumns: o})
		require.EqualError(t, err, strings.ReplaceAll(want, "DIR", dir))
	}
	dir := files{"edges.csv": "0,1,2\n1,0,\n"}.write(t)
	_, err = read(dir, Options{EdgeColumns: []string{"x=3:f32"}})
	require.EqualError(t, err, dir+"/edges.csv: line 2, column 3: a value of x is missing; fill it in, or leave the column out of {edge_columns}")
}

// TestEdgeFeatures: columns make a table with a row an edge, of several files one after the other;
// a row that is bad for them is no edge.
func TestEdgeFeatures(t *testing.T) {
	text := "src,rating,dst,time,score\n0,-3,1,1.5,7\n1,10,0,2e3,8\n"
	g, err := read(files{"edges.csv": text}.write(t), Options{EdgeFeatures: []string{"score", "2", "time"}, EdgeColumns: []string{"time"}})
	require.NoError(t, err)
	require.Equal(t, []ingest.Table{{Name: "edge_feat", Relation: "node__to__node", Dim: 3}}, g.Schema.Tables)
	require.Equal(t, []float32{7, -3, 1.5, 8, 10, 2000}, g.Rows[0])
	require.Empty(t, g.Schema.Skipped)
	s, err := Open(files{"1.csv": "a b 1 2\nb c 3 4\n", "2.csv": "c a 5 x\nc b 7 8\n"}.write(t), Options{EdgeFeatures: []string{"3-4"}, SkipBad: 1})
	require.NoError(t, err)
	g, err = sourcetest.Read(s)
	require.NoError(t, err)
	require.Equal(t, []string{"a>b", "b>c", "c>b"}, g.Edges[0].Lines())
	require.Equal(t, []float32{1, 2, 3, 4, 7, 8}, g.Rows[0])
	for want, o := range map[string][]string{
		`DIR/edges.csv: {edge_features} votes: there is no such column; there are src, rating, dst, time, score`: {"votes"},
		`DIR/edges.csv: {edge_features} 4-9: columns go by number from 1 to 5`:                                   {"4-9"},
		`DIR/edges.csv: {edge_features} 5-4: columns go by number from 1 to 5`:                                   {"5-4"},
		`DIR/edges.csv: column dst holds both ids and features; choose another {edge_features}`:                  {"2-4"},
		`DIR/edges.csv: {edge_features}: column time is there twice`:                                             {"time", "4"},
	} {
		dir := files{"edges.csv": text}.write(t)
		_, err := read(dir, Options{EdgeFeatures: o})
		require.EqualError(t, err, strings.ReplaceAll(want, "DIR", dir))
	}
	for want, row := range map[string]string{
		"line 2, column 3: a feature of the edge is missing; fill it in, or leave the column out of {edge_features}": "1,0,",
		`line 2, column 3: "x" is not a number; choose another {edge_features}`:                                      "1,0,x",
		`line 2, column 3: "inf" is not a finite number of 32 bits`:                                                  "1,0,inf",
	} {
		dir := files{"edges.csv": "0,1,2\n" + row + "\n"}.write(t)
		_, err := read(dir, Options{EdgeFeatures: []string{"3"}})
		require.EqualError(t, err, dir+"/edges.csv: "+want)
	}
}

// TestIdentity: an ingest that was killed goes on with the same columns only.
func TestIdentity(t *testing.T) {
	dir := files{"edges.csv": "0,1,2\n1,2,0\n"}.write(t)
	seen := map[string]bool{}
	for _, o := range []Options{{}, {Ends: []string{"2", "1"}}, {Ends: []string{"1", "3"}}, {Header: "no"}} {
		g, err := read(dir, o)
		require.NoError(t, err)
		require.False(t, seen[g.Schema.Identity])
		seen[g.Schema.Identity] = true
	}
}

// TestSkipBad: a row that is bad for one column is bad for all sections, and counts once.
func TestSkipBad(t *testing.T) {
	dir := files{
		"edges.csv": "10,11,1\n11,x,1\n12\n\"10\"1,11,1\n12,10,nan\n12,11,2\n",
		"n.csv":     "id,label,x\n10,cat,1\n11,dog,oops\n,cat,1\n12,ant,\n12,dog,4\n11,cat,5\n",
	}.write(t)
	o := Options{Nodes: "n.csv", Columns: []string{"x"}, Weight: "3"}
	_, err := read(dir, o)
	require.EqualError(t, err, dir+`/n.csv: line 3, column 3: "oops" is not a number; choose the columns of features with {feature_columns}`)
	o.SkipBad = 4
	_, err = read(dir, o)
	require.EqualError(t, err, dir+`/edges.csv: line 3: found 1 columns, and the first row has 3, parted by commas; an adjacency list, a node and its neighbours a row, is not read: write a row an edge; 4 bad rows were passed over before it, which is all that {skip_bad} allows`)
	o.SkipBad = 7
	o.Nodes = filepath.Join(dir, "n.csv")
	s, err := Open(filepath.Join(dir, "edges.csv"), o)
	require.NoError(t, err)
	for range 2 {
		g, err := sourcetest.Read(s)
		require.NoError(t, err)
		require.Equal(t, []int64{10, 12, 11}, g.NodeIDs[0].Numbers)
		require.Equal(t, []float32{1, 4, 5}, g.Rows[0])
		require.Equal(t, []int32{0, 1, 0}, g.Labels[0])
		require.Equal(t, []string{"cat", "dog"}, g.Schema.Labels[0].ClassNames)
		require.Equal(t, []int64{10, 12}, g.Edges[0].Src)
		require.Equal(t, []float32{1, 2}, g.Edges[0].Floats(0))
	}
	n, first := s.Extras().BadRows()
	require.EqualValues(t, 7, n)
	require.ErrorContains(t, first, "n.csv: line 3, column 3")
}

// TestIDSet holds the set against a map.
func TestIDSet(t *testing.T) {
	var s idSet
	want := map[int64]bool{}
	for i := range int64(2_200_000) {
		id := i * i % 10_007
		if i%2 == 0 {
			id = smallIDs + i*7919%50_021
		}
		s.add(id)
		want[id] = true
	}
	n, dense := s.count()
	require.Len(t, want, int(n))
	require.False(t, dense)
	got := s.ascending()
	require.True(t, slices.IsSorted(got))
	require.Len(t, got, len(want))
	for _, id := range got {
		if !want[id] {
			t.Fatal(id)
		}
	}
	require.Less(t, len(s.large), 60_000, "repeats are not kept")
	var d idSet
	for id := range int64(200) {
		d.add(199 - id)
	}
	n, dense = d.count()
	require.EqualValues(t, 200, n)
	require.True(t, dense)
}

const edges5 = "10,11\n11,14\n12,10\n"

func TestNodes(t *testing.T) {
	table := "id,name,label,x,y\n10,ten,cat,1,0.5\n11,\"a, b\",dog,2,-1e-05\n14,x,,3,1\n12,y,ant,0,0\n"
	g, err := read(files{"edges.csv": edges5, "n.csv": table}.write(t), Options{Nodes: "n.csv"})
	require.NoError(t, err)
	require.Equal(t, []int64{10, 11, 14, 12}, g.NodeIDs[0].Numbers)
	require.Equal(t, []ingest.Label{{Name: "label", NodeType: "node", Classes: 3, ClassNames: []string{"ant", "cat", "dog"}}}, g.Schema.Labels)
	require.Equal(t, []int32{1, 2, -1, 0}, g.Labels[0])
	require.Equal(t, []ingest.Table{{Name: "feat", NodeType: "node", Dim: 2}}, g.Schema.Tables)
	require.Equal(t, []float32{1, 0.5, 2, -1e-5, 3, 1, 0, 0}, g.Rows[0])
	require.Equal(t, []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: -1}}, g.Schema.Relations)
	require.Contains(t, g.Schema.Skipped[1], "n.csv: columns name: they do not hold numbers")

	// Named columns, in their order.
	g, err = read(files{"edges.csv": edges5, "n.csv": table}.write(t), Options{Nodes: "n.csv", Label: "name", Columns: []string{"y", "4"}, ID: "ID"})
	require.NoError(t, err)
	require.Equal(t, []string{"a, b", "ten", "x", "y"}, g.Schema.Labels[0].ClassNames)
	require.Equal(t, []float32{0.5, 1, -1e-5, 2, 1, 3, 0, 0}, g.Rows[0])
	require.Contains(t, g.Schema.Skipped[0], "n.csv: columns label: {feature_columns} chooses others")

	// Numbers are classes as they stand; the ids are rows.
	g, err = read(files{"edges.csv": "0,1\n2,0\n", "n.csv": "0 3\n1 nan\n2 1.0\n3 -1\n4 0\n"}.write(t), Options{Nodes: "n.csv", Label: "2"})
	require.NoError(t, err)
	require.Equal(t, []ingest.NodeType{{Name: "node", Count: 5}}, g.Schema.NodeTypes)
	require.Equal(t, []int32{3, -1, 1, -1, 0}, g.Labels[0])
	require.Equal(t, []ingest.Label{{Name: "label", NodeType: "node"}}, g.Schema.Labels)
	require.Empty(t, g.Schema.Tables)

	// Numbers that do not count from 0 are names of classes.
	g, err = read(files{"edges.csv": "0,1\n", "n.csv": "0,2010\n1,1999.0\n2,-1\n3,2010.0\n4,1999\n"}.write(t), Options{Nodes: "n.csv", Label: "2"})
	require.NoError(t, err)
	require.Equal(t, []ingest.Label{{Name: "label", NodeType: "node", Classes: 2, ClassNames: []string{"1999", "2010"}}}, g.Schema.Labels)
	require.Equal(t, []int32{1, 0, -1, 1, 0}, g.Labels[0])

	// Large integers are ids, unless they are asked for.
	dir := files{"edges.csv": "0,1\n", "n.csv": "id,other,x\n0,16777217,1.5\n1,2,2.5\n"}.write(t)
	g, err = read(dir, Options{Nodes: "n.csv"})
	require.NoError(t, err)
	require.Equal(t, []float32{1.5, 2.5}, g.Rows[0])
	require.Equal(t, []string{dir + "/n.csv: columns other: their numbers look like ids; name those that are features with {feature_columns}"}, g.Schema.Skipped)
	g, err = read(dir, Options{Nodes: "n.csv", Columns: []string{"other"}})
	require.NoError(t, err)
	require.Equal(t, []float32{16777216, 2}, g.Rows[0])

	// A name that begins as a comment does, in a table that begins with one.
	g, err = read(files{"edges.csv": "0,1\n", "n.csv": "# nodes\nname,id\n#1,0\n%2,1\n"}.write(t), Options{Nodes: "n.csv"})
	require.NoError(t, err)
	require.EqualValues(t, 2, g.Schema.NodeTypes[0].Count)
}

// TestNumbers: labels may be numbers, negative ones among them, and cells without one are missing.
func TestNumbers(t *testing.T) {
	table := "id,price,x\n10,-1.5,1\n11,,2\n14,nan,3\n12,3e2,4\n"
	g, err := read(files{"edges.csv": edges5, "n.csv": table}.write(t), Options{Nodes: "n.csv", Label: "price:value"})
	require.NoError(t, err)
	require.Equal(t, []ingest.Label{{Name: "label", NodeType: "node", Numbers: true}}, g.Schema.Labels)
	require.Equal(t, []float32{1, 2, 3, 4}, g.Rows[0])
	for i, want := range []float32{-1.5, float32(math.NaN()), float32(math.NaN()), 300} {
		got := math.Float32frombits(uint32(g.Labels[0][i]))
		require.True(t, got == want || got != got && want != want, "%v", got)
	}
	// A column of that very name is one of classes.
	g, err = read(files{"edges.csv": edges5, "n.csv": "id,a:value\n10,0\n11,1\n14,0\n12,1\n"}.write(t), Options{Nodes: "n.csv", Label: "a:value"})
	require.NoError(t, err)
	require.Equal(t, []int32{0, 1, 0, 1}, g.Labels[0])
	dir := files{"edges.csv": edges5, "n.csv": "id,price\n10,1\n11,inf\n14,x\n12,1\n"}.write(t)
	_, err = read(dir, Options{Nodes: "n.csv", Label: "2:value"})
	require.EqualError(t, err, dir+`/n.csv: line 3, column 2: "inf" is not a finite number of 32 bits; choose another {label}, or leave out the :value behind it`)
}

func TestFeatureMap(t *testing.T) {
	f := files{"edges.csv": edges5, "n.csv": "id,size,label\n10,1,a\n14,2,b\n12,3,a\n11,4,b\n", "f.json": `{"14": [3, 0, 3], "10": [], "12": [1]}`}
	g, err := read(f.write(t), Options{Nodes: "n.csv", Features: "f.json"})
	require.NoError(t, err)
	require.Equal(t, []ingest.Table{{Name: "feat", NodeType: "node", Dim: 4}}, g.Schema.Tables)
	require.Equal(t, []float32{0, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0}, g.Rows[0])
	require.Contains(t, g.Schema.Skipped[1], "n.csv: columns size: the features come from {node_features}")
	// The nodes that edges name, in ascending order: 10, 11, 12, 14.
	g, err = read(f.write(t), Options{Features: "f.json"})
	require.NoError(t, err)
	require.Equal(t, []float32{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1}, g.Rows[0])
	g, err = read(files{"edges.csv": "0,1\n", "f.json": `{"1":[0]}`}.write(t), Options{Features: "f.json"})
	require.NoError(t, err)
	require.Equal(t, []float32{0, 1}, g.Rows[0])
}

// TestMissingFeatures: nodes that the map lacks are counted, and refused when that is asked for.
func TestMissingFeatures(t *testing.T) {
	dir := files{"edges.csv": edges5, "n.csv": "id\n10\n14\n12\n11\n", "f.json": `{"14": [0], "10": []}`, "all.json": `{"14":[0],"10":[],"11":[],"12":[1]}`}.write(t)
	for _, nodes := range []string{"", filepath.Join(dir, "n.csv")} {
		o := Options{Nodes: nodes, Features: filepath.Join(dir, "f.json")}
		s, err := Open(filepath.Join(dir, "edges.csv"), o)
		require.NoError(t, err)
		_, err = sourcetest.Read(s)
		require.NoError(t, err)
		require.EqualValues(t, 2, s.MissingRows(0))
		o.Missing = "refuse"
		s, err = Open(filepath.Join(dir, "edges.csv"), o)
		require.NoError(t, err)
		_, err = sourcetest.Read(s)
		first := "11"
		if nodes != "" {
			first = "12"
		}
		require.EqualError(t, err, dir+"/f.json: node "+first+" is not in it, and 2 in all are not; add them, or say {missing_features} zeros")
		o.Features = filepath.Join(dir, "all.json")
		s, err = Open(filepath.Join(dir, "edges.csv"), o)
		require.NoError(t, err)
		_, err = sourcetest.Read(s)
		require.NoError(t, err)
		require.Zero(t, s.MissingRows(0))
	}

	// Rows of a table whose features are all empty are refused, unless it is asked for.
	dir = files{"edges.csv": "0,1\n", "n.csv": "id,x,y\n0,1,2\n1,,\n2,nan,\n3,4,5\n", "part.csv": "id,x,y\n0,1,2\n1,,3\n"}.write(t)
	s, err := Open(filepath.Join(dir, "edges.csv"), Options{Nodes: filepath.Join(dir, "n.csv"), Label: "none", Missing: "zeros"})
	require.NoError(t, err)
	g, err := sourcetest.Read(s)
	require.NoError(t, err)
	require.Equal(t, []float32{1, 2, 0, 0, 0, 0, 4, 5}, g.Rows[0])
	require.EqualValues(t, 2, s.MissingRows(0))
	_, err = read(dir, Options{Nodes: "part.csv", Label: "none", Missing: "zeros"})
	require.EqualError(t, err, dir+"/part.csv: line 3, column 2: a feature is missing; fill it in, or choose other columns with {feature_columns}")
	require.EqualError(t, (&Options{Missing: "x"}).Validate(), "{missing_features} \"x\": choose zeros or refuse\n{missing_features}: it goes with {node_features} and {nodes}, which may lack some")
}

func TestManyRows(t *testing.T) {
	const n = ingest.ChunkRows + 11
	var edges, nodes, features strings.Builder
	nodes.WriteString("id,label,x\n")
	for i := range n {
		fmt.Fprintf(&edges, "%d\t%d\n", 3*i, 3*(n-1-i))
		fmt.Fprintf(&nodes, "%d,%d,%d\n", 3*i, i%5, i%100)
		fmt.Fprintf(&features, `,"%d":[%d]`, 3*(n-1-i), (n-1-i)%50)
	}
	dir := files{"edges.csv": edges.String(), "n.csv": nodes.String(), "f.json": "{" + features.String()[1:] + "}"}.write(t)
	for _, o := range []Options{{Nodes: "n.csv"}, {Nodes: "n.csv", Features: "f.json"}, {Features: "f.json"}} {
		g, err := read(dir, o)
		require.NoError(t, err)
		require.Len(t, g.Edges[0].Src, n)
		require.Len(t, g.NodeIDs[0].Numbers, n)
		dim := g.Schema.Tables[0].Dim
		for i := range n {
			if g.Edges[0].Src[i] != int64(3*i) || g.Edges[0].Dst[i] != int64(3*(n-1-i)) || g.NodeIDs[0].Numbers[i] != int64(3*i) || o.Nodes != "" && g.Labels[0][i] != int32(i%5) {
				t.Fatal("row", i)
			}
			if dim == 1 && g.Rows[0][i] != float32(i%100) || dim == 50 && g.Rows[0][i*50+i%50] != 1 {
				t.Fatal("features of row", i)
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	const id = "as ids are; if they are text, say {id_type} text"
	nodes, both := Options{Nodes: "n.csv"}, Options{Nodes: "n.csv", Features: "f.json"}
	for _, c := range []struct {
		f    files
		o    Options
		want string // DIR is the folder
	}{
		{files{"edges.csv": ""}, Options{}, "DIR/edges.csv: the file is empty; fetch it again"},
		{files{"edges.csv": "\n\n"}, Options{}, "DIR/edges.csv: there are no edges in it, and no {nodes} to know the nodes from"},
		{files{"edges.csv": "src,dst\n"}, Options{}, "DIR/edges.csv: there are no edges in it, and no {nodes} to know the nodes from"},
		{files{"edges.csv": "0,1\n2,x\n"}, Options{}, `DIR/edges.csv: line 2, column 2: "x" is not an integer of 64 bits, ` + id},
		{files{"edges.csv": "alice,bob\nbob,carol\n"}, Options{}, "DIR/edges.csv: is the first row (alice, bob) a header? Nothing tells, so say {header} yes or no"},
		{files{"edges.csv": "alice,bob\nbob,carol\n"}, Options{IDType: "int"}, `DIR/edges.csv: line 2, column 1: "bob" is not an integer of 64 bits, ` + id},
		{files{"edges.csv": "src,dst\nbob,\n"}, Options{}, "DIR/edges.csv: line 2, column 2: an id is missing"},
		{files{"edges.csv": "src,dst\nbob," + strings.Repeat("x", 4097) + "\n"}, Options{}, "DIR/edges.csv: line 2, column 2: an id of 4097 bytes, and 4096 are the most"},
		{files{"edges.csv": "src,dst\nbob,al\n"}, Options{Count: 3}, "DIR/edges.csv: its ids are text, and {node_count} is of nodes whose ids are integers from 0; leave it out"},
		{files{"edges.csv": "src,dst\nbob,al\n", "f.json": "{}"}, Options{Features: "f.json"}, "DIR/edges.csv: its ids are text, and {node_features} is a map from integers; if they are integers, say {id_type} int"},
		{files{"edges.csv": "src,dst,w\n1,2,x\n"}, Options{Weight: "w"}, `DIR/edges.csv: line 2, column 3: "x" is not a number; choose another {weight}`},
		{files{"edges.csv": "src,dst,w\n1,2,1e39\n"}, Options{Weight: "w"}, `DIR/edges.csv: line 2, column 3: "1e39" is not a finite number of 32 bits`},
		{files{"edges.csv": "src,dst,w\n1,2,1\n"}, Options{Weight: "src"}, "DIR/edges.csv: column src holds both ids and weights; choose another {weight}"},
		{files{"edges.csv": "src,dst,w\n1,2,1\n"}, Options{Weight: "x"}, "DIR/edges.csv: {weight} x: there is no such column; there are src, dst, w"},
		{files{"edges.csv": "src,dst\na,b\n", "n.csv": "one\ntwo\n"}, nodes, "DIR/n.csv: is the first row (one) a header? Nothing tells, so say {header} yes or no"},
		{files{"edges.csv": "id,2019\n1,2\n"}, Options{}, `DIR/edges.csv: line 1, column 1: "id" is not an integer of 64 bits, as ids are; if this is the header, say {header} yes`},
		{files{"edges.csv": "0,1\n-2,1\n"}, Options{}, "DIR/edges.csv: line 2, column 1: id -2 is negative; ids are integers from 0, or say {id_type} text"},
		{files{"edges.csv": "0,1\n2,1.5\n"}, Options{}, `DIR/edges.csv: line 2, column 2: "1.5" is not an integer of 64 bits, ` + id},
		{files{"edges.csv": "1.5,2.5\n2.5,3.5\n"}, Options{}, `DIR/edges.csv: line 1, column 1: "1.5" is not an integer of 64 bits, as ids are; if this is the header, say {header} yes`},
		{files{"edges.csv": "0,1\n1,9007199254740992.0\n"}, Options{}, `DIR/edges.csv: line 2, column 2: "9007199254740992.0" is not an integer of 64 bits, ` + id},
		{files{"edges.csv": "0,9223372036854775808\n"}, Options{Header: "yes"}, "DIR/edges.csv: there are no edges in it, and no {nodes} to know the nodes from"},
		{files{"edges.csv": "0,1\n0,9223372036854775808\n"}, Options{}, `DIR/edges.csv: line 2, column 2: "9223372036854775808" is not an integer of 64 bits, ` + id},
		{files{"edges.csv": "0,1\n0,99999999999999999999999999\n"}, Options{}, `DIR/edges.csv: line 2, column 2: "99999999999999999999999999" is not an integer of 64 bits, ` + id},
		{files{"edges.csv": "0,1\n0,1e300\n"}, Options{}, `DIR/edges.csv: line 2, column 2: "1e300" is a number whose last digits are left out, as spreadsheets write long ids; export the column as text, with all digits`},
		{files{"edges.csv": "0,1\n0,\n"}, Options{}, "DIR/edges.csv: line 2, column 2: an id is missing"},
		{files{"edges.csv": "0,1\n1,2\n2\n"}, Options{}, "DIR/edges.csv: line 3: found 1 columns, and the first row has 2, parted by commas; an adjacency list, a node and its neighbours a row, is not read: write a row an edge"},
		{files{"edges.csv": "0,1\n2\t3\n"}, Options{}, "DIR/edges.csv: line 2: found 1 columns, and the first row has 2, parted by commas; mend the row"},
		{files{"edges.csv": "0/1\n"}, Options{}, "DIR/edges.csv: line 1: found 1 columns, and an edge has two ids; parted by commas, tabs, semicolons, bars, double colons or blanks?"},
		{files{"edges.csv": "2\n0 1\n1 2\n"}, Options{}, "DIR/edges.csv: line 1: found 1 columns, and an edge has two ids; if this row counts edges, say {header} yes"},
		{files{"edges.csv": "0,\"1\n"}, Options{}, "DIR/edges.csv: line 1: a quote opens a cell and does not close; close it, or double the quotes that are text"},
		{files{"edges.csv": "src,dst,note\n0,1,\"a\nb\"\n1,x,\n"}, Options{}, `DIR/edges.csv: line 4, column 2: "x" is not an integer of 64 bits, ` + id},
		{files{"edges.csv": "src,dst,note\n0,1,\"a\nb\"\n1,x,\"\n\"\n"}, Options{SkipBad: 9}, `DIR/edges.csv: line 4, column 2: "x" is not an integer of 64 bits, ` + id},
		{files{"edges.csv": "src,dst,note\n0,1,\"a\nb\"\n1,2,\"\n\n3,4,\n"}, Options{SkipBad: 9}, "DIR/edges.csv: line 4: a quote opens a cell and does not close; close it, or double the quotes that are text"},
		{files{"edges.csv": "\"a b\" c\n"}, Options{}, `DIR/edges.csv: line 1, column 1: "\"a" opens a quote, and blanks part cells, in quotes too; use another delimiter`},
		{files{"edges.csv": "src,dst\n0,1\n2,0,7\n"}, Options{}, "DIR/edges.csv: line 3: found 3 columns, and the first row has 2, parted by commas; mend the row, or pass over it with {skip_bad}"},
		{files{"edges.csv": "0\t1\t5\n1\t2\t5\n2\t0\n"}, Options{}, "DIR/edges.csv: line 3: found 2 columns, and the first row has 3, parted by tabs; an adjacency list, a node and its neighbours a row, is not read: write a row an edge"},
		{files{"edges.csv": "0 1 2 3\n1 2\n2 0 1\n"}, Options{}, "DIR/edges.csv: line 2: found 2 columns, and the first row has 4, parted by blanks; ADJLIST"},
		{files{"edges.csv": "5 4 2\n5 4 0.5\n1 3 1.5\n"}, Options{}, "DIR/edges.csv: line 1: 5, 4 and 2 count what follows, 2 rows without an id beyond 5 and 4, or are an edge; say {header} yes to pass over them, or {header} no"},
		{files{"edges.csv": "3 2\n1 2 0.5\n2 3 0.5\n"}, Options{}, "DIR/edges.csv: line 2: found 3 columns, and the first row has 2, parted by blanks; if the first row counts nodes and edges, say {header} yes; else mend the row"},
		{files{"edges.csv": "3 3\n2 3 4\n1\n2\n"}, Options{}, "DIR/edges.csv: line 2: found 3 columns, and the first row has 2, parted by blanks; if the first row counts nodes and edges, say {header} yes; ADJLIST"},
		{files{"edges.csv": "34 3\n1 2\n2 34\n3 1\n"}, Options{}, "DIR/edges.csv: line 1: 34 and 3 count what follows, 3 rows without an id beyond 34, or are an edge; say {header} yes to pass over them, or {header} no"},
		{files{"edges.csv": "0,\"1\"2\n"}, Options{}, `DIR/edges.csv: line 1, column 2: "2" follows the closing quote; double the quotes inside the cell`},
		{files{"edges.csv": "0,\x001\n"}, Options{}, "DIR/edges.csv: line 1: the file is not text: it holds a zero byte, as a file does that a crash cut short; make it again"},
		{files{"edges.csv": "0,1\n0,\x001\n"}, Options{}, `DIR/edges.csv: line 2: the file is not text: it holds a zero byte, as a file does that a crash cut short; make it again`},
		{files{"edges.csv": "0,1\n" + strings.Repeat("7", 17<<20)}, Options{}, "DIR/edges.csv: line 2: longer than 16777216 bytes; is this a table?"},
		{files{"edges.csv": zipped("0,1\n2,3\n")[:30]}, Options{}, "DIR/edges.csv: truncated or damaged download (unexpected EOF); fetch it again"},
		{files{"edges.csv": "{\"0\": [1]}"}, Options{}, "DIR/edges.csv: line 1: it starts with {: JSON or a web page, and a table is expected; a graph in node-link JSON is read by gnnstore ingest nodelink DIR/edges.csv OUT"},
		{files{"edges.csv": "PK\x03\x04"}, Options{}, "DIR/edges.csv: a zip archive; unpack it first and name the file inside"},
		{files{"edges.csv": "a,b\n0,1\n"}, Options{Src: "c"}, "DIR/edges.csv: {src} c: there is no such column; there are a, b"},
		{files{"edges.csv": "0,1\n"}, Options{Dst: "3"}, "DIR/edges.csv: {dst} 3: the table has no header, so columns go by number, from 1 to 2"},
		{files{"edges.csv": "a,b\n0,1\n"}, Options{Dst: "a"}, "DIR/edges.csv: column a is both source and destination; choose two with {columns} SRC,DST[,WEIGHT]"},
		{files{"edges.csv": "a,b,c\n0,1,2\n"}, Options{}, "DIR/edges.csv: which of the columns a, b, c are the ends of edges? Their names do not tell, so say {columns} SRC,DST[,WEIGHT]"},
		{files{"edges.csv": "source,target,u,v\n0,1,2,3\n"}, Options{}, "DIR/edges.csv: which of the columns source, target, u, v are the ends of edges? Their names do not tell, so say {columns} SRC,DST[,WEIGHT]"},
		{files{"edges.csv": "source_id,source,target,t\n0,1,2,3\n"}, Options{Dst: "t"}, "DIR/edges.csv: which of the columns source_id, source, target, t are the ends of edges? Their names do not tell, so say {columns} SRC,DST[,WEIGHT]"},
		{files{"edges.csv": "0,1,2\n"}, Options{Ends: []string{"1", "4"}}, "DIR/edges.csv: {columns} 4: the table has no header, so columns go by number, from 1 to 3"},
		{files{"edges.csv": edges5}, nodes, "open DIR/n.csv: no such file or directory"},
		{files{"edges.csv": edges5, "n.csv": "\n"}, nodes, "DIR/n.csv: there are no rows in it"},
		{files{"edges.csv": edges5, "n.csv": "id,x\n"}, nodes, "DIR/n.csv: there are no rows in it"},
		{files{"edges.csv": edges5, "n.csv": "name,x\nbob,1\n"}, Options{Nodes: "n.csv", IDType: "int"}, `DIR/n.csv: line 2, column 1: "bob" is not an integer of 64 bits, ` + id},
		{files{"edges.csv": edges5, "n.csv": "id,x\n1,1\n2,y\n"}, Options{Nodes: "n.csv", Columns: []string{"x"}}, `DIR/n.csv: line 3, column 2: "y" is not a number; choose the columns of features with {feature_columns}`},
		{files{"edges.csv": edges5, "n.csv": "id,x\n1,1\n2,\n"}, nodes, "DIR/n.csv: line 3, column 2: a feature is missing; fill it in, or choose other columns with {feature_columns}, or say {missing_features} zeros"},
		{files{"edges.csv": edges5, "n.csv": "id,x\n1,1\n2\n"}, nodes, "DIR/n.csv: line 3: found 1 columns, and the first row has 2, parted by commas; mend the row, or pass over it with {skip_bad}"},
		{files{"edges.csv": edges5, "n.csv": "id,x\n1,1\n"}, Options{Nodes: "n.csv", Label: "y"}, "DIR/n.csv: {label} y: there is no such column; there are id, x"},
		{files{"edges.csv": edges5, "n.csv": "id,x\n1,1\n"}, Options{Nodes: "n.csv", Label: "id"}, "DIR/n.csv: column id holds both ids and labels; choose two with {id} and {label}"},
		{files{"edges.csv": edges5, "n.csv": "id,x\n1,1\n"}, Options{Nodes: "n.csv", Columns: []string{"id"}}, "DIR/n.csv: {feature_columns} id: it holds ids, labels or a split, or is named twice"},
		{files{"edges.csv": edges5, "n.csv": "id,l\n1," + strings.Repeat("z", 300) + "\n"}, Options{Nodes: "n.csv", Label: "l"}, "DIR/n.csv: line 2, column 2: a label of 300 bytes is not a class; choose another {label}"},
		{files{"edges.csv": edges5, "f.json": `{"10":[1],"13":[2]}`}, Options{Features: "f.json"}, "DIR/f.json: byte 14: node 13 is not in the graph; name the table of all nodes with {nodes}"},
		{files{"edges.csv": edges5, "f.json": `{"10":[1],"10":[2]}`}, Options{Features: "f.json"}, "DIR/f.json: byte 14: node 10 is there twice"},
		{files{"edges.csv": edges5, "f.json": `{"10":1}`}, Options{Features: "f.json"}, "DIR/f.json: byte 6: node 10 has a number, and a list of columns is expected"},
		{files{"edges.csv": edges5, "f.json": `{"10":[-1]}`}, Options{Features: "f.json"}, "DIR/f.json: byte 8: node 10: -1 is not a column; columns count from 0 to 4194303"},
		{files{"edges.csv": edges5, "f.json": `{"10":[4194304]}`}, Options{Features: "f.json"}, "DIR/f.json: byte 13: node 10: 4194304 is not a column; columns count from 0 to 4194303"},
		{files{"edges.csv": edges5, "f.json": `{"ten":[1]}`}, Options{Features: "f.json"}, `DIR/f.json: byte 6: key "ten" is not the id of a node; a map of features goes from ids to lists of columns`},
		{files{"edges.csv": edges5, "n.csv": "id\n10\n", "f.json": `{"10":[1`}, both, "DIR/f.json: byte 8: the file ends within the object; fetch it again"},
	} {
		dir := c.f.write(t)
		_, err := read(dir, c.o)
		want := strings.ReplaceAll(strings.ReplaceAll(c.want, "ADJLIST", lines.Adjacency(filepath.Join(dir, "edges.csv"))), "DIR", dir)
		require.EqualError(t, err, want, "%q", c.f)
	}
	_, err := Open(filepath.Join(t.TempDir(), "none"), Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	dir := t.TempDir()
	_, err = Open(dir, Options{})
	require.EqualError(t, err, dir+": nothing in it; name an edge list, or a folder of its parts")
	if os.Geteuid() != 0 {
		require.NoError(t, os.Chmod(dir, 0))
		_, err = Open(dir, Options{})
		require.ErrorIs(t, err, os.ErrPermission)
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	o := Options{Header: "maybe", Label: "x", Columns: []string{"a"}, Features: "f"}
	o = Options{IDType: "uuid", Count: -1}
	require.EqualError(t, o.Validate(), "{id_type} \"uuid\": choose int, text or auto\n{node_count} -1: a graph has 1 to 4294967295 nodes")
	o = Options{IDType: "text", Count: 7, Nodes: "n", Features: "f"}
	require.ErrorContains(t, o.Validate(), "{node_count} and {nodes}")
	o.Nodes = ""
	require.EqualError(t, o.Validate(), "{node_count} and {id_type} text: counted nodes have the ids from 0 on; leave one of them out\n{node_features} and {id_type} text: the map is from integers; choose one of them")
	o = Options{Header: "maybe", Label: "x", Columns: []string{"a"}, Features: "f"}
	require.EqualError(t, o.Validate(), strings.Join([]string{
		`{header} "maybe": choose yes, no or auto`,
		"{label}: it names a column of the table of nodes; say which file that is with {nodes}",
		"{feature_columns}: it names a column of the table of nodes; say which file that is with {nodes}",
		"{feature_columns} and {node_features}: a graph has one table of features; choose one of them",
	}, "\n"))
}

// TestTooManyLabels: a column of names is no column of classes, and is told before it fills the
// memory. TestLabelWords: what tables have for nothing is no class, and true is one class however
// it is capitalised.
func TestLabelWords(t *testing.T) {
	dir := files{"edges.csv": "0,1\n", "n.csv": "id,l\n0,True\n1,NA\n2,FALSE\n3,null\n4,TRUE\n5,None\n6,n/a\n"}.write(t)
	g, err := read(dir, Options{Nodes: "n.csv", Label: "l"})
	require.NoError(t, err)
	require.Equal(t, []string{"false", "true"}, g.Schema.Labels[0].ClassNames)
	require.Equal(t, []int32{1, -1, 0, -1, 1, -1, -1}, g.Labels[0])
}

func TestTooManyLabels(t *testing.T) {
	var text strings.Builder
	text.WriteString("id,name\n")
	for i := range maxClassNames + 10 {
		fmt.Fprintf(&text, "%d,n%d\n", i, i)
	}
	dir := files{"edges.csv": "0,1\n", "n.csv": text.String()}.write(t)
	_, err := read(dir, Options{Nodes: "n.csv", Label: "name"})
	require.EqualError(t, err, dir+"/n.csv: line 65538, column 2: more than 65536 different labels are not classes; choose another {label}")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "n.csv"), []byte(text.String()[:strings.LastIndexByte(text.String()[:10_000], '\n')]), 0o644))
	_, err = read(dir, Options{Nodes: "n.csv", Label: "name"})
	require.ErrorContains(t, err, "n.csv: column 2: ")
	require.ErrorContains(t, err, " nodes are not classes; choose another {label}")
}

func BenchmarkEdges(b *testing.B) {
	var text strings.Builder
	for i := range 500_000 {
		fmt.Fprintf(&text, "%d,%d\n", i*31%169343, i*7919%169343)
	}
	dir := files{"edges.csv": text.String()}.write(b)
	s, err := Open(filepath.Join(dir, "edges.csv"), Options{})
	require.NoError(b, err)
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		require.NoError(b, s.Edges(context.Background(), 0, func(ingest.EdgeChunk) error { return nil }))
	}
}
