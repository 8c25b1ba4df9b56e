package arrays

import (
	"archive/zip"
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/pickle"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

// The graph of testdata/make.py.
var (
	madeEdges  = [][2]int64{{0, 1}, {0, 2}, {2, 0}, {3, 3}}
	madeX      = []float32{0, 1.5, 0, 0, 2, 0, 0, -1, 0, 0}
	madeY      = []int32{1, 0, 1, 0, 2}
	madeWeight = map[[2]int64]float32{{0, 1}: 0.5, {0, 2}: 2, {2, 0}: 1, {3, 3}: 4}
)

// requireMade compares a graph with the one of make.py.
func requireMade(t *testing.T, g sourcetest.Graph, weighted bool) {
	t.Helper()
	require.Equal(t, []ingest.NodeType{{Name: "node", Count: 5}}, g.Schema.NodeTypes)
	require.ElementsMatch(t, madeEdges, g.Edges[0].Pairs())
	require.EqualValues(t, 4, g.Schema.Relations[0].Edges)
	require.Equal(t, [][]float32{madeX}, g.Rows)
	require.Equal(t, madeY, g.Labels[0])
	if !weighted {
		require.Empty(t, g.Schema.Relations[0].Columns)
		return
	}
	require.Equal(t, "weight", g.Schema.Relations[0].Columns[0].Name)
	for i, pair := range g.Edges[0].Pairs() {
		require.Equal(t, madeWeight[pair], math.Float32frombits(uint32(g.Edges[0].Values[0][i])), pair)
	}
}

// TestMatrices reads the edges and features of one graph from sparse matrices of three libraries,
// in each layout.
func TestMatrices(t *testing.T) {
	path := filepath.Join("testdata", "matrices.pt")
	for _, name := range []string{"coo", "csr", "csc", "adj_t", "scipy_csr", "scipy_csc", "scipy_coo", "scipy_array", "rows"} {
		for _, x := range []string{"", "x_coo", "x_csr", "x_csc", "x_scipy"} {
			g := mustRead(t, path, Options{Edges: name, Features: x})
			requireMade(t, g, name != "rows")
			require.Equal(t, [3][]int64{{0, 1}, {2}, {3, 4}}, g.Splits[0].Numbers())
		}
	}
	g := mustRead(t, path, Options{}) // adj_t is a usual name
	requireMade(t, g, true)
	require.Contains(t, g.Schema.Skipped, "adj_t: of this sparse matrix row i with column j is the edge j→i; {csr_rows} src turns it round")
	g = mustRead(t, path, Options{RowsAre: "src"})
	require.ElementsMatch(t, [][2]int64{{1, 0}, {2, 0}, {0, 2}, {3, 3}}, g.Edges[0].Pairs())
	for _, c := range []struct{ name, want string }{
		{"bsr", "bsr is a sparse tensor of layout torch.sparse_bsr, and CSR, CSC and COO are read; convert it in Python and save it again: bsr = bsr.to_dense().to_sparse_csr()"},
		{"wide", "wide: (5, 8) is not square; an adjacency has a row and a column for each node"},
	} {
		_, err := read(t, path, Options{Edges: c.name})
		require.EqualError(t, err, path+": "+c.want)
	}
	_, err := read(t, path, Options{Labels: "coo"})
	require.EqualError(t, err, path+": coo is (5, 5) of sparse coo, and a class for each node is expected, a number or text, or 2 to 65536 zeros and ones")
}

// TestMadeFiles reads one graph from the files of PyTorch Geometric, PyTorch, SciPy and NumPy.
func TestMadeFiles(t *testing.T) {
	for _, c := range []struct {
		name     string
		weighted bool
	}{
		{"adj_t.pt", false}, {"adj_t.legacy.pt", false}, {"adj_t.big.pt", false}, {"edgeindex.pt", false}, {"xsparse.pt", false}, {"one.pt", false},
		{"sparse.npz", true}, {"dense.npz", false}, {"weighted.npz", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			requireMade(t, mustRead(t, filepath.Join("testdata", c.name), Options{}), c.weighted)
		})
	}
	g := mustRead(t, filepath.Join("testdata", "alone.pt"), Options{})
	require.ElementsMatch(t, madeEdges, g.Edges[0].Pairs())
	require.EqualValues(t, 5, g.Schema.NodeTypes[0].Count)
	g = mustRead(t, filepath.Join("testdata", "weighted.npz"), Options{RowsAre: "dst"})
	require.ElementsMatch(t, [][2]int64{{1, 0}, {2, 0}, {0, 2}, {3, 3}}, g.Edges[0].Pairs())
}

