package npz

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sampledata"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

func read(file []byte) (sourcetest.Graph, error) {
	s, err := openBytes(file)
	if err != nil {
		return sourcetest.Graph{}, err
	}
	return sourcetest.Read(s)
}

func TestSmallGraphInEveryContainer(t *testing.T) {
	for name, file := range map[string][]byte{
		"stored":         pack(t, zip.Store, small()),
		"deflated":       pack(t, zip.Deflate, small()),
		"zip64":          packZip64(zip.Store, small()),
		"zip64 deflated": packZip64(zip.Deflate, small()),
	} {
		s, err := openBytes(file)
		require.NoError(t, err, name)
		for range 2 { // every section can be read again
			g, err := sourcetest.Read(s)
			require.NoError(t, err, name)
			require.Equal(t, &ingest.Schema{
				Name:      "small",
				NodeTypes: []ingest.NodeType{{Name: "node", Count: 4}},
				Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: 4}},
				Tables:    []ingest.Table{{Name: "feat", NodeType: "node", Dim: 3}},
				Labels:    []ingest.Label{{Name: "label", NodeType: "node", Classes: 2, ClassNames: []string{"no", "ja"}}},
			}, g.Schema)
			require.Equal(t, []int64{0, 0, 2, 3}, g.Edges[0].Src)
			require.Equal(t, []int64{1, 2, 0, 3}, g.Edges[0].Dst)
			require.Equal(t, []float32{0.5, 0, 2, 0, 3, 0, 0, 0, 0, 0, 0, 1}, g.Rows[0])
			require.Equal(t, []int32{1, 0, -1, 1}, g.Labels[0])
		}
		require.NoError(t, s.Close())
	}
}

