package ogb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

// files is a dataset by path: what a .gz holds before it is compressed, anything else as it is.
type files map[string]string

// arxiv is a graph of four nodes under a known name.
func arxiv() files {
	return files{
		"raw/num-node-list.csv.gz":  "4\n",
		"raw/num-edge-list.csv.gz":  "3\r\n",
		"raw/edge.csv.gz":           "0,1\n2,0\n3,3\n",
		"raw/node-feat.csv.gz":      "1,0.5\n-1e-05,2\n3,nan\n0,0\n\n",
		"raw/node-label.csv.gz":     "1.0\nnan\n\n39\n",
		"raw/node_year.csv.gz":      "2000\n2001\n2002\n2003\n",
		"split/time/train.csv.gz":   "0\n2\n",
		"split/time/valid.csv.gz":   "1\n",
		"split/time/test.csv.gz":    "3",
		"mapping/README.md":         "ignored",
		"RELEASE_v1.txt":            "ignored",
		"processed/whatever.pt":     "ignored",
		"split/random/train.csv.gz": "0\n",
	}
}

func (f files) with(changes files) files {
	for path, text := range changes {
		if text == "-" {
			delete(f, path)
		} else {
			f[path] = text
		}
	}
	return f
}

func compress(t testing.TB, text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func (f files) write(t testing.TB, name string) string {
	return f.writeTo(t, filepath.Join(t.TempDir(), name))
}

// writeTo writes over what an earlier call has left there.
func (f files) writeTo(t testing.TB, dir string) string {
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for path, text := range f {
		body := []byte(text)
		if strings.HasSuffix(path, ".gz") {
			body = compress(t, text)
		}
		path = filepath.Join(dir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, body, 0o644))
	}
	return dir
}

func read(dir string) (sourcetest.Graph, error) {
	s, err := Options{}.Open(dir)
	if err != nil {
		return sourcetest.Graph{}, err
	}
	defer s.Close()
	return sourcetest.Read(s)
}

func TestWholeDataset(t *testing.T) {
	for _, name := range []string{"arxiv", "ogbn_arxiv", "ogbn-arxiv", "my arxiv.pt copy"} {
		in := arxiv()
		wantName, classes := "ogbn_arxiv", 40
		skipped := []string{"raw/node_year.csv.gz: further columns of nodes are not kept"}
		if strings.HasPrefix(name, "my") {
			wantName, classes = name, 0
			delete(in, "split/random/train.csv.gz")
		} else {
			skipped = append(skipped, "split/random: time is the split of this dataset")
		}
		s, err := Options{}.Open(in.write(t, name))
		require.NoError(t, err)
		for range 2 { // every section can be read again
			g, err := sourcetest.Read(s)
			require.NoError(t, err)
			require.NotEmpty(t, g.Schema.Identity)
			g.Schema.Identity = ""
			require.Equal(t, &ingest.Schema{
				Name:      wantName,
				NodeTypes: []ingest.NodeType{{Name: "node", Count: 4, Columns: []string{"year"}}},
				Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: 3}},
				Tables:    []ingest.Table{{Name: "feat", NodeType: "node", Dim: 2}},
				Labels:    []ingest.Label{{Name: "label", NodeType: "node", Classes: classes}},
				Splits:    []ingest.Split{{Name: "time", NodeType: "node"}},
				Skipped:   skipped,
			}, g.Schema)
			require.Equal(t, []int64{0, 2, 3}, g.Edges[0].Src)
			require.Equal(t, []int64{1, 0, 3}, g.Edges[0].Dst)
			require.True(t, math.IsNaN(float64(g.Rows[0][5])))
			g.Rows[0][5] = 7
			require.Equal(t, []float32{1, 0.5, -1e-5, 2, 3, 7, 0, 0}, g.Rows[0])
			require.Equal(t, []int32{1, -1, -1, 39}, g.Labels[0])
			require.Equal(t, [3][]int64{{0, 2}, {1}, {3}}, g.Splits[0].Numbers())
		}
		require.NoError(t, s.Close())
	}
}

