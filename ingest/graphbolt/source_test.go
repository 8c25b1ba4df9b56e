package graphbolt

import (
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
	"github.com/gnnstore/gnnstore/store"
)

// copyOf is an example of testdata, to be changed.
func copyOf(t testing.TB, name string) string {
	dir := filepath.Join(t.TempDir(), "a pt folder")
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))))
	return dir
}

// edit replaces text in a file of a dataset; the text must be there.
func edit(t testing.TB, dir, name, old, new string) {
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), old)
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), old, new)), 0o666))
}

// int64s and float32s write an array.
func int64s(t testing.TB, path string, shape []int64, values ...int64) {
	b := npy.AppendHeader(nil, "<i8", shape...)
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
	require.NoError(t, os.WriteFile(path, b, 0o666))
}

func float32s(t testing.TB, path string, shape []int64, values ...float32) {
	b := npy.AppendHeader(nil, "<f4", shape...)
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	require.NoError(t, os.WriteFile(path, b, 0o666))
}

func read(path string) (sourcetest.Graph, error) {
	s, err := Open(path, 0)
	if err != nil {
		return sourcetest.Graph{}, err
	}
	defer s.Close()
	return sourcetest.Read(s)
}

func TestHomogeneous(t *testing.T) {
	dir := copyOf(t, "homogeneous")
	for _, path := range []string{dir, filepath.Join(dir, "metadata.yaml")} {
		g, err := read(path)
		require.NoError(t, err)
		require.NotEmpty(t, g.Schema.Identity)
		g.Schema.Identity = ""
		require.Equal(t, &ingest.Schema{
			Name:      "tiny",
			NodeTypes: []ingest.NodeType{{Name: "node", Count: 6}},
			Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: 4, Columns: []ingest.EdgeColumn{{Name: "weight", Elem: store.F32}}}},
			Tables:    []ingest.Table{{Name: "feat", NodeType: "node", Dim: 1}},
			Labels:    []ingest.Label{{Name: "label", NodeType: "node", Classes: 4}},
			Splits:    []ingest.Split{{Name: "node_classification", NodeType: "node"}},
			Skipped:   []string{filepath.Join(dir, "weights.npy") + ": its values are rounded to 32 bits"},
		}, g.Schema)
		require.Equal(t, [][2]int64{{0, 1}, {1, 2}, {2, 0}, {5, 3}}, g.Relation("node__to__node").Pairs())
		require.Equal(t, [][]uint64{{0x3e800000, 0x3f000000, 0x3f400000, 0x3f800000}}, g.Relation("node__to__node").Values)
		require.Equal(t, []float32{0, .5, 1, 1.5, 2, 2.5}, g.Table("node/feat"), "features of one dimension are a column")
		require.Equal(t, []int32{0, 2, -1, 1, 1, -1}, g.Label("node/label"), "NaN is missing, and so are nodes outside the sets")
		require.Equal(t, [3][]int64{{4, 0}, {1}, {5, 3}}, g.Split("node_classification").Numbers())
	}
}

func TestTyped(t *testing.T) {
	g, err := read(copyOf(t, "typed"))
	require.NoError(t, err)
	require.Equal(t, []ingest.NodeType{{Name: "user", Count: 2}, {Name: "item", Count: 3}}, g.Schema.NodeTypes)
	require.Equal(t, []ingest.Relation{
		{Src: "user", Name: "buys", Dst: "item", Edges: -1},
		{Src: "item", Name: "bought_by", Dst: "user", Edges: 3},
	}, g.Schema.Relations)
	require.Equal(t, []ingest.Table{
		{Name: "feat", NodeType: "item", Dim: 2}, {Name: "price", Relation: "user__buys__item", Dim: 1},
	}, g.Schema.Tables)
	require.Equal(t, []ingest.Label{
		{Name: "label", NodeType: "item", Classes: 2, Multi: true}, {Name: "label", NodeType: "user"},
	}, g.Schema.Labels)
	require.Equal(t, []ingest.Split{{Name: "tags-item", NodeType: "item"}, {Name: "tags-user", NodeType: "user"}}, g.Schema.Splits)
	require.Empty(t, g.Schema.Skipped, "edges of training are the graph's")
	require.Equal(t, [][2]int64{{0, 2}, {1, 0}, {1, 1}}, g.Relation("user__buys__item").Pairs())
	require.Equal(t, [][2]int64{{2, 0}, {0, 1}, {1, 1}}, g.Relation("item__bought_by__user").Pairs(), "in column-major order")
	require.Equal(t, []float32{0, 1, 2, 3, 4, 5}, g.Table("item/feat"), "in column-major order")
	require.Equal(t, []float32{9.5, 1, 2}, g.Table("user__buys__item/price"))
	require.Equal(t, []int32{0, 1, -1, -1, 1, 0}, g.Label("item/label"))
	require.Equal(t, []int32{-1, 3}, g.Label("user/label"), "without names, seeds come before labels")
}