func TestVariants(t *testing.T) {
	nan := math.NaN()
	noAttr := []entry{{"attr_data", nil}, {"attr_indices", nil}, {"attr_indptr", nil}, {"attr_shape", nil}}
	for _, c := range []struct {
		name    string
		entries []entry
		check   func(t *testing.T, g sourcetest.Graph)
	}{
		{"float labels with NaN", with(small(), entry{"labels", arr("<f8", false, []int{4}, []float64{1, nan, 0, -1})}), func(t *testing.T, g sourcetest.Graph) {
			require.Equal(t, []int32{1, -1, 0, -1}, g.Labels[0])
		}},
		{"labels as a column, column-major, narrow", with(small(), entry{"labels", arr("|i1", true, []int{4, 1}, []int8{1, -7, 0, 1})}), func(t *testing.T, g sourcetest.Graph) {
			require.Equal(t, []int32{1, -1, 0, 1}, g.Labels[0])
		}},
		{"labels that are text", with(small(), entry{"labels", texts("dog", "cat", "NA", "dog")}), func(t *testing.T, g sourcetest.Graph) {
			require.Equal(t, []ingest.Label{{Name: "label", NodeType: "node", Classes: 2, ClassNames: []string{"cat", "dog"}}}, g.Schema.Labels)
			require.Equal(t, []int32{1, 0, -1, 1}, g.Labels[0])
			require.Equal(t, []string{"class_names: the labels are names themselves"}, g.Schema.Skipped)
		}},
		{"numbers in text", with(small(), entry{"labels", texts("10", "", "9", "10.0")}, entry{"class_names", nil}), func(t *testing.T, g sourcetest.Graph) {
			require.Equal(t, []string{"9", "10"}, g.Schema.Labels[0].ClassNames)
			require.Equal(t, []int32{1, -1, 0, 1}, g.Labels[0])
		}},
		{"numbers from 0 in bytes", with(small(), entry{"labels", arr("|S1", false, []int{4, 1}, []byte("0210"))}), func(t *testing.T, g sourcetest.Graph) {
			require.Zero(t, g.Schema.Labels[0].Classes)
			require.Equal(t, []int32{0, 2, 1, 0}, g.Labels[0])
		}},
		{"no labels", with(small(), entry{"labels", nil}), func(t *testing.T, g sourcetest.Graph) {
			require.Empty(t, g.Schema.Labels)
			require.Equal(t, []string{"class_names: it is no part of this layout"}, g.Schema.Skipped)
		}},
		{"explicit zeros and weights", with(small(), entry{"adj_data", f32(1, 0, 0.5, 0)}), func(t *testing.T, g sourcetest.Graph) {
			require.Equal(t, []int64{0, 2}, g.Edges[0].Src)
			require.Equal(t, []int64{1, 0}, g.Edges[0].Dst)
			require.Equal(t, int64(2), g.Schema.Relations[0].Edges)
			require.Equal(t, []string{"adj_data: 2 explicit zeros are not edges", "adj_data: weights of edges are not kept"}, g.Schema.Skipped)
		}},
		{"no adj_data, no adj_shape", with(small(), entry{"adj_data", nil}, entry{"adj_shape", nil}), func(t *testing.T, g sourcetest.Graph) {
			require.Equal(t, []int64{0, 0, 2, 3}, g.Edges[0].Src)
			require.Equal(t, int64(4), g.Schema.NodeTypes[0].Count)
			require.Equal(t, int64(4), g.Schema.Relations[0].Edges)
		}},
		{"no attr_data, entries twice", with(small(), entry{"attr_data", nil}, entry{"attr_indices", i32(1, 1, 1, 2)}), func(t *testing.T, g sourcetest.Graph) {
			require.Equal(t, []float32{0, 2, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1}, g.Rows[0])
		}},
		{"other spelling", []entry{{"adj_matrix.indptr", i64(0, 1, 1)}, {"adj_matrix.indices", i64(1)}, {"adj_matrix.shape", i64(2, 2)}, {"adj_matrix.data", f32(1)}}, func(t *testing.T, g sourcetest.Graph) {
			require.Equal(t, []int64{0}, g.Edges[0].Src)
			require.Empty(t, g.Schema.Tables)
		}},
		{"dense features", with(small(), append(noAttr, entry{"attr_matrix", arr("<f8", false, []int{4, 2}, []float64{1, 2, 3, 4, 5, 6, 7, 8})})...), func(t *testing.T, g sourcetest.Graph) {
			require.Equal(t, []float32{1, 2, 3, 4, 5, 6, 7, 8}, g.Rows[0])
		}},
		{"dense features, column-major", with(small(), append(noAttr, entry{"attr_matrix", arr("<i2", true, []int{4, 2}, []int16{1, 3, 5, 7, 2, 4, 6, 8})})...), func(t *testing.T, g sourcetest.Graph) {
			require.Equal(t, []float32{1, 2, 3, 4, 5, 6, 7, 8}, g.Rows[0])
		}},
		{"features of no columns", with(small(), entry{"attr_shape", i64(4, 0)}), func(t *testing.T, g sourcetest.Graph) {
			require.Empty(t, g.Schema.Tables)
		}},
		{"no edges", with(small(), entry{"adj_data", f32()}, entry{"adj_indices", i32()}, entry{"adj_indptr", i32(0, 0, 0, 0, 0)}), func(t *testing.T, g sourcetest.Graph) {
			require.Empty(t, g.Edges[0].Src)
		}},
		{"no nodes", []entry{{"adj_indptr", i32(0)}, {"adj_indices", i32()}, {"labels", i32()}, {"attr_matrix", arr("<f4", false, []int{0, 3}, []float32{})}}, func(t *testing.T, g sourcetest.Graph) {
			require.Empty(t, g.Labels[0])
			require.Empty(t, g.Rows[0])
		}},
		{"keys that Python alone can read", with(small(), entry{"class_names", arr("|O", false, []int{2}, []byte("\x80\x02]q\x00."))}, entry{"node_names", arr("<U1", false, []int{1}, []int32{'x'})},
			entry{"notes", []byte("no array at all")}), func(t *testing.T, g sourcetest.Graph) {
			require.Nil(t, g.Schema.Labels[0].ClassNames)
			require.Equal(t, []string{
				"class_names: unsupported element type |O (Python objects, stored as a pickle); classes go by number",
				"node_names: names of nodes are not kept",
				"notes: it is no part of this layout",
			}, g.Schema.Skipped)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := read(pack(t, zip.Deflate, c.entries))
			require.NoError(t, err)
			c.check(t, g)
		})
	}
	// Labels that only Python can read are refused, not left out.
	_, err := read(pack(t, zip.Deflate, with(small(), entry{"labels", arr("|O", false, []int{4}, []byte("x"))})))
	require.EqualError(t, err, "small.npz: labels: unsupported element type |O (Python objects, stored as a pickle); convert them in Python and save them again: labels = labels.astype(str)")
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		change []entry
		want   string
	}{
		{[]entry{{"adj_indptr", nil}}, "small.npz: no key adj_indptr (found adj_data, adj_indices, adj_shape, attr_data, attr_indices, attr_indptr, attr_shape, labels, class_names); this layout needs a scipy CSR adjacency: adj_indptr, adj_indices, adj_shape and, for weights, adj_data"},
		{[]entry{{"adj_indices", nil}}, "small.npz: no key adj_indices beside adj_indptr; a scipy CSR matrix has both"},
		{[]entry{{"adj_shape", i64(4, 5)}}, "small.npz: adj_shape: (4, 5) is not square; an adjacency has a row and a column for each node"},
		{[]entry{{"adj_shape", i64(5, 5)}}, "small.npz: adj_indptr: it has 5 bounds, 6 are expected for the 5 rows of adj_shape"},
		{[]entry{{"adj_shape", i64(-4, -4)}}, "small.npz: adj_shape: (-4, -4) is not the shape of a matrix"},
		{[]entry{{"adj_shape", i64(4)}}, "small.npz: adj_shape: it has 1 numbers, rows and columns are expected"},
		{[]entry{{"adj_data", f32(1)}}, "small.npz: adj_data: it has 1 values, adj_indices has 4 columns for them"},
		{[]entry{{"adj_data", arr("|O", false, []int{4}, []byte("x"))}}, "small.npz: adj_data: unsupported element type |O (Python objects, stored as a pickle)"},
		{[]entry{{"adj_indptr", i32()}}, "small.npz: adj_indptr: it is empty; a matrix of n rows has n+1 bounds"},
		{[]entry{{"adj_indptr", i32(1, 2, 2, 3, 4)}}, "small.npz: adj_indptr: it starts at 1 instead of 0"},
		{[]entry{{"adj_indptr", i32(0, 2, 1, 3, 4)}}, "small.npz: adj_indptr: row 1: it starts at 2 and ends before that, at 1"},
		{[]entry{{"adj_indptr", i32(0, 2, 2, 3, 3)}}, "small.npz: adj_indptr: it ends at 3, and adj_indices has 4 entries"},
		{[]entry{{"adj_indptr", i32(0, 2, 2, 3, 5)}}, "small.npz: adj_indptr: row 3: it ends at 5, and adj_indices has 4 entries"},
		{[]entry{{"adj_indptr", f32(0, 2, 2.5, 3, 4)}}, "small.npz: adj_indptr: element 2 is 2.5, not an integer of 64 bits"},
		{[]entry{{"adj_indices", i32(1, 2, 4, 3)}}, "small.npz: adj_indices: row 2: column 4 is outside 0…3"},
		{[]entry{{"adj_indices", i32(1, 2, -1, 3)}}, "small.npz: adj_indices: row 2: column -1 is outside 0…3"},
		{[]entry{{"adj_indices", arr("<i4", false, []int{2, 2}, []int32{1, 2, 0, 3})}}, "small.npz: adj_indices: it is (2, 2) of <i4, numbers in one dimension are expected"},
		{[]entry{{"attr_indices", i32(0, 2, 3, 2)}}, "small.npz: attr_indices: row 1: column 3 is outside 0…2"},
		{[]entry{{"attr_shape", i64(3, 3)}, {"attr_indptr", i32(0, 2, 3, 4)}}, "small.npz: attr_shape: 3 rows of features, 4 nodes"},
		{[]entry{{"attr_shape", i64(4, 1<<40)}}, "small.npz: attr_shape: 1099511627776 columns; dense rows have at most 4194304"},
		{[]entry{{"attr_shape", nil}}, "no key attr_shape"},
		{[]entry{{"attr_indptr", nil}}, "no key attr_indptr"},
		{[]entry{{"labels", i64(1, 0)}}, "small.npz: labels: 2 labels, 4 nodes"},
		{[]entry{{"labels", arr("<i8", false, []int{4, 2}, make([]int64, 8))}}, "small.npz: labels: it is (4, 2) of <i8, a class for each node is expected"},
		{[]entry{{"labels", f32(0, 1, 0.5, 1)}}, "small.npz: labels: row 2: 0.5 is not the number of a class"},
		{[]entry{{"labels", f32(0, 1, 1, -0.5)}}, "small.npz: labels: row 3: -0.5 is not the number of a class"},
		{[]entry{{"labels", i64(0, 1, 1<<40, 1)}}, "small.npz: labels: row 2: 1099511627776 is not the number of a class"},
		{[]entry{{"labels", i64(0, 1, 1, 1)[:150]}}, "small.npz: labels: (4,) of <i8 takes 32 bytes of data, the member has 22"},
		{[]entry{{"labels", append(i64(0, 1, 1, 1), 0)}}, "small.npz: labels: (4,) of <i8 takes 32 bytes of data, the member has 33"},
		{[]entry{{"labels", []byte("text")}}, "small.npz: labels: truncated: npy header: 10 bytes expected, found 4"},
	} {
		for _, method := range []uint16{zip.Store, zip.Deflate} {
			_, err := read(pack(t, method, with(small(), c.change...)))
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		}
	}
}

