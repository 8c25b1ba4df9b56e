package mag240m

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

const (
	papers, authors, institutions = 60, 40, 5 // as in testdata/meta.pt
	dim                           = 3
)

func npyFile(descr, shape string, fortran bool, data any) []byte {
	order := "False"
	if fortran {
		order = "True"
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n", descr, order, shape)
	b := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(head)))
	b, err := binary.Append(append(b, head...), binary.LittleEndian, data)
	if err != nil {
		panic(err)
	}
	return b
}

// feature returns the value of a node's row in a column.
func feature(nodeType, row, column int) float32 { return float32(100*nodeType+row) + float32(column)/4 }

// halves are the features of some types, one behind the other, by rows or by columns.
func halves(fortran bool, types ...int) []uint16 {
	var rows [][dim]uint16
	for _, t := range types {
		for row := range [...]int{papers, authors, institutions}[t] {
			var r [dim]uint16
			for c := range r {
				r[c] = float16.Fromfloat32(feature(t, row, c)).Bits()
			}
			rows = append(rows, r)
		}
	}
	var out []uint16
	if !fortran {
		for _, r := range rows {
			out = append(out, r[:]...)
		}
		return out
	}
	for c := range dim {
		for _, r := range rows {
			out = append(out, r[c])
		}
	}
	return out
}

func edge(relation, i int) (src, dst int64) {
	return int64(i % [...]int{authors, authors, papers}[relation]), int64((7*i + 1) % [...]int{papers, institutions, papers}[relation])
}

func ends(relation, n int) []int64 {
	out := make([]int64, 2*n)
	for i := range n {
		out[i], out[n+i] = edge(relation, i)
	}
	return out
}

// labels are of 7 classes, every third missing.
func labels() []float64 {
	l := make([]float64, papers)
	for i := range l {
		if l[i] = float64(i % 7); i%3 == 0 {
			l[i] = math.NaN()
		}
	}
	return l
}

type files map[string][]byte

// download is the folder in its true layout, in small.
func download(t testing.TB) files {
	f := files{
		"RELEASE_v1.txt":                                                  {},
		"processed/paper/node_feat.npy":                                   npyFile("<f2", "(60, 3)", false, halves(false, paper)),
		"processed/paper/node_label.npy":                                  npyFile("<f8", "(60,)", false, labels()),
		"processed/paper/node_year.npy":                                   npyFile("<i8", "(60,)", false, make([]int64, papers)),
		"processed/author___writes___paper/edge_index.npy":                npyFile("<i8", "(2, 200)", false, ends(0, 200)),
		"processed/author___affiliated_with___institution/edge_index.npy": npyFile("<i8", "(2, 50)", false, ends(1, 50)),
		"processed/paper___cites___paper/edge_index.npy":                  npyFile("<i8", "(2, 70000)", false, ends(2, 70_000)),
	}
	return f.from(t, "meta.pt", "meta.pt").from(t, "split_dict.pt", "split_dict.pt")
}

func (f files) from(t testing.TB, name, fixture string) files {
	b, err := os.ReadFile("testdata/" + fixture)
	require.NoError(t, err)
	f[name] = b
	return f
}

func (f files) with(name string, b []byte) files {
	if f[name] = b; b == nil {
		delete(f, name)
	}
	return f
}

// write lays it down as OGB's package does, and gives the folder above it.
func (f files) write(t testing.TB) string { return f.writeTo(t, t.TempDir()) }

// writeTo writes over what an earlier call has left there.
func (f files) writeTo(t testing.TB, root string) string {
	for name, b := range f {
		path := filepath.Join(root, folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, b, 0o600))
	}
	return root
}

func read(path string, o Options) (sourcetest.Graph, error) {
	s, err := o.Open(path)
	if err != nil {
		return sourcetest.Graph{}, err
	}
	defer s.Close()
	return sourcetest.Read(s)
}