// TestSparseParts reads a sparse x from one array for each of its parts.
func TestSparseParts(t *testing.T) {
	f := small().with("x", nil).with("x_indptr", i64(0, 1, 1, 2, 3, 3)).with("x_indices", i64(1, 0, 1)).with("x_data", f32(1.5, 2, -1)).with("x_shape", i64(5, 2))
	for _, path := range []string{pack(t, f, zip.Deflate), folder(t, f)} {
		g := mustRead(t, path, Options{})
		require.Equal(t, [][]float32{madeX}, g.Rows)
		require.Equal(t, smallEdges, g.Edges[0].Pairs())
		require.Empty(t, g.Schema.Skipped)
	}
	csc := small().with("x", nil).with("bag_indptr", i64(0, 1, 3)).with("bag_indices", i64(2, 0, 3)).with("bag_data", f32(2, 1.5, -1)).with("bag_shape", i64(5, 2)).
		with("bag_format", arr("|S3", false, []int{}, []byte("csc")))
	require.Equal(t, [][]float32{madeX}, mustRead(t, pack(t, csc, zip.Deflate), Options{Features: "bag_"}).Rows)
	_, err := read(t, pack(t, f.with("x_shape", i64(7, 2)), zip.Deflate), Options{})
	require.ErrorContains(t, err, "x_indptr: 6 bounds, and 8 are expected for the shape (7, 2)")
	_, err = read(t, pack(t, f.with("x_indices", i64(1, 0, 2)), zip.Deflate), Options{})
	require.ErrorContains(t, err, "x: entry 2 is at (3, 2), outside its shape (5, 2)")
}

// dict makes a dict of keys and values in turn.
func dict(entries ...any) *pickle.Dict {
	d := &pickle.Dict{}
	for i := 0; i < len(entries); i += 2 {
		d.Keys, d.Values = append(d.Keys, entries[i]), append(d.Values, entries[i+1])
	}
	return d
}

// list makes a list of integers, of floats or of anything else.
func list[T any](items ...T) *pickle.List {
	l := &pickle.List{}
	for _, v := range items {
		l.Items = append(l.Items, v)
	}
	return l
}

// openValue reads a value that g.pt might hold.
func openValue(v any) (*Source, error) {
	b := newBag("g.pt", 0)
	types, err := b.addTorch(v)
	if err != nil {
		return nil, err
	}
	s := &Source{bag: b, nodes: map[string]*nodeType{}}
	return s, s.findAll(types)
}