// TestPreprocessed: ids are over all types there, and edges of all types among each other.
func TestPreprocessed(t *testing.T) {
	dir := copyOf(t, "preprocessed")
	for _, path := range []string{dir, filepath.Join(dir, "preprocessed"), filepath.Join(dir, "preprocessed/metadata.yaml")} {
		g, err := read(path)
		require.NoError(t, err)
		require.Equal(t, []ingest.NodeType{{Name: "item", Count: 3}, {Name: "user", Count: 2}}, g.Schema.NodeTypes)
		require.Equal(t, []ingest.Relation{
			{Src: "item", Name: "bought_by", Dst: "user", Edges: -1}, {Src: "user", Name: "buys", Dst: "item", Edges: -1},
		}, g.Schema.Relations)
		require.ElementsMatch(t, [][2]int64{{0, 2}, {1, 0}, {1, 1}}, g.Relation("user__buys__item").Pairs())
		require.ElementsMatch(t, [][2]int64{{2, 0}, {0, 1}, {1, 1}}, g.Relation("item__bought_by__user").Pairs())
		require.Equal(t, []float32{0, 1, 2, 3, 4, 5}, g.Table("item/feat"))
		require.Equal(t, [3][]int64{{2, 0}, nil, nil}, g.Split("tags").Numbers())
		require.Empty(t, g.Schema.Labels)
		require.Len(t, g.Schema.Skipped, 1)
		require.Contains(t, g.Schema.Skipped[0], "preprocessed/price.npy: rows of edges are in the order of the original files")
	}

	// The original files are preferred while they are there.
	both := copyOf(t, "typed")
	require.NoError(t, os.CopyFS(filepath.Join(both, "preprocessed"), os.DirFS("testdata/preprocessed/preprocessed")))
	g, err := read(both)
	require.NoError(t, err)
	require.NotNil(t, g.Table("user__buys__item/price"))
	require.NoError(t, os.Remove(filepath.Join(both, "buys.csv")))
	g, err = read(both)
	require.NoError(t, err)
	require.Nil(t, g.Table("user__buys__item/price"))
}

func sealed(t testing.TB, dir string) (*build.Report, error) {
	s, err := Open(dir, 0)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return build.Build(context.Background(), s, filepath.Join(t.TempDir(), "x.gnn"), build.Options{})
}

// TestDeclaredNumber: num may be larger than the largest id, and not smaller; rows say what is
// wrong.
func TestDeclaredNumber(t *testing.T) {
	dir := copyOf(t, "homogeneous")
	rep, err := sealed(t, dir)
	require.NoError(t, err)
	require.EqualValues(t, 6, rep.NodeTypes[0].Count, "node 4 has no edge, which is no mistake")

	edit(t, dir, "metadata.yaml", "num: 6", "num: 7")
	_, err = sealed(t, dir)
	require.ErrorContains(t, err, "feature_data[0]: "+filepath.Join(dir, "node data/feat pt.npy")+": 6 rows, and there are 7 nodes of type node")

	float32s(t, filepath.Join(dir, "node data/feat pt.npy"), []int64{5}, 0, 1, 2, 3, 4)
	edit(t, dir, "metadata.yaml", "num: 7", "num: 5")
	_, err = sealed(t, dir)
	require.ErrorContains(t, err, "scripts/test.npy: row 0 (counting from 0): node 5 is not one of the 5")

	int64s(t, filepath.Join(dir, "scripts/test.npy"), []int64{2}, 2, 3)
	_, err = sealed(t, dir)
	require.ErrorContains(t, err, filepath.Join(dir, "edges.npy")+": edge 4 (counting from 1): source 5 is not one of the 5 nodes")
}