func TestDamagedFiles(t *testing.T) {
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		whole := pack(t, method, small())
		good, err := read(whole)
		require.NoError(t, err)
		for n := range whole {
			_, err := read(whole[:n])
			require.Error(t, err)
			if n > 4 {
				require.ErrorContains(t, err, "small.npz: damaged or truncated download")
			}
		}
		// A flipped byte of a member's data is a bad download, not a bad graph.
		for _, key := range []string{"adj_data", "adj_indices", "adj_indptr", "attr_data", "labels", "class_names"} {
			z, err := zip.NewReader(bytes.NewReader(whole), int64(len(whole)))
			require.NoError(t, err)
			for _, f := range z.File {
				if f.Name != key+".npy" {
					continue
				}
				at, err := f.DataOffset()
				require.NoError(t, err)
				for i := range f.CompressedSize64 {
					bad := bytes.Clone(whole)
					bad[at+int64(i)] ^= 0x10
					g, err := read(bad)
					if err == nil { // deflate pads its blocks with bits that mean nothing
						require.Equal(t, good, g)
						continue
					}
					require.ErrorContains(t, err, "small.npz: "+key+": damaged or truncated download (", "%s byte %d", key, i)
					require.ErrorContains(t, err, "); fetch it again")
				}
			}
		}
	}
}

