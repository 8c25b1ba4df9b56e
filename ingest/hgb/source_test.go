package hgb

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

// tiny is the example in testdata.
func tiny(t testing.TB) map[string]string {
	all := map[string]string{}
	for _, name := range []string{"node.dat", "link.dat", "label.dat", "label.dat.test", "label.dat.test_full", "info.dat"} {
		text, err := os.ReadFile(filepath.Join("testdata/tiny", name))
		require.NoError(t, err)
		all[name] = string(text)
	}
	return all
}

// with changes files; "-" leaves one out.
func with(all map[string]string, changes ...string) map[string]string {
	for i := 0; i < len(changes); i += 2 {
		if all[changes[i]] = changes[i+1]; changes[i+1] == "-" {
			delete(all, changes[i])
		}
	}
	return all
}

// TestMarksAndQuotes: byte order marks, ends of lines as Windows has them, and numbers in quotes or
// names without change nothing.
func TestMarksAndQuotes(t *testing.T) {
	want, err := read("testdata/tiny", Options{})
	require.NoError(t, err)
	all := tiny(t)
	info := all["info.dat"]
	for i := range 4 {
		info = strings.ReplaceAll(info, fmt.Sprintf(`"start": %d`, i), fmt.Sprintf(`"start": "%d"`, i))
		info = strings.ReplaceAll(info, fmt.Sprintf(`"end": %d`, i), fmt.Sprintf(`"end": "%d"`, i))
	}
	require.NotEqual(t, all["info.dat"], info)
	all["info.dat"] = info
	for name, text := range all {
		all[name] = "\xef\xbb\xbf" + strings.ReplaceAll(text, "\n", "\r\n")
	}
	got, err := read(writeDir(t, all), Options{})
	require.NoError(t, err)
	got.Schema.Name, got.Schema.Identity = want.Schema.Name, want.Schema.Identity
	require.Equal(t, want, got)

	got, err = read(writeDir(t, with(tiny(t), "info.dat", strings.Replace(info, `"database"`, `2019`, 1))), Options{})
	require.NoError(t, err)
	require.Equal(t, "2019", got.Schema.Labels[0].ClassNames[0])

	_, err = read(writeDir(t, with(tiny(t), "info.dat", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")), Options{})
	require.ErrorContains(t, err, "info.dat: a Git LFS pointer in place of the file")
}

func writeDir(t testing.TB, all map[string]string) string {
	return writeTo(t, filepath.Join(t.TempDir(), "a pt [of] files"), all)
}

// writeTo writes over what an earlier call has left there.
func writeTo(t testing.TB, dir string, all map[string]string) string {
	require.NoError(t, os.MkdirAll(dir, 0o777))
	for name, text := range all {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	return dir
}

func packed(t testing.TB, all map[string]string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range all {
			if !yield(name) {
				return
			}
		}
	}) {
		w, err := z.Create("TINY/" + name)
		require.NoError(t, err)
		_, err = w.Write([]byte(all[name]))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return b.Bytes()
}

func writeZip(t testing.TB, raw []byte) string {
	path := filepath.Join(t.TempDir(), "any.zip")
	require.NoError(t, os.WriteFile(path, raw, 0o666))
	return path
}

func read(path string, o Options) (sourcetest.Graph, error) {
	s, err := Open(path, o)
	if err != nil {
		return sourcetest.Graph{}, err
	}
	defer s.Close()
	return sourcetest.Read(s)
}

func TestTiny(t *testing.T) {
	for kind, path := range map[string]string{"folder": writeDir(t, tiny(t)), "zip": writeZip(t, packed(t, tiny(t)))} {
		g, err := read(path, Options{Valid: 0.5, Seed: 1})
		require.NoError(t, err, kind)
		require.Equal(t, []ingest.NodeType{{Name: "paper", Count: 4}, {Name: "field_of_study", Count: 2}, {Name: "type2", Count: 1}}, g.Schema.NodeTypes)
		require.Equal(t, []ingest.Relation{
			{Src: "paper", Name: "cite", Dst: "paper", Edges: 1},
			{Src: "paper", Name: "ref", Dst: "paper", Edges: 1},
			{Src: "paper", Name: "to", Dst: "field_of_study", Edges: 2},
			{Src: "field_of_study", Name: "to", Dst: "paper", Edges: 2},
			{Src: "paper", Name: "terms", Dst: "type2", Edges: 1, Columns: []ingest.EdgeColumn{weightColumn}},
			{Src: "type2", Name: "link6", Dst: "paper", Edges: 1, Columns: []ingest.EdgeColumn{weightColumn}},
		}, g.Schema.Relations)
		require.Equal(t, []ingest.Table{{Name: "feat", NodeType: "paper", Dim: 2}, {Name: "feat", NodeType: "type2", Dim: 1}}, g.Schema.Tables,
			"types without features have no table")
		require.Equal(t, []ingest.Label{{Name: "label", NodeType: "paper", Classes: 3, ClassNames: []string{"database", "wireless", `mining "NaN"`}}}, g.Schema.Labels)
		require.Equal(t, []ingest.Split{{Name: "hgb", NodeType: "paper"}}, g.Schema.Splits)
		require.Equal(t, []string{
			"node.dat: names of nodes are not kept",
			"label.dat.test_full: its labels are shuffled on purpose; label.dat.test has true ones for half of the test nodes",
		}, g.Schema.Skipped)
		require.NotEmpty(t, g.Schema.Identity)
		require.Equal(t, [][2]int64{{0, 0}, {3, 1}}, g.Relation("paper__to__field_of_study").Pairs(), "ids are those of the type")
		require.Equal(t, []float32{0.5}, g.Relation("paper__terms__type2").Floats(0))
		require.Equal(t, []float32{2}, g.Relation("type2__link6__paper").Floats(0))
		require.Equal(t, []float32{1, 0.5, -1e-05, 0, 0, 2, 3, 4}, g.Table("paper/feat"))
		require.Equal(t, []float32{0.25}, g.Table("type2/feat"))
		require.Equal(t, []int32{1, 2, -1, 0}, g.Label("paper/label"))
		require.Equal(t, []int64{1}, g.Splits[0][ingest.Test].Numbers)
		require.ElementsMatch(t, []int64{0, 3}, append(g.Splits[0][ingest.Train].Numbers, g.Splits[0][ingest.Valid].Numbers...))
		require.Len(t, g.Splits[0][ingest.Valid].Numbers, 1)
	}
}

// TestLabelTrap: what label.dat.test_full says about labels reaches nothing.
func TestLabelTrap(t *testing.T) {
	want, err := read(writeDir(t, tiny(t)), Options{})
	require.NoError(t, err)
	got, err := read(writeDir(t, with(tiny(t), "label.dat.test_full", "not even a label\n")), Options{})
	require.NoError(t, err)
	require.Equal(t, want.Labels, got.Labels)
	require.Equal(t, want.Splits, got.Splits)
}

// TestTypesAmongEachOther: nodes of a type need not stand together.
func TestTypesAmongEachOther(t *testing.T) {
	g, err := read(writeDir(t, map[string]string{
		"node.dat":  "0\ta\t7\t1\n1\tb\t3\n2\tc\t7\t2\n3\td\t3\n4\te\t7\t3\r\n",
		"link.dat":  "4\t3\t0\t1\n2\t1\t0\t1\n",
		"label.dat": "2\tc\t7\t0,2\n4\te\t7\t1\n1\tb\t3\t0\n",
	}), Options{Valid: -1})
	require.NoError(t, err)
	require.Equal(t, []ingest.NodeType{{Name: "type3", Count: 2}, {Name: "type7", Count: 3}}, g.Schema.NodeTypes, "types go by number")
	require.Equal(t, [][2]int64{{2, 1}, {1, 0}}, g.Relation("type7__link0__type3").Pairs())
	require.Equal(t, []float32{1, 2, 3}, g.Table("type7/feat"))
	require.Equal(t, []ingest.Label{{Name: "label", NodeType: "type3", Classes: 1}, {Name: "label", NodeType: "type7", Classes: 3, Multi: true}}, g.Schema.Labels)
	require.Equal(t, []int32{0, -1}, g.Label("type3/label"))
	require.Equal(t, []int32{-1, -1, -1, 1, 0, 1, 0, 1, 0}, g.Label("type7/label"))
	require.Equal(t, []ingest.Split{{Name: "hgb-type3", NodeType: "type3"}, {Name: "hgb-type7", NodeType: "type7"}}, g.Schema.Splits)
	require.Equal(t, [3][]int64{{1, 2}, nil, nil}, g.Splits[1].Numbers())
	require.Contains(t, g.Schema.Skipped[0], "types and classes go by number")
}

func TestRefusals(t *testing.T) {
	for want, changes := range map[string][]string{
		`node.dat: line 2, column 1: node "0", and 1 follows: ids run from 0 in the order of the file`:                       {"node.dat", "0\ta\t0\n0\tb\t0\n"},
		`node.dat: line 2: 1 features, and the first node of type 0 has 2; all nodes of a type have the same`:                {"node.dat", "0\ta\t0\t1,2\n1\tb\t0\t1\n"},
		`node.dat: line 2: 0 features, and the first node of type 0 has 1; all nodes of a type have the same`:                {"node.dat", "0\ta\t0\t1\n1\tb\t0\n"},
		`node.dat: line 1: found 1 columns; a node has an id, a name, a type and perhaps features, between tabs`:             {"node.dat", "0,a,0\n"},
		`node.dat: line 1, column 3: "x" is not the number of a node type`:                                                   {"node.dat", "0\ta\tx\n"},
		`node.dat: line 1, column 4: feature 2 of 2: "y" is not a number`:                                                    {"node.dat", "0\ta\t0\t1,y\n1\ta\t0\t1,1\n2\ta\t0\t1,1\n3\ta\t0\t1,1\n4\ta\t1\n5\ta\t1\n6\ta\t2\t1\n"},
		`node.dat: there are no nodes in it; fetch it again`:                                                                 {"node.dat", "\n"},
		`node.dat: the file is empty; fetch it again`:                                                                        {"node.dat", ""},
		`: no node.dat in it; name the folder or zip of one graph of the benchmark`:                                          {"node.dat", "-"},
		`link.dat: no such file; a graph has node.dat and link.dat`:                                                          {"link.dat", "-"},
		`link.dat: line 1, column 2: "7" is not one of the 7 nodes of node.dat, which count from 0`:                          {"link.dat", "0\t7\t0\t1\n"},
		`link.dat: line 1, column 1: "-1" is not one of the 7 nodes of node.dat, which count from 0`:                         {"link.dat", "-1\t6\t0\t1\n"},
		`link.dat: line 2: a link of type 0 from paper to field_of_study, and the one in line 1 goes from paper to paper`:    {"link.dat", "0\t1\t0\t1\n0\t4\t0\t1\n"},
		`link.dat: line 1, column 4: "heavy" is not a weight`:                                                                {"link.dat", "0\t1\t0\theavy\n"},
		`link.dat: line 1, column 4: "nan" is not a weight`:                                                                  {"link.dat", "0\t1\t0\tnan\n"},
		`label.dat: line 1: found 1 columns; a label has the node's id, its name, its type and classes, between tabs`:        {"label.dat", "x\n"},
		`label.dat: line 1, column 4: "-1" is not the number of a class`:                                                     {"label.dat", "0\ta\t0\t-1\n"},
		`label.dat: line 1, column 4: "1048576" is not the number of a class`:                                                {"label.dat", "0\ta\t0\t1048576\n"},
		`label.dat: line 1, column 3: node 0 is said to be of type "1", and node.dat has 0; fetch both again`:                {"label.dat", "0\ta\t1\t0\n"},
		`label.dat: line 2: a node that has its label already, in line 1 of label.dat; a node is labelled once`:              {"label.dat", "0\ta\t0\t1\n0\ta\t0\t1\n"},
		`label.dat.test: line 1: a node that has its label already, in line 2 of label.dat; a node is labelled once`:         {"label.dat.test", "3\tthird\t0\t0\n"},
		`label.dat: 70001 classes, and where a node may have several there are at most 65536`:                                {"label.dat", "0\ta\t0\t1,70000\n"},
		`label.dat.test: line 1, column 1: "99999999999999999999" is not one of the 7 nodes of node.dat, which count from 0`: {"label.dat.test", "99999999999999999999\ta\t0\t1\n"},
	} {
		all := with(tiny(t), changes...)
		for kind, path := range map[string]string{"folder": writeDir(t, all), "zip": writeZip(t, packed(t, all))} {
			_, err := read(path, Options{})
			require.ErrorContains(t, err, want, kind)
			require.NotContains(t, err.Error(), "\n")
		}
	}
	_, err := Open(writeDir(t, tiny(t)), Options{Valid: 1})
	require.EqualError(t, err, "{valid} 1: a part of the labelled nodes is less than 1")
	_, err = Open(filepath.Join(t.TempDir(), "none"), Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestDamagedZip(t *testing.T) {
	raw := packed(t, tiny(t))
	_, err := Open(writeZip(t, raw[:len(raw)-30]), Options{})
	require.ErrorContains(t, err, "nor a whole zip of one")

	// A member whose checksum is wrong says so, and not that a cell is odd.
	good := crc32.ChecksumIEEE([]byte(tiny(t)["link.dat"]))
	sum := []byte{byte(good), byte(good >> 8), byte(good >> 16), byte(good >> 24)}
	require.Equal(t, 2, bytes.Count(raw, sum))
	_, err = read(writeZip(t, bytes.ReplaceAll(raw, sum, []byte{1, 2, 3, 4})), Options{})
	require.ErrorContains(t, err, "TINY/link.dat: truncated or damaged download (zip: checksum error); fetch it again")

	two := packed(t, with(tiny(t), "b/node.dat", "0\ta\t0\n"))
	_, err = Open(writeZip(t, two), Options{})
	require.ErrorContains(t, err, "several graphs")

	odd := packed(t, tiny(t))
	at := bytes.LastIndex(odd, []byte("PK\x01\x02")) // method of a member that is read
	for ; ; at = bytes.LastIndex(odd[:at], []byte("PK\x01\x02")) {
		if bytes.HasPrefix(odd[at+46:], []byte("TINY/node.dat")) {
			odd[at+10] = 99
			break
		}
	}
	_, err = read(writeZip(t, odd), Options{})
	require.ErrorContains(t, err, "packed by method 99, which is not read")
}

func TestNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`-?[0-9]{0,6}\.?[0-9]{0,6}`), rapid.StringMatching(`[0-9.e+-]{0,9}`),
			rapid.Map(rapid.Float64(), func(x float64) string { return fmt.Sprint(x) })).Draw(t, "text")
		got, ok := number([]byte(text))
		var want float32
		_, err := fmt.Sscanf(text+" ", "%g ", &want)
		if ok && err == nil {
			require.Equal(t, want, got, text)
		}
		if _, perr := json.Number(text).Float64(); perr == nil && !strings.Contains(text, "e") {
			require.True(t, ok, text)
		}
	})
}

