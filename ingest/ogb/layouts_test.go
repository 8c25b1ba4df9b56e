package ogb

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
	"github.com/gnnstore/gnnstore/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func openWhole(path string, o Options) (sourcetest.Graph, error) {
	s, err := o.Open(path)
	if err != nil {
		return sourcetest.Graph{}, err
	}
	defer s.Close()
	return sourcetest.Read(s)
}

func TestBinary(t *testing.T) {
	for _, reverse := range []Reverse{Auto, Yes} {
		w, err := openWhole("testdata/papers100M-bin", Options{AddReverse: reverse})
		require.NoError(t, err)
		const n, e = 40, 300
		require.Contains(t, w.Schema.Identity, "data.npz")
		w.Schema.Identity = ""
		copies := int64(1)
		if reverse == Yes {
			copies = 2
		}
		require.Equal(t, &ingest.Schema{
			Name:      "ogbn_papers100M",
			NodeTypes: []ingest.NodeType{{Name: "node", Count: n, Columns: []string{"year"}}},
			Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: e * copies,
				Columns: []ingest.EdgeColumn{{Name: "weight", Elem: store.F32}, {Name: "year", Elem: store.I64}}}},
			Tables:  []ingest.Table{{Name: "feat", Relation: "node__to__node", Dim: 2}, {Name: "feat", NodeType: "node", Dim: 3}},
			Labels:  []ingest.Label{{Name: "label", NodeType: "node", Classes: 172}},
			Splits:  []ingest.Split{{Name: "time", NodeType: "node"}},
			Skipped: []string{"raw/data.npz: node_year: further columns of nodes are not kept"},
		}, w.Schema)
		got := w.Edges[0]
		for k := range e * int(copies) {
			i := int64(k)
			u, v := i%n, (7*i+3)%n
			if copies == 2 { // trap 10: 2i as given, 2i+1 the other way round, and everything of edge i twice
				i /= 2
				if u, v = i%n, (7*i+3)%n; k%2 == 1 {
					u, v = v, u
				}
			}
			require.Equal(t, [2]int64{u, v}, [2]int64{got.Src[k], got.Dst[k]}, k)
			require.Equal(t, uint64(math.Float32bits(float32(i)/4)), got.Values[0][k])
			require.Equal(t, uint64(1990+i), got.Values[1][k])
			require.Equal(t, []float32{float32(i), -float32(i)}, w.Rows[0][2*k:2*k+2])
		}
		for i := range n * 3 {
			require.Equal(t, float32(i)/8, w.Rows[1][i])
		}
		for i, class := range w.Labels[0] { // trap 6: NaN, in a column of (n, 1)
			want := int32(-1)
			if i%4 == 0 {
				want = int32(i / 4 % 3)
			}
			require.Equal(t, want, class)
		}
		require.Equal(t, [3][]int64{{0, 4, 8, 12, 16, 20, 24, 28, 32, 36}, {1, 9, 17, 25, 33}, {3, 11, 19, 27, 35}}, w.Splits[0].Numbers())
	}
}

