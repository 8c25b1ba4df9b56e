package planetoid

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

// The writer of protocol 2, as far as the format goes.

func number(v int) string {
	return "J" + string(binary.LittleEndian.AppendUint32(nil, uint32(int32(v))))
}

func text(s string) string { return "U" + string(rune(len(s))) + s }

func array(descr string, shape []int, data any) string {
	b, err := binary.Append(nil, binary.LittleEndian, data)
	if err != nil {
		panic(err)
	}
	dims := "("
	for _, d := range shape {
		dims += number(d)
	}
	return "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01" + dims + "tcnumpy\ndtype\n" + text(descr) +
		"K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T" + number(len(b))[1:] + string(b) + "tb"
}

func matrix(rows, cols int, indptr, indices []int32, data []float32) string {
	return "cscipy.sparse.csr\ncsr_matrix\n)\x81}(" + text("_shape") + "(" + number(rows) + number(cols) + "t" +
		text("indptr") + array("i4", []int{len(indptr)}, indptr) + text("indices") + array("i4", []int{len(indices)}, indices) +
		text("data") + array("f4", []int{len(data)}, data) + "ub"
}

func list(items ...int) string {
	var s strings.Builder
	for _, v := range items {
		s.WriteString(number(v))
	}
	return "](" + s.String() + "e"
}

func dict(items ...string) string {
	return "ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(" + strings.Join(items, "") + "u"
}

func pickled(code string) string { return "\x80\x02" + code + "." }

// files is a graph of seven nodes by suffix: allx has 0…3, test.index has 6 and 4, and 5 is
// skipped. Node 2 has no label.
type files map[string]string

func seven() files {
	return files{
		"allx":       pickled(matrix(4, 3, []int32{0, 1, 1, 3, 4}, []int32{0, 1, 2, 2}, []float32{1, 2, 3, 4})),
		"x":          pickled(matrix(2, 3, []int32{0, 1, 1}, []int32{0}, []float32{1})),
		"tx":         pickled(matrix(2, 3, []int32{0, 1, 3}, []int32{2, 0, 0}, []float32{6, 4, 0.5})),
		"ally":       pickled(array("i4", []int{4, 2}, []int32{1, 0, 0, 1, 0, 0, 1, 0})),
		"y":          pickled(array("i4", []int{2, 2}, []int32{1, 0, 0, 1})),
		"ty":         pickled(array("i4", []int{2, 2}, []int32{0, 1, 1, 0})),
		"graph":      pickled(dict(number(0), list(1, 1), number(1), list(0), number(3), list(3, 6), number(6), list(3), number(5), list())),
		"test.index": "6\r\n4\n\n",
	}
}

func (f files) write(t testing.TB) string { return f.writeTo(t, t.TempDir()) }

// writeTo writes over what an earlier call has left there.
func (f files) writeTo(t testing.TB, dir string) string {
	for suffix, body := range f {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "ind.seven."+suffix), []byte(body), 0o644))
	}
	return dir
}

func (f files) with(suffix, body string) files {
	if f[suffix] = body; body == "-" {
		delete(f, suffix)
	}
	return f
}

func read(path string) (sourcetest.Graph, error) {
	s, err := Open(path, 0)
	if err != nil {
		return sourcetest.Graph{}, err
	}
	defer s.Close()
	return sourcetest.Read(s)
}

func TestWholeGraph(t *testing.T) {
	s, err := Open(seven().write(t), 0)
	require.NoError(t, err)
	for range 2 { // every section can be read again
		g, err := sourcetest.Read(s)
		require.NoError(t, err)
		require.Equal(t, sourcetest.Graph{
			Schema: &ingest.Schema{
				Name:      "seven",
				NodeTypes: []ingest.NodeType{{Name: "node", Count: 7}},
				Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: 6}},
				Tables:    []ingest.Table{{Name: "feat", NodeType: "node", Dim: 3}},
				Labels:    []ingest.Label{{Name: "label", NodeType: "node", Classes: 2}},
				Splits:    []ingest.Split{{Name: "public", NodeType: "node"}},
				Skipped:   []string{"test.index: it skips 1 nodes, which have no label and features of zeros"},
			},
			NodeIDs: []sourcetest.IDs{{}},
			Edges:   []sourcetest.Edges{{Src: []int64{0, 0, 1, 3, 3, 6}, Dst: []int64{1, 1, 0, 3, 6, 3}}},
			Rows:    [][]float32{{1, 0, 0, 0, 0, 0, 0, 2, 3, 0, 0, 4, 4.5, 0, 0, 0, 0, 0, 0, 0, 6}},
			Labels:  [][]int32{{0, 1, -1, 0, 0, -1, 1}},
			Splits:  []sourcetest.Split{{{Numbers: []int64{0, 1}}, {Numbers: []int64{2, 3}}, {Numbers: []int64{6, 4}}}},
		}, g)
	}
	require.NoError(t, s.Close())
}

