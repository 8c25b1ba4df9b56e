package arrays

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/npz"
	"github.com/gnnstore/gnnstore/ingest/pickle"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
	"github.com/gnnstore/gnnstore/store"
)

var smallEdges = [][2]int64{{0, 1}, {0, 2}, {2, 0}, {3, 3}}

// requireSmall holds a graph against small, whatever it was read from.
func requireSmall(t *testing.T, g sourcetest.Graph) {
	t.Helper()
	require.Equal(t, []ingest.NodeType{{Name: "node", Count: 5}}, g.Schema.NodeTypes)
	require.Equal(t, []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: 4}}, g.Schema.Relations)
	require.Equal(t, []ingest.Table{{Name: "feat", NodeType: "node", Dim: 2}}, g.Schema.Tables)
	require.Equal(t, []ingest.Label{{Name: "label", NodeType: "node"}}, g.Schema.Labels)
	require.Equal(t, []ingest.Split{{Name: "given", NodeType: "node"}}, g.Schema.Splits)
	require.Equal(t, smallEdges, g.Edges[0].Pairs())
	require.Equal(t, [][]float32{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}, g.Rows)
	require.Equal(t, []int32{1, 0, 1, 0, -1}, g.Labels[0])
	require.Equal(t, [3][]int64{{0, 1}, {2}, {3, 4}}, g.Splits[0].Numbers())
}

func TestContainers(t *testing.T) {
	for name, path := range map[string]string{
		"stored": pack(t, small(), zip.Store), "deflated": pack(t, small(), zip.Deflate), "folder": folder(t, small()),
	} {
		t.Run(name, func(t *testing.T) {
			g := mustRead(t, path, Options{})
			requireSmall(t, g)
			require.Equal(t, "small", g.Schema.Name)
			require.Empty(t, g.Schema.Skipped)
		})
	}
}

// TestNames: the flags name what the usual names do not find, and the rest is said to be left over.
func TestNames(t *testing.T) {
	f := small()
	renamed := files{"links": f["edge_index"], "emb": f["x"], "cls": f["y"], "a": f["train_mask"], "b": i64(2), "c": arr("<u1", false, []int{2, 1}, []uint8{3, 4}), "odd": i64(7)}
	o := Options{Edges: "links", Features: "emb.npy", Labels: "cls", Train: "a", Valid: "b", Test: "c"}
	for _, path := range []string{pack(t, renamed, zip.Deflate), folder(t, renamed)} {
		g := mustRead(t, path, o)
		requireSmall(t, g)
		require.Equal(t, []string{"odd: it is not one of the names that are looked for; flags such as {array_features} name others"}, g.Schema.Skipped)
	}
	path := pack(t, renamed, zip.Store)
	o.Labels = "clz"
	_, err := read(t, path, o)
	require.EqualError(t, err, path+": there is no clz, which {array_labels} names (found a, b, c, cls, emb, links, odd)")
	_, err = read(t, path, Options{})
	require.EqualError(t, err, path+": no edges in it (found a, b, c, cls, emb, links, odd); looked for edge_index, edges, edge_list, for row and col and the like, "+
		"for indptr and indices, for adj; {array_edges} NAME or {array_edges} SOURCES,DESTINATIONS says others")
}

// TestNothingFound: when features or labels are asked for and there are none, the user sees what
// there is and what was looked for.
func TestNothingFound(t *testing.T) {
	f := files{"edge_index": small()["edge_index"], "emb": small()["x"], "cls": small()["y"]}
	for _, path := range []string{pack(t, f, zip.Deflate), folder(t, f)} {
		s, err := Open(path, Options{})
		require.NoError(t, err)
		out := filepath.Join(t.TempDir(), "x.gnn")
		_, err = build.Build(context.Background(), s, out, build.Options{})
		require.EqualError(t, err, path+": no array of features (found cls, edge_index, emb); looked for x, node_features, node_feat, node_feats, features, feature, feats, feat, "+
			"attr_matrix; {array_features} NAME says another; or choose {features} degree, random:D or fastrp:D, with D columns, as in fastrp:128; or none, or mean")
		_, err = build.Build(context.Background(), s, out, build.Options{Features: "degree", Split: "per-class:1/1"})
		require.EqualError(t, err, "{split} per-class: "+path+": no array of labels (found cls, edge_index, emb); looked for y, node_labels, node_label, labels, label; "+
			"{array_labels} NAME says another; choose random:a/b/c")
		require.NoError(t, s.Close())
	}
}

// TestNamedInSciPy: the names of arrays are not passed over because the edges are in scipy's
// layout.
func TestNamedInSciPy(t *testing.T) {
	f := files{"adj_indptr": i64(0, 1, 2), "adj_indices": i64(1, 0), "adj_shape": i64(2, 2), "emb": f32(3, 4), "cls": i64(1, 0)}
	path := pack(t, f, zip.Deflate)
	_, err := read(t, path, Options{Features: "emb"})
	require.EqualError(t, err, path+": its keys are those of a scipy graph, adj_, attr_ and labels, and {array_features} names another; name its edges as well, as in {array_edges} adj_")
	g := mustRead(t, path, Options{Edges: "adj_", Features: "emb", Labels: "cls"})
	require.Equal(t, [][]float32{{3, 4}}, g.Rows)
	require.Equal(t, []int32{1, 0}, g.Labels[0])
	s, err := Open(path, Options{})
	require.NoError(t, err)
	defer s.Close()
	_, err = build.Build(context.Background(), s, filepath.Join(t.TempDir(), "x.gnn"), build.Options{})
	require.EqualError(t, err, path+": no key attr_indptr or attr_matrix (found adj_indices, adj_indptr, adj_shape, cls, emb); features have these names, "+
		"or the edges are named as well: {array_edges} adj_ {array_features} NAME; or choose {features} degree, random:D or fastrp:D, with D columns, as in fastrp:128; or none, or mean")
}