// TestManyNodes: labels that are gathered in several blocks, and sections of several chunks.
func TestManyNodes(t *testing.T) {
	const nodes, edges, width = 530_000, 150_001, 32
	dir := t.TempDir()
	var ids, pairs, first, second []int64
	for i := range int64(edges) {
		first, second = append(first, i), append(second, (i*7)%nodes)
	}
	pairs = append(first, second...)
	int64s(t, filepath.Join(dir, "e.npy"), []int64{2, edges}, pairs...)
	bits := npy.AppendHeader(nil, "|u1", nodes/10, width)
	for i := range int64(nodes / 10) {
		ids = append(ids, nodes-1-10*i)
		row := make([]byte, width)
		row[i%width] = 1
		bits = append(bits, row...)
	}
	int64s(t, filepath.Join(dir, "s.npy"), []int64{nodes / 10}, ids...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "y.npy"), bits, 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "metadata.yaml"), []byte(fmt.Sprintf(
		"graph: {nodes: [{num: %d}], edges: [{format: numpy, path: e.npy}]}\n"+
			"tasks: [{train_set: [{data: [{name: seeds, format: numpy, path: s.npy}, {name: labels, format: numpy, path: y.npy}]}]}]\n", nodes)), 0o666))
	g, err := read(dir)
	require.NoError(t, err)
	require.Equal(t, filepath.Base(dir), g.Schema.Name)
	require.Len(t, g.Relation("node__to__node").Pairs(), edges)
	require.Equal(t, [2]int64{edges - 1, (edges - 1) * 7 % nodes}, g.Relation("node__to__node").Pairs()[edges-1])
	require.Len(t, g.Label("node/label"), nodes*width)
	for v := range nodes {
		row := g.Label("node/label")[v*width : (v+1)*width]
		i := (nodes - 1 - v) / 10
		if v%10 != 9 {
			require.EqualValues(t, -1, row[i%width])
		} else if row[i%width] != 1 || row[(i+1)%width] != 0 {
			t.Fatal(v, row)
		}
	}
	require.Equal(t, ids, g.Split("given")[ingest.Train].Numbers)
}