func TestTypedBinary(t *testing.T) {
	w, err := openWhole("testdata", Options{}) // the parent folder does, as long as there is one dataset in it
	require.ErrorContains(t, err, "testdata: several datasets (papers100M-bin, typed); name one of them")
	w, err = openWhole("testdata/typed", Options{AddReverse: No})
	require.NoError(t, err)
	w.Schema.Identity = ""
	require.Equal(t, &ingest.Schema{
		Name:      "typed",
		NodeTypes: []ingest.NodeType{{Name: "field_of_study", Count: 5}, {Name: "paper", Count: 40, Columns: []string{"year"}}},
		Relations: []ingest.Relation{
			{Src: "field_of_study", Name: "part_of", Dst: "field_of_study", Edges: 5},
			{Src: "paper", Name: "has_topic", Dst: "field_of_study", Edges: 300},
		},
		Tables: []ingest.Table{{Name: "feat", Relation: "paper__has_topic__field_of_study", Dim: 3}, {Name: "feat", NodeType: "paper", Dim: 2}},
		Labels: []ingest.Label{{Name: "label", NodeType: "paper"}},
		Splits: []ingest.Split{{Name: "time", NodeType: "paper"}},
		Skipped: []string{
			"raw/edge_reltype.npz: field_of_study___part_of___field_of_study: the relation says it",
			"raw/edge_reltype.npz: paper___has_topic___field_of_study: the relation says it",
			"raw/node_year.npz: paper: further columns of nodes are not kept",
		},
	}, w.Schema)
	require.Equal(t, []int64{0, 1, 2, 3, 4}, w.Edges[0].Src)
	require.Equal(t, []int64{4, 3, 2, 1, 0}, w.Edges[0].Dst)
	require.Equal(t, int64(299%40), w.Edges[1].Src[299])
	require.Equal(t, int64(299%5), w.Edges[1].Dst[299])
	require.Equal(t, []float32{299, 299, 299}, w.Rows[0][897:])
	require.Len(t, w.Labels[0], 40)
	require.Equal(t, []int64{3, 11, 19, 27, 35}, w.Splits[0][ingest.Test].Numbers)

	_, err = openWhole("testdata/typed", Options{AddReverse: Yes})
	require.ErrorContains(t, err, "reverse edges go with one type of node")
	_, err = openWhole("testdata/typed", Options{AddReverse: "maybe"})
	require.EqualError(t, err, `{add_reverse} "maybe": choose auto, yes or no`)
}

// Trap 8: NumPy arrays inside pickles of every protocol and container, and tensors and lists in
// their place.
func TestDicts(t *testing.T) {
	names, err := filepath.Glob("testdata/dicts/*.pt")
	require.NoError(t, err)
	require.Len(t, names, 15)
	for _, name := range names {
		d, err := OpenDict(name, 0)
		require.NoError(t, err, name)
		keys, ok := d.Keys()
		require.True(t, ok)
		require.Equal(t, []string{"train", "valid", "test"}, keys)
		var ids []int64
		require.NoError(t, d.IDs(context.Background(), func(c ingest.IDChunk) error {
			ids = append(ids, c.IDs...)
			return nil
		}, "valid"), name)
		require.Equal(t, []int64{1, 9, 17, 25, 33}, ids, name)
		none := func(ingest.IDChunk) error { return nil }
		require.EqualError(t, d.IDs(context.Background(), none, "train", "paper"), name+": no entry train/paper in its dict")
		_, err = d.Int("train")
		require.ErrorContains(t, err, name+": train: it is ")
		_, err = d.Int("papers")
		require.EqualError(t, err, name+": no entry papers in its dict")
		require.NoError(t, d.Close())
	}
}

// mag is ogbn-mag in small: types without features, one with labels and a split, relations with
// columns.
func mag() files {
	return files{
		"raw/num-node-dict.csv.gz":                                              "paper,author,field_of_study\n3,2,2\n",
		"raw/triplet-type-list.csv.gz":                                          "paper,has_topic,field_of_study\nauthor,writes,paper\n",
		"raw/nodetype-has-label.csv.gz":                                         "paper,author,field_of_study\nTrue,False,False\n",
		"raw/relations/author___writes___paper/edge.csv.gz":                     "0,2\n1,0\n1,1\n",
		"raw/relations/author___writes___paper/num-edge-list.csv.gz":            "3\n",
		"raw/relations/author___writes___paper/edge_reltype.csv.gz":             "0\n0\n0\n",
		"raw/relations/author___writes___paper/edge_share.csv.gz":               "0.5\n0.25\n1\n",
		"raw/relations/paper___has_topic___field_of_study/edge.csv.gz":          "0,1\n2,0\n",
		"raw/relations/paper___has_topic___field_of_study/edge-feat.csv.gz":     "1,2\n3,4\n",
		"raw/relations/paper___has_topic___field_of_study/num-edge-list.csv.gz": "2\n",
		"raw/node-feat/paper/node-feat.csv.gz":                                  "1,2\n3,4\n5,6\n",
		"raw/node-feat/paper/node_year.csv.gz":                                  "2010\n2011\n2012\n",
		"raw/node-label/paper/node-label.csv.gz":                                "7\n\n348\n",
		"split/time/nodetype-has-split.csv.gz":                                  "paper,author,field_of_study\nTrue,False,False\n",
		"split/time/paper/train.csv.gz":                                         "0\n",
		"split/time/paper/valid.csv.gz":                                         "1\n",
		"split/time/paper/test.csv.gz":                                          "2\n",
	}
}