func TestEdgeForms(t *testing.T) {
	f := small().with("edge_index", nil)
	ends := func(a, b string) files { return f.with(a, i64(0, 0, 2, 3)).with(b, i64(1, 2, 0, 3)) }
	half := func(v ...float32) (h []float16.Float16) {
		for _, x := range v {
			h = append(h, float16.Fromfloat32(x))
		}
		return h
	}
	for name, c := range map[string]struct {
		f files
		o Options
	}{
		"row, col":         {ends("row", "col"), Options{}},
		"src, dst":         {ends("src", "dst"), Options{}},
		"named ends":       {ends("from", "to"), Options{Edges: "from,to"}},
		"CSR":              {f.with("indptr", i64(0, 2, 2, 3, 4, 4)).with("indices", arr("<i4", false, []int{4}, []int32{1, 2, 0, 3})), Options{}},
		"CSR with prefix":  {f.with("graph_indptr", i64(0, 2, 2, 3, 4, 4)).with("graph_indices", i64(1, 2, 0, 3)), Options{}},
		"CSR, one named":   {f.with("graph_indptr", i64(0, 2, 2, 3, 4, 4)).with("graph_indices", i64(1, 2, 0, 3)).with("a_indptr", i64(0)).with("a_indices", i64()), Options{Edges: "graph_"}},
		"CSC by name":      {f.with("csc_indptr", i64(0, 1, 2, 3, 4, 4)).with("csc_indices", i64(2, 0, 0, 3)), Options{}},
		"u1 pairs":         {f.with("edges", arr("|u1", false, []int{4, 2}, []uint8{0, 1, 0, 2, 2, 0, 3, 3})), Options{}},
		"big-endian i2":    {f.with("edges", arr(">i2", false, []int{4, 2}, []int16{0, 1, 0, 2, 2, 0, 3, 3})), Options{}},
		"u8":               {f.with("edges", arr("<u8", false, []int{4, 2}, []uint64{0, 1, 0, 2, 2, 0, 3, 3})), Options{}},
		"whole f4":         {f.with("edges", arr("<f4", false, []int{2, 4}, []float32{0, 0, 2, 3, 1, 2, 0, 3})), Options{}},
		"whole f8 pairs":   {f.with("edges", arr("<f8", true, []int{2, 4}, []float64{0, 1, 0, 2, 2, 0, 3, 3})), Options{}},
		"whole f2 columns": {f.with("edges", arr("<f2", true, []int{4, 2}, half(0, 0, 2, 3, 1, 2, 0, 3))), Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{pack(t, c.f, zip.Deflate), folder(t, c.f)} {
				g := mustRead(t, path, c.o)
				if name == "CSC by name" {
					require.ElementsMatch(t, smallEdges, g.Edges[0].Pairs())
					g.Edges[0] = sourcetest.Edges{Src: []int64{0, 0, 2, 3}, Dst: []int64{1, 2, 0, 3}}
				}
				requireSmall(t, g)
			}
		})
	}
	g := mustRead(t, pack(t, files{"indptr": i64(0, 2, 2, 3), "indices": i64(1, 2, 0), "data": f32(0.5, 0, 2)}, zip.Store), Options{RowsAre: "dst"})
	require.Equal(t, [][2]int64{{1, 0}, {2, 0}, {0, 2}}, g.Edges[0].Pairs())
	require.Equal(t, []ingest.EdgeColumn{{Name: "weight", Elem: store.F32}}, g.Schema.Relations[0].Columns)
	require.Equal(t, []uint64{uint64(math.Float32bits(0.5)), 0, uint64(math.Float32bits(2))}, g.Edges[0].Values[0])
	require.Equal(t, []string{"indptr: direction is not in the file: a row is a node's sources, so row i with column j is the edge j→i; {csr_rows} src turns it round"}, g.Schema.Skipped)
	g = mustRead(t, pack(t, files{"edges": small()["edge_index"], "edge_weight": arr("<i4", false, []int{4, 1}, []int32{5, -1, 7, 0})}, zip.Store), Options{})
	require.Equal(t, store.I64, g.Schema.Relations[0].Columns[0].Elem)
	require.Equal(t, []uint64{5, math.MaxUint64, 7, 0}, g.Edges[0].Values[0])
	g = mustRead(t, pack(t, files{"edges": small()["edge_index"], "edge_attr": arr("<f8", true, []int{4, 2}, []float64{1, 2, 3, 4, 5, 6, 7, 8})}, zip.Store), Options{})
	require.Equal(t, []ingest.Table{{Name: "edge_feat", Relation: "node__to__node", Dim: 2}}, g.Schema.Tables)
	require.Equal(t, []float32{1, 5, 2, 6, 3, 7, 4, 8}, g.Rows[0])
}