func TestVariants(t *testing.T) {
	g, err := read(arxiv().with(files{"raw/node-feat.csv.gz": "-", "raw/node-label.csv.gz": "0,1\nnan,1\n,\n1.0,0\n", "split/random/train.csv.gz": "-"}).write(t, "proteins"))
	require.NoError(t, err)
	require.Empty(t, g.Schema.Tables)
	require.Equal(t, []ingest.Label{{Name: "label", NodeType: "node", Multi: true, Classes: 2}}, g.Schema.Labels)
	require.Equal(t, []int32{0, 1, -1, 1, -1, -1, 1, 0}, g.Labels[0])
	require.Equal(t, "time", g.Schema.Splits[0].Name) // the only one, though species is known

	bare := files{"raw/num-node-list.csv.gz": "0", "raw/num-edge-list.csv.gz": "0\n", "raw/edge.csv.gz": "\n"}
	g, err = read(bare.write(t, "bare"))
	require.NoError(t, err)
	g.Schema.Identity = ""
	require.Equal(t, &ingest.Schema{Name: "bare", NodeTypes: []ingest.NodeType{{Name: "node"}}, Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node"}}}, g.Schema)
	require.Equal(t, []sourcetest.Edges{{}}, g.Edges)

	// The folder may be the working directory.
	t.Chdir(arxiv().write(t, "arxiv"))
	g, err = read(".")
	require.NoError(t, err)
	require.Equal(t, "ogbn_arxiv", g.Schema.Name)

	g, err = read(arxiv().with(files{"raw/edge_id.csv.gz": "7\n8\n9\n", "raw/edge_pair.csv.gz": "1,2\n1,2\n1,2\n", "raw/other": ""}).write(t, "arxiv"))
	require.NoError(t, err)
	require.Equal(t, []string{
		"raw/edge_id.csv.gz: ids of edges are not kept, but their order is",
		"raw/edge_pair.csv.gz: 2 columns an edge are not kept, one is",
		"raw/node_year.csv.gz: further columns of nodes are not kept",
		"raw/other: it is no part of this layout",
		"split/random: time is the split of this dataset",
	}, g.Schema.Skipped)
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		change files
		want   string // DIR is the dataset's folder
	}{
		{files{"raw/data.npz": ""}, "DIR/raw/data.npz: the file is empty; fetch it again"},
		{files{"raw/edge.csv.gz": "-"}, "DIR: no raw/edge.csv.gz in it, nor another file that OGB begins with (raw/data.npz, raw/triplet-type-list.csv.gz, raw/edge_index_dict.npz); fetch it again"},
		{files{"raw/num-node-list.csv.gz": "-"}, "open DIR/raw/num-node-list.csv.gz: no such file or directory"},
		{files{"raw/num-node-list.csv.gz": "5\n", "raw/node-label.csv.gz": "-"}, "DIR/raw/node-feat.csv.gz: found 4 rows, DIR/raw/num-node-list.csv.gz declares 5; fetch both again"},
		{files{"raw/num-node-list.csv.gz": "3\n", "raw/node-feat.csv.gz": "-"}, "DIR/raw/node-label.csv.gz: found 4 rows, DIR/raw/num-node-list.csv.gz declares 3; fetch both again"},
		{files{"raw/num-node-list.csv.gz": "\n"}, "DIR/raw/num-node-list.csv.gz: there is no number in it; fetch it again"},
		{files{"raw/num-node-list.csv.gz": "-4\n"}, "DIR/raw/num-node-list.csv.gz: line 1: -4 is not a count"},
		{files{"raw/num-node-list.csv.gz": "4\n4\n"}, "DIR/raw/num-node-list.csv.gz: line 2: a second graph; node-property datasets have one"},
		{files{"raw/num-edge-list.csv.gz": "2"}, "DIR/raw/edge.csv.gz: found 3 rows, DIR/raw/num-edge-list.csv.gz declares 2; fetch both again"},
		{files{"raw/num-edge-list.csv.gz": "999999999999"}, "DIR/raw/edge.csv.gz: found 3 rows, DIR/raw/num-edge-list.csv.gz declares 999999999999; fetch both again"},
		{files{"raw/edge.csv.gz": "0,1\n2;0\n3,3\n"}, "DIR/raw/edge.csv.gz: line 2: found 1 columns, 2 are expected"},
		{files{"raw/edge.csv.gz": "0,1\n2,zero\n3,3\n"}, `DIR/raw/edge.csv.gz: line 2: "zero" is not an integer`},
		{files{"raw/node-feat.csv.gz": "1,2\n1,2\n1,2,3\n1,2\n"}, "DIR/raw/node-feat.csv.gz: line 3: found 3 columns, 2 are expected"},
		{files{"raw/node-feat.csv.gz": "\n"}, "DIR/raw/node-feat.csv.gz: found 0 rows, DIR/raw/num-node-list.csv.gz declares 4; fetch both again"},
		{files{"raw/node-label.csv.gz": "1\n2\n3\n"}, "DIR/raw/node-label.csv.gz: found 3 rows, DIR/raw/num-node-list.csv.gz declares 4; fetch both again"},
		{files{"raw/node-label.csv.gz": "1\n2\n0.5\n1\n"}, `DIR/raw/node-label.csv.gz: line 3: "0.5" is not the number of a class`},
		{files{"raw/node-label.csv.gz": "1,0\n1,7\n"}, "DIR/raw/node-label.csv.gz: line 2: 7 in column 2 of 2; several columns of labels are zeros and ones"},
		{files{"split/time/test.csv.gz": "-"}, "DIR/split/time/test.csv.gz: no such file; a split has train.csv.gz, valid.csv.gz and test.csv.gz"},
		{files{"split/time/split_dict.pt": "I3\n."}, "DIR/split/time/split_dict.pt: it holds an integer, where a dict is expected"},
		{files{"split/time/split_dict.pt": ""}, "DIR/split/time/split_dict.pt: the file is empty; fetch it again"},
		{files{"split/time/train.csv.gz": "0\nx"}, `DIR/split/time/train.csv.gz: line 2: "x" is not an integer`},
	} {
		dir := arxiv().with(c.change).write(t, "arxiv")
		_, err := read(dir)
		require.EqualError(t, err, strings.ReplaceAll(c.want, "DIR", dir))
	}
	dir := arxiv().write(t, "my graph")
	_, err := Options{}.Open(dir)
	require.EqualError(t, err, dir+"/split: several schemes (random, time), and none that is known for my graph; leave one folder there")

	zip := filepath.Join(t.TempDir(), "arxiv.zip")
	require.NoError(t, os.WriteFile(zip, nil, 0o644))
	_, err = Options{}.Open(zip)
	require.EqualError(t, err, zip+": damaged or truncated download: the zip directory at its end does not read (zip: not a valid zip file); fetch it again")
	other := filepath.Join(t.TempDir(), "arxiv.csv")
	require.NoError(t, os.WriteFile(other, nil, 0o644))
	_, err = Options{}.Open(other)
	require.ErrorContains(t, err, "arxiv.csv: not a folder; name the one that holds raw/ and split/")
	_, err = Options{}.Open(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestDamagedFiles(t *testing.T) {
	for path := range arxiv() {
		if !strings.HasSuffix(path, ".gz") || strings.Contains(path, "year") || strings.Contains(path, "random") {
			continue
		}
		dir := arxiv().write(t, "arxiv")
		file := filepath.Join(dir, path)
		whole, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, n := range []int{5, 14, len(whole) - 6, len(whole) - 1} {
			require.NoError(t, os.WriteFile(file, whole[:n], 0o644))
			_, err := read(dir)
			require.ErrorContains(t, err, file+": truncated or damaged download (")
		}
		bad := bytes.Clone(whole)
		bad[len(bad)-5] ^= 1 // of the checksum
		require.NoError(t, os.WriteFile(file, bad, 0o644))
		_, err = read(dir)
		require.ErrorContains(t, err, file+": truncated or damaged download (gzip: invalid checksum); fetch it again")
		require.NoError(t, os.WriteFile(file, []byte("0,1\n"), 0o644))
		_, err = read(dir)
		require.ErrorContains(t, err, file+`: not a gzip file: it starts with "0,1"`)
	}
}

func TestManyChunks(t *testing.T) {
	const n, dim = 2*ingest.ChunkRows + 11, 5
	var edges, feats strings.Builder
	for i := range n {
		fmt.Fprintf(&edges, "%d,%d\n", i, n-i)
		for c := range dim {
			fmt.Fprintf(&feats, "%d", (i+c)%10)
			if c < dim-1 {
				feats.WriteByte(',')
			}
		}
		feats.WriteByte('\n')
	}
	g, err := read(files{"raw/num-node-list.csv.gz": fmt.Sprint(n), "raw/num-edge-list.csv.gz": fmt.Sprint(n), "raw/edge.csv.gz": edges.String(), "raw/node-feat.csv.gz": feats.String()}.write(t, "big"))
	require.NoError(t, err)
	require.Len(t, g.Edges[0].Src, n)
	require.Len(t, g.Rows[0], n*dim)
	for i := range n {
		if g.Edges[0].Src[i] != int64(i) || g.Edges[0].Dst[i] != int64(n-i) || g.Rows[0][i*dim+1] != float32((i+1)%10) {
			t.Fatal("row", i)
		}
	}
}

func TestLookup(t *testing.T) {
	for _, name := range []string{"ogbn-papers100M", "ogbn_papers100M", "papers100M-bin", "papers100M", "ogbn_papers100m"} {
		info, ok := Lookup(name)
		require.True(t, ok, name)
		require.Equal(t, "ogbn_papers100M", info.Name)
		require.Equal(t, 172, info.Classes)
		require.True(t, info.Binary)
	}
	for name, want := range map[string]Info{ // of the table in the formats' description
		"products":       {Name: "ogbn_products", AddReverse: true},
		"ogbn-proteins":  {Name: "ogbn_proteins", AddReverse: true},
		"mag":            {Name: "ogbn_mag", Hetero: true},
		"ogbl-ppa":       {Name: "ogbl_ppa", AddReverse: true, Link: true},
		"ppassoc":        {Name: "ogbl_ppa", AddReverse: true, Link: true},
		"ogbl-collab":    {Name: "ogbl_collab", AddReverse: true, Link: true},
		"citation-v2":    {Name: "ogbl_citation2", Link: true},
		"ogbl_wikikg2":   {Name: "ogbl_wikikg2", Link: true},
		"ddi":            {Name: "ogbl_ddi", AddReverse: true, Link: true},
		"ogbl-biokg":     {Name: "ogbl_biokg", Hetero: true, Link: true},
		"vessel":         {Name: "ogbl_vessel", Binary: true, Link: true},
		"papers100M-bin": {Name: "ogbn_papers100M", Binary: true},
	} {
		got, ok := Lookup(name)
		require.True(t, ok, name)
		require.NotEmpty(t, got.Metric)
		require.NotEmpty(t, got.Split)
		require.Equal(t, want, Info{Name: got.Name, AddReverse: got.AddReverse, Hetero: got.Hetero, Binary: got.Binary, Link: got.Link})
	}
	for _, name := range []string{"", "ogbn_", "ogbl", "cora", "ogbn_collab"} {
		_, ok := Lookup(name)
		require.False(t, ok, name)
	}
}

func TestOgbnArxiv(t *testing.T) {
	root := os.Getenv("GNNSTORE_DATA")
	if root == "" {
		t.Skip("GNNSTORE_DATA is not set: the folder with ogbn_arxiv and expected.json")
	}
	raw, err := os.ReadFile(filepath.Join(root, "expected.json"))
	require.NoError(t, err)
	var expected map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &expected))
	var want struct {
		Nodes        int64 `json:"nodes"`
		Edges        int   `json:"directed_edges"`
		Symmetrised  int   `json:"edges_symmetrised"`
		Classes      int   `json:"classes"`
		Train        int   `json:"train"`
		Valid        int   `json:"valid"`
		Test         int   `json:"test"`
		MaxOutDegree int   `json:"max_out_degree"`
		MaxInDegree  int   `json:"max_in_degree"`
	}
	require.NoError(t, json.Unmarshal(expected["ogbn_arxiv"], &want))
	g, err := read(filepath.Join(root, "ogbn_arxiv"))
	require.NoError(t, err)
	require.Equal(t, want.Nodes, g.Schema.NodeTypes[0].Count)
	require.Equal(t, int64(want.Edges), g.Schema.Relations[0].Edges)
	require.Equal(t, want.Classes, g.Schema.Labels[0].Classes)
	require.Len(t, g.Edges[0].Src, want.Edges)
	require.Len(t, g.Labels[0], int(want.Nodes))
	require.Len(t, g.Splits[0][ingest.Train].Numbers, want.Train)
	require.Len(t, g.Splits[0][ingest.Valid].Numbers, want.Valid)
	require.Len(t, g.Splits[0][ingest.Test].Numbers, want.Test)
	out, in := make([]int, want.Nodes), make([]int, want.Nodes)
	both := make(map[[2]int64]bool, want.Symmetrised)
	for i := range g.Edges[0].Src {
		out[g.Edges[0].Src[i]]++
		in[g.Edges[0].Dst[i]]++
		both[[2]int64{g.Edges[0].Src[i], g.Edges[0].Dst[i]}] = true
		both[[2]int64{g.Edges[0].Dst[i], g.Edges[0].Src[i]}] = true
	}
	most := func(degrees []int) (m int) {
		for _, d := range degrees {
			m = max(m, d)
		}
		return m
	}
	require.Equal(t, want.MaxOutDegree, most(out))
	require.Equal(t, want.MaxInDegree, most(in))
	require.Len(t, both, want.Symmetrised)
	seen := make([]bool, want.Classes)
	for _, c := range g.Labels[0] {
		seen[c] = true
	}
	require.NotContains(t, seen, false)
}