// Traps 4 and 11: three underscores between names that hold one, and node types without features or
// labels.
func TestTyped(t *testing.T) {
	w, err := openWhole(mag().write(t, "ogbn_mag"), Options{})
	require.NoError(t, err)
	w.Schema.Identity = ""
	require.Equal(t, sourcetest.Graph{
		Schema: &ingest.Schema{
			Name:      "ogbn_mag",
			NodeTypes: []ingest.NodeType{{Name: "author", Count: 2}, {Name: "field_of_study", Count: 2}, {Name: "paper", Count: 3, Columns: []string{"year"}}},
			Relations: []ingest.Relation{
				{Src: "author", Name: "writes", Dst: "paper", Edges: 3, Columns: []ingest.EdgeColumn{{Name: "share", Elem: store.F32}}},
				{Src: "paper", Name: "has_topic", Dst: "field_of_study", Edges: 2},
			},
			Tables: []ingest.Table{{Name: "feat", Relation: "paper__has_topic__field_of_study", Dim: 2}, {Name: "feat", NodeType: "paper", Dim: 2}},
			Labels: []ingest.Label{{Name: "label", NodeType: "paper", Classes: 349}},
			Splits: []ingest.Split{{Name: "time", NodeType: "paper"}},
			Skipped: []string{
				"raw/relations/author___writes___paper/edge_reltype.csv.gz: the relation says it",
				"raw/node-feat/paper/node_year.csv.gz: further columns of nodes are not kept",
			},
		},
		NodeIDs: make([]sourcetest.IDs, 3),
		Edges: []sourcetest.Edges{
			{Src: []int64{0, 1, 1}, Dst: []int64{2, 0, 1}, Values: [][]uint64{{uint64(math.Float32bits(0.5)), uint64(math.Float32bits(0.25)), uint64(math.Float32bits(1))}}},
			{Src: []int64{0, 2}, Dst: []int64{1, 0}},
		},
		Rows:   [][]float32{{1, 2, 3, 4}, {1, 2, 3, 4, 5, 6}},
		Labels: [][]int32{{7, -1, 348}},
		Splits: []sourcetest.Split{{{Numbers: []int64{0}}, {Numbers: []int64{1}}, {Numbers: []int64{2}}}},
	}, w)

	// Without the tables of flags, the files there tell.
	again, err := openWhole(mag().with(files{"raw/nodetype-has-label.csv.gz": "-", "split/time/nodetype-has-split.csv.gz": "-"}).write(t, "mag"), Options{})
	require.NoError(t, err)
	again.Schema.Identity = ""
	require.Equal(t, w, again)
}