// TestHeteroForms reads one HeteroData in each form that PyTorch Geometric saves it in.
func TestHeteroForms(t *testing.T) {
	heteroData := pickle.Global("torch_geometric.data.hetero_data.HeteroData")
	user, item := dict("x", list(list(0., 1), list(2., 3), list(4., 5))), dict("x", list(list(0., 1), list(2., 3)), "y", list[int64](1, 0))
	buys := dict("edge_index", list(list[int64](0, 1, 2, 2), list[int64](1, 0, 0, 1)), "edge_attr", list(0.5, 2, 1, 4))
	triple := pickle.Tuple{"user", "buys", "item"}
	whole := dict("user", user, "item", item, triple, buys)
	stores := append([]any{"_global_store", dict()}, "user", user, "item", item, triple, buys)
	slices := func(users ...int64) *pickle.Dict {
		return dict("_global_store", dict(), "user", dict("x", list(users...)), "item", dict("x", list[int64](0, 2), "y", list[int64](0, 2)))
	}
	for name, open := range map[string]func() (ingest.Source, error){
		"file":    func() (ingest.Source, error) { return Open("testdata/hetero_processed.pt", Options{}) },
		"to_dict": func() (ingest.Source, error) { return openValue(whole) },
		"dataset": func() (ingest.Source, error) { return openValue(pickle.Tuple{dict(stores...), nil, heteroData}) },
		"slices": func() (ingest.Source, error) {
			return openValue(pickle.Tuple{dict(stores...), slices(0, 3), heteroData})
		},
	} {
		t.Run(name, func(t *testing.T) {
			src, err := open()
			require.NoError(t, err)
			defer src.Close()
			g, err := sourcetest.Read(src)
			require.NoError(t, err)
			require.Equal(t, []ingest.NodeType{{Name: "user", Count: 3}, {Name: "item", Count: 2}}, g.Schema.NodeTypes)
			require.Equal(t, [][2]int64{{0, 1}, {1, 0}, {2, 0}, {2, 1}}, g.Edges[0].Pairs())
			require.Equal(t, "user__buys__item", g.Schema.Relations[0].Key())
			require.Equal(t, [][]float32{{0, 1, 2, 3, 4, 5}, {0, 1, 2, 3}}, g.Rows)
			require.Equal(t, []int32{1, 0}, g.Labels[0])
			require.Empty(t, g.Schema.Skipped)
		})
	}
	_, err := openValue(pickle.Tuple{dict(stores...), slices(0, 1, 2, 3), heteroData})
	require.ErrorContains(t, err, "g.pt: it holds 3 graphs, and one is read")
}

// TestSeveralGraphs reads a file of one graph, and refuses a file of several graphs or of a graph
// and other values.
func TestSeveralGraphs(t *testing.T) {
	data := func(fields *pickle.Dict) any {
		return &pickle.Object{Class: "torch_geometric.data.data.Data", State: fields}
	}
	edges := list(list[int64](0, 1, 2), list[int64](1, 2, 0))
	fields := dict("edge_index", edges, "y", list[int64](0, 1, 1))
	slices := func(bounds ...int64) any { return dict("edge_index", list(bounds...), "y", list(bounds...)) }
	for name, one := range map[string]any{
		"alone": data(fields), "list": list(data(fields)), "tuple": pickle.Tuple{data(fields)}, "dataset": pickle.Tuple{fields, nil},
		"slices": pickle.Tuple{data(fields), slices(0, 3)}, "no slices": pickle.Tuple{fields, dict()},
	} {
		s, err := openValue(one)
		require.NoError(t, err, name)
		require.EqualValues(t, 3, s.schema.Relations[0].Edges, name)
	}
	const several = `, and one is read; save one, torch.save(dataset[0], "graph.pt"), or all as the parts of one: ` +
		`torch.save(Batch.from_data_list(list(dataset)), "graph.pt")`
	for want, v := range map[string]any{
		"2 graphs" + several: pickle.Tuple{fields, slices(0, 1, 3)},
		"4 graphs" + several: list(data(fields), data(fields), data(fields), data(fields)),
		// As torch.save((train, val, test)) of RandomLinkSplit.
		"3 graphs" + several: pickle.Tuple{data(fields), data(fields), data(fields)},
		`a graph and 1 value beside it; save the graph alone: torch.save(data, "graph.pt")`:  pickle.Tuple{data(fields), list[int64](3)},
		`a graph and 2 values beside it; save the graph alone: torch.save(data, "graph.pt")`: pickle.Tuple{data(fields), 7.5, dict("train", list[int64](0))},
	} {
		_, err := openValue(v)
		require.EqualError(t, err, "g.pt: it holds "+want)
	}
	for _, v := range []any{
		// The graph has no array called train or test.
		pickle.Tuple{data(fields), dict("train", list[int64](0), "test", list[int64](1, 2))},
		pickle.Tuple{data(fields), dict("edge_index", &pickle.Array{Header: npy.Header{Type: npy.Type{Kind: npy.Int, Size: 1}, Shape: []int64{0, 2}}})},
	} {
		_, err := openValue(v)
		require.EqualError(t, err, `g.pt: it holds a graph and 1 value beside it; save the graph alone: torch.save(data, "graph.pt")`)
	}
}