func TestTrueLayout(t *testing.T) {
	root := download(t).write(t)
	for _, path := range []string{root, filepath.Join(root, folder)} {
		w, err := read(path, Options{})
		require.NoError(t, err)
		require.Contains(t, w.Schema.Identity, "node_feat.npy")
		w.Schema.Identity = ""
		require.Equal(t, &ingest.Schema{
			Name: "mag240m",
			// Trap 11: two types have neither features nor labels.
			NodeTypes: []ingest.NodeType{{Name: "paper", Count: papers}, {Name: "author", Count: authors}, {Name: "institution", Count: institutions}},
			Relations: []ingest.Relation{
				{Src: "author", Name: "writes", Dst: "paper", Edges: 200},
				{Src: "author", Name: "affiliated_with", Dst: "institution", Edges: 50},
				{Src: "paper", Name: "cites", Dst: "paper", Edges: 70_000},
			},
			Tables:  []ingest.Table{{Name: "feat", NodeType: "paper", Dim: dim}},
			Labels:  []ingest.Label{{Name: "label", NodeType: "paper", Classes: 7}},
			Splits:  []ingest.Split{{Name: "whole", NodeType: "paper"}, {Name: "dev", NodeType: "paper"}, {Name: "challenge", NodeType: "paper"}},
			Skipped: []string{"processed/paper/node_year.npy: further columns of nodes are not kept"},
		}, w.Schema)
		for r := range w.Edges {
			require.Len(t, w.Edges[r].Src, int(w.Schema.Relations[r].Edges))
			for i := range w.Edges[r].Src {
				u, v := edge(r, i)
				if w.Edges[r].Src[i] != u || w.Edges[r].Dst[i] != v {
					t.Fatal("relation", r, "edge", i)
				}
			}
		}
		for i, x := range w.Rows[0] {
			require.Equal(t, feature(paper, i/dim, i%dim), x)
		}
		for i, class := range w.Labels[0] { // trap 6: NaN in 8 bytes
			want := int32(i % 7)
			if i%3 == 0 {
				want = -1
			}
			require.Equal(t, want, class)
		}
		require.Equal(t, int64(29), w.Splits[0][ingest.Train].Numbers[29])
		require.Equal(t, []int64{30, 31, 32, 33, 34, 35, 36, 37, 38, 39}, w.Splits[2][ingest.Valid].Numbers)
	}
}

// Trap 8 and the rule for older downloads: three of five are test-dev.
func TestSplitDicts(t *testing.T) {
	var test, dev, challenge []int64
	for i := range int64(20) {
		test = append(test, 59-i)
		if i%5 < 3 {
			dev = append(dev, 59-i)
		} else {
			challenge = append(challenge, 59-i)
		}
	}
	for _, fixture := range []string{"split_dict.pt", "split_dict.older.pt", "split_dict.legacy.pt", "split_dict.parts.pt"} {
		w, err := read(download(t).from(t, "split_dict.pt", fixture).from(t, "meta.pt", "meta.legacy.pt").write(t), Options{})
		require.NoError(t, err)
		if fixture == "split_dict.parts.pt" {
			require.ElementsMatch(t, test, w.Splits[0][ingest.Test].Numbers)
		} else {
			require.Equal(t, test, w.Splits[0][ingest.Test].Numbers)
		}
		require.Equal(t, dev, w.Splits[1][ingest.Test].Numbers, fixture)
		require.Equal(t, challenge, w.Splits[2][ingest.Test].Numbers, fixture)
		require.Equal(t, w.Splits[0][:2], w.Splits[1][:2])
	}
}