func TestTypedRefuses(t *testing.T) {
	for _, c := range []struct {
		change files
		want   string
	}{
		{files{"raw/num-node-dict.csv.gz": "paper,author\n3,2\n"}, "DIR/raw/triplet-type-list.csv.gz: relation paper___has_topic___field_of_study is of node type field_of_study, which DIR/raw/num-node-dict.csv.gz does not name"},
		{files{"raw/num-node-dict.csv.gz": "paper,author\n3\n"}, "DIR/raw/num-node-dict.csv.gz: line 2: 1 values for 2 node types"},
		{files{"raw/num-node-dict.csv.gz": "paper,paper\n3,3\n"}, "DIR/raw/num-node-dict.csv.gz: line 1: node type paper is there twice"},
		{files{"raw/num-node-dict.csv.gz": "paper,../author\n3,3\n"}, `DIR/raw/num-node-dict.csv.gz: line 1: "../author" is not the name of a type or a relation`},
		{files{"raw/num-node-dict.csv.gz": "paper,author,field_of_study\n3,many,1\n"}, `DIR/raw/num-node-dict.csv.gz: line 2: "many" is not a count`},
		{files{"raw/num-node-dict.csv.gz": "paper\n"}, "DIR/raw/num-node-dict.csv.gz: a line of node types and a line of their values are expected; fetch it again"},
		{files{"raw/num-node-dict.csv.gz": "paper,author,field_of_study\n3,2,2\n3,2,2\n"}, "DIR/raw/num-node-dict.csv.gz: line 3: a second graph; node-property datasets have one"},
		{files{"raw/triplet-type-list.csv.gz": "author,writes\n"}, "DIR/raw/triplet-type-list.csv.gz: line 1: 2 names, where head, relation and tail are expected"},
		{files{"raw/triplet-type-list.csv.gz": "author,wri___tes,paper\n"}, `DIR/raw/triplet-type-list.csv.gz: line 1: "author,wri___tes,paper" is no triplet of names`},
		{files{"raw/triplet-type-list.csv.gz": "author,_writes,paper\n"}, `DIR/raw/triplet-type-list.csv.gz: line 1: "author,_writes,paper" is no triplet of names`},
		{files{"raw/triplet-type-list.csv.gz": "author,../..,paper\n"}, `DIR/raw/triplet-type-list.csv.gz: line 1: "author,../..,paper" is no triplet of names`},
		{files{"raw/triplet-type-list.csv.gz": "author,writes,paper\nauthor,writes,paper\n"}, "DIR/raw/triplet-type-list.csv.gz: line 2: relation author___writes___paper is there twice"},
		{files{"raw/triplet-type-list.csv.gz": "author,likes,paper\n"}, "open DIR/raw/relations/author___likes___paper/num-edge-list.csv.gz: no such file or directory"},
		{files{"raw/relations/author___writes___paper/num-edge-list.csv.gz": "4"}, "DIR/raw/relations/author___writes___paper/edge.csv.gz: found 3 rows, DIR/raw/relations/author___writes___paper/num-edge-list.csv.gz declares 4; fetch both again"},
		{files{"raw/relations/author___writes___paper/num-edge-list.csv.gz": "999999999999999999"}, "DIR/raw/relations/author___writes___paper/num-edge-list.csv.gz: line 1: 999999999999999999 is not a count"},
		{files{"raw/relations/author___writes___paper/edge_share.csv.gz": "1\n2\n"}, "DIR/raw/relations/author___writes___paper/edge_share.csv.gz: found 2 rows, DIR/raw/relations/author___writes___paper/num-edge-list.csv.gz declares 3; fetch both again"},
		{files{"raw/relations/author___writes___paper/edge_share.csv.gz": "1\n2\n3\n4\n"}, "DIR/raw/relations/author___writes___paper/edge_share.csv.gz: found 4 rows, DIR/raw/relations/author___writes___paper/num-edge-list.csv.gz declares 3; fetch both again"},
		{files{"raw/nodetype-has-label.csv.gz": "paper\nTrue\n", "raw/node-label/paper/node-label.csv.gz": "-"}, "DIR/raw/node-label/paper/node-label.csv.gz: no such file, and DIR/raw/nodetype-has-label.csv.gz says that node type paper has labels; fetch both again"},
		{files{"raw/nodetype-has-label.csv.gz": "paper\nPerhaps\n"}, `DIR/raw/nodetype-has-label.csv.gz: line 2: "Perhaps" is neither True nor False`},
		{files{"split/time/paper/test.csv.gz": "-"}, "DIR/split/time/paper/test.csv.gz: no such file; a split has train.csv.gz, valid.csv.gz and test.csv.gz"},
	} {
		dir := mag().with(c.change).write(t, "mag")
		_, err := openWhole(dir, Options{})
		require.EqualError(t, err, strings.ReplaceAll(c.want, "DIR", dir))
	}
	_, err := openWhole(mag().with(files{"raw/relations/a___b___c/x": "1", "raw/node-feat/venue/node-feat.csv.gz": "1"}).write(t, "mag"), Options{})
	require.NoError(t, err)
}