// TestTwoEdges takes a (2, 2) edge_index of torch.save for (2, E), and asks about any other.
func TestTwoEdges(t *testing.T) {
	square := dict("edge_index", list(list[int64](0, 1), list[int64](2, 3)))
	for _, c := range []struct {
		path string
		o    Options
		sure bool
	}{
		{"g.pt", Options{}, true}, {"g.pth", Options{}, true}, {"G.PT", Options{Edges: "edge_index"}, true}, {"g.npz", Options{}, false},
	} {
		b := newBag(c.path, 0)
		_, err := b.addTorch(square)
		require.NoError(t, err)
		s := &Source{o: c.o, bag: b, nodes: map[string]*nodeType{}}
		if err := s.findAll(nil); !c.sure {
			require.ErrorContains(t, err, "may be two edges of a row each or two rows of ends; say {edge_layout}", c.path)
			continue
		}
		g, err := sourcetest.Read(s)
		require.NoError(t, err, c.path)
		require.Equal(t, [][2]int64{{0, 2}, {1, 3}}, g.Edges[0].Pairs(), c.path)
	}
}

// TestOthers names values that have the usual name of an array and are none.
func TestOthers(t *testing.T) {
	open := func(entries ...any) (*Source, error) { return openValue(dict(entries...)) }
	pair := func(u, v int64) *pickle.List { return &pickle.List{Items: []any{u, v}} }
	edges := &pickle.List{Items: []any{pair(0, 1), pair(1, 2), pair(2, 0)}}
	s, err := open("edges", edges, "y", "cora", "label", int64(7), "x", &pickle.Dict{})
	require.NoError(t, err)
	require.Equal(t, []string{
		`y: it is the text "cora", and no array`, "label: it is the number 7, and no array",
		"features: x is a dict, and an array is expected; save one, or name another by {array_features}",
	}, s.schema.Skipped)
	require.Equal(t, "g.pt: x is a dict, and an array is expected; save one, or name another by {array_features}", s.schema.NoFeatures)
	require.Equal(t, `g.pt: no array of labels (found edges, label, which is the number 7, x, which is a dict, y, which is the text "cora"); `+
		"looked for y, node_labels, node_label, labels, label; {array_labels} NAME says another", s.schema.NoLabels)
	_, err = open("edges", edges, "y", &pickle.Dict{})
	require.EqualError(t, err, "g.pt: y is a dict, and an array is expected; save one, or name another by {array_labels}")
	_, err = open("edge_index", "none")
	require.EqualError(t, err, `g.pt: edge_index is the text "none", and an array is expected; save one, or name another by {array_edges}`)
	_, err = open("edges", edges, "train_mask", &pickle.Object{Class: "a.B"})
	require.EqualError(t, err, "g.pt: train_mask is a a.B, and an array is expected; save one, or name another by {array_train}")
	for _, format := range []string{"bsr", "dia", "lil"} {
		f := files{"format": arr("|S3", false, []int{}, []byte(format)), "data": f32(1, 2), "indices": i64(0, 1), "indptr": i64(0, 1, 2), "shape": i64(2, 2)}
		_, err = read(t, pack(t, f, zip.Deflate), Options{})
		require.ErrorContains(t, err, fmt.Sprintf("format: the matrix is %q, and csr or csc is expected; save m.tocsr()", format))
	}
}

