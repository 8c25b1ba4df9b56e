package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/store/storetest"
)

var update = flag.Bool("update", false, "write what TestHostile finds to testdata/hostile.txt")

// victim is a small sound graph of one format. Tests damage one of its files.
type victim struct {
	format string
	args   []string // flags of ingest
	write  func(t *testing.T, dir string)
	source string // path in the folder
	file   string // the file to damage
	rows   *rows  // of a text file
	gzip   bool   // the file is packed
}

// rows is the text of a file: rows of cells, an edge or an event each.
type rows struct {
	header string
	by     string
	end    string // ends each row, before its line feed
	cells  [][]string
	id     int // the column of a node id
	time   int // the column of a time, or -1
}

func (r *rows) text() string {
	var b strings.Builder
	b.WriteString(r.header)
	for _, c := range r.cells {
		b.WriteString(strings.Join(c, r.by) + r.end + "\n")
	}
	return b.String()
}

// with returns the text with another cell in the third row.
func (r *rows) with(column int, cell string) string {
	c := *r
	c.cells = slices.Clone(r.cells)
	c.cells[2] = slices.Clone(c.cells[2])
	c.cells[2][column] = cell
	return c.text()
}

// after returns the text with a line added after the third row.
func (r *rows) after(line string) string {
	lines := strings.SplitAfter(r.text(), "\n")
	at := 3 + strings.Count(r.header, "\n")
	return strings.Join(slices.Insert(lines, at, line), "")
}

// damage is a kind of damage. make returns nil if it does not apply to the file.
type damage struct {
	name string
	make func(v *victim, sound []byte) []byte
}

// kinds returns all damages: first of any file, then of text rows.
func kinds() (all []damage) {
	whole := func(name string, make func(sound []byte) []byte) {
		all = append(all, damage{name, func(_ *victim, sound []byte) []byte { return make(sound) }})
	}
	whole("nothing", func(sound []byte) []byte { return sound })
	whole("empty", func([]byte) []byte { return []byte{} })
	whole("half of it", func(sound []byte) []byte { return sound[:len(sound)/2] })
	whole("all but its last byte", func(sound []byte) []byte { return sound[:len(sound)-1] })
	whole("zeros", func(sound []byte) []byte { return make([]byte, 4096) })
	whole("a web page", func([]byte) []byte { return []byte("<!DOCTYPE html>\n<html>not found</html>\n") })
	whole("a Git LFS pointer", func([]byte) []byte {
		return []byte("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n")
	})
	text := func(name string, make func(r *rows) string) {
		all = append(all, damage{name, func(v *victim, _ []byte) []byte {
			if v.rows == nil {
				return nil
			}
			return []byte(make(v.rows))
		}})
	}
	text("header alone", func(r *rows) string { return r.header + "\n" })
	text("a line of \\f", func(r *rows) string { return r.after("\f\n") })
	text("a line of \\v, first", func(r *rows) string { return "\v\n" + r.text() })
	text("a line of no-break spaces", func(r *rows) string { return r.after("\u00a0\u00a0\n") })
	text("nothing but \\f", func(r *rows) string { return "\f\n" })
	text("CRLF", func(r *rows) string { return strings.ReplaceAll(r.text(), "\n", "\r\n") })
	text("CR alone", func(r *rows) string { return strings.ReplaceAll(r.text(), "\n", "\r") })
	text("CR alone after the first line", func(r *rows) string {
		first, rest, _ := strings.Cut(r.text(), "\n")
		return first + "\n" + strings.ReplaceAll(rest, "\n", "\r")
	})
	text("a byte order mark", func(r *rows) string { return "\ufeff" + r.text() })
	text("a byte order mark amid", func(r *rows) string { return r.after("\ufeff" + strings.Join(r.cells[0], r.by) + r.end + "\n") })
	text("a zero byte", func(r *rows) string { return r.with(r.id, r.cells[2][r.id]+"\x00") })
	text("a row twice", func(r *rows) string { return r.after(strings.Join(r.cells[2], r.by) + r.end + "\n") })
	text("a row with a cell less", func(r *rows) string { return r.after(strings.Join(r.cells[2][1:], r.by) + r.end + "\n") })
	text("a row with a cell more", func(r *rows) string {
		return r.after(strings.Join(append(slices.Clone(r.cells[2]), r.cells[2][0]), r.by) + r.end + "\n")
	})
	text("200,000 cells", func(r *rows) string {
		return r.after(strings.Join(r.cells[2], r.by) + strings.Repeat(r.by+r.cells[2][0], 200_000) + r.end + "\n")
	})
	text("200,000 columns", func(r *rows) string {
		return strings.Repeat(strings.Join(r.cells[0], r.by)+strings.Repeat(r.by+r.cells[0][0], 200_000)+r.end+"\n", 2)
	})
	text("a line of 17 MiB", func(r *rows) string { return r.with(r.id, strings.Repeat("7", 17<<20)) })
	for _, id := range []string{"", "0x10", "1_0", "-1", "2.5", "1e400", "nan", "9223372036854775808", "1000000000000", `\uZZZZ`} {
		text("id "+id, func(r *rows) string { return r.with(r.id, id) })
	}
	for _, at := range []string{"", "0x1p10", "1_000", "1e400", "inf", "nan", "1700000000000000001", "12:30"} {
		text("time "+at, func(r *rows) string {
			if r.time < 0 {
				return ""
			}
			return r.with(r.time, at)
		})
	}
	return all
}