func TestRefusals(t *testing.T) {
	y := func(old, new string) func(t testing.TB, dir string) {
		return func(t testing.TB, dir string) { edit(t, dir, "metadata.yaml", old, new) }
	}
	for want, change := range map[string]func(t testing.TB, dir string){
		"metadata.yaml: graph.edges[0]: path \"../edges.npy\" leads out of the dataset":   y("path: edges.npy", "path: ../edges.npy"),
		"metadata.yaml: graph.edges[0]: path \"/etc/passwd\" leads out of the dataset":    y("path: edges.npy", "path: /etc/passwd"),
		"metadata.yaml: graph.edges[0]: no path":                                          y("path: edges.npy", "pth: edges.npy"),
		"edges.npy: format \"npy\"; edges are csv or numpy":                               y("format: numpy\n      path: edges.npy", "format: npy\n      path: edges.npy"),
		"graph.nodes[0]: num is missing or negative":                                      y("num: 6", "number: 6"),
		"graph.nodes[0]: num is missing":                                                  y("num: 6", "num: -1"),
		"graph.nodes[0]: no type; only a graph of one node entry":                         y("- num: 6", "- num: 6\n    - num: 7"),
		"graph.nodes is empty":                                                            y("    - num: 6\n", ""),
		"metadata.yaml: yaml:":                                                            y("num: 6", "num: six"),
		"there is neither graph nor a graph_topology":                                     y("graph:\n", "graf:\n"),
		"feature_data[0]: domain \"nodes\"; features are of a node, an edge or the graph": y("domain: node", "domain: nodes"),
		"feature_data[0]: there is no node type \"paper\" in graph.nodes, only node":      y("{domain: node,", "{type: paper, domain: node,"),
		"feature_data[0]: open ":                                                          y("node data/feat pt.npy", "node data/feat npy.npy"),
		"test_y.npy: row 0 (counting from 0): 0.5 is not the number of a class": func(t testing.TB, dir string) {
			float32s(t, filepath.Join(dir, "scripts/test_y.npy"), []int64{2}, .5, 1)
		},
		"train.npy has 3 seeds; are they of one task": func(t testing.TB, dir string) {
			int64s(t, filepath.Join(dir, "scripts/train.npy"), []int64{3}, 1, 2, 3)
		},
		"valid.npy: row 0 (counting from 0): node 4 has another label in valid": func(t testing.TB, dir string) { int64s(t, filepath.Join(dir, "scripts/valid.npy"), []int64{1}, 4) },
		"valid.npy: it is (1, 3) of <i8, and seeds are a list of nodes": func(t testing.TB, dir string) {
			int64s(t, filepath.Join(dir, "scripts/valid.npy"), []int64{1, 3}, 1, 2, 3)
		},
		"edges.npy: it is (4, 2) of <i8, and edges are integers of shape (2, E)": func(t testing.TB, dir string) {
			int64s(t, filepath.Join(dir, "edges.npy"), []int64{4, 2}, 0, 1, 1, 2, 2, 0, 5, 3)
		},
		"edges.npy: truncated: ": func(t testing.TB, dir string) {
			int64s(t, filepath.Join(dir, "edges.npy"), []int64{2, 4}, 0, 1, 2, 5, 1, 2, 0)
		},
		"edges.npy: element 2 is 0.5, not an integer": func(t testing.TB, dir string) {
			float32s(t, filepath.Join(dir, "edges.npy"), []int64{2, 4}, 0, 1, .5, 5, 1, 2, 0, 3)
		},
		"weights.npy: 3 rows, and there are 4 edges": func(t testing.TB, dir string) { float32s(t, filepath.Join(dir, "weights.npy"), []int64{3}, 0, 1, 2) },
		"edges.npy: not an npy array: it starts with ": func(t testing.TB, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "edges.npy"), []byte("0,1\n1,2\n2,3\n"), 0o666))
		},
		"edges.npy: line 1: \"src\" is not an integer; GraphBolt's csv has two integers a line and no header": func(t testing.TB, dir string) {
			edit(t, dir, "metadata.yaml", "format: numpy\n      path: edges.npy", "format: csv\n      path: edges.npy")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "edges.npy"), []byte("src,dst\n1,2\n"), 0o666))
		},
		"weights.npy: 4 rows, and ": func(t testing.TB, dir string) {
			edit(t, dir, "metadata.yaml", "format: numpy\n      path: edges.npy", "format: csv\n      path: edges.npy")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "edges.npy"), []byte("0,1\n1,2\n2,3\n"), 0o666))
		},
	} {
		dir := copyOf(t, "homogeneous")
		change(t, dir)
		_, err := read(dir)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
	for want, change := range map[string]func(t testing.TB, dir string){
		`graph.edges[0]: type "user.buys.item"; a type of edges is SRC:RELATION:DST`:                            y(`"user:buys:item", format: csv`, `"user.buys.item", format: csv`),
		`graph.edges[0]: type "user:buys:thing": there is no node type "thing" in graph.nodes, only user, item`: y(`"user:buys:item", format: csv`, `"user:buys:thing", format: csv`),
		`feature_data[1]: there are no edges of type "item:buys:user" in graph.edges`:                           y(`edge, type: "user:buys:item"`, `edge, type: "item:buys:user"`),
		`graph.edges[1]: edges of type "user:buys:item" are there twice`:                                        y("item:bought_by:user", "user:buys:item"),
	} {
		dir := copyOf(t, "typed")
		change(t, dir)
		_, err := read(dir)
		require.ErrorContains(t, err, want)
	}
	_, err := Open(t.TempDir(), 0)
	require.ErrorContains(t, err, "no metadata.yaml in it; name the folder of a GraphBolt dataset")
	_, err = Open(filepath.Join(t.TempDir(), "none"), 0)
	require.ErrorIs(t, err, fs.ErrNotExist)
	zip := filepath.Join(t.TempDir(), "ogbn-arxiv.zip")
	require.NoError(t, os.WriteFile(zip, []byte("PK"), 0o666))
	_, err = Open(zip, 0)
	require.EqualError(t, err, zip+": a zip archive; unpack it first and name the folder inside")
}