// TestObjects reads arrays of Python objects as numbers, texts or rows.
func TestObjects(t *testing.T) {
	g := mustRead(t, filepath.Join("testdata", "objects.npz"), Options{})
	require.Equal(t, []string{"a", "b", "c"}, g.Schema.Labels[0].ClassNames)
	require.Equal(t, []int32{1, 0, 1, -1, 2}, g.Labels[0])
	require.Equal(t, [][]float32{madeX}, g.Rows)
	g = mustRead(t, filepath.Join("testdata", "numbers.npz"), Options{})
	require.Equal(t, []int32{1, 0, -1, 2, 1}, g.Labels[0])
	require.Equal(t, []float32{1, 2.5, 1, 0, 3, 4, 5, 6, 7}, g.Rows[0][:9])
	require.True(t, math.IsNaN(float64(g.Rows[0][9])))
	path := filepath.Join("testdata", "ragged.npz")
	_, err := read(t, path, Options{})
	require.EqualError(t, err, path+`: y is (5,) of |O, Python objects of several kinds (element 0 is the number 1, and 1 is the text "a"); `+
		"convert it in Python and save it again: y = y.astype(str)")
	_, err = read(t, path, Options{Features: "x", Labels: "x"})
	require.EqualError(t, err, path+": x is (5,) of |O, rows of several lengths (row 0 has 1, and row 1 has 2); convert it in Python and save it again: "+
		`x = numpy.array([list(r) + [0] * (max(map(len, x)) - len(r)) for r in x], dtype="float32")`)
}

// TestUnreadTypes refuses arrays of types that are not read. The message has the type, the shape
// and a line of Python that converts the array.
func TestUnreadTypes(t *testing.T) {
	for descr, want := range map[string]string{
		"<c8":     "complex numbers; convert it in Python and save it again: NAME = numpy.hstack([NAME.real, NAME.imag])",
		"<M8[ns]": `dates or spans of time; convert it in Python and save it again: NAME = NAME.astype("datetime64[s]").astype("int64")`,
		"<m8[D]":  `dates or spans of time; convert it in Python and save it again: NAME = NAME.astype("timedelta64[s]").astype("int64")`,
		"<f16":    `floats of a size that only some machines have; convert it in Python and save it again: NAME = NAME.astype("float64")`,
		"|V2":     `elements without a known meaning; convert it in Python and save it again: NAME = NAME.astype("float32")`,
	} {
		odd := arr(descr, false, []int{5, 1}, make([]byte, 80))
		for _, path := range []string{pack(t, small().with("y", odd), zip.Deflate), folder(t, small().with("y", odd))} {
			_, err := read(t, path, Options{})
			require.ErrorContains(t, err, fmt.Sprintf("is (5, 1) of %s, %s", descr, strings.ReplaceAll(want, "NAME", "y")))
		}
		s, err := Open(pack(t, small().with("x", odd).with("edge_weight", odd), zip.Deflate), Options{})
		require.NoError(t, err)
		schema, err := s.Schema(t.Context())
		require.NoError(t, err)
		require.Contains(t, schema.NoFeatures, fmt.Sprintf("x is (5, 1) of %s, %s", descr, strings.ReplaceAll(want, "NAME", "x")))
		require.Contains(t, fmt.Sprint(schema.Skipped), fmt.Sprintf("edge_weight is (5, 1) of %s, %s", descr, strings.ReplaceAll(want, "NAME", "edge_weight")))
		require.NoError(t, s.Close())
	}
}

