package graphsaint

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

// npyFile is an array as NumPy saves it.
func npyFile(descr string, fortran bool, shape []int64, data any) string {
	dims := ""
	for _, d := range shape {
		dims += fmt.Sprintf("%d,", d)
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", descr, map[bool]string{true: "True", false: "False"}[fortran], dims)
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	b, err := binary.Append(nil, binary.LittleEndian, data)
	if err != nil {
		panic(err)
	}
	return "\x93NUMPY\x01\x00" + string(binary.LittleEndian.AppendUint16(nil, uint16(len(header)))) + header + string(b)
}

// adjacency is an archive as scipy.sparse.save_npz writes it.
func adjacency(nodes int64, indptr, indices []int32, data []bool) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, m := range []struct{ key, body string }{
		{"indices", npyFile("<i4", false, []int64{int64(len(indices))}, indices)},
		{"indptr", npyFile("<i4", false, []int64{int64(len(indptr))}, indptr)},
		{"format", npyFile("|S3", false, nil, []byte("csr"))},
		{"shape", npyFile("<i8", false, []int64{2}, []int64{nodes, nodes})},
		{"data", npyFile("|b1", false, []int64{int64(len(data))}, data)},
	} {
		w, err := z.Create(m.key + ".npy")
		if err == nil {
			_, err = w.Write([]byte(m.body))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.String()
}

type files map[string]string

// four is a graph of four nodes; the entry (3, 0) of its adjacency is zero, and node 2 has no
// label.
func four() files {
	return files{
		"adj_full.npz":   adjacency(4, []int32{0, 2, 3, 3, 5}, []int32{1, 3, 0, 0, 3}, []bool{true, true, true, false, true}),
		"adj_train.npz":  "not read",
		"feats.npy":      npyFile("<f8", false, []int64{4, 2}, []float64{1, 0.5, -1e-5, 2, 3, 7, 0, 0}),
		"class_map.json": `{"3": 1, "0": 4, "1": -1}`,
		"role.json":      `{"te": [3], "tr": [2, 0], "va": [1]}`,
	}
}

func (f files) with(name, body string) files {
	if f[name] = body; body == "-" {
		delete(f, name)
	}
	return f
}

func (f files) write(t testing.TB) string {
	dir := filepath.Join(t.TempDir(), "four")
	require.NoError(t, os.Mkdir(dir, 0o755))
	for name, body := range f {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(body), 0o644))
	}
	return dir
}

func read(dir string) (sourcetest.Graph, error) {
	s, err := Open(dir)
	if err != nil {
		return sourcetest.Graph{}, err
	}
	defer s.Close()
	return sourcetest.Read(s)
}

const noTrain = "adj_train.npz: training samples from adj_full.npz, where GraphSAINT trains on the edges among training nodes"

func TestWholeGraph(t *testing.T) {
	s, err := Open(four().write(t))
	require.NoError(t, err)
	for range 2 { // every section can be read again
		g, err := sourcetest.Read(s)
		require.NoError(t, err)
		require.Equal(t, sourcetest.Graph{
			Schema: &ingest.Schema{
				Name:      "four",
				NodeTypes: []ingest.NodeType{{Name: "node", Count: 4}},
				Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: 4}},
				Tables:    []ingest.Table{{Name: "feat", NodeType: "node", Dim: 2}},
				Labels:    []ingest.Label{{Name: "label", NodeType: "node"}},
				Splits:    []ingest.Split{{Name: "role", NodeType: "node"}},
				Skipped:   []string{noTrain},
			},
			NodeIDs: []sourcetest.IDs{{}},
			Edges:   []sourcetest.Edges{{Src: []int64{0, 0, 1, 3}, Dst: []int64{1, 3, 0, 3}}},
			Rows:    [][]float32{{1, 0.5, -1e-5, 2, 3, 7, 0, 0}},
			Labels:  [][]int32{{4, -1, -1, 1}},
			Splits:  []sourcetest.Split{{{Numbers: []int64{2, 0}}, {Numbers: []int64{1}}, {Numbers: []int64{3}}}},
		}, g)
	}
	require.NoError(t, s.Close())
}