// collab is a link dataset: reverses to be added, columns of edges, and a split of edges.
func collab() files {
	return files{
		"raw/num-node-list.csv.gz": "3\n",
		"raw/num-edge-list.csv.gz": "2\n",
		"raw/edge.csv.gz":          "0,1\n2,0\n",
		"raw/edge_weight.csv.gz":   "3\n1\n",
		"raw/edge_year.csv.gz":     "1999\n2001\n",
		"raw/edge-feat.csv.gz":     "1,2\n3,4\n",
		"raw/node-feat.csv.gz":     "1\n2\n3\n",
		"split/time/train.pt":      "not read",
		"split/time/valid.pt":      pickled("edge", ndarray("2,2", 0, 2, 1, 2), "weight", ndarray("2", 5, 6), "year", ndarray("2", 2018, 2018), "edge_neg", ndarray("3,2", 0, 0, 1, 1, 2, 2)),
		"split/time/test.pt":       pickled("edge", ndarray("1,2", 1, 0), "weight", ndarray("1", 7), "year", ndarray("1", 2019)),
		"mapping/nodeidx2x.csv.gz": "not read",
		"processed/geometric_x.pt": "not read",
		"RELEASE_v1.txt":           "not read",
	}
}

func TestLinkDataset(t *testing.T) {
	for _, name := range []string{"ogbl_collab", "collab", "mine"} {
		w, err := openWhole(collab().write(t, name), Options{})
		require.NoError(t, err)
		require.Empty(t, w.Schema.Splits)
		require.Empty(t, w.Schema.Skipped)
		require.Equal(t, &ingest.Held{Pool: [2]bool{true, false}, Columns: w.Schema.Relations[0].Columns}, w.Schema.Relations[0].Held)
		require.Equal(t, []ingest.EdgeColumn{{Name: "weight", Elem: store.F32}, {Name: "year", Elem: store.I64}}, w.Schema.Relations[0].Columns)
		one, three := uint64(math.Float32bits(1)), uint64(math.Float32bits(3))
		if name == "mine" {
			require.Equal(t, sourcetest.Edges{Src: []int64{0, 2}, Dst: []int64{1, 0}, Values: [][]uint64{{three, one}, {1999, 2001}}}, w.Edges[0])
			continue
		}
		require.Equal(t, "ogbl_collab", w.Schema.Name)
		require.Equal(t, sourcetest.Edges{Src: []int64{0, 1, 2, 0}, Dst: []int64{1, 0, 0, 2}, Values: [][]uint64{{three, three, one, one}, {1999, 1999, 2001, 2001}}}, w.Edges[0])
		require.Equal(t, [][]float32{{1, 2, 1, 2, 3, 4, 3, 4}, {1, 2, 3}}, w.Rows)
		no, err := openWhole(collab().write(t, name), Options{AddReverse: No})
		require.NoError(t, err)
		require.Equal(t, int64(2), no.Schema.Relations[0].Edges)
		require.NotEqual(t, no.Schema.Identity, w.Schema.Identity)
	}
	// What is not two files of pairs is named.
	for text, change := range map[string]files{
		"split/time: there is no test.pt, so that no edges are held out; the graph has the edges of training":                     {"split/time/test.pt": "-"},
		"split/time: its entries are not those of edges between two nodes, and are not kept; the graph has the edges of training": {"split/time/valid.pt": pickled("head_type", ndarray("1", 1), "head", ndarray("1", 1))},
	} {
		w, err := openWhole(collab().with(change).write(t, "collab"), Options{})
		require.NoError(t, err)
		require.Nil(t, w.Schema.Relations[0].Held)
		require.Contains(t, w.Schema.Skipped, text)
	}
}