// TestNames: the folder, a folder with raw/ in it, the prefix, the name alone, and each file.
func TestNames(t *testing.T) {
	dir := seven().write(t)
	outer := t.TempDir()
	require.NoError(t, os.Symlink(dir, filepath.Join(outer, "raw")))
	paths := []string{dir, dir + "/", outer, filepath.Join(dir, "ind.seven"), filepath.Join(dir, "seven")}
	for _, suffix := range suffixes {
		paths = append(paths, filepath.Join(dir, "ind.seven."+suffix))
	}
	for _, path := range paths {
		g, err := read(path)
		require.NoError(t, err, path)
		require.Equal(t, "seven", g.Schema.Name)
	}
	_, err := Open(outer+"/none/ind.seven", 0)
	require.ErrorContains(t, err, "/none/ind.seven.x: no such file; a Planetoid graph is ind.NAME.{x,y,tx,ty,allx,ally,graph,test.index}")
	_, err = Open(t.TempDir(), 0)
	require.ErrorContains(t, err, "no ind.NAME.allx in it; name the folder")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ind.pubmed.allx"), nil, 0o644))
	_, err = Open(dir, 0)
	require.EqualError(t, err, dir+": several graphs (ind.pubmed, ind.seven); name one, as in "+dir+"/ind.pubmed")
}

func TestOrderAndForm(t *testing.T) {
	// Labels as floats, column by column.
	labels := strings.Replace(array("f8", []int{4, 2}, []float64{1, 0, 0, 1, 0, 1, 0, 0}), "\x89T", "\x88T", 1)
	g, err := read(seven().with("ally", pickled(labels)).write(t))
	require.NoError(t, err)
	require.Equal(t, []int32{0, 1, -1, 0, 0, -1, 1}, g.Labels[0])
	// A graph without the last nodes, and one with more of them.
	g, err = read(seven().with("graph", pickled(dict())).write(t))
	require.NoError(t, err)
	require.EqualValues(t, 7, g.Schema.NodeTypes[0].Count)
	g, err = read(seven().with("graph", pickled(dict(number(9), list(0)))).write(t))
	require.NoError(t, err)
	require.EqualValues(t, 10, g.Schema.NodeTypes[0].Count)
	require.Len(t, g.Rows[0], 30)
}