// TestBeside: one file, and others that the flags name.
func TestBeside(t *testing.T) {
	dir := folder(t, small())
	at := func(name string) string { return filepath.Join(dir, name) }
	requireSmall(t, mustRead(t, at("edge_index.npy"), Options{Features: "x.npy", Labels: at("y.npy"), Train: "train_mask.npy", Valid: "val_mask.npy", Test: "test_mask.npy"}))
	_, err := read(t, at("edge_index.npy"), Options{Features: "z.npy"})
	require.EqualError(t, err, at("edge_index.npy")+": there is no z.npy, which {array_features} names (found edges)")
	g := mustRead(t, pack(t, files{"row": i64(0, 1), "col": i64(1, 1), "shape": i64(7, 7), "data": f32(1, 2), "format": arr("|S3", false, []int{}, []byte("coo"))}, zip.Store), Options{})
	require.EqualValues(t, 7, g.Schema.NodeTypes[0].Count)
	require.Len(t, g.Edges[0].Values[0], 2)
}

// TestTrap1: an .npy without a header is said to be one, and read when its form is declared.
func TestTrap1Headerless(t *testing.T) {
	f := small()
	dump := f["x"][len(f["x"])-40:]
	dir := folder(t, f.with("x", dump))
	_, err := read(t, dir, Options{})
	require.EqualError(t, err, filepath.Join(dir, "x.npy")+": no NPY header, so it may be a headerless dump of 40 bytes; say what it holds, as in {raw_array} x.npy:f4:-1,128")
	for _, text := range []string{"x.npy:f4:5,2", "x.npy:float32:-1,2", "x.npy:<f4:-1,2"} {
		raw, err := ParseRaw(text)
		require.NoError(t, err)
		requireSmall(t, mustRead(t, dir, Options{Raw: []Raw{raw}}))
	}
	for text, want := range map[string]string{
		"x.npy:f4:6,2": "x.npy: (6, 2) of <f4 takes 48 bytes of data, and the file has 40; fetch it again, or is {raw_array} right?",
		"x.npy:f4:4,2": "x.npy: 8 bytes follow the data of (4, 2) of <f4; is it damaged?, or is {raw_array} right?",
		"y.npy:i8:-1":  "y.npy: it has a header, which says what it is; leave {raw_array} y.npy away",
	} {
		raw, err := ParseRaw(text)
		require.NoError(t, err)
		o := Options{Raw: []Raw{raw}}
		if strings.HasPrefix(text, "y") {
			o.Raw = append(o.Raw, Raw{File: "x.npy", Header: mustRaw(t, "x.npy:f4:5,2").Header})
		}
		_, err = read(t, dir, o)
		require.ErrorContains(t, err, want)
	}
	for text, want := range map[string]string{
		"x.npy":                          "it has not three parts",
		"x.npy:f4:a":                     `"a" is no dimension`,
		"x.npy:f4:1,-1":                  `"-1" is no dimension`,
		"x.npy:c8:1":                     "unsupported element type <c8",
		"x.npy:f4:4611686018427387904,9": "is larger than any file",
	} {
		_, err := ParseRaw(text)
		require.ErrorContains(t, err, "{raw_array} "+text+": ")
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "; say FILE:DTYPE:SHAPE, as in node_feat.npy:f4:100000,1024")
	}
	// bfloat16, which NumPy has no name for, in a file of another suffix.
	b := files{"edges": f["edge_index"], "x.bin": {0x80, 0x3f, 0, 0, 0x20, 0xc0, 0, 0, 0, 0, 0, 0}}
	g := mustRead(t, folder(t, b), Options{Raw: []Raw{mustRaw(t, "x.bin:bf16:-1,1")}, Nodes: 6})
	require.Equal(t, []float32{1, 0, -2.5, 0, 0, 0}, g.Rows[0])
}

func mustRaw(t *testing.T, text string) Raw {
	raw, err := ParseRaw(text)
	require.NoError(t, err)
	return raw
}

// TestTrap2: column-major edges and features.
func TestTrap2Fortran(t *testing.T) {
	f := small().with("x", arr("<f8", true, []int{5, 2}, []float64{0, 2, 4, 6, 8, 1, 3, 5, 7, 9}))
	for _, edges := range [][]byte{
		arr("<i4", true, []int{2, 4}, []int32{0, 1, 0, 2, 2, 0, 3, 3}),
		arr("<i4", true, []int{4, 2}, []int32{0, 0, 2, 3, 1, 2, 0, 3}),
	} {
		f := f.with("edge_index", edges)
		requireSmall(t, mustRead(t, pack(t, f, zip.Deflate), Options{}))
		requireSmall(t, mustRead(t, folder(t, f), Options{}))
	}
}

// TestTrap3: (E, 2) and (2, E), and (2, 2), which may be either.
func TestTrap3RowsOrPairs(t *testing.T) {
	requireSmall(t, mustRead(t, folder(t, small().with("edge_index", arr("<i8", false, []int{4, 2}, []int64{0, 1, 0, 2, 2, 0, 3, 3}))), Options{}))
	two := pack(t, files{"edges": arr("<i8", false, []int{2, 2}, []int64{0, 1, 2, 3})}, zip.Store)
	_, err := read(t, two, Options{})
	require.EqualError(t, err, two+": edges is (2, 2) of <i8, which may be two edges of a row each or two rows of ends; say {edge_layout} rows for (2, E), pairs for (E, 2)")
	require.Equal(t, [][2]int64{{0, 2}, {1, 3}}, mustRead(t, two, Options{Layout: Rows}).Edges[0].Pairs())
	require.Equal(t, [][2]int64{{0, 1}, {2, 3}}, mustRead(t, two, Options{Layout: Pairs}).Edges[0].Pairs())
	_, err = read(t, pack(t, small(), zip.Store), Options{Layout: Pairs})
	require.ErrorContains(t, err, "edge_index is (2, 4) of <i8, and {edge_layout} says pairs")
	_, err = read(t, pack(t, files{"edges": i64(1, 2, 3)}, zip.Store), Options{})
	require.ErrorContains(t, err, "edges is (3,) of <i8, and edges are (2, E), sources above destinations, or (E, 2)")
}