func TestOtherFiles(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"", "x.npz: the file is empty"},
		{"<!DOCTYPE html><html>", "x.npz: this looks like a web page"},
		{string(i64(1)), "x.npz: this is a single npy array"},
		{"what is this", "x.npz: not an npz archive (zip: not a valid zip file)"},
		{string(pack(t, zip.Store, nil)), "x.npz: no key adj_indptr (the archive has no arrays)"},
	} {
		path := filepath.Join(t.TempDir(), "x.npz")
		require.NoError(t, os.WriteFile(path, []byte(c.file), 0o644))
		_, err := Open(path)
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "\n")
	}
	_, err := Open(t.TempDir())
	require.ErrorContains(t, err, "it is a directory, not a file")
	_, err = Open(filepath.Join(t.TempDir(), "none.npz"))
	require.ErrorIs(t, err, os.ErrNotExist)

	odd := pack(t, zip.Store, small())
	for i := 0; ; { // method 99 is encryption
		j := bytes.Index(odd[i:], []byte("PK\x01\x02"))
		if j < 0 {
			break
		}
		i += j + 4
		odd[i+6] = 99
	}
	_, err = openBytes(odd)
	require.ErrorContains(t, err, "compression method 99 is not read")

	s, err := openBytes(packWithNote(t))
	require.NoError(t, err)
	schema, err := s.Schema(context.Background())
	require.NoError(t, err)
	require.Equal(t, []string{"README.txt: it is not an array"}, schema.Skipped)
	_, err = openBytes(pack(t, zip.Store, append(small(), entry{"a\nb", i64(1)})))
	require.ErrorContains(t, err, `small.npz: member "a\nb.npy": such a name is no key`)
	_, err = openBytes(pack(t, zip.Store, append(small(), small()[0])))
	require.ErrorContains(t, err, "small.npz: key adj_data is there twice")
}