// Reverses across chunks: the numbering goes on where the chunk before ended.
func TestReverseChunks(t *testing.T) {
	const n = ingest.ChunkRows + 17
	var list, year, feat strings.Builder
	for i := range n {
		fmt.Fprintf(&list, "%d,%d\n", i, n+i)
		fmt.Fprintf(&year, "%d\n", i)
		fmt.Fprintf(&feat, "%d,1,2\n", i)
	}
	w, err := openWhole(files{
		"raw/num-node-list.csv.gz": "0", "raw/num-edge-list.csv.gz": fmt.Sprint(n), "raw/edge.csv.gz": list.String(),
		"raw/edge_year.csv.gz": year.String(), "raw/edge-feat.csv.gz": feat.String(),
	}.write(t, "big"), Options{AddReverse: Yes})
	require.NoError(t, err)
	require.Len(t, w.Edges[0].Src, 2*n)
	for k := range int64(2 * n) {
		u, v := k/2, n+k/2
		if k%2 == 1 {
			u, v = v, u
		}
		if w.Edges[0].Src[k] != u || w.Edges[0].Dst[k] != v || w.Edges[0].Values[0][k] != uint64(k/2) || w.Rows[0][3*k] != float32(k/2) {
			t.Fatal("edge", k)
		}
	}
}

// zipped packs a dataset as a download has it: everything in one folder.
func (f files) zipped(t testing.TB, top string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for path, text := range f {
		body := []byte(text)
		if strings.HasSuffix(path, ".gz") {
			body = compress(t, text)
		}
		m, err := w.Create(top + path)
		require.NoError(t, err)
		_, err = m.Write(body)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestZipAndParent(t *testing.T) {
	want, err := openWhole(arxiv().write(t, "arxiv"), Options{})
	require.NoError(t, err)
	same := func(path string) {
		got, err := openWhole(path, Options{})
		require.NoError(t, err)
		require.NotEmpty(t, got.Schema.Identity)
		got.Schema.Identity = want.Schema.Identity
		require.Equal(t, fmt.Sprint(want.Schema), fmt.Sprint(got.Schema))
		want, got := want, got
		want.Rows, got.Rows = nil, nil // a NaN is among them
		require.Equal(t, want, got)
	}
	same(filepath.Dir(arxiv().write(t, "arxiv")))
	path := filepath.Join(t.TempDir(), "download.zip")
	require.NoError(t, os.WriteFile(path, arxiv().zipped(t, "arxiv/"), 0o600))
	same(path)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "arxiv.zip"), arxiv().zipped(t, ""), 0o600))
	same(filepath.Join(filepath.Dir(path), "arxiv.zip"))

	whole := arxiv().zipped(t, "arxiv/")
	for range 20 { // damage in a member shows, as a line
		bad := bytes.Clone(whole)
		bad[len(bad)/7] ^= 0x55
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		if _, err := openWhole(path, Options{}); err != nil {
			require.NotContains(t, err.Error(), "\n")
		}
	}
	pack := func(f files) error {
		require.NoError(t, os.WriteFile(path, f.zipped(t, "arxiv/"), 0o600))
		_, err := openWhole(path, Options{})
		return err
	}
	unzip := ": only .csv.gz files are read out of a zip archive; unzip it first and name the folder inside"
	require.EqualError(t, pack(files{"raw/data.npz": "x"}), path+"/arxiv/raw/data.npz"+unzip)
	require.EqualError(t, pack(arxiv().with(files{"split/time/split_dict.pt": "x"})), path+"/arxiv/split/time/split_dict.pt"+unzip)
	require.EqualError(t, pack(arxiv().with(files{"raw/edge.csv.gz": "0,1\n"})), fmt.Sprintf("%[1]s/arxiv/raw/edge.csv.gz: found 1 rows, %[1]s/arxiv/raw/num-edge-list.csv.gz declares 3; fetch both again", path))
	require.EqualError(t, pack(files{"readme": "x"}), path+": no raw/ in it; name the folder that an OGB download unpacks to")
}

// array makes an npy file.
func array(descr, shape string, fortran bool, data any) []byte {
	order := "False"
	if fortran {
		order = "True"
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n", descr, order, shape)
	b := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(head)))
	b, _ = binary.Append(append(b, head...), binary.LittleEndian, data)
	return b
}