// TestTrap6: labels as floats with NaN, as a column, with -1; and of several classes.
func TestTrap6Labels(t *testing.T) {
	nan := math.NaN()
	for _, y := range [][]byte{
		arr("<f8", false, []int{5}, []float64{1, 0, 1, 0, nan}),
		arr("<f8", false, []int{5, 1}, []float64{1, 0, 1, 0, nan}),
		arr("<f4", true, []int{5, 1}, []float32{1, 0, 1, 0, -1}),
		arr("|i1", false, []int{5, 1}, []int8{1, 0, 1, 0, -100}),
		arr(">u2", false, []int{5}, []uint16{1, 0, 1, 0, 9}),
	} {
		g := mustRead(t, pack(t, small().with("y", y), zip.Deflate), Options{})
		if g.Labels[0][4] == 9 {
			g.Labels[0][4] = -1
		}
		requireSmall(t, g)
	}
	g := mustRead(t, pack(t, small().with("y", arr("<f4", false, []int{5, 2}, []float32{0, 1, 1, 1, 0, 0, float32(nan), float32(nan), 1, 0})), zip.Store), Options{})
	require.Equal(t, []ingest.Label{{Name: "label", NodeType: "node", Classes: 2, Multi: true}}, g.Schema.Labels)
	require.Equal(t, []int32{0, 1, 1, 1, 0, 0, -1, -1, 1, 0}, g.Labels[0])
	for want, y := range map[string][]byte{
		"y: row 1: 0.5 is not the number of a class":             arr("<f8", false, []int{5}, []float64{1, 0.5, 1, 0, nan}),
		"y: row 2: 2.147483648e+09 is not the number of a class": i64(0, 0, 1<<31, 0, 0),
		"y: row 3: 2 among the zeros and ones of its classes":    arr("<i8", false, []int{5, 2}, []int64{0, 1, 1, 1, 0, 0, 2, 0, 1, 0}),
		"small.npz: y: 4 rows, and there are 5 nodes by ":        i64(0, 0, 1, 0),
		"y is (5, 0) of <i8, and a class for each node":          arr("<i8", false, []int{5, 0}, []int64{}),
	} {
		_, err := read(t, pack(t, small().with("y", y), zip.Store), Options{})
		require.ErrorContains(t, err, want)
	}
}

// TestNumberLabels: numbers to learn have the values of the array, whatever its type, and NaN is
// missing.
func TestNumberLabels(t *testing.T) {
	of := func(g sourcetest.Graph) (values []float32) {
		require.Equal(t, []ingest.Label{{Name: "label", NodeType: "node", Numbers: true}}, g.Schema.Labels)
		for _, bits := range g.Labels[0] {
			values = append(values, math.Float32frombits(uint32(bits)))
		}
		return values
	}
	for _, y := range [][]byte{
		arr("<f8", false, []int{5}, []float64{0.5, -2, 1e9, 0, math.NaN()}),
		arr("<f4", false, []int{5, 1}, []float32{0.5, -2, 1e9, 0, float32(math.NaN())}),
	} {
		for _, path := range []string{pack(t, small().with("y", y), zip.Deflate), folder(t, small().with("y", y))} {
			values := of(mustRead(t, path, Options{Labels: "y:value"}))
			require.Equal(t, []float32{0.5, -2, 1e9, 0}, values[:4])
			require.True(t, math.IsNaN(float64(values[4])))
		}
	}
	require.Equal(t, []float32{-1, 7, 1 << 31, 0, 1}, of(mustRead(t, pack(t, small().with("y", i64(-1, 7, 1<<31, 0, 1)), zip.Store), Options{Labels: "y:value"})))
	for want, y := range map[string][]byte{
		"y is (5, 2) of <f4, and a number for each node is expected; of several columns save the one to learn": arr("<f4", false, []int{5, 2}, make([]float32, 10)),
		"and a number for each node is expected":          texts("a", "b", "c", "d", "e"),
		"small.npz: y: 4 rows, and there are 5 nodes by ": f32(0, 0, 1, 0),
	} {
		_, err := read(t, pack(t, small().with("y", y), zip.Store), Options{Labels: "y:value"})
		require.ErrorContains(t, err, want)
	}
	_, err := read(t, pack(t, small(), zip.Store), Options{Labels: ":value"})
	require.ErrorContains(t, err, "{array_labels} :value: it names no array; say NAME:value")
	_, err = read(t, pack(t, small().with("y", f32(0.5, 1, 1, 1, 1)), zip.Store), Options{})
	require.ErrorContains(t, err, "y: row 0: 0.5 is not the number of a class; to learn numbers, say {array_labels} y:value")
}