// victims returns sound graphs of all formats.
func victims() []*victim {
	put := func(t *testing.T, dir, name, body string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte(body), 0o666))
	}
	table := func(format, file string, r *rows, args ...string) *victim {
		return &victim{format: format, args: args, source: file, file: file, rows: r, write: func(t *testing.T, dir string) { put(t, dir, file, r.text()) }}
	}
	pairs := [][]string{{"0", "1"}, {"1", "2"}, {"2", "3"}, {"3", "4"}, {"4", "0"}, {"0", "2"}}
	// the pairs, with further cells
	of := func(more func(i int) []string, names ...string) (all [][]string) {
		for i, p := range pairs {
			row := slices.Concat(names, p)
			if more != nil {
				row = append(row, more(i)...)
			}
			all = append(all, row)
		}
		return all
	}
	at := func(more ...string) func(i int) []string {
		return func(i int) []string { return append([]string{fmt.Sprint(i)}, more...) }
	}
	folder := func(v *victim, files map[string]string) *victim {
		inner := v.write
		v.write = func(t *testing.T, dir string) {
			for name, body := range files {
				put(t, dir, name, body)
			}
			if inner != nil {
				inner(t, dir)
			}
		}
		return v
	}
	fixtures := func(format, from, source, file string, args ...string) *victim {
		return &victim{format: format, args: args, source: source, file: file, write: func(t *testing.T, dir string) {
			require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "ingest", from, "testdata"))))
		}}
	}
	all := []*victim{
		table("csv", "e.csv", &rows{header: "src,dst\n", by: ",", cells: of(nil), time: -1}),
		table("csv", "e.txt", &rows{by: " ", cells: of(nil), time: -1}),
		table("events", "e.csv", &rows{header: "src,dst,time\n", by: ",", cells: of(at()), time: 2}),
		table("events", "e.txt", &rows{by: "\t", cells: of(at()), time: 2}),
		table("jodie", "j.csv", &rows{header: "user_id,item_id,timestamp,state_label,features\n", by: ",", cells: of(at("0", "0.5", "0.25")), time: 2}),
		table("jodie", "n.csv", &rows{by: ",", cells: of(at("0", "0.5", "0.25")), time: 2}),
		table("triples", "t.txt", &rows{by: "\t", cells: [][]string{{"a", "r", "b"}, {"b", "r", "c"}, {"c", "s", "d"}, {"d", "s", "a"}, {"a", "s", "c"}, {"b", "s", "d"}}, time: -1}),
		table("triples", "t.nt", &rows{by: " ", end: " .", time: -1, cells: [][]string{{"<a>", "<r>", "<b>"}, {"<b>", "<r>", `"x"`}, {"<c>", "<s>", "<d>"}, {"<d>", "<s>", "<a>"}}}),
		table("triples", "t.nq", &rows{by: " ", end: " _:g .", time: -1, cells: [][]string{{"<a>", "<r>", "<b>"}, {"<b>", "<r>", `"x"`}, {"<c>", "<s>", "<a>"}}}),
		table("triples", "t.ttl", &rows{header: "@prefix : <http://x/> .\n", by: " ", end: " .", time: -1, cells: [][]string{
			{":a", "a", ":b"}, {":b", ":r", `"x"`}, {"[ :r 1 ]", ":s", "( :a )"}, {":d", ":s", ":a"}}}),
		table("mtx", "g.mtx", &rows{header: "%%MatrixMarket matrix coordinate integer general\n4 4 5\n", by: " ", time: -1, cells: [][]string{
			{"1", "2", "7"}, {"2", "3", "8"}, {"3", "4", "9"}, {"4", "1", "7"}, {"1", "3", "9"}}}),
		{format: "graphml", source: "g.graphml", file: "g.graphml", write: func(t *testing.T, dir string) {
			put(t, dir, "g.graphml", `<graphml><key id="d" for="node" attr.name="x"/><graph edgedefault="directed"><node id="a"><data key="d">1</data></node>`+
				`<node id="b"><data key="d">2</data></node><edge source="a" target="b"/></graph></graphml>`+"\n")
		}},
		{format: "nodelink", source: "g.json", file: "g.json", write: func(t *testing.T, dir string) {
			put(t, dir, "g.json", `{"directed": true, "nodes": [{"id": "a", "x": 1}, {"id": "b", "x": 2}], "links": [{"source": "a", "target": "b"}]}`)
		}},
		folder(table("table", "e.csv", &rows{header: "src,dst\n", by: ",", cells: of(nil), time: -1}), map[string]string{"s.yaml": "edges:\n  - {type: \"a:to:a\", files: e.csv, src: src, dst: dst}\n"}),
		folder(table("table", "e.jsonl", &rows{by: `,"dst":`, end: "}", cells: [][]string{{`{"src":0`, "1"}, {`{"src":1`, "2"}, {`{"src":2`, "3"}, {`{"src":3`, "0"}}, id: 1, time: -1}),
			map[string]string{"s.yaml": "edges:\n  - {type: \"a:to:a\", files: e.jsonl, src: src, dst: dst}\n"}),
		folder(table("tgl", "edges.csv", &rows{header: ",src,dst,time,ext_roll\n", by: ",", id: 1, time: 3, cells: [][]string{
			{"0", "0", "1", "0", "0"}, {"1", "1", "2", "1", "0"}, {"2", "2", "3", "2", "1"}, {"3", "3", "4", "3", "1"}, {"4", "4", "0", "4", "2"}}}), nil),
		folder(table("tgn", "ml_g.csv", &rows{header: ",u,i,ts,label,idx\n", by: ",", id: 1, time: 3, cells: [][]string{
			{"0", "1", "4", "0", "0", "1"}, {"1", "2", "5", "1", "0", "2"}, {"2", "3", "4", "2", "0", "3"}, {"3", "1", "6", "3", "0", "4"}}}),
			map[string]string{"ml_g.npy": npyText("|i1", "5, 1", 0, 1, 2, 3, 4)}),
		folder(table("tgb", "tgbl-g_edgelist.csv", &rows{header: "time,src,dst\n", by: ",", id: 1, time: 0, cells: [][]string{
			{"0", "a", "b"}, {"1", "b", "c"}, {"2", "c", "a"}, {"3", "a", "c"}, {"4", "b", "a"}}}), nil),
		folder(table("hgb", "link.dat", &rows{by: "\t", time: -1, cells: [][]string{{"0", "1", "0", "1"}, {"1", "2", "0", "1"}, {"2", "0", "0", "1"}, {"0", "2", "0", "1"}}}),
			map[string]string{"node.dat": "0\ta\t0\t1\n1\tb\t0\t2\n2\tc\t0\t3\n", "label.dat": "0\ta\t0\t0\n1\tb\t0\t1\n", "label.dat.test": "2\tc\t0\t1\n"}),
		folder(table("ogb", "raw/edge.csv.gz", &rows{by: ",", cells: of(nil), time: -1}),
			map[string]string{"raw/num-node-list.csv.gz": gz("5\n"), "raw/num-edge-list.csv.gz": gz("6\n")}),
		folder(table("graphbolt", "e.csv", &rows{by: ",", cells: of(nil), time: -1}),
			map[string]string{"metadata.yaml": "dataset_name: g\ngraph:\n  nodes: [{num: 5}]\n  edges: [{format: csv, path: e.csv}]\n"}),
		{format: "graphsaint", source: "g", file: "g/class_map.json", write: func(t *testing.T, dir string) { require.NoError(t, writeGraphSAINT(filepath.Join(dir, "g"))) }},
		{format: "graphsaint", source: "g", file: "g/adj_full.npz", write: func(t *testing.T, dir string) { require.NoError(t, writeGraphSAINT(filepath.Join(dir, "g"))) }},
		folder(&victim{format: "npz", source: "g.npz", file: "g.npz"}, map[string]string{"g.npz": string(tinyNPZ(nil))}),
		folder(&victim{format: "npy", source: "g.npy", file: "g.npy"}, map[string]string{"g.npy": npyText("<i8", "2, 3", int64s(0, 1, 2, 1, 2, 0)...)}),
		fixtures("pt", "torch", "data.pt", "data.pt"),
		fixtures("pt", "torch", "data.legacy.pt", "data.legacy.pt"),
		fixtures("planetoid", "planetoid", ".", "ind.tiny.graph"),
		fixtures("planetoid", "planetoid", ".", "ind.tiny.test.index"),
		{format: "mag240m", source: "m", file: "m/processed/author___writes___paper/edge_index.npy", write: func(t *testing.T, dir string) {
			code, _, stderr := gnnstore(t, "generate", "mag240m", filepath.Join(dir, "m"), "--raw", "--scale", "0.00001")
			require.Zero(t, code, stderr)
		}},
	}
	for _, v := range all {
		switch v.format {
		case "table":
			v.source = "s.yaml"
		case "tgl", "tgn", "tgb", "hgb", "ogb", "graphbolt":
			v.source = "."
		}
		v.gzip = strings.HasSuffix(v.file, ".gz")
	}
	return all
}