func TestVariants(t *testing.T) {
	// Several classes a node, floats among them; node 2 is not named.
	g, err := read(four().with("class_map.json", `{"3": [1,0,1], "1": [0,0,0], "0": [0.0, 1.0, 0.0]}`).write(t))
	require.NoError(t, err)
	require.Equal(t, []ingest.Label{{Name: "label", NodeType: "node", Multi: true, Classes: 3}}, g.Schema.Labels)
	require.Equal(t, []int32{0, 1, 0, 0, 0, 0, -1, -1, -1, 1, 0, 1}, g.Labels[0])

	// Features column by column, as half floats.
	g, err = read(four().with("feats.npy", npyFile("<f2", true, []int64{4, 2}, []uint16{0x3c00, 0, 0, 0x3c00, 0x3800, 0, 0, 0})).write(t))
	require.NoError(t, err)
	require.Equal(t, []float32{1, 0.5, 0, 0, 0, 0, 1, 0}, g.Rows[0])

	bare := files{"adj_full.npz": four()["adj_full.npz"]}
	dir := bare.write(t)
	g, err = read(dir)
	require.NoError(t, err)
	require.Equal(t, &ingest.Schema{Name: "four", NoFeatures: dir + ": no feats.npy in it", NoLabels: dir + ": no class_map.json in it", Skipped: []string{dir + ": no role.json in it, which has the split"}, NodeTypes: []ingest.NodeType{{Name: "node", Count: 4}}, Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: 4}}}, g.Schema)
	require.Equal(t, []int64{0, 0, 1, 3}, g.Edges[0].Src)
	require.Equal(t, []int64{1, 3, 0, 3}, g.Edges[0].Dst)

	// No node has a label.
	g, err = read(four().with("class_map.json", "{}").write(t))
	require.NoError(t, err)
	require.Equal(t, []int32{-1, -1, -1, -1}, g.Labels[0])
}