// TestTextLabels: texts become classes of that name, in their order.
func TestTextLabels(t *testing.T) {
	for _, path := range []string{
		pack(t, small().with("y", texts("cat", "True", "dog", "nan", "TRUE")), zip.Deflate),
		folder(t, small().with("y", nil).with("label", texts("cat", "true", "dog", "", "True"))),
	} {
		g := mustRead(t, path, Options{})
		require.Equal(t, []ingest.Label{{Name: "label", NodeType: "node", Classes: 3, ClassNames: []string{"cat", "dog", "true"}}}, g.Schema.Labels)
		require.Equal(t, []int32{0, 2, 1, -1, 2}, g.Labels[0])
	}
	many := make([]string, 120)
	for i := range many {
		many[i] = fmt.Sprint("n", i)
	}
	_, err := read(t, pack(t, files{"edges": arr("<i8", false, []int{2, 2}, []int64{0, 1, 1, 0}), "y": texts(many...)}, zip.Deflate), Options{Layout: Rows})
	require.ErrorContains(t, err, "small.npz: y: 120 different labels on 120 nodes are not classes; {array_labels} NAME says another array")
	_, err = read(t, pack(t, small().with("x", texts("a", "b", "c", "d", "e")), zip.Deflate), Options{Features: "x"})
	require.ErrorContains(t, err, "x is (5,) of <U12, and a row of 1 to ")
}

// TestOneHot: a matrix in which every row has exactly one 1 is one class a node, unless the user
// says otherwise.
func TestOneHot(t *testing.T) {
	nan := float32(math.NaN())
	y := arr("<f4", true, []int{5, 3}, []float32{0, 1, 0, nan, 0, 0, 0, 0, nan, 1, 1, 0, 1, nan, 0})
	path := pack(t, small().with("y", y), zip.Deflate)
	g := mustRead(t, path, Options{})
	require.Equal(t, []ingest.Label{{Name: "label", NodeType: "node", Classes: 3}}, g.Schema.Labels)
	require.Equal(t, []int32{2, 0, 2, -1, 1}, g.Labels[0])
	require.Equal(t, []string{"y: each row has exactly one 1, so it is read as one class a node; {multi_label} reads it as any number of them"}, g.Schema.Skipped)
	g = mustRead(t, path, Options{MultiLabel: true})
	require.Equal(t, []ingest.Label{{Name: "label", NodeType: "node", Classes: 3, Multi: true}}, g.Schema.Labels)
	require.Equal(t, []int32{0, 0, 1, 1, 0, 0, 0, 0, 1, -1, -1, -1, 0, 1, 0}, g.Labels[0])
	for _, row := range [][]float32{{0, 0}, {1, 1}, {1, nan}, {0, nan}} { // no class, two, and what may have one
		y := arr("<f4", false, []int{5, 2}, append([]float32{0, 1, 1, 0, 0, 1, 1, 0}, row...))
		require.True(t, mustRead(t, pack(t, small().with("y", y), zip.Store), Options{}).Schema.Labels[0].Multi, row)
	}
}

// TestTrap7: deflated members and data descriptors are in every test here; zip64 is package
// archive's; this is damage.
func TestTrap7Damaged(t *testing.T) {
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		path := pack(t, small(), method)
		good, err := os.ReadFile(path)
		require.NoError(t, err)
		at := bytes.Index(good, []byte("\x93NUMPY")) + 130 // of the first member, edge_index
		if method == zip.Deflate {
			at = 60
		}
		bad := bytes.Clone(good)
		bad[at] ^= 2
		require.NoError(t, os.WriteFile(path, bad, 0o666))
		_, err = read(t, path, Options{})
		require.ErrorContains(t, err, path+": edge_index: ")
		require.ErrorContains(t, err, "damaged or truncated download")
		require.ErrorContains(t, err, "; fetch it again")
		require.NoError(t, os.WriteFile(path, good[:len(good)/2], 0o666))
		_, err = read(t, path, Options{})
		require.ErrorContains(t, err, path+": damaged or truncated download: the zip directory at its end does not read")
	}
	dir := folder(t, small())
	x := filepath.Join(dir, "x.npy")
	require.NoError(t, os.Truncate(x, 150))
	_, err := read(t, dir, Options{})
	require.EqualError(t, err, x+": (5, 2) of <f4 takes 40 bytes of data, and the file has 22; fetch it again")
}

const fixtures = "../torch/testdata/"

// TestTrap8: NumPy arrays in a pickle of protocol 2; TestTrap9 the tensors beside them.
func TestTrap8NumPyInPickle(t *testing.T) {
	for _, p := range []string{"zip.p2", "zip.p5", "legacy.p2", "legacy.p4"} {
		g := mustRead(t, fixtures+"all."+p+".pt", Options{Edges: "first,numpy", Nodes: 201})
		require.Equal(t, [][2]int64{{10, 0}, {11, 100}, {12, 200}}, g.Edges[0].Pairs())
	}
}

// TestTrap9: strided and shared tensors, bool features.
func TestTrap9Strided(t *testing.T) {
	g := mustRead(t, fixtures+"strided.pt", Options{})
	require.Equal(t, [][2]int64{{3, 2}, {1, 0}, {3, 2}}, g.Edges[0].Pairs())
	require.Equal(t, []float32{1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}, g.Rows[0])
	require.Equal(t, []int32{1, 0, 1, 0}, g.Labels[0])
	require.Equal(t, []int64{3, 1}, g.Splits[0][0].Numbers)
	require.Equal(t, []uint64{0x40200000, 0x40200000, 0x40200000}, g.Edges[0].Values[0])
	g = mustRead(t, fixtures+"all.zip.p2.pt", Options{Edges: "slice", Layout: Rows})
	require.Equal(t, [][2]int64{{6, 11}, {8, 13}}, g.Edges[0].Pairs())
}