func gz(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	if err = errors.Join(err, w.Close()); err != nil {
		panic(err)
	}
	return b.String()
}

func npyText(descr, shape string, elements ...byte) string {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape)
	header += strings.Repeat(" ", 117-len(header)) + "\n"
	return "\x93NUMPY\x01\x00" + string([]byte{byte(len(header)), 0}) + header + string(elements)
}

func int64s(values ...int64) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// TestHostile damages each file of each format in each way. An ingest then ends in one line that
// names a file, and leaves nothing behind; or it reads some nodes and edges. testdata/hostile.txt
// has the outcomes. Look at what changes there, since a damaged file may be read wrongly. -update
// writes it again.
func TestHostile(t *testing.T) {
	storetest.Long(t)
	var got strings.Builder
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("root:x:0:0\n"), 0o666))
	seen := map[string]bool{}
	for _, v := range victims() {
		seen[v.format] = true
		dir := t.TempDir()
		v.write(t, dir)
		path := filepath.Join(dir, v.file)
		sound, err := os.ReadFile(path)
		require.NoError(t, err)
		if v.gzip {
			sound = []byte(v.rows.text())
		}
		for _, k := range kinds() {
			body := k.make(v, sound)
			if body == nil || k.name != "empty" && len(body) == 0 {
				continue
			}
			if v.gzip {
				body = []byte(gz(string(body)))
			}
			require.NoError(t, os.WriteFile(path, body, 0o666))
			outcome := v.ingest(t, dir)
			fmt.Fprintf(&got, "%s %s: %s: %s\n", v.format, v.file, k.name, outcome)
		}
		require.NoError(t, os.Remove(path))
		require.NoError(t, os.Symlink(outside, path))
		fmt.Fprintf(&got, "%s %s: a link out: %s\n", v.format, v.file, strings.ReplaceAll(v.ingest(t, dir), outside, "OUTSIDE"))
	}
	for _, format := range formatNames() {
		require.True(t, seen[format], "no guards are tried of format %s", format)
	}
	const golden = "testdata/hostile.txt"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got.String()), 0o666))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String())
}