// TestDense takes a square array for an adjacency matrix if its name says so or an option names it.
func TestDense(t *testing.T) {
	a := []float64{0, 1, 2, 0, 0, 0, 1, 0, 0}
	f := files{"links": arr("<f8", false, []int{3, 3}, a)}
	g := mustRead(t, pack(t, f, zip.Deflate), Options{Edges: "links"})
	require.Equal(t, [][2]int64{{0, 1}, {0, 2}, {2, 0}}, g.Edges[0].Pairs())
	require.Equal(t, []uint64{0x3f800000, 0x40000000, 0x3f800000}, g.Edges[0].Values[0])
	whole := files{"A": arr("<i8", true, []int{3, 3}, []int64{0, 0, -1, 7, 0, 0, 2, 0, 0})}
	g = mustRead(t, folder(t, whole), Options{})
	require.Equal(t, [][2]int64{{0, 1}, {0, 2}, {2, 0}}, g.Edges[0].Pairs())
	require.Equal(t, []uint64{7, 2, 1<<64 - 1}, g.Edges[0].Values[0])
	g = mustRead(t, folder(t, files{"adj": arr("|b1", false, []int{2, 2}, []bool{false, true, false, true})}), Options{})
	require.Equal(t, [][2]int64{{0, 1}, {1, 1}}, g.Edges[0].Pairs())
	require.Empty(t, g.Schema.Relations[0].Columns)
	g = mustRead(t, folder(t, files{"adj": arr("<i8", false, []int{2, 3}, []int64{0, 1, 2, 2, 1, 0})}), Options{}) // not square: ends
	require.Equal(t, [][2]int64{{0, 2}, {1, 1}, {2, 0}}, g.Edges[0].Pairs())
	_, err := read(t, pack(t, files{"adj": arr("<f8", false, []int{2, 2}, []float64{0, 1, math.NaN(), 0})}, zip.Deflate), Options{})
	require.ErrorContains(t, err, "adj: row 1: column 0 is NaN, and an adjacency matrix has 0 where there is no edge")
	_, err = read(t, pack(t, files{"adj": arr("<f8", false, []int{3, 3}, a), "edge_weight": f32(1, 2, 3)}, zip.Deflate), Options{})
	require.ErrorContains(t, err, "edge_weight: edges in the matrix adj have their weights there")
	_, err = read(t, pack(t, files{"adj": arr("<f8", false, []int{3, 3}, a), "x": f32(1, 2)}, zip.Deflate), Options{})
	require.ErrorContains(t, err, "adj: 3 rows, and there are 2 nodes by ")
}

func TestMadeConform(t *testing.T) {
	const n = 400
	all := make([]float64, n*n)
	for i := range all {
		all[i] = float64(i % 5)
	}
	large := pack(t, files{"adj": arr("<f8", false, []int{n, n}, all)}, zip.Deflate)
	open := func(path string, o Options) func() (ingest.Source, error) {
		return func() (ingest.Source, error) { return Open(path, o) }
	}
	sourcetest.Conform(t, open(large, Options{}), open("testdata/matrices.pt", Options{Features: "x_coo"}), open("testdata/matrices.pt", Options{Features: "x_csc", Edges: "csc"}),
		open("testdata/weighted.npz", Options{}), open("testdata/sparse.npz", Options{}), open("testdata/objects.npz", Options{}), open("testdata/hetero_processed.pt", Options{}))
}