func packWithNote(t *testing.T) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range append(small(), entry{key: "README.txt"}) {
		name := e.key + ".npy"
		if e.npy == nil {
			name = e.key
		}
		f, err := w.Create(name)
		require.NoError(t, err)
		_, err = f.Write(e.npy)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// Chunks end where they should when a matrix spans several.
func TestManyChunks(t *testing.T) {
	const n, dim = 3*ingest.ChunkRows/2 + 7, 11
	indptr, attrs := []int32{0}, []int32{0}
	var indices, columns []int32
	var data, labels []float32
	var wantSrc, wantDst []int64
	var wantLabels []int32
	wantRows := make([]float32, n*dim)
	for i := range n {
		if i%3 != 1 && i < n-ingest.ChunkRows/4 { // the last rows are empty
			indices, data = append(indices, int32(i*7%n), int32(i)), append(data, 1, float32(i%2))
			wantSrc, wantDst = append(wantSrc, int64(i)), append(wantDst, int64(i*7%n))
			if i%2 == 1 {
				wantSrc, wantDst = append(wantSrc, int64(i)), append(wantDst, int64(i))
			}
			columns = append(columns, int32(i%dim))
			wantRows[i*dim+i%dim] = 1
		}
		indptr, attrs = append(indptr, int32(len(indices))), append(attrs, int32(len(columns)))
		labels, wantLabels = append(labels, float32(i%5)), append(wantLabels, int32(i%5))
	}
	g, err := read(pack(t, zip.Deflate, []entry{{"adj_indptr", i32(indptr...)}, {"adj_indices", i32(indices...)}, {"adj_data", f32(data...)},
		{"attr_indptr", i32(attrs...)}, {"attr_indices", i32(columns...)}, {"attr_shape", i64(n, dim)}, {"labels", f32(labels...)}}))
	require.NoError(t, err)
	require.True(t, slices.Equal(wantSrc, g.Edges[0].Src))
	require.True(t, slices.Equal(wantDst, g.Edges[0].Dst))
	require.True(t, slices.Equal(wantRows, g.Rows[0]))
	require.True(t, slices.Equal(wantLabels, g.Labels[0]))
	require.Equal(t, int64(len(wantSrc)), g.Schema.Relations[0].Edges)
}

func TestAmazonComputers(t *testing.T) {
	file := sampledata.AmazonComputers()
	s, err := OpenReader("amazon_electronics_computers.npz", bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	g, err := sourcetest.Read(s)
	require.NoError(t, err)
	require.Equal(t, "amazon_electronics_computers", g.Schema.Name)
	require.Empty(t, g.Schema.Skipped)
	require.Equal(t, int64(13752), g.Schema.NodeTypes[0].Count)
	require.Equal(t, int64(287209), g.Schema.Relations[0].Edges)
	require.Len(t, g.Edges[0].Src, 287209)
	require.Equal(t, 767, g.Schema.Tables[0].Dim)
	require.Len(t, g.Rows[0], 13752*767)
	require.Equal(t, "Desktops", g.Schema.Labels[0].ClassNames[0])
	counts := make([]int, 10)
	for _, c := range g.Labels[0] {
		counts[c]++
	}
	require.Equal(t, []int{436, 2142, 1414, 542, 5158, 308, 487, 818, 2156, 291}, counts)
	ones := 0
	for _, v := range g.Rows[0] {
		if v == 1 {
			ones++
		} else if v != 0 {
			t.Fatalf("feature %v", v)
		}
	}
	require.Equal(t, 3675081, ones)
	require.Equal(t, 245861, pairs(g.Edges[0]))
}

// pairs counts distinct undirected edges, self loops aside.
func pairs(e sourcetest.Edges) int {
	seen := make(map[[2]int64]bool, len(e.Src))
	for i := range e.Src {
		if e.Src[i] != e.Dst[i] {
			seen[[2]int64{min(e.Src[i], e.Dst[i]), max(e.Src[i], e.Dst[i])}] = true
		}
	}
	return len(seen)
}

func TestRealFiles(t *testing.T) {
	root := os.Getenv("GNNSTORE_DATA")
	if root == "" {
		t.Skip("GNNSTORE_DATA is not set: the folder with coauthor_cs, dblp_citation and expected.json")
	}
	raw, err := os.ReadFile(filepath.Join(root, "expected.json"))
	require.NoError(t, err)
	var expected map[string]struct {
		Nodes           int64 `json:"nodes"`
		StoredEdges     int64 `json:"stored_edges"`
		UndirectedEdges int   `json:"undirected_edges"`
		Features        int   `json:"features"`
		FeatureNNZ      int   `json:"feature_nnz"`
		Classes         int   `json:"classes"`
		ClassCounts     []int `json:"class_counts"`
	}
	require.NoError(t, json.Unmarshal(raw, &expected))
	for name, file := range map[string]string{"coauthor_cs": "ms_academic_cs.npz", "dblp_citation": "dblp.npz", "amazon_computers": "amazon_electronics_computers.npz"} {
		t.Run(name, func(t *testing.T) {
			want := expected[name]
			s, err := Open(filepath.Join(root, name, file))
			require.NoError(t, err)
			defer s.Close()
			schema, err := s.Schema(context.Background())
			require.NoError(t, err)
			require.Equal(t, want.Nodes, schema.NodeTypes[0].Count)
			require.Equal(t, want.StoredEdges, schema.Relations[0].Edges)
			require.Equal(t, want.Features, schema.Tables[0].Dim)
			if name == "coauthor_cs" {
				require.Contains(t, strings.Join(schema.Skipped, "\n"), "class_names: unsupported element type |O")
			}
			nonzero := 0
			require.NoError(t, s.Rows(context.Background(), 0, func(c ingest.RowChunk) error {
				for _, v := range c.Values {
					if v != 0 {
						nonzero++
					}
				}
				return nil
			}))
			require.Equal(t, want.FeatureNNZ, nonzero)
			var edges sourcetest.Edges
			require.NoError(t, s.Edges(context.Background(), 0, func(c ingest.EdgeChunk) error {
				edges.Src, edges.Dst = append(edges.Src, c.Src...), append(edges.Dst, c.Dst...)
				return nil
			}))
			require.Equal(t, want.UndirectedEdges, pairs(edges))
			counts := make([]int, want.Classes)
			require.NoError(t, s.Labels(context.Background(), 0, func(c ingest.LabelChunk) error {
				for _, v := range c.Values {
					counts[v]++
				}
				return nil
			}))
			if want.ClassCounts != nil {
				require.Equal(t, want.ClassCounts, counts)
			}
			require.NotZero(t, counts[want.Classes-1])
		})
	}
}
