package generate

import (
	"archive/zip"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/ogb"
	"github.com/gnnstore/gnnstore/ingest/pickle"
	"github.com/gnnstore/gnnstore/kernels"
)

// writeRaw returns the folder, and the files that are in it.
func writeRaw(t *testing.T, kind, name string, o Options) (dir string, files []string) {
	dir = filepath.Join(t.TempDir(), name)
	var told ingest.Progress
	report, err := WriteRaw(context.Background(), kind, dir, o, func(p ingest.Progress) { told = p })
	require.NoError(t, err)
	require.NotEmpty(t, told.Stage)
	bytes := int64(0)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			files = append(files, filepath.ToSlash(rel))
			info, err := d.Info()
			require.NoError(t, err)
			bytes += info.Size()
		}
		return err
	}))
	require.Equal(t, bytes, report.Bytes)
	require.Equal(t, len(files), report.Files)
	require.NoDirExists(t, dir+".partial")
	s, err := o.shape(kind)
	require.NoError(t, err)
	require.LessOrEqual(t, bytes, (&rawWriter{g: newSource(s)}).layout().bytes(), "what the space was asked for")
	return dir, files
}

// TestOGBText: the reader of that layout finds the same graph.
func TestOGBText(t *testing.T) {
	o := Options{Nodes: 3000, Edges: 20_000, Dim: 7}
	asGiven := ogb.Options{AddReverse: "no"} // which auto adds to products, as OGB does
	dir, files := writeRaw(t, "products", "products", o)
	require.ElementsMatch(t, []string{
		"RELEASE_v1.txt", "mapping/README.md", "mapping/labelidx2category.csv.gz", "raw/edge.csv.gz", "raw/node-feat.csv.gz",
		"raw/node-label.csv.gz", "raw/num-edge-list.csv.gz", "raw/num-node-list.csv.gz", "split/sales_ranking/test.csv.gz",
		"split/sales_ranking/train.csv.gz", "split/sales_ranking/valid.csv.gz",
	}, files)
	s, err := asGiven.Open(dir)
	require.NoError(t, err)
	require.Equal(t, read(t, open(t, "products", o)), read(t, s))

	dir, _ = writeRaw(t, "citations", "citations", o)
	s, err = asGiven.Open(dir)
	require.NoError(t, err)
	require.Equal(t, read(t, open(t, "citations", o)), read(t, s))

	o.Train = 0.1 // the rest has no label
	dir, _ = writeRaw(t, "products", "products", o)
	s, err = asGiven.Open(dir)
	require.NoError(t, err)
	require.Equal(t, read(t, open(t, "products", o)), read(t, s))
}

func ints(t *testing.T, r io.Reader, shape ...int64) []int64 {
	a, err := npy.NewReader(r)
	require.NoError(t, err)
	require.Equal(t, shape, a.Header().Shape)
	h := a.Header()
	dst := make([]int64, h.Len())
	n, err := a.ReadInt64s(dst)
	require.NoError(t, err)
	require.Len(t, dst, n)
	return dst
}

func floats(t *testing.T, r io.Reader, descr string, shape ...int64) []float64 {
	a, err := npy.NewReader(r)
	require.NoError(t, err)
	require.Equal(t, shape, a.Header().Shape)
	require.Equal(t, descr, a.Header().Descr)
	h := a.Header()
	dst := make([]float64, h.Len())
	n, err := a.ReadFloat64s(dst)
	require.NoError(t, err)
	require.Len(t, dst, n)
	return dst
}

func requireRows(t *testing.T, want []float32, got []float64) {
	narrow := make([]float32, len(got))
	for i, x := range got {
		narrow[i] = float32(x)
	}
	require.Equal(t, want, narrow)
}

// requireLabels compares labels with what stands for them in files.
func requireLabels(t *testing.T, want []int32, got []float64) {
	classes := make([]int32, len(got))
	for v, x := range got {
		if classes[v] = -1; !math.IsNaN(x) {
			classes[v] = int32(x)
		}
	}
	require.Equal(t, want, classes)
}