func TestTorch(t *testing.T) {
	for _, name := range []string{"data.pt", "data.legacy.pt", "processed.pt"} {
		g := mustRead(t, fixtures+name, Options{})
		require.Equal(t, []ingest.NodeType{{Name: "node", Count: 4}}, g.Schema.NodeTypes)
		require.Equal(t, [][2]int64{{0, 1}, {1, 2}, {2, 3}, {3, 0}}, g.Edges[0].Pairs())
		require.Equal(t, []float32{0, 1, 2, 3, 4, 5, 6, 7}, g.Rows[0])
		require.Equal(t, []uint64{0x3f800000, 0x3f000000, 0x3e800000, 0x40000000}, g.Edges[0].Values[0])
		require.Equal(t, []int32{0, 1, 1, 0}, g.Labels[0])
		require.Equal(t, [3][]int64{{0, 1}, {2}, {3}}, g.Splits[0].Numbers())
		require.Empty(t, g.Schema.Skipped)
	}
	g := mustRead(t, fixtures+"hetero.pt", Options{})
	require.Equal(t, []ingest.NodeType{{Name: "paper", Count: 3}, {Name: "author", Count: 2}}, g.Schema.NodeTypes)
	require.Equal(t, []ingest.Relation{{Src: "author", Name: "writes", Dst: "paper", Edges: 3}, {Src: "paper", Name: "cites", Dst: "paper", Edges: 2}}, g.Schema.Relations)
	require.Equal(t, [][2]int64{{0, 0}, {0, 1}, {1, 2}}, g.Edges[0].Pairs())
	require.Equal(t, [][2]int64{{0, 1}, {2, 0}}, g.Edges[1].Pairs())
	require.Equal(t, []ingest.Table{{Name: "feat", NodeType: "paper", Dim: 2}}, g.Schema.Tables)
	require.Equal(t, []int32{1, 0, 1}, g.Labels[0])
}

// TestTrap11: nodes that no edge names, and numbers of nodes that contradict the ids or each other.
func TestTrap11Counts(t *testing.T) {
	edges := files{"edges": small()["edge_index"]}
	require.EqualValues(t, 4, mustRead(t, pack(t, edges, zip.Store), Options{}).Schema.NodeTypes[0].Count)
	require.EqualValues(t, 9, mustRead(t, pack(t, edges, zip.Store), Options{Nodes: 9}).Schema.NodeTypes[0].Count)
	require.EqualValues(t, 7, mustRead(t, pack(t, edges.with("num_nodes", arr("<i8", false, []int{}, []int64{7})), zip.Store), Options{}).Schema.NodeTypes[0].Count)
	path := pack(t, small(), zip.Store)
	_, err := read(t, path, Options{Nodes: 6})
	require.EqualError(t, err, path+": x: 5 rows, and there are 6 nodes by {node_count}; are they of one graph?")
	path = pack(t, small().with("x", arr("<f4", false, []int{2, 5}, make([]float32, 10))), zip.Store)
	_, err = read(t, path, Options{Nodes: 5})
	require.EqualError(t, err, path+": x: 2 rows, and there are 5 nodes by {node_count}; it seems to be transposed: save its .T")
	// Fewer than the largest id: the builder says so, with the row of the file.
	path = pack(t, edges.with("num_nodes", i64(3)), zip.Store)
	src, err := Open(path, Options{})
	require.NoError(t, err)
	defer src.Close()
	_, err = build.Build(context.Background(), src, filepath.Join(t.TempDir(), "x.gnn"), build.Options{Features: "degree"})
	require.ErrorContains(t, err, path+": edges")
	require.ErrorContains(t, err, "edge 4 (counting from 1)")
	require.ErrorContains(t, err, "3 is not one of the 3 nodes")
	for want, b := range map[string][]byte{
		"edges: row 1: -1 is no id (0 to 4294967294 are)":               arr("<i8", false, []int{3, 2}, []int64{0, 1, 1, -1, 2, 2}),
		"edges: row 2: 4294967295 is no id (0 to 4294967294 are)":       arr("<i8", false, []int{3, 2}, []int64{0, 1, 1, 1, 1<<32 - 1, 2}),
		"edges: row 2: NaN is not an id; ids are whole numbers":         arr("<f8", false, []int{3, 2}, []float64{0, 1, 1, 1, 2, math.NaN()}),
		"edges: row 1: 0.5 is not an id":                                arr("<f8", true, []int{3, 2}, []float64{0, 0.5, 1, 1, 1, 2}),
		"edges: row 0: +Inf is not an id":                               arr("<f4", false, []int{3, 2}, []float32{float32(math.Inf(1)), 1, 1, 1, 2, 2}),
		"edges: row 1: 9007199254740992 is beyond what <f8 tells apart": arr("<f8", false, []int{3, 2}, []float64{0, 1, 1 << 53, 1, 2, 2}),
		"edges: row 1: 16777216 is beyond what <f4 tells apart":         arr("<f4", false, []int{3, 2}, []float32{0, 1, 1 << 24, 1, 2, 2}),
		"edges: element 3 is 9223372036854775808, which does not fit":   arr("<u8", false, []int{3, 2}, []uint64{0, 1, 1, 1 << 63, 2, 2}),
		"edges is (3, 2) of |b1, and ids are numbers":                   arr("|b1", false, []int{3, 2}, make([]bool, 6)),
	} {
		_, err := read(t, pack(t, files{"edges": b}, zip.Deflate), Options{})
		require.ErrorContains(t, err, want)
	}
}