func TestManyNodes(t *testing.T) {
	const n = ingest.ChunkRows + 700
	indptr, ones := make([]int32, n+1), make([]int32, 0, n*2)
	var lists []string
	for v := range n {
		ones = append(ones, int32(1-v%2), int32(v%2))
		lists = append(lists, number(v), list((v+1)%n))
	}
	f := seven().with("allx", pickled(matrix(n, 3, indptr, nil, nil))).with("ally", pickled(array("i4", []int{n, 2}, ones))).
		with("y", pickled(array("i4", []int{600, 2}, ones[:1200]))).with("x", pickled(matrix(600, 3, indptr[:601], nil, nil))).
		with("graph", pickled(dict(lists...))).with("test.index", fmt.Sprintf("%d\n%d\n", n+1, n))
	g, err := read(f.write(t))
	require.NoError(t, err)
	require.Len(t, g.Edges[0].Src, n)
	require.Len(t, g.Rows[0], (n+2)*3)
	require.Equal(t, []float32{4.5, 0, 0, 0, 0, 6}, g.Rows[0][n*3:])
	require.Equal(t, []int32{0, 1}, g.Labels[0][n:])
	require.Len(t, g.Splits[0][ingest.Train].Numbers, 600)
	require.Len(t, g.Splits[0][ingest.Valid].Numbers, 500)
	require.EqualValues(t, 600, g.Splits[0][ingest.Valid].Numbers[0])
	for v := range n {
		if g.Edges[0].Src[v] != int64(v) || g.Edges[0].Dst[v] != int64((v+1)%n) || g.Labels[0][v] != int32(v%2) {
			t.Fatal("node", v)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct{ suffix, body, want string }{
		{"graph", "-", "DIR/ind.seven.graph: no such file; a Planetoid graph is ind.NAME.{x,y,tx,ty,allx,ally,graph,test.index}, so name their folder, or one of them"},
		{"graph", "cos\nsystem\n(S'true'\ntR.", `DIR/ind.seven.graph: byte 0: it imports "os.system", which is not on the list of what data needs; this file is refused`},
		{"graph", pickled(list(1)), "DIR/ind.seven.graph: it holds a list, and a dict of lists is expected"},
		{"graph", pickled(dict("N", list(1))), "DIR/ind.seven.graph: item 0 (counting from 0) is of None, and nodes are integers from 0"},
		{"graph", pickled(dict(number(-1), list(1))), "DIR/ind.seven.graph: item 0 (counting from 0) is of an integer, and nodes are integers from 0"},
		{"graph", pickled(dict(number(1), list(), number(1), list())), "DIR/ind.seven.graph: node 1 has two lists of neighbours"},
		{"graph", pickled(dict(number(1), number(2))), "DIR/ind.seven.graph: node 1 has an integer, and a list of neighbours is expected"},
		{"graph", pickled(dict(number(1), list(0, -3))), "DIR/ind.seven.graph: node 1: neighbour 1 (counting from 0) is -3, and nodes are integers from 0"},
		{"graph", pickled(dict(number(1), "](Ne")), "DIR/ind.seven.graph: node 1: neighbour 0 (counting from 0) is None, and nodes are integers from 0"},
		{"graph", pickled(dict(number(1<<30), list(0))), "DIR/ind.seven.graph: node 1073741824, and there are 6 rows of features; fetch both again"},
		// One long list under many nodes.
		{"graph", pickled("}(K\x00" + list(make([]int, 100)...) + "q\x00K\x01h\x00K\x02h\x00K\x03h\x00K\x04h\x00K\x05h\x00K\x06h\x00u"),
			"DIR/ind.seven.graph: more neighbours than the file has bytes; this file is refused"},
		{"test.index", "6\nx\n", `DIR/ind.seven.test.index: line 2: "x" is not the id of a node, which count from 0`},
		{"test.index", "6\n-4\n", `DIR/ind.seven.test.index: line 2: "-4" is not the id of a node, which count from 0`},
		{"test.index", "", "DIR/ind.seven.test.index: the file is empty; fetch it again"},
		{"test.index", "6\n", "DIR/ind.seven.ty: 2 rows, and DIR/ind.seven.test.index lists 1 nodes; fetch both again"},
		{"test.index", "6\n6\n", "DIR/ind.seven.test.index: row 1 (counting from 0): node 6 is already that of row 0"},
		{"test.index", "6\n3\n", "DIR/ind.seven.test.index: row 1 (counting from 0): node 3, and test nodes follow the 4 of DIR/ind.seven.allx; fetch both again"},
		{"test.index", "6\n99999999999\n", "DIR/ind.seven.test.index: row 1 (counting from 0): node 99999999999, and test nodes follow the 4 of DIR/ind.seven.allx; fetch both again"},
		{"ally", pickled(array("i4", []int{4, 2}, []int32{1, 1, 0, 1, 0, 0, 1, 0})), "DIR/ind.seven.ally: row 0 (counting from 0) has the classes 0 and 1; Planetoid's labels have one a node"},
		{"ally", pickled(array("i4", []int{4, 2}, []int32{1, 0, 0, 2, 0, 0, 1, 0})), "DIR/ind.seven.ally: row 1, column 1 (counting from 0) is 2; one-hot labels are zeros and ones"},
		{"ally", pickled(array("f8", []int{4, 1}, []float64{1, 0.5, 0, 0})), "DIR/ind.seven.ally: element 1 is 0.5, not an integer of 64 bits"},
		{"ally", pickled(array("i4", []int{8}, make([]int32, 8))), "DIR/ind.seven.ally: it holds an array, and an array with a row of zeros and ones for each node is expected"},
		{"ally", pickled(array("i4", []int{1, 2}, []int32{1, 0})), "DIR/ind.seven.y: 2 rows, and DIR/ind.seven.ally, which starts with them, has 1; fetch both again"},
		{"y", pickled(array("i4", []int{2, 2}, []int32{0, 1, 0, 1})), "DIR/ind.seven.y: row 0 (counting from 0) has class 1, and in DIR/ind.seven.ally it has 0; fetch both again"},
		{"ty", pickled(array("i4", []int{2, 3}, make([]int32, 6))), "DIR/ind.seven.ty: 3 classes, and DIR/ind.seven.ally has 2; fetch both again"},
		{"allx", pickled(matrix(3, 3, make([]int32, 4), nil, nil)), "DIR/ind.seven.allx: 3 rows, and DIR/ind.seven.ally has 4; fetch both again"},
		{"tx", pickled(matrix(2, 4, make([]int32, 3), nil, nil)), "DIR/ind.seven.tx: 4 columns, and DIR/ind.seven.allx has 3; fetch both again"},
		{"allx", pickled(matrix(4, 3, []int32{0, 1, 1}, []int32{0}, []float32{1})), "DIR/ind.seven.allx: indptr: it has 3 bounds, 5 are expected for 4 rows"},
		{"allx", pickled(matrix(4, 3, []int32{0, 1, 0, 1, 1}, []int32{0}, []float32{1})), "DIR/ind.seven.allx: indptr: the bounds of the rows do not ascend from 0 to the 1 entries"},
		{"allx", pickled(matrix(4, 3, []int32{0, 1, 1, 1, 2}, []int32{0}, []float32{1})), "DIR/ind.seven.allx: indptr: the bounds of the rows do not ascend from 0 to the 1 entries"},
		{"allx", pickled(matrix(4, 3, []int32{0, 1, 1, 1, 1}, []int32{3}, []float32{1})), "DIR/ind.seven.allx: indices: entry 0: column 3 is outside 0…2"},
		{"allx", pickled(matrix(4, 3, []int32{0, 1, 1, 1, 1}, []int32{0}, nil)), "DIR/ind.seven.allx: data: it has 0 values, indices has 1 columns for them"},
		{"allx", pickled(matrix(4, 1<<30, []int32{0, 0, 0, 0, 0}, nil, nil)), "DIR/ind.seven.allx: (4, 1073741824) is not the shape of a matrix of 1 to 4194304 columns"},
		{"allx", pickled(list(1)), "DIR/ind.seven.allx: it holds a list, and a csr_matrix of scipy.sparse is expected"},
		{"allx", pickled("cscipy.sparse.csr\ncsr_matrix\n)\x81"), "DIR/ind.seven.allx: the matrix has None for its state, and a dict is expected"},
		{"allx", pickled("cscipy.sparse.csr\ncsr_matrix\n)\x81}b"), "DIR/ind.seven.allx: the matrix has None for its shape, and rows and columns are expected"},
	} {
		dir := seven().with(c.suffix, c.body).write(t)
		_, err := read(dir)
		require.EqualError(t, err, strings.ReplaceAll(c.want, "DIR", dir))
	}
}

// TestDamagedFiles: a file cut anywhere is an error of one line that names it.
func TestDamagedFiles(t *testing.T) {
	for suffix, whole := range seven() {
		if suffix == "test.index" {
			continue
		}
		for n := 0; n < len(whole); n += 1 + n/20 {
			dir := seven().with(suffix, whole[:n]).write(t)
			_, err := read(dir)
			require.ErrorContains(t, err, dir+"/ind.seven."+suffix+": ", "%d bytes", n)
			require.NotContains(t, err.Error(), "\n")
		}
	}
}

// TestPython reads files that CPython 3 with SciPy wrote: the communities of 60 nodes. test.index
// skips node 50.
func TestPython(t *testing.T) {
	g, err := read("testdata")
	require.NoError(t, err)
	require.Equal(t, "tiny", g.Schema.Name)
	require.Len(t, g.Edges[0].Src, 362)
	for v := range int64(60) {
		want := make([]float32, 8)
		class := int32(v % 3)
		if v != 50 {
			want[v%3], want[3+v%5] = 1, 0.5
		}
		if v == 50 || v == 20 {
			class = -1
		}
		require.Equal(t, want, g.Rows[0][v*8:v*8+8], "node %d", v)
		require.Equal(t, class, g.Labels[0][v], "node %d", v)
	}
	require.Len(t, g.Splits[0][ingest.Train].Numbers, 9)
	require.Len(t, g.Splits[0][ingest.Valid].Numbers, 36)
	require.Len(t, g.Splits[0][ingest.Test].Numbers, 14)
	require.False(t, slices.IsSorted(g.Splits[0][ingest.Test].Numbers))
}

func TestRealGraphs(t *testing.T) {
	root := os.Getenv("GNNSTORE_DATA")
	if root == "" {
		t.Skip("GNNSTORE_DATA is not set: the folder with planetoid_cora, planetoid_citeseer and expected.json")
	}
	raw, err := os.ReadFile(filepath.Join(root, "expected.json"))
	require.NoError(t, err)
	var expected map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &expected))
	for name, skipped := range map[string]int64{"cora": 0, "citeseer": 15} {
		var want struct {
			Nodes    int64 `json:"nodes"`
			Edges    int   `json:"undirected_edges"`
			Features int   `json:"features"`
			Classes  int   `json:"classes"`
			Train    int   `json:"train"`
			Valid    int   `json:"valid"`
			Test     int   `json:"test"`
		}
		require.NoError(t, json.Unmarshal(expected["planetoid_"+name], &want))
		g, err := read(filepath.Join(root, "planetoid_"+name))
		require.NoError(t, err)
		require.Equal(t, want.Nodes, g.Schema.NodeTypes[0].Count)
		require.Equal(t, want.Features, g.Schema.Tables[0].Dim)
		require.Equal(t, want.Classes, g.Schema.Labels[0].Classes)
		require.Len(t, g.Rows[0], int(want.Nodes)*want.Features)
		require.Len(t, g.Labels[0], int(want.Nodes))
		pairs := map[[2]int64]bool{}
		for i, u := range g.Edges[0].Src {
			if v := g.Edges[0].Dst[i]; u != v {
				pairs[[2]int64{min(u, v), max(u, v)}] = true
			}
		}
		require.Len(t, pairs, want.Edges)
		require.Len(t, g.Splits[0][ingest.Train].Numbers, want.Train)
		require.Len(t, g.Splits[0][ingest.Valid].Numbers, want.Valid)
		require.Len(t, g.Splits[0][ingest.Test].Numbers, want.Test)
		require.EqualValues(t, want.Train, g.Splits[0][ingest.Valid].Numbers[0])
		without := int64(0)
		for v, class := range g.Labels[0] {
			if class < 0 {
				without++
				row := g.Rows[0][v*want.Features : (v+1)*want.Features]
				require.Equal(t, make([]float32, want.Features), row)
			}
		}
		require.Equal(t, skipped, without)
	}
}

func FuzzOpen(f *testing.F) {
	whole := seven()
	for _, suffix := range suffixes {
		f.Add(suffix, []byte(whole[suffix]))
		f.Add(suffix, []byte(whole[suffix][:len(whole[suffix])/2]))
	}
	dir := f.TempDir() // of this process
	f.Fuzz(func(t *testing.T, suffix string, body []byte) {
		if !slices.Contains(suffixes, suffix) {
			return
		}
		whole := seven()
		whole[suffix] = string(body)
		s, err := Open(whole.writeTo(t, dir), 0)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		if s.schema.Tables[0].Dim > 1<<12 {
			return // sound, and slow
		}
		g, err := sourcetest.Read(s)
		require.NoError(t, err, "Open checks everything")
		nodes := g.Schema.NodeTypes[0].Count
		require.Len(t, g.Edges[0].Src, int(g.Schema.Relations[0].Edges))
		require.Len(t, g.Rows[0], int(nodes)*g.Schema.Tables[0].Dim)
		require.Len(t, g.Labels[0], int(nodes))
	})
}