// Traps 1 and 2: features without a header, in either order of types, of elements and of bytes.
func TestFullFeatures(t *testing.T) {
	ogb, dgl := []int{paper, author, institution}, []int{author, institution, paper}
	singles := make([]float32, 0, 105*dim)
	for _, h := range halves(false, ogb...) {
		singles = append(singles, float16.Frombits(h).Float32())
	}
	raw := func(data any) []byte {
		b, err := binary.Append(nil, binary.LittleEndian, data)
		require.NoError(t, err)
		return b
	}
	for name, c := range map[string]struct {
		file  []byte
		order string
	}{
		"header":            {npyFile("<f2", "(105, 3)", false, halves(false, ogb...)), ""},
		"header, DGL":       {npyFile("<f2", "(105, 3)", false, halves(false, dgl...)), "author,institution,paper"},
		"header, columns":   {npyFile("<f2", "(105, 3)", true, halves(true, ogb...)), ""},
		"dump":              {raw(halves(false, ogb...)), "paper,author,institution"},
		"dump, DGL":         {raw(halves(false, dgl...)), "author, institution, paper"},
		"dump of singles":   {raw(singles), "paper,author,institution"},
		"header of singles": {npyFile("<f4", "(105, 3)", false, singles), ""},
	} {
		path := filepath.Join(t.TempDir(), "full_feat.npy")
		require.NoError(t, os.WriteFile(path, c.file, 0o600))
		w, err := read(download(t).write(t), Options{FullFeatures: path, RowOrder: c.order})
		require.NoError(t, err, name)
		require.Equal(t, []ingest.Table{{Name: "feat", NodeType: "paper", Dim: dim}, {Name: "feat", NodeType: "author", Dim: dim}, {Name: "feat", NodeType: "institution", Dim: dim}}, w.Schema.Tables)
		require.Equal(t, []string{"processed/paper/node_feat.npy: the full features take its place", "processed/paper/node_year.npy: further columns of nodes are not kept"}, w.Schema.Skipped)
		for nodeType, rows := range w.Rows {
			require.Len(t, rows, dim*[...]int{papers, authors, institutions}[nodeType])
			for i, x := range rows {
				require.Equal(t, feature(nodeType, i/dim, i%dim), x, name)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "full.npy")
	require.NoError(t, os.WriteFile(path, raw(halves(false, dgl...)), 0o600))
	root := download(t).write(t)
	_, err := read(root, Options{FullFeatures: path})
	require.EqualError(t, err, path+": a dump without a header does not say whose rows come first; give {row_order}: paper,author,institution as in OGB's full_feat.npy, or author,institution,paper as in DGL's full.npy")
	require.NoError(t, os.WriteFile(path, raw(halves(false, paper, author)), 0o600))
	_, err = read(root, Options{FullFeatures: path, RowOrder: "author,institution,paper"})
	require.EqualError(t, err, path+": 600 bytes, and 105 nodes of 3 columns take 630 in float16, 1260 in float32; is it of this dataset, and whole?")
	require.NoError(t, os.WriteFile(path, npyFile("<f2", "(100, 3)", false, halves(false, paper, author)), 0o600))
	_, err = read(root, Options{FullFeatures: path})
	require.EqualError(t, err, path+": array is (100, 3) of <f2, and "+filepath.Join(root, folder, "meta.pt")+" counts 105; are they of one dataset?")
	for _, bad := range []string{"paper", "paper,author,author", "paper,author,institution,paper", "paper,author,venue"} {
		_, err = read(root, Options{FullFeatures: path, RowOrder: bad})
		require.ErrorContains(t, err, fmt.Sprintf("{row_order} %q: name each node type once", bad))
	}
	_, err = read(root, Options{RowOrder: "paper,author,institution"})
	require.EqualError(t, err, "{row_order} paper,author,institution: it goes with {full_features}")
}

// TestYearColumns: the years of papers stand behind their features, and behind nobody else's.
func TestYearColumns(t *testing.T) {
	years := make([]int16, papers)
	for i := range years {
		years[i] = int16(1990 + i%30)
	}
	years[7] = 0
	root := download(t).with("processed/paper/node_year.npy", npyFile("<i2", "(60,)", false, years)).
		with("full.npy", npyFile("<f2", "(105, 3)", true, halves(true, paper, author, institution))).write(t)
	for _, full := range []string{"", filepath.Join(root, folder, "full.npy")} {
		w, err := read(root, Options{YearColumns: 4, FullFeatures: full})
		require.NoError(t, err)
		require.Equal(t, dim+4, w.Schema.Tables[0].Dim)
		require.NotContains(t, strings.Join(w.Schema.Skipped, " "), "node_year")
		require.Contains(t, w.Schema.Identity, "node_year.npy")
		for v := range papers {
			row := w.Rows[0][v*(dim+4) : (v+1)*(dim+4)]
			require.Equal(t, []float32{feature(paper, v, 0), feature(paper, v, 1), feature(paper, v, 2)}, row[:dim])
			want, ago := []float32{0, 0, 0, 0}, float64(v%30-29)
			if v != 7 {
				want = []float32{float32(math.Sin(ago)), float32(math.Cos(ago)), float32(math.Sin(ago / 100)), float32(math.Cos(ago / 100))}
			}
			require.Equal(t, want, row[dim:], v)
		}
		for _, table := range w.Schema.Tables[1:] {
			require.Equal(t, dim, table.Dim)
		}
	}
	_, err := read(download(t).with("processed/paper/node_year.npy", nil).write(t), Options{YearColumns: 4})
	require.ErrorContains(t, err, "node_year.npy: no such file; fetch it, or leave {year_columns} out")
	_, err = read(download(t).with("processed/paper/node_year.npy", npyFile("<i2", "(59,)", false, years[:59])).write(t), Options{YearColumns: 4})
	require.ErrorContains(t, err, "array is (59,) of <i2, and ")
	_, err = read(root, Options{YearColumns: 5})
	require.ErrorContains(t, err, "{year_columns} 5: a sine and a cosine each, so an even number up to 1024")
}

func TestVariants(t *testing.T) {
	column := make([]float32, papers)
	for i, x := range labels() {
		column[i] = float32(x)
	}
	fortran := make([]int32, 0, 400)
	for i := range 200 {
		u, v := edge(0, i)
		fortran = append(fortran, int32(u), int32(v))
	}
	want, err := read(download(t).write(t), Options{})
	require.NoError(t, err)
	got, err := read(download(t).
		with("processed/paper/node_label.npy", npyFile("<f4", "(60, 1)", false, column)).
		with("processed/paper/node_feat.npy", npyFile("<f2", "(60, 3)", true, halves(true, paper))).
		with("processed/author___writes___paper/edge_index.npy", npyFile("<i4", "(2, 200)", true, fortran)).
		with("RELEASE_v1.txt", nil).with("full_feat.npy", []byte("x")).with("processed/venue/x", nil).write(t), Options{})
	require.NoError(t, err)
	require.Equal(t, "full_feat.npy: it is read when {full_features} names it", got.Schema.Skipped[0])
	got.Schema, want.Schema = nil, nil
	require.Equal(t, want, got)
}

func TestRefuses(t *testing.T) {
	const feat, label, cites = "processed/paper/node_feat.npy", "processed/paper/node_label.npy", "processed/paper___cites___paper/edge_index.npy"
	whole := download(t)
	for _, c := range []struct {
		name string
		b    []byte
		want string // DIR is the dataset's folder
	}{
		{"meta.pt", nil, "ROOT: no meta.pt in it, nor in a folder mag240m_kddcup2021 there; name the folder that OGB's package fills"},
		{"meta.pt", []byte("}."), "DIR/meta.pt: no entry paper in its dict"},
		{"meta.pt", []byte("]."), "DIR/meta.pt: it holds a list, where a dict is expected"},
		{"split_dict.pt", []byte("}."), "DIR/split_dict.pt: no entry train in its dict"},
		{feat, whole[feat][:len(whole[feat])-1], "DIR/" + feat + ": truncated download: (60, 3) of <f2 takes 360 bytes of data, the file has 359; fetch it again"},
		{feat, whole[feat][80:], fmt.Sprintf("DIR/"+feat+": not an .npy file: it has no header, in %d bytes; fetch it again", len(whole[feat])-80)},
		{feat, []byte{}, "DIR/" + feat + ": the file is empty; fetch it again"},
		{feat, npyFile("<f2", "(59, 3)", false, make([]uint16, 177)), "DIR/" + feat + ": array is (59, 3) of <f2, and DIR/meta.pt counts 60; are they of one dataset?"},
		{feat, npyFile("<f2", "(60,)", false, make([]uint16, 60)), "DIR/" + feat + ": array is (60,) of <f2, where a row of numbers for each of 60 nodes is expected"},
		{label, npyFile("<f8", "(61,)", false, make([]float64, 61)), "DIR/" + label + ": array is (61,) of <f8, and DIR/meta.pt counts 60; are they of one dataset?"},
		{label, npyFile("<f8", "(60,)", false, append(make([]float64, 59), 0.5)), "DIR/" + label + ": element 59 is 0.5, not the number of a class"},
		{cites, npyFile("<i8", "(3, 2)", false, make([]int64, 6)), "DIR/" + cites + ": array is (3, 2) of <i8, where a row of sources and a row of destinations are expected"},
		{cites, npyFile("<f8", "(2, 2)", false, []float64{0, 1, 2, math.NaN()}), "DIR/" + cites + ": element 3 is NaN, not an integer of 64 bits"},
		{cites, nil, "open DIR/" + cites + ": no such file or directory"},
	} {
		root := download(t).with(c.name, c.b).write(t)
		_, err := read(root, Options{})
		require.EqualError(t, err, strings.NewReplacer("DIR", filepath.Join(root, folder), "ROOT", root).Replace(c.want))
	}
	file := filepath.Join(t.TempDir(), "mag240m.zip")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Options{}.Open(file)
	require.EqualError(t, err, file+": not a folder; name mag240m_kddcup2021, unpacked")
}

// TestNoFeatures: a download without its 187 GB of features is a graph, where others are made or
// none are wanted.
func TestNoFeatures(t *testing.T) {
	root := download(t).with("processed/paper/node_feat.npy", nil).write(t)
	w, err := read(root, Options{})
	require.NoError(t, err)
	require.Empty(t, w.Schema.Tables)
	require.Equal(t, filepath.Join(root, folder, "processed/paper/node_feat.npy")+": no such file; fetch it, or name a matrix of all nodes by {full_features}", w.Schema.NoFeatures)
	_, err = read(root, Options{YearColumns: 2})
	require.ErrorContains(t, err, "{full_features}, which years stand behind, or leave {year_columns} out")
}

func TestNoSuchSection(t *testing.T) {
	s, err := Options{}.Open(download(t).write(t))
	require.NoError(t, err)
	require.Panics(t, func() { _ = s.Edges(context.Background(), 3, nil) })
}

// FuzzFolder varies what the smaller files hold.
func FuzzFolder(f *testing.F) {
	d := download(f)
	const label, writes = "processed/paper/node_label.npy", "processed/author___writes___paper/edge_index.npy"
	f.Add(d["meta.pt"], d["split_dict.pt"], d[label], d[writes])
	f.Add(d.from(f, "meta.pt", "meta.legacy.pt")["meta.pt"], d.from(f, "split_dict.pt", "split_dict.parts.pt")["split_dict.pt"], npyFile("<i2", "(60, 1)", true, make([]int16, 60)), npyFile(">u1", "(2, 3)", true, make([]uint8, 6)))
	dir := f.TempDir() // of this process
	f.Fuzz(func(t *testing.T, meta, splits, label60, edges []byte) {
		root := files{"meta.pt": meta, "split_dict.pt": splits, label: label60, writes: edges,
			"processed/paper/node_feat.npy":                                   d["processed/paper/node_feat.npy"],
			"processed/author___affiliated_with___institution/edge_index.npy": d["processed/author___affiliated_with___institution/edge_index.npy"],
			"processed/paper___cites___paper/edge_index.npy":                  edges}.writeTo(t, dir)
		w, err := read(root, Options{})
		if err != nil {
			require.NotContains(t, err.Error(), "bad chunk")
			require.NotContains(t, err.Error(), "\n")
			return
		}
		require.Len(t, w.Labels[0], int(w.Schema.NodeTypes[paper].Count))
		require.Len(t, w.Edges[0].Src, int(w.Schema.Relations[0].Edges))
	})
}