func FuzzSource(f *testing.F) {
	all := tiny(f)
	f.Add(all["node.dat"], all["link.dat"], all["label.dat"], all["info.dat"])
	f.Add("0\ta\t0\t1,2\n", "0\t0\t0\t1\n", "0\ta\t0\t0,1\n", "{}")
	dir := f.TempDir() // of this process
	f.Fuzz(func(t *testing.T, nodes, links, labels, info string) {
		path := writeTo(t, dir, map[string]string{"node.dat": nodes, "link.dat": links, "label.dat": labels, "info.dat": info})
		g, err := read(path, Options{})
		if err != nil {
			require.NotContains(t, strings.ReplaceAll(err.Error(), path, ""), "\n")
			return
		}
		for _, table := range g.Schema.Tables {
			for _, n := range g.Schema.NodeTypes {
				if n.Name == table.NodeType {
					require.Len(t, g.Table(n.Name+"/feat"), int(n.Count)*table.Dim)
				}
			}
		}
	})
}

// TestReal: the counts of expected.json.
func TestReal(t *testing.T) {
	root := os.Getenv("GNNSTORE_DATA")
	if root == "" {
		t.Skip("GNNSTORE_DATA is not set: the folder with hgb_acm, hgb_imdb and expected.json")
	}
	raw, err := os.ReadFile(filepath.Join(root, "expected.json"))
	require.NoError(t, err)
	var expected map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &expected))
	for name, zipped := range map[string]string{"hgb_acm": "ACM.zip", "hgb_imdb": "IMDB.zip"} {
		var want struct {
			NodeTypes []int64 `json:"node_types"`
			LinkTypes []int64 `json:"link_types"`
			Train     int     `json:"train_labels"`
			Test      int     `json:"test_labels"`
			Classes   int     `json:"classes"`
			Multi     bool    `json:"multilabel"`
		}
		require.NoError(t, json.Unmarshal(expected[name], &want))
		s, err := Open(filepath.Join(root, name, zipped), Options{})
		require.NoError(t, err)
		defer s.Close()
		schema, err := s.Schema(context.Background())
		require.NoError(t, err)
		t.Log(schema.Relations, schema.Tables, schema.Skipped)
		require.Equal(t, strings.TrimSuffix(zipped, ".zip"), schema.Name)
		require.Equal(t, len(want.NodeTypes), len(schema.NodeTypes))
		for i, n := range want.NodeTypes {
			require.Equal(t, n, schema.NodeTypes[i].Count)
		}
		require.Len(t, schema.Relations, len(want.LinkTypes))
		for i, n := range want.LinkTypes {
			read := int64(0)
			require.Empty(t, schema.Relations[i].Columns, "all weights are one")
			require.NoError(t, s.Edges(context.Background(), i, func(c ingest.EdgeChunk) error { read += int64(c.Len()); return nil }))
			require.Equal(t, n, read)
		}
		require.Len(t, schema.Labels, 1)
		require.Equal(t, want.Classes, schema.Labels[0].Classes)
		require.Equal(t, want.Multi, schema.Labels[0].Multi)
		require.Len(t, schema.Labels[0].ClassNames, want.Classes)
		var size [3]int
		for p := range size {
			require.NoError(t, s.Split(context.Background(), 0, ingest.Part(p), func(c ingest.IDChunk) error { size[p] += c.Len(); return nil }))
		}
		require.Equal(t, want.Train, size[ingest.Train]+size[ingest.Valid])
		require.Equal(t, want.Train/5, size[ingest.Valid])
		require.Equal(t, want.Test, size[ingest.Test])
	}
}

// BenchmarkRows reads the features of IMDB's films, 17 M values of a text of 185 MB.
func BenchmarkRows(b *testing.B) {
	root := os.Getenv("GNNSTORE_DATA")
	if root == "" {
		b.Skip("GNNSTORE_DATA is not set: the folder with hgb_imdb")
	}
	s, err := Open(filepath.Join(root, "hgb_imdb/IMDB.zip"), Options{})
	require.NoError(b, err)
	defer s.Close()
	_, err = s.Schema(context.Background())
	require.NoError(b, err)
	for b.Loop() {
		n := 0
		require.NoError(b, s.Rows(context.Background(), 0, func(c ingest.RowChunk) error { n += len(c.Values); return nil }))
		b.SetBytes(int64(4 * n))
	}
}