// arrays are an npz file's by key.
type arrays map[string][]byte

func (a arrays) with(changes arrays) arrays {
	for key, b := range changes {
		if a[key] = b; b == nil {
			delete(a, key)
		}
	}
	return a
}

func (a arrays) npz(t testing.TB, method uint16) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for key, body := range a {
		m, err := w.CreateHeader(&zip.FileHeader{Name: key + ".npy", Method: method})
		require.NoError(t, err)
		_, err = m.Write(body)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.String()
}

// papers is a graph of three nodes and two edges.
func papers() arrays {
	return arrays{
		"edge_index":     array("<i8", "(2, 2)", false, []int64{0, 2, 1, 0}),
		"num_nodes_list": array("<i8", "(1,)", false, []int64{3}),
		"num_edges_list": array("<i8", "(1,)", false, []int64{2}),
		"node_feat":      array("<f4", "(3, 2)", false, []float32{1, 2, 3, 4, 5, 6}),
	}
}

// Traps 2, 6, 7 and 12: either order, any width, stored and deflated members, ids of 32 bits,
// labels of all kinds.
func TestArrayVariants(t *testing.T) {
	for name, change := range map[string]arrays{
		"as it is":  {},
		"i4":        {"edge_index": array("<i4", "(2, 2)", false, []int32{0, 2, 1, 0})},
		"big":       {"edge_index": array(">i2", "(2, 2)", false, []uint16{0, 0x200, 0x100, 0})},
		"float":     {"edge_index": array("<f8", "(2, 2)", false, []float64{0, 2, 1, 0})},
		"fortran":   {"edge_index": array("<i8", "(2, 2)", true, []int64{0, 1, 2, 0}), "node_feat": array("<f4", "(3, 2)", true, []float32{1, 3, 5, 2, 4, 6})},
		"half":      {"node_feat": array("<f2", "(3, 2)", false, []uint16{0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600})},
		"uncounted": {"num_edges_list": nil},
		"scalar":    {"num_nodes_list": array("<i4", "()", false, []int32{3})},
	} {
		for _, method := range []uint16{zip.Store, zip.Deflate} {
			label := arrays{"node_label": array("<f8", "(3,)", false, []float64{5, math.NaN(), -1})}
			w, err := openWhole(files{"raw/data.npz": papers().with(change).npz(t, method), "raw/node-label.npz": label.npz(t, method)}.write(t, "x"), Options{})
			require.NoError(t, err, name)
			require.Equal(t, sourcetest.Edges{Src: []int64{0, 2}, Dst: []int64{1, 0}}, w.Edges[0], name)
			require.Equal(t, []float32{1, 2, 3, 4, 5, 6}, w.Rows[0], name)
			require.Equal(t, []int32{5, -1, -1}, w.Labels[0])
		}
	}
	label := arrays{"node_label": array("<f4", "(3, 2)", false, []float32{0, 1, float32(math.NaN()), 1, -1, 0}), "other": papers()["node_feat"]}
	w, err := openWhole(files{"raw/data.npz": papers().with(arrays{"strange": papers()["node_feat"]}).npz(t, zip.Deflate), "raw/node-label.npz": label.npz(t, zip.Deflate)}.write(t, "x"), Options{})
	require.NoError(t, err)
	require.Equal(t, []ingest.Label{{Name: "label", NodeType: "node", Multi: true, Classes: 2}}, w.Schema.Labels)
	require.Equal(t, []int32{0, 1, -1, 1, -1, 0}, w.Labels[0])
	require.ElementsMatch(t, []string{"raw/data.npz: strange: it is no part of this layout", "raw/node-label.npz: other: it is no part of this layout"}, w.Schema.Skipped)
}