// mostAllocated bounds the allocations of a refusal over all its passes: two or three times the
// longest line that is read.
const mostAllocated = 256 << 20

// ingest ingests the damaged graph, and describes the outcome.
func (v *victim) ingest(t *testing.T, dir string) string {
	out := filepath.Join(t.TempDir(), "x.gnn")
	source := filepath.Join(dir, v.source)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	code, stdout, stderr := gnnstore(t, slices.Concat([]string{"ingest", v.format, source, out, "--memory", "256MiB", "--features", "none", "--json"}, v.args)...)
	runtime.ReadMemStats(&after)
	require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(mostAllocated), "%s: %s", v.format, stderr)
	if code != 0 {
		require.Equal(t, 1, code, stderr)
		last := strings.TrimSuffix(stderr, "\n")
		last = last[strings.LastIndex(last, "\n")+1:]
		require.True(t, strings.HasPrefix(last, "gnnstore: "), "not one line: %q", stderr)
		require.NotContains(t, stderr, "goroutine ")
		require.Contains(t, last, dir, "it names no file")
		for _, left := range []string{out, out + ".partial"} {
			require.NoFileExists(t, left)
			require.NoDirExists(t, left)
		}
		return "refused: " + strings.ReplaceAll(strings.TrimPrefix(last, "gnnstore: "), dir, "DIR")
	}
	var r build.Report
	require.NoError(t, json.Unmarshal([]byte(stdout), &r), stdout)
	nodes, edges := int64(0), int64(0)
	for _, n := range r.NodeTypes {
		nodes += n.Count
	}
	for _, e := range r.Relations {
		edges += e.EdgesRead
	}
	for _, s := range r.Streams {
		edges += s.Events
	}
	return fmt.Sprintf("%d nodes, %d edges", nodes, edges)
}