func TestOtherElements(t *testing.T) {
	dir := copyOf(t, "homogeneous")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "weights.npy"), append(npy.AppendHeader(nil, "|b1", 4, 1), 1, 0, 1, 1), 0o666))
	edit(t, dir, "metadata.yaml", "feature_data:\n  - {", "feature_data:\n  - {domain: graph, name: g, format: numpy, path: none}\n"+
		"  - {domain: edge, name: pair, format: numpy, path: pair.npy}\n  - {domain: node, name: text, format: numpy, path: text.npy}\n  - {")
	float32s(t, filepath.Join(dir, "pair.npy"), []int64{4, 2}, 1, 2, 3, 4, 5, 6, 7, 8)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "text.npy"), append(npy.AppendHeader(nil, "|S1", 6), "abcdef"...), 0o666))
	edit(t, dir, "metadata.yaml", "  feature_data:\n", "  feature_data:\n    - {domain: edge, name: two, format: numpy, path: pair.npy}\n")
	g, err := read(dir)
	require.NoError(t, err)
	require.Equal(t, []ingest.EdgeColumn{{Name: "weight", Elem: store.U8}}, g.Schema.Relations[0].Columns)
	require.Equal(t, [][]uint64{{1, 0, 1, 1}}, g.Relation("node__to__node").Values)
	require.Equal(t, []float32{1, 2, 3, 4, 5, 6, 7, 8}, g.Table("node__to__node/pair"))
	require.Equal(t, g.Table("node__to__node/pair"), g.Table("node__to__node/two"), "several values an edge are a table")
	require.Len(t, g.Schema.Skipped, 2)
}

// TestLabelsProperty: gathering agrees with a map.
func TestLabelsProperty(t *testing.T) {
	dir := copyOf(t, "homogeneous")
	rapid.Check(t, func(rt *rapid.T) {
		all := rapid.Permutation([]int64{0, 1, 2, 3, 4, 5}).Draw(rt, "nodes")
		cut := rapid.IntRange(0, 6).Draw(rt, "cut")
		want := []int32{-1, -1, -1, -1, -1, -1}
		for part, ids := range map[string][]int64{"train": all[:cut], "valid": all[cut:], "test": nil} {
			labels := make([]int64, len(ids))
			for i, id := range ids {
				labels[i] = int64(rapid.IntRange(-1, 3).Draw(rt, "label"))
				want[id] = int32(labels[i])
			}
			int64s(t, filepath.Join(dir, "scripts", part+".npy"), []int64{int64(len(ids))}, ids...)
			int64s(t, filepath.Join(dir, "scripts", part+"_y.npy"), []int64{int64(len(ids)), 1}, labels...)
		}
		g, err := read(dir)
		require.NoError(rt, err)
		require.Equal(rt, want, g.Label("node/label"))
	})
}

func FuzzMetadata(f *testing.F) {
	for _, name := range []string{"homogeneous", "typed", "preprocessed/preprocessed"} {
		text, err := os.ReadFile(filepath.Join("testdata", name, "metadata.yaml"))
		require.NoError(f, err)
		f.Add(string(text))
	}
	dir := f.TempDir() // of this process
	require.NoError(f, os.CopyFS(dir, os.DirFS("testdata/typed")))
	f.Fuzz(func(t *testing.T, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "metadata.yaml"), []byte(text), 0o666))
		if _, err := read(dir); err != nil {
			require.NotContains(t, strings.ReplaceAll(err.Error(), text, ""), "\n")
		}
	})
}