func TestArraysRefuse(t *testing.T) {
	for _, c := range []struct {
		change arrays
		want   string // DIR is the dataset's folder
	}{
		{arrays{"edge_index": nil, "node_feat": nil, "num_edges_list": nil}, "DIR/raw/data.npz: no array edge_index among num_nodes_list; this layout has edge_index, num_nodes_list and num_edges_list"},
		{arrays{"edge_index": array("<i8", "(4, 2)", false, make([]int64, 8))}, "DIR/raw/data.npz: edge_index: array is (4, 2) of <i8, where a row of sources and a row of destinations are expected"},
		{arrays{"edge_index": array("<i8", "(2, 3)", false, make([]int64, 6))}, "DIR/raw/data.npz: edge_index: array is (2, 3) of <i8, and num_edges_list is 2; fetch it again"},
		{arrays{"edge_index": array("<f8", "(2, 2)", false, []float64{0, 1, 0.5, 1})}, "DIR/raw/data.npz: edge_index: element 2 is 0.5, not an integer of 64 bits"},
		{arrays{"node_feat": array("<f4", "(2, 2)", false, make([]float32, 4))}, "DIR/raw/data.npz: node_feat: array is (2, 2) of <f4, and DIR/raw/data.npz: num_nodes_list declares 3 rows; fetch both again"},
		{arrays{"node_feat": array("<f4", "(3, 2, 1)", false, make([]float32, 6))}, "DIR/raw/data.npz: node_feat: array is (3, 2, 1) of <f4, where rows and columns of numbers are expected"},
		{arrays{"node_feat": array("<f4", "(3, 99999999)", false, []byte{})}, "DIR/raw/data.npz: node_feat: (3, 99999999) of <f4 takes 1199999988 bytes of data, the member has 0"},
		{arrays{"node_feat": array("|S2", "(3,)", false, []byte("aabbcc"))}, "DIR/raw/data.npz: node_feat: array is (3,) of |S2, where rows and columns of numbers are expected"},
		{arrays{"num_nodes_list": array("<i8", "(2,)", false, []int64{3, 3})}, "DIR/raw/data.npz: num_nodes_list: array is (2,) of <i8; a dataset of one graph has one number there"},
		{arrays{"num_nodes_list": array("<i8", "(1,)", false, []int64{-3})}, "DIR/raw/data.npz: num_nodes_list: -3 is not a count"},
		{arrays{"edge_w": array("<i8", "(9, 1)", false, make([]int64, 9))}, "DIR/raw/data.npz: edge_w: array is (9, 1) of <i8, and DIR/raw/data.npz: edge_index declares 2 rows; fetch both again"},
	} {
		dir := files{"raw/data.npz": papers().with(c.change).npz(t, zip.Deflate)}.write(t, "x")
		_, err := openWhole(dir, Options{})
		require.EqualError(t, err, strings.ReplaceAll(c.want, "DIR", dir))
	}
	// Damage is told as such, wherever it is.
	whole := papers().with(arrays{"node_feat": array("<f4", "(3, 2)", false, []float32{1, 2, 3, 4, 5, 6})}).npz(t, zip.Deflate)
	dir := files{"raw/data.npz": whole[:len(whole)/2]}.write(t, "x")
	_, err := openWhole(dir, Options{})
	require.ErrorContains(t, err, dir+"/raw/data.npz: damaged or truncated download: the zip directory at its end does not read")
}

// Trap 11: counts that are smaller than the largest id are told with the file and the row, and
// larger ones are isolated nodes.
func TestDeclaredNodes(t *testing.T) {
	build := func(change arrays) (*build.Report, error) {
		dir := files{"raw/data.npz": papers().with(change).npz(t, zip.Deflate)}.write(t, "x")
		s, err := Options{}.Open(dir)
		require.NoError(t, err)
		defer s.Close()
		return build.Build(context.Background(), s, filepath.Join(t.TempDir(), "x.gnn"), build.Options{Features: "degree"})
	}
	_, err := build(arrays{"num_nodes_list": array("<i8", "(1,)", false, []int64{2}), "node_feat": nil})
	require.ErrorContains(t, err, "x/raw/data.npz: edge_index: edge 2 (counting from 1): source")
	r, err := build(arrays{"num_nodes_list": array("<i8", "(1,)", false, []int64{9}), "node_feat": nil})
	require.NoError(t, err)
	require.Equal(t, int64(9), r.NodeTypes[0].Count)
}