// TestOGBBinary: deflated members, labels with NaN.
func TestOGBBinary(t *testing.T) {
	o := Options{Nodes: 70_000, Edges: 300_000, Dim: 5} // several chunks each
	dir, files := writeRaw(t, "papers100m", "papers100M-bin", o)
	require.ElementsMatch(t, []string{
		"RELEASE_v1.txt", "mapping/README.md", "mapping/labelidx2category.csv.gz", "raw/data.npz", "raw/node-label.npz",
		"split/time/test.csv.gz", "split/time/train.csv.gz", "split/time/valid.csv.gz",
	}, files)
	want := read(t, open(t, "papers100m", o))
	z, err := zip.OpenReader(filepath.Join(dir, "raw/data.npz"))
	require.NoError(t, err)
	defer z.Close()
	var members []string
	for _, f := range z.File {
		members = append(members, f.Name)
		require.Equal(t, zip.Deflate, f.Method)
		r, err := f.Open()
		require.NoError(t, err)
		switch f.Name {
		case "edge_index.npy":
			require.Equal(t, append(want.Edges[0].Src, want.Edges[0].Dst...), ints(t, r, 2, 300_000))
		case "num_nodes_list.npy":
			require.Equal(t, []int64{70_000}, ints(t, r, 1))
		case "num_edges_list.npy":
			require.Equal(t, []int64{300_000}, ints(t, r, 1))
		case "node_feat.npy":
			requireRows(t, want.Rows[0], floats(t, r, "<f4", 70_000, 5))
		case "node_year.npy":
			years := ints(t, r, 70_000, 1)
			for part, in := range [3]func(int64) bool{
				func(y int64) bool { return y < 2018 }, func(y int64) bool { return y == 2018 }, func(y int64) bool { return y == 2019 },
			} {
				for _, v := range want.Splits[0][part].Numbers {
					require.True(t, in(years[v]), "%v: %d", ingest.Part(part), years[v])
				}
			}
		}
		_, err = io.Copy(io.Discard, r) // to its checksum
		require.NoError(t, err)
	}
	require.Equal(t, []string{"edge_index.npy", "num_nodes_list.npy", "num_edges_list.npy", "node_feat.npy", "node_year.npy"}, members)

	labels, err := zip.OpenReader(filepath.Join(dir, "raw/node-label.npz"))
	require.NoError(t, err)
	defer labels.Close()
	r, err := labels.Open("node_label.npy")
	require.NoError(t, err)
	requireLabels(t, want.Labels[0], floats(t, r, "<f4", 70_000, 1))

	f, err := os.Open(filepath.Join(dir, "split/time/valid.csv.gz"))
	require.NoError(t, err)
	defer f.Close()
	text, err := gzip.NewReader(f)
	require.NoError(t, err)
	rows, err := csv.NewReader(text).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, len(want.Splits[0][ingest.Valid].Numbers))
	require.Equal(t, strconv.FormatInt(want.Splits[0][ingest.Valid].Numbers[0], 10), rows[0][0])
}

// member is a pickle in one of torch's files.
func member(t *testing.T, path, name string) *pickle.Dict {
	z, err := zip.OpenReader(path)
	require.NoError(t, err)
	defer z.Close()
	f, err := z.Open(name)
	require.NoError(t, err)
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	v, err := new(pickle.Dialect).Load(name, b)
	require.NoError(t, err)
	return v.(*pickle.Dict)
}