// TestTrap15: paths with pt and spaces in them are but paths.
func TestTrap15Paths(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my .pt files", "npy opt.npz")
	require.NoError(t, os.MkdirAll(dir, 0o777))
	for name, b := range small() {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".npy"), b, 0o666))
	}
	requireSmall(t, mustRead(t, dir, Options{}))
	b, err := os.ReadFile(fixtures + "data.pt")
	require.NoError(t, err)
	path := filepath.Join(dir, "script attempt.PT")
	require.NoError(t, os.WriteFile(path, b, 0o666))
	require.Equal(t, "script attempt", mustRead(t, path, Options{}).Schema.Name)
}

func TestMasks(t *testing.T) {
	f := small().with("val_mask", nil).with("test_mask", nil).with("train_mask", nil)
	three := []bool{true, false, false, true, false, false, true, true, false, false, false, true, true, false, false} // (3, 5)
	byNode := make([]bool, 15)
	for i, b := range three {
		byNode[i%5*3+i/5] = b
	}
	for _, mask := range [][]byte{arr("|b1", false, []int{3, 5}, three), arr("|b1", true, []int{3, 5}, byNode), arr("|b1", false, []int{5, 3}, byNode)} {
		path := pack(t, f.with("train_masks", mask), zip.Deflate)
		for k, want := range [][]int64{{0, 3}, {1, 2}, {1, 2}} {
			g := mustRead(t, path, Options{MaskSplit: k})
			require.Equal(t, want, g.Splits[0][0].Numbers)
			require.Len(t, g.Schema.Skipped, 1)
		}
		_, err := read(t, path, Options{MaskSplit: 3})
		require.EqualError(t, err, path+": train_masks: 3 splits, which count from 0, and {mask_split} says 3")
	}
	_, err := read(t, pack(t, f.with("train_mask", arr("|u1", false, []int{5}, []uint8{0, 1, 2, 0, 0})), zip.Store), Options{})
	require.ErrorContains(t, err, "train_mask: row 2: 2 in a mask, which is zeros and ones")
	_, err = read(t, pack(t, f.with("train_mask", arr("|b1", false, []int{5, 5}, make([]bool, 25))), zip.Store), Options{})
	require.ErrorContains(t, err, "save one split alone")
	g := mustRead(t, pack(t, f.with("test_idx", i64(1)), zip.Store), Options{})
	require.Empty(t, g.Schema.Splits)
	require.Equal(t, []string{"split: it has no training nodes"}, g.Schema.Skipped)
}

func TestRefuses(t *testing.T) {
	csr := func(bounds []byte, more files) files {
		f := files{"indptr": bounds, "indices": i64(1, 2, 0)}
		for k, v := range more {
			f[k] = v
		}
		return f
	}
	for want, f := range map[string]files{
		"indptr: it starts at 1 instead of 0":                         csr(i64(1, 2, 2, 3), nil),
		"indptr: row 1: it starts at 2 and ends before that, at 1":    csr(i64(0, 2, 1, 3), nil),
		"indptr: row 1: it ends at 4, and indices has 3 entries":      csr(i64(0, 2, 4, 3), nil),
		"indptr: it ends at 2, and indices has 3 entries":             csr(i64(0, 1, 2, 2), nil),
		"indptr: it is empty; a matrix of n rows has n+1 bounds":      csr(i64(), nil),
		"data: 2 values, and ":                                        csr(i64(0, 1, 2, 3), files{"data": f32(1, 2)}),
		"shape: (3, 4) is not square; an adjacency has":               csr(i64(0, 1, 2, 3), files{"shape": i64(3, 4)}),
		"shape: 9 rows, and ":                                         csr(i64(0, 1, 2, 3), files{"shape": i64(9, 9)}),
		`format: the matrix is "bsr", and csr or csc is expected`:     csr(i64(0, 1, 2, 3), files{"format": arr("|S3", false, []int{}, []byte("bsr"))}),
		"src: 1 source, and ":                                         {"src": i64(1), "dst": i64(1, 2)},
		"edge_weight: 3 rows, and ":                                   small().with("edge_weight", f32(1, 2, 3)),
		"x is (5, 1, 2) of <f4, and a row of 1 to":                    small().with("x", arr("<f4", false, []int{5, 1, 2}, make([]float32, 10))),
		"num_nodes: -1 is no number of nodes":                         small().with("num_nodes", i64(-1)),
		"num_nodes is (2,) of <i8, and one number is expected":        small().with("num_nodes", i64(1, 2)),
		"x: (5, 9) of <f4 takes 180 bytes of data, the member has 40": small().with("x", arr("<f4", false, []int{5, 9}, make([]float32, 10))),
		"edge_index: npy header: ":                                    small().with("edge_index", []byte("\x93NUMPY\x01\x00\x02\x00{}")),
		"edge_index: byte 0: opcode 0x78 is no part of a pickle":      {"edge_index": arr("|O", false, []int{1}, []byte("x"))},
	} {
		_, err := read(t, pack(t, f, zip.Deflate), Options{})
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
	_, err := Open(t.TempDir(), Options{})
	require.ErrorContains(t, err, "no .npy file in it; name the folder that has them, or one file")
	text := filepath.Join(t.TempDir(), "edges.txt")
	require.NoError(t, os.WriteFile(text, []byte("0 1"), 0o666))
	_, err = Open(text, Options{})
	require.ErrorContains(t, err, "a file of arrays ends in .npy, .npz, .pt or .pth; rename it, or say what it is with {raw_array} edges.txt:i8:-1,2")
	_, err = Open(text, Options{Nodes: -1, MaskSplit: -1, Layout: "x", RowsAre: "y"})
	require.ErrorContains(t, err, "{node_count} -1: ")
	require.Len(t, strings.Split(err.Error(), "\n"), 4)
	_, err = Open(fixtures+"all.zip.p2.pt", Options{Edges: "complex"})
	require.ErrorContains(t, err, "all.zip.p2.pt: complex is (1,) of complex64, complex numbers; convert it in Python and save it again: complex = torch.view_as_real(complex).flatten(1)")
	_, err = Open(fixtures+"script.pt", Options{})
	require.ErrorContains(t, err, "a TorchScript archive")
}

// TestSciPy: the layout of package npz is left to it.
func TestSciPy(t *testing.T) {
	path := pack(t, files{"adj_indptr": i64(0, 1, 1), "adj_indices": i64(1), "adj_shape": i64(2, 2)}, zip.Store)
	src, err := Open(path, Options{})
	require.NoError(t, err)
	defer src.Close()
	require.IsType(t, (*npz.Source)(nil), src)
}

func data(t *testing.T, name string) string {
	root := os.Getenv("GNNSTORE_DATA")
	if root == "" {
		t.Skip("GNNSTORE_DATA is not set: the folder with heterophilous, cnr2000 and others")
	}
	return filepath.Join(root, name)
}

func TestHeterophilous(t *testing.T) {
	raw, err := os.ReadFile(data(t, "expected.json"))
	require.NoError(t, err)
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &all))
	for key, v := range all {
		name, ok := strings.CutPrefix(key, "heterophilous/")
		if !ok {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var want struct{ Nodes, Edges, Features, Classes int64 }
			require.NoError(t, json.Unmarshal(v, &want))
			src, err := Open(data(t, key+".npz"), Options{MaskSplit: 9})
			require.NoError(t, err)
			defer src.Close()
			g, err := sourcetest.Read(src)
			require.NoError(t, err)
			require.Equal(t, want.Nodes, g.Schema.NodeTypes[0].Count)
			require.Equal(t, want.Edges, g.Schema.Relations[0].Edges)
			require.EqualValues(t, want.Features, g.Schema.Tables[0].Dim)
			most := int32(0)
			for _, l := range g.Labels[0] {
				most = max(most, l)
			}
			require.EqualValues(t, want.Classes-1, most)
			seen := map[int64]bool{}
			for _, part := range g.Splits[0].Numbers() {
				require.NotEmpty(t, part)
				for _, v := range part {
					require.False(t, seen[v])
					seen[v] = true
				}
			}
			src, err = Open(data(t, key+".npz"), Options{})
			require.NoError(t, err)
			defer src.Close()
			var first []int64
			require.NoError(t, src.Split(context.Background(), 0, ingest.Train, func(c ingest.IDChunk) error {
				first = append(first, c.IDs...)
				return nil
			}))
			require.NotEqual(t, g.Splits[0][0].Numbers, first)
		})
	}
}