func TestManyLabels(t *testing.T) {
	const nodes, classes = 5000, 64 // more than a chunk
	var text strings.Builder
	for v := nodes - 1; v >= 0; v-- {
		fmt.Fprintf(&text, `,"%d":[%s1%s]`, v, strings.Repeat("0,", v%classes), strings.Repeat(",0", classes-1-v%classes))
	}
	f := files{"adj_full.npz": adjacency(nodes, make([]int32, nodes+1), nil, nil), "class_map.json": "{" + text.String()[1:] + "}"}
	g, err := read(f.write(t))
	require.NoError(t, err)
	require.Len(t, g.Labels[0], nodes*classes)
	for i, v := range g.Labels[0] {
		if (v == 1) != (i%classes == i/classes%classes) {
			t.Fatal("label", i)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct{ file, body, want string }{
		{"adj_full.npz", "-", "DIR: no adj_full.npz in it; a GraphSAINT folder has adj_full.npz, feats.npy, class_map.json and role.json"},
		{"adj_full.npz", four()["adj_full.npz"][:200], "DIR/adj_full.npz: damaged or truncated download: the zip directory at its end does not read (zip: not a valid zip file); fetch it again"},
		{"adj_full.npz", adjacency(4, []int32{0, 1, 1, 1}, []int32{0}, []bool{true}), "DIR/adj_full.npz: indptr: it has 4 bounds, 5 are expected for the 4 rows of shape"},
		{"feats.npy", npyFile("<f8", false, []int64{3, 2}, make([]float64, 6)), "DIR/feats.npy: 3 rows, and adj_full.npz has 4 nodes; are they of one dataset?"},
		{"feats.npy", npyFile("<f8", false, []int64{8}, make([]float64, 8)), "DIR/feats.npy: it is (8,) of <f8, and a row of 1 to 4194304 numbers for each node is expected"},
		{"feats.npy", npyFile("<f8", false, []int64{4, 2}, make([]float64, 7)), "DIR/feats.npy: (4, 2) of <f8 takes 64 bytes of data, and the file has 56; fetch it again"},
		{"feats.npy", "x", `DIR/feats.npy: truncated: npy header: 10 bytes expected, found 1`},
		{"class_map.json", `{"4": 1}`, `DIR/class_map.json: byte 4: key "4" is not one of the 4 nodes, which count from 0`},
		{"class_map.json", `{"-1": 1}`, `DIR/class_map.json: byte 5: key "-1" is not one of the 4 nodes, which count from 0`},
		{"class_map.json", `{"zero": 1}`, `DIR/class_map.json: byte 7: key "zero" is not one of the 4 nodes, which count from 0`},
		{"class_map.json", `{"0": 1, "0": 1}`, "DIR/class_map.json: byte 12: node 0 is there twice"},
		{"class_map.json", `{"0": [1], "0": [1]}`, "DIR/class_map.json: byte 14: node 0 is there twice"},
		{"class_map.json", `{"0": 1, "1": [1]}`, "DIR/class_map.json: byte 16: node 1 has a list of classes, and the first node has one class"},
		{"class_map.json", `{"0": [1], "1": 1}`, "DIR/class_map.json: byte 16: node 1 has 1 numbers, and the first node has a list of 1"},
		{"class_map.json", `{"0": [1], "1": [1, 0]}`, "DIR/class_map.json: byte 21: node 1 has 2 numbers, and the first node has a list of 1"},
		{"class_map.json", `{"0": [1, 2]}`, "DIR/class_map.json: byte 10: node 0: 2 in a list of classes, which are zeros and ones"},
		{"class_map.json", `{"0": []}`, "DIR/class_map.json: byte 7: the first node has an empty list where a number for each class is expected"},
		{"class_map.json", `{"0": 3000000000}`, "DIR/class_map.json: byte 15: node 0: 3000000000 is not the number of a class"},
		{"class_map.json", `{"0": 1`, "DIR/class_map.json: byte 7: the file ends within the object; fetch it again"},
		{"role.json", `{"tr": [0], "va": [1]}`, "DIR/role.json: no list te; it has tr, va and te"},
		{"role.json", `{"tr": 0, "va": [1], "te": []}`, "DIR/role.json: byte 7: tr is a number, and a list of nodes is expected"},
		{"role.json", `{"tr": [0], "va": [1], "te": [], "tr": [2]}`, "DIR/role.json: byte 37: the list tr is there twice"},
		{"role.json", `{"tr": [0, "1"]}`, `DIR/role.json: byte 13: "\"1\"" where an integer belongs`},
	} {
		dir := four().with(c.file, c.body).write(t)
		_, err := read(dir)
		require.ErrorContains(t, err, strings.ReplaceAll(c.want, "DIR", dir))
	}
	file := filepath.Join(t.TempDir(), "adj_full.npz")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	_, err := Open(file)
	require.EqualError(t, err, file+": not a folder; name the one that holds adj_full.npz")
	_, err = Open(file + "x")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestArxiv reads ogbn-arxiv in this layout. Its counts must equal the counts of its other layout.
func TestArxiv(t *testing.T) {
	root := os.Getenv("GNNSTORE_DATA")
	if root == "" {
		t.Skip("GNNSTORE_DATA is not set: the folder with ogbn_arxiv and expected.json")
	}
	raw, err := os.ReadFile(filepath.Join(root, "expected.json"))
	require.NoError(t, err)
	var expected map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &expected))
	var want struct {
		Nodes   int64 `json:"nodes"`
		Edges   int   `json:"directed_edges"`
		Classes int32 `json:"classes"`
		Train   int   `json:"train"`
		Valid   int   `json:"valid"`
		Test    int   `json:"test"`
	}
	require.NoError(t, json.Unmarshal(expected["ogbn_arxiv"], &want))
	g, err := read(filepath.Join(root, "ogbn_arxiv", "graphsaint"))
	require.NoError(t, err)
	require.Equal(t, "ogbn_arxiv", g.Schema.Name)
	require.Equal(t, want.Nodes, g.Schema.NodeTypes[0].Count)
	require.Empty(t, g.Schema.Tables)
	require.Len(t, g.Edges[0].Src, want.Edges)
	require.EqualValues(t, want.Edges, g.Schema.Relations[0].Edges)
	most := int32(0)
	for _, class := range g.Labels[0] {
		require.GreaterOrEqual(t, class, int32(0))
		most = max(most, class)
	}
	require.Equal(t, want.Classes, most+1)
	require.Len(t, g.Splits[0][ingest.Train].Numbers, want.Train)
	require.Len(t, g.Splits[0][ingest.Valid].Numbers, want.Valid)
	require.Len(t, g.Splits[0][ingest.Test].Numbers, want.Test)
}

// FuzzFolder varies the two JSON files: an error is one line, and each node has a label and is in
// at most one part.
func FuzzFolder(f *testing.F) {
	sound := four()
	f.Add(sound["class_map.json"], sound["role.json"])
	f.Add(`{"0": [0, 1], "1": [1, 1], "2": [0, 0], "3": [1, 0]}`, `{"tr": [0], "va": [0]}`)
	f.Add(`{"0": 9007199254740993.0}`, `{"te": 3}`)
	dir := f.TempDir() // of this process
	for _, name := range []string{"adj_full.npz", "feats.npy"} {
		require.NoError(f, os.WriteFile(filepath.Join(dir, name), []byte(sound[name]), 0o666))
	}
	f.Fuzz(func(t *testing.T, classes, roles string) {
		for name, body := range map[string]string{"class_map.json": classes, "role.json": roles} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(body), 0o666))
		}
		s, err := Open(dir)
		if err == nil {
			_, err = sourcetest.Read(s)
			s.Close()
		}
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
		}
	})
}