// TestMAG240M: the directory as OGB-LSC leaves it.
func TestMAG240M(t *testing.T) {
	o := Options{Nodes: 100_000, Edges: 300_000, Dim: 6}
	dir, files := writeRaw(t, "mag240m", "mag240m_kddcup2021", o)
	require.ElementsMatch(t, []string{
		"RELEASE_v1.txt", "meta.pt", "split_dict.pt", "processed/paper/node_feat.npy", "processed/paper/node_label.npy",
		"processed/paper/node_year.npy", "processed/author___writes___paper/edge_index.npy",
		"processed/author___affiliated_with___institution/edge_index.npy", "processed/paper___cites___paper/edge_index.npy",
	}, files)
	s := open(t, "mag240m", o)
	want := read(t, s)
	file := func(path string) *os.File {
		f, err := os.Open(filepath.Join(dir, "processed", path))
		require.NoError(t, err)
		t.Cleanup(func() { f.Close() })
		return f
	}
	for i, r := range s.relations {
		path := s.schema.Relations[i].Src + "___" + s.schema.Relations[i].Name + "___" + s.schema.Relations[i].Dst + "/edge_index.npy"
		require.Equal(t, append(want.Edges[i].Src, want.Edges[i].Dst...), ints(t, file(path), 2, r.edges))
	}
	papers := int64(s.types[0].count)
	half := make([]uint16, len(want.Rows[0]))
	require.Zero(t, kernels.Float32ToHalf(half, want.Rows[0]))
	rounded := make([]float32, len(half))
	kernels.HalfToFloat32(rounded, half)
	requireRows(t, rounded, floats(t, file("paper/node_feat.npy"), "<f2", papers, 6))
	requireLabels(t, want.Labels[0], floats(t, file("paper/node_label.npy"), "<f8", papers))
	require.Len(t, ints(t, file("paper/node_year.npy"), papers), int(papers))

	meta := member(t, filepath.Join(dir, "meta.pt"), "meta/data.pkl")
	require.Equal(t, 4, len(meta.Keys))
	for i, name := range []string{"paper", "author", "institution"} {
		require.EqualValues(t, s.types[i].count, meta.Get(name))
	}
	require.EqualValues(t, 153, meta.Get("num_classes"))
	split := member(t, filepath.Join(dir, "split_dict.pt"), "split_dict/data.pkl")
	got := map[string][]int64{}
	for _, key := range []string{"train", "valid", "test-whole", "test-dev", "test-challenge"} {
		r := split.Get(key).(*pickle.Array).Reader()
		h := r.Header()
		got[key] = make([]int64, h.Len())
		_, err := r.ReadInt64s(got[key])
		require.NoError(t, err)
	}
	require.Equal(t, want.Splits[0][ingest.Train].Numbers, got["train"])
	require.Equal(t, want.Splits[0][ingest.Valid].Numbers, got["valid"])
	require.Equal(t, want.Splits[0][ingest.Test].Numbers, got["test-whole"])
	for i, v := range got["test-whole"] {
		part := map[bool]string{true: "test-dev", false: "test-challenge"}[i%5 < 3]
		require.Equal(t, v, got[part][0])
		got[part] = got[part][1:]
		require.EqualValues(t, -1, want.Labels[0][v], "hidden")
	}
	require.Empty(t, got["test-dev"])
	require.Empty(t, got["test-challenge"])
}

// TestRawTriples: three files have each triple of the graph once.
func TestRawTriples(t *testing.T) {
	o := Options{Nodes: 300, Edges: 4000, Seed: 3}
	dir, files := writeRaw(t, "kg", "kg", o)
	require.ElementsMatch(t, []string{"train.txt", "valid.txt", "test.txt"}, files)
	s := open(t, "kg", o)
	graph := read(t, s)
	var want, got []string
	for i, r := range s.schema.Relations {
		for k, src := range graph.Edges[i].Src {
			want = append(want, fmt.Sprintf("e%d\t%s\te%d", src, r.Name, graph.Edges[i].Dst[k]))
		}
	}
	for _, part := range []string{"train", "valid", "test"} {
		text, err := os.ReadFile(filepath.Join(dir, part+".txt"))
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		if part != "train" {
			require.InDelta(t, kgHeldOut*4000, len(lines), 60) // 4 deviations
		}
		got = append(got, lines...)
	}
	require.ElementsMatch(t, want, got)
}