// TestMatrix: an adjacency as scipy.sparse.save_npz leaves it is a graph as well.
func TestMatrix(t *testing.T) {
	src, err := Open(data(t, "ogbn_arxiv/graphsaint/adj_full.npz"), Options{})
	require.NoError(t, err)
	defer src.Close()
	g, err := sourcetest.Read(src)
	require.NoError(t, err)
	require.EqualValues(t, 169343, g.Schema.NodeTypes[0].Count)
	require.Len(t, g.Edges[0].Src, 1166243)
	require.Empty(t, g.Edges[0].Values)
}

func TestCNR2000(t *testing.T) {
	src, err := Open(data(t, "cnr2000/cnr-2000-csr.npz"), Options{})
	require.NoError(t, err)
	defer src.Close()
	ctx := context.Background()
	schema, err := src.Schema(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 325557, schema.NodeTypes[0].Count)
	require.EqualValues(t, 3216152, schema.Relations[0].Edges)
	out, in, loops := make([]int, 325557), make([]int, 325557), 0
	require.NoError(t, src.Edges(ctx, 0, func(c ingest.EdgeChunk) error {
		for i, v := range c.Src {
			out[v]++
			in[c.Dst[i]]++
			if v == c.Dst[i] {
				loops++
			}
		}
		return nil
	}))
	most := func(degrees []int) (m int) {
		for _, d := range degrees {
			m = max(m, d)
		}
		return m
	}
	require.Equal(t, [3]int{87442, 2716, 18235}, [3]int{loops, most(out), most(in)})
	rep, err := build.Build(ctx, src, filepath.Join(t.TempDir(), "x.gnn"), build.Options{Undirected: true, Features: "degree"})
	require.NoError(t, err)
	require.EqualValues(t, 3216152, rep.Relations[0].EdgesRead)
	require.EqualValues(t, 5565380, rep.Relations[0].Edges)
}

// TestSharedStores: one dict that is the store of many types costs more names than the file has
// bytes.
func TestSharedStores(t *testing.T) {
	store := &pickle.Dict{}
	for i := range 1 << 10 {
		store.Keys, store.Values = append(store.Keys, fmt.Sprint(i)), append(store.Values, int64(0))
	}
	nodes := &pickle.Dict{}
	for i := range 1 << 10 {
		nodes.Keys, nodes.Values = append(nodes.Keys, fmt.Sprint("t", i)), append(nodes.Values, store)
	}
	b := newBag("shared.pt", 0)
	_, err := b.addTorch(&pickle.Dict{Keys: []any{"_node_store_dict", "_edge_store_dict"}, Values: []any{nodes, &pickle.Dict{}}})
	require.EqualError(t, err, "shared.pt: more than 65536 entries in its dicts; save the arrays of the graph alone")
}