// TestUnordered reads entries in no order once for each window of rows.
func TestUnordered(t *testing.T) {
	const rows, dim = 40, 1 << 20
	view := func(b []byte) *npy.View {
		h, size, err := npy.ReadHeaderSize(bytes.NewReader(b))
		require.NoError(t, err)
		v, err := npy.NewView(h, nil, 0, npy.FileStorage(bytes.NewReader(b[size:])), int64(len(b))-size)
		require.NoError(t, err)
		return v
	}
	read := func(at ...int64) map[[2]int64]float32 {
		m := &matrix{name: "x", format: "coo", rows: view(i64(at...)), cols: view(i64(5, 6, 7, 7)), data: view(f32(1, 2, 3, 4)), dims: [2]int64{rows, dim}}
		found, n := map[[2]int64]float32{}, int64(0)
		require.NoError(t, m.sparseRows(t.Context(), func(c ingest.RowChunk) error {
			require.Equal(t, n, c.First)
			for i, v := range c.Values {
				if v != 0 {
					found[[2]int64{n + int64(i/dim), int64(i % dim)}] = v
				}
			}
			n += int64(len(c.Values) / dim)
			return nil
		}))
		require.EqualValues(t, rows, n)
		return found
	}
	require.Equal(t, map[[2]int64]float32{{39, 5}: 1, {0, 6}: 2, {17, 7}: 7}, read(39, 0, 17, 17))
	require.Equal(t, map[[2]int64]float32{{0, 5}: 1, {17, 6}: 2, {39, 7}: 7}, read(0, 17, 39, 39))
	m := &matrix{name: "x", format: "coo", rows: view(i64(0, 40)), cols: view(i64(1, 1)), dims: [2]int64{rows, dim}}
	require.EqualError(t, m.sparseRows(t.Context(), func(ingest.RowChunk) error { return nil }), "x: entry 1 is at (40, 1), outside its shape (40, 1048576)")
}

// TestSplitArray takes an array of parts for a split if its name and words fit or an option names
// it. It asks about numbers.
func TestSplitArray(t *testing.T) {
	f := small().with("train_mask", nil).with("val_mask", nil).with("test_mask", nil)
	words := texts("train", "Val", "test", "", "training")
	want := [3][]int64{{0, 4}, {1}, {2}}
	for _, path := range []string{pack(t, f.with("split", words), zip.Deflate), folder(t, f.with("subset", words))} {
		g := mustRead(t, path, Options{})
		require.Equal(t, want, g.Splits[0].Numbers())
		require.Len(t, g.Schema.Skipped, 1)
		require.Contains(t, g.Schema.Skipped[0], "the split is this array, by its name and words; {array_split} none passes over it")
		require.Empty(t, mustRead(t, path, Options{Split: "none"}).Splits)
	}
	path := pack(t, f.with("split", i64(0, 1, 2, 2, 0)), zip.Deflate)
	_, err := read(t, path, Options{})
	require.EqualError(t, err, path+": split: is it a split? {array_split} split takes 0 to train, 1 to validate and 2 to test, and {array_split} none passes over it")
	var question *ingest.Question
	require.ErrorAs(t, err, &question)
	require.Equal(t, [3][]int64{{0, 4}, {1}, {2, 3}}, mustRead(t, path, Options{Split: "split"}).Splits[0].Numbers())
	for skipped, odd := range map[string]files{
		"split: it is called as a split, and its values are no parts of one; {array_split} NAME says another array": f.with("split", texts("a", "b", "c", "a", "b")),
		"split: it is called as a split, and has no training nodes":                                                 f.with("split", texts("val", "test", "test", "test", "test")),
		"split: it is called as a split, and has no part for each node":                                             f.with("split", i64(0, 1)),
		"part: it may be a split; {array_split} part takes 0 to train, 1 to validate and 2 to test":                 f.with("part", i64(0, 1, 2, 0, 0)),
	} {
		g := mustRead(t, pack(t, odd, zip.Deflate), Options{})
		require.Empty(t, g.Splits)
		require.Contains(t, g.Schema.Skipped, skipped)
	}
	_, err = read(t, pack(t, f.with("split", texts("train", "b", "c", "a", "b")), zip.Deflate), Options{Split: "split"})
	require.ErrorContains(t, err, `split: row 1: "b" is no part of a split: there are train, valid and test, or 0, 1 and 2`)
	_, err = read(t, pack(t, small().with("split", words), zip.Deflate), Options{Split: "split"})
	require.ErrorContains(t, err, "{array_split} split: the split is in other arrays")
}