// TestTGL: events in order of time, features in the order of events.
func TestTGL(t *testing.T) {
	dir, files := writeRaw(t, "temporal", "WIKI", Options{Nodes: 900, Edges: 40_000, Dim: 3})
	require.ElementsMatch(t, []string{"edges.csv", "labels.csv", "edge_features.pt"}, files)
	table := func(name, header string) (rows [][]string) {
		f, err := os.Open(filepath.Join(dir, name))
		require.NoError(t, err)
		defer f.Close()
		r := csv.NewReader(f)
		rows, err = r.ReadAll()
		require.NoError(t, err)
		line := ""
		for i, cell := range rows[0] {
			if i > 0 {
				line += ","
			}
			line += cell
		}
		require.Equal(t, header, line)
		return rows[1:]
	}
	number := func(cell string) float64 {
		x, err := strconv.ParseFloat(cell, 64)
		require.NoError(t, err)
		return x
	}
	edges := table("edges.csv", ",src,dst,time,int_roll,ext_roll")
	require.Len(t, edges, 40_000)
	last, equal := -1.0, 0
	var parts [3]int
	for k, row := range edges {
		require.Equal(t, strconv.Itoa(k), row[0])
		user, item, time := number(row[1]), number(row[2]), number(row[3])
		require.True(t, user >= 0 && user < 802 && item >= 802 && item < 900, "%v", row)
		require.GreaterOrEqual(t, time, last)
		if time == last {
			equal++
		}
		last = time
		parts[int(number(row[5]))]++
	}
	require.Greater(t, equal, 0)
	require.InDelta(t, eventSpan, last, 1000)
	require.Equal(t, [3]int{28_000, 6000, 6000}, parts)
	labels := table("labels.csv", ",node,time,label,ext_roll")
	require.Len(t, labels, 4000)
	for i, row := range labels {
		require.Equal(t, edges[10*i][1], row[1])
		require.Equal(t, edges[10*i][3], row[2])
	}
	info, err := os.Stat(filepath.Join(dir, "edge_features.pt"))
	require.NoError(t, err)
	require.Greater(t, info.Size(), int64(4*3*40_000))
}

// TestRemembers: the last item of a user says more about the next than an item of long ago.
func TestRemembers(t *testing.T) {
	s, err := (&Options{Nodes: 900, Edges: 40_000}).shape("temporal")
	require.NoError(t, err)
	e := newEvents(newSource(s))
	of := map[int64][]int{}
	for k := range int64(40_000) {
		ev := e.at(k)
		of[ev.user] = append(of[ev.user], ev.community)
	}
	same := func(apart int) float64 {
		n, equal := 0, 0
		for _, communities := range of {
			for i := apart; i < len(communities); i++ {
				if n++; communities[i] == communities[i-apart] {
					equal++
				}
			}
		}
		return float64(equal) / float64(n)
	}
	require.Greater(t, same(1), same(200)+0.1)
}

// TestNoRoom: the message has a scale that would fit, which then does.
func TestNoRoom(t *testing.T) {
	s, err := (&Options{Scale: 0.5}).shape("papers100m")
	require.NoError(t, err)
	need := (&rawWriter{g: newSource(s)}).layout().bytes()
	require.NoError(t, s.fits("out", need, uint64(need)))
	require.EqualError(t, s.fits("out", need, 3<<30),
		"out: the raw files need about "+kernels.FormatBytes(need)+" and 3 GiB are free; make room, write elsewhere, or {scale} 0.046 fits")
	s, err = (&Options{Scale: 0.046}).shape("papers100m")
	require.NoError(t, err)
	require.LessOrEqual(t, (&rawWriter{g: newSource(s)}).layout().bytes(), int64(3<<30))
}

// TestWholeOrAbsent: what exists is refused, what a killed call left is replaced, and an
// interrupted one leaves nothing.
func TestWholeOrAbsent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "products")
	o := Options{Nodes: 3000, Edges: 200_000, Dim: 2}
	ctx, cancel := context.WithCancel(context.Background())
	_, err := WriteRaw(ctx, "products", dir, o, func(p ingest.Progress) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
	require.NoDirExists(t, dir)
	require.NoDirExists(t, dir+".partial")
	require.NoError(t, os.MkdirAll(filepath.Join(dir+".partial", "raw", "old"), 0o777))
	_, err = WriteRaw(context.Background(), "products", dir, o, nil)
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Join(dir, "raw", "old"))
	_, err = WriteRaw(context.Background(), "products", dir, o, nil)
	require.EqualError(t, err, dir+": exists already; name another folder, or remove it")
	_, err = WriteRaw(context.Background(), "products", filepath.Join(dir, "none", "below"), o, nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = WriteRaw(context.Background(), "none", dir, o, nil)
	require.ErrorContains(t, err, "unknown kind")
}
