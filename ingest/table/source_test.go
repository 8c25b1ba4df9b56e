package table

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	parquetgo "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
	"github.com/gnnstore/gnnstore/store"
)

// files is a folder by name.
type files map[string]string

func (f files) write(t testing.TB) string { return f.writeTo(t, t.TempDir()) }

// writeTo writes over what an earlier call has left there.
func (f files) writeTo(t testing.TB, dir string) string {
	for name, body := range f {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(body), 0o644))
	}
	return dir
}

func zipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

// inParquet is a file of the rows.
func inParquet[T any](t testing.TB, rows ...T) string {
	var b bytes.Buffer
	w := parquetgo.NewGenericWriter[T](&b, parquetgo.PageBufferSize(1<<16))
	_, err := w.Write(rows)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

// graph is all that a source says, edges and ids as text.
type graph struct {
	schema *ingest.Schema
	ids    map[string][]string // by node type
	edges  map[string][]string // "a>b" by relation, with " v" for each value
	rows   map[string][]float32
	labels map[string][]int32
	splits map[string][3][]string
}

// readAll reads a source and makes text of it.
func readAll(s *Source) (graph, error) {
	all, err := sourcetest.Read(s)
	g := graph{schema: all.Schema, ids: map[string][]string{}, edges: map[string][]string{}, rows: map[string][]float32{},
		labels: map[string][]int32{}, splits: map[string][3][]string{}}
	if err != nil {
		return g, err
	}
	for i, n := range g.schema.NodeTypes {
		if n.IDs != ingest.RowIDs && !n.Gathered {
			g.ids[n.Name] = texts(all.NodeIDs[i])
		}
	}
	for i, r := range g.schema.Relations {
		edges := all.Edges[i].Lines()
		for k, column := range r.Columns {
			for j, bits := range all.Edges[i].Values[k] {
				if column.Elem == store.F32 {
					edges[j] += fmt.Sprintf(" %v", math.Float32frombits(uint32(bits)))
				} else {
					edges[j] += fmt.Sprintf(" %d", int64(bits))
				}
			}
		}
		g.edges[r.Key()] = edges
	}
	for i, t := range g.schema.Tables {
		g.rows[t.NodeType+t.Relation+"/"+t.Name] = all.Rows[i]
	}
	for i, l := range g.schema.Labels {
		g.labels[l.NodeType] = all.Labels[i]
	}
	for i, split := range g.schema.Splits {
		var parts [3][]string
		for part, ids := range all.Splits[i] {
			parts[part] = texts(ids)
		}
		g.splits[split.NodeType] = parts
	}
	return g, nil
}

func texts(ids sourcetest.IDs) []string {
	list := ids.Texts
	for _, id := range ids.Numbers {
		list = append(list, strconv.FormatInt(id, 10))
	}
	return list
}

// read opens DIR/s.yaml.
func read(dir string, o Options) (graph, error) {
	s, err := Open(filepath.Join(dir, "s.yaml"), o)
	if err != nil {
		return graph{}, err
	}
	defer s.Close()
	return readAll(s)
}

const shop = `name: shop
nodes:
  - type: user
    files: users_*.csv
    id: user_id
    features: {feat: [age, vector], place: [country]}
    categorical: [country]
    label: segment
    split: part
  - type: item
    files: [items.parquet]
    id: sku
    features: [price, vector, kind]
    categorical: {kind: index}
    label: stars
    split: {train: train.csv, test: [test.csv]}
  - type: brand
edges:
  - type: user:buys:item
    files: buys.jsonl.gz
    src: user
    dst: item
    weight: amount
    columns: [{name: time, column: at, type: i64}, {name: count, type: u8}]
    features: [paid, days]
  - type: item:*:brand
    files: facts.txt
    format: tsv
    header: no
    src: 1
    relation_column: 2
    dst: 3
`

type item struct {
	SKU    int64     `parquet:"sku"`
	Price  float64   `parquet:"price"`
	Vector []float32 `parquet:"vector,list"`
	Kind   *string   `parquet:"kind,optional"`
	Stars  *int32    `parquet:"stars,optional"`
}

func shopFiles(t testing.TB) files {
	a, b, three, five := "b-side", "a-side", int32(3), int32(5)
	return files{
		"s.yaml":        shop,
		"users_10.csv":  "user_id,age,vector,country,segment,part\n00c,3,1;2;3,,,\n",
		"users_2.csv":   "part,user_id,age,vector,country,segment\n\"train\",007,1.5,\"1;2;3\",de,gold\nTest,\" b, \"\"x\"\"\nü\",2,4;5;6,at,silver\n",
		"items.parquet": inParquet(t, item{7, 0.5, []float32{1, 2}, &a, &five}, item{3, 1.5, []float32{3, 4}, nil, nil}, item{9, 2, []float32{5, 6}, &b, &three}),
		"train.csv":     "sku\n3\n", "test.csv": "sku,why\n9,x\n7,y\n",
		"buys.jsonl.gz": zipped(`{"user":"007","item":7,"amount":1.5,"at":1700000000000,"count":2,"paid":[1],"days":3}` + "\n\n" + `{"item":9,"user":"00c","amount":2,"at":-5,"count":255,"paid":1,"days":0.5}`),
		"facts.txt":     "7\t_made by_\tAcme\n9\tmade-by\tAcme\n9\t_made by_\tB__C\n",
	}
}

func TestShop(t *testing.T) {
	g, err := read(shopFiles(t).write(t), Options{})
	require.NoError(t, err)
	require.Contains(t, g.schema.Identity, "items.parquet")
	g.schema.Identity = ""
	want := &ingest.Schema{
		Name:      "shop",
		NodeTypes: []ingest.NodeType{{Name: "user", Count: 3, IDs: ingest.TextIDs}, {Name: "item", Count: 3, IDs: ingest.IntIDs}, {Name: "brand", IDs: ingest.TextIDs, Gathered: true}},
		Relations: []ingest.Relation{
			{Src: "user", Name: "buys", Dst: "item", Edges: -1, Columns: []ingest.EdgeColumn{{Name: "weight", Elem: store.F32}, {Name: "time", Elem: store.I64}, {Name: "count", Elem: store.U8}}},
			{Src: "item", Name: "made_by", Dst: "brand", Edges: -1}, {Src: "item", Name: "made-by", Dst: "brand", Edges: -1},
		},
		Tables: []ingest.Table{{Name: "feat", NodeType: "user", Dim: 4}, {Name: "place", NodeType: "user", Dim: 2}, {Name: "feat", NodeType: "item", Dim: 4}, {Name: "feat", Relation: "user__buys__item", Dim: 2}},
		Labels: []ingest.Label{{Name: "label", NodeType: "user", Classes: 2, ClassNames: []string{"gold", "silver"}}, {Name: "label", NodeType: "item", Classes: 2, ClassNames: []string{"3", "5"}}},
		Splits: []ingest.Split{{Name: "user", NodeType: "user"}, {Name: "item", NodeType: "item"}},
	}
	require.Len(t, g.schema.Skipped, 1)
	require.Contains(t, g.schema.Skipped[0], "_made by_ is made_by")
	g.schema.Skipped = nil
	require.Empty(t, cmp.Diff(want, g.schema))
	require.Equal(t, map[string][]string{"user": {"007", " b, \"x\"\nü", "00c"}, "item": {"7", "3", "9"}}, g.ids)
	require.Equal(t, map[string][]string{
		"user__buys__item": {"007>7 1.5 1700000000000 2", "00c>9 2 -5 255"}, "item__made_by__brand": {"7>Acme", "9>B__C"}, "item__made-by__brand": {"9>Acme"},
	}, g.edges)
	require.Equal(t, map[string][]float32{
		"user/feat": {1.5, 1, 2, 3, 2, 4, 5, 6, 3, 1, 2, 3}, "user/place": {0, 1, 1, 0, 0, 0},
		"item/feat": {0.5, 1, 2, 1, 1.5, 3, 4, -1, 2, 5, 6, 0}, "user__buys__item/feat": {1, 3, 1, 0.5},
	}, g.rows)
	require.Equal(t, map[string][]int32{"user": {0, 1, -1}, "item": {1, -1, 0}}, g.labels)
	require.Equal(t, map[string][3][]string{"user": {{"007"}, nil, {" b, \"x\"\nü"}}, "item": {{"3"}, nil, {"9", "7"}}}, g.splits)
}

// TestSplitLists: a list of ids has a header or none, and no id of it is lost.
func TestSplitLists(t *testing.T) {
	for list, want := range map[string][]string{
		"3\n": {"3"}, "3\n1\n": {"3", "1"}, "id\n3\n1\n": {"3", "1"}, "chosen\n1\n": {"1"}, "why,id\nx,2\n": {"2"},
	} {
		dir := files{
			"s.yaml": "nodes: [{type: a, files: n.csv, id: id, split: {train: l.csv}}]\nedges: [{type: \"a:to:a\", files: e.csv, src: x, dst: y}]\n",
			"n.csv":  "id\n1\n2\n3\n", "e.csv": "x,y\n1,2\n", "l.csv": list,
		}.write(t)
		g, err := read(dir, Options{})
		require.NoError(t, err)
		require.Equal(t, want, g.splits["a"][0], list)
	}
}

const pairs = "edges:\n  - {type: a:to:a, files: e.csv, src: x, dst: y}\n"

// TestTrapStringIDs: what ids are told to be, by the first rows or by the schema.
func TestTrapStringIDs(t *testing.T) {
	f := func(e string, want ingest.IDs, ends ...string) {
		t.Helper()
		g, err := read(files{"s.yaml": pairs, "e.csv": "x,y\n" + e}.write(t), Options{})
		require.NoError(t, err)
		require.Equal(t, []ingest.NodeType{{Name: "a", IDs: want, Gathered: true}}, g.schema.NodeTypes)
		require.Equal(t, ends, g.edges["a__to__a"])
	}
	f("1,2\n0,9223372036854775807\n", ingest.IntIDs, "1>2", "0>9223372036854775807")
	f("1,2\n0,9223372036854775808\n", ingest.TextIDs, "1>2", "0>9223372036854775808")
	f("1,2\n00,7\n", ingest.TextIDs, "1>2", "00>7")
	f("1,-2\n", ingest.TextIDs, "1>-2")
	f("1,2.0\n", ingest.IntIDs, "1>2") // as of a column that was one of floats
	f(" 1,2\n", ingest.TextIDs, " 1>2")
	f("nan,null\n", ingest.TextIDs, "nan>null")
	f(strings.Repeat("é", 2048)+",b\n", ingest.TextIDs, strings.Repeat("é", 2048)+">b")

	late := "x,y\n" + strings.Repeat("1,2\n", 1500)
	for id, why := range map[string]string{
		"008":      "is not an integer from 0 to 2⁶³-1 without leading zeros",
		"3.17E+12": "is a number whose last digits are left out, as spreadsheets write long ids",
	} {
		_, err := read(files{"s.yaml": pairs, "e.csv": late + "5," + id + "\n"}.write(t), Options{})
		require.ErrorContains(t, err, fmt.Sprintf("e.csv: line 1502: column y: %q %s", id, why))
	}
	_, err := read(files{"s.yaml": pairs, "e.csv": "x,y\nb,4.5E+10\n"}.write(t), Options{})
	require.ErrorContains(t, err, `e.csv: line 2: column y: "4.5E+10" is a number whose last digits are left out`)
	text := strings.Replace(pairs, "edges:", "nodes: [{type: a, id_type: text}]\nedges:", 1)
	_, err = read(files{"s.yaml": text, "e.csv": "x,y\nb,4.5E+10\n"}.write(t), Options{})
	require.NoError(t, err)

	// Rows are nodes without a column of ids; ids that count the rows are as good.
	for _, yaml := range []string{
		"nodes: [{type: a, files: n.csv, features: [f]}]\n" + pairs,
		"nodes: [{type: a, files: n.csv, id: id, label: f}]\n" + pairs,
	} {
		g, err := read(files{"s.yaml": yaml, "n.csv": "id,f\n0,1\n1,2\n2,2\n", "e.csv": "x,y\n0,2\n"}.write(t), Options{})
		require.NoError(t, err)
		require.Equal(t, []ingest.NodeType{{Name: "a", Count: 3}}, g.schema.NodeTypes)
	}
	g, err := read(files{"s.yaml": "nodes: [{type: a, id_type: text}]\n" + pairs, "e.csv": "x,y\n0,2\n"}.write(t), Options{})
	require.NoError(t, err)
	require.Equal(t, []ingest.NodeType{{Name: "a", IDs: ingest.TextIDs, Gathered: true}}, g.schema.NodeTypes)
}

func TestCleanNames(t *testing.T) {
	require.Equal(t, []string{"hypernym", "a_b", "a_b-2", "unnamed", "unnamed-2", "x", strings.Repeat("y", 100), strings.Repeat("y", 98) + "-2", "a-b", "a_b-3"},
		cleanNames([]string{"_hypernym", "a__b", "a b", "", "é", "__x__", strings.Repeat("y", 200), strings.Repeat("y", 300), "a-b", "a/.b"}))
}

// Traps that readers of tables fall into.

// TestTrapHeaders: with and without a header, JODIE's that is short of names, TGL's that begins
// with an empty one.
func TestTrapHeaders(t *testing.T) {
	edges := []string{"0>1", "2>0"}
	for body, yaml := range map[string]string{
		"0,1\n2,0\n":                           "header: no, src: 1, dst: 2",
		"src,dst\n0,1\n2,0\n":                  "src: src, dst: dst",
		"\xef\xbb\xbfsrc,dst\r\n0,1\r\n2,0":    "src: src, dst: 2",
		",src,dst,time\n0,0,1,0.5\n1,2,0,0.7":  "src: src, dst: dst",
		"u,i,t,f\n0,1,5,1,2,3\n2,0,6,3,4,5\n":  "src: u, dst: i, features: [4, 5, 6]",
		"t,t,u,i\n0,0,0,1\n0,0,2,0\n":          "src: u, dst: i, weight: t",
		"1,2\n0,1\n2,0\n":                      "src: 1, dst: 2",
		"\"s \"\"q\"\", x\",d\n0,1\n\n2,0\n\n": "src: 's \"q\", x', dst: d",
	} {
		yaml = "edges: [{type: a:to:a, files: e.csv, " + yaml + "}]"
		g, err := read(files{"s.yaml": yaml, "e.csv": body}.write(t), Options{})
		if strings.HasPrefix(body, "t,t") {
			require.ErrorContains(t, err, `weight: two columns of `)
			continue
		}
		require.NoError(t, err, "%q", body)
		for i, e := range g.edges["a__to__a"] {
			g.edges["a__to__a"][i], _, _ = strings.Cut(e, " ")
		}
		require.Equal(t, edges, g.edges["a__to__a"], "%q", body)
	}
}

// TestTrapNodesAndEdges: types without features, nodes in no edge, types that only edges name, and
// types that nobody declares.
func TestTrapNodesAndEdges(t *testing.T) {
	g, err := read(files{"s.yaml": "nodes: [{type: a, files: n.csv, id: id}, {type: b}]\nedges: [{type: a:to:b, files: e.csv, src: x, dst: y}]", "n.csv": "id\n5\n6\n99\n", "e.csv": "x,y\n5,u\n"}.write(t), Options{})
	require.NoError(t, err)
	require.Equal(t, []ingest.NodeType{{Name: "a", IDs: ingest.IntIDs}, {Name: "b", IDs: ingest.TextIDs, Gathered: true}}, g.schema.NodeTypes)
	require.Equal(t, []string{"5", "6", "99"}, g.ids["a"])
	require.Empty(t, g.schema.Tables)
}

// TestTrapIDSpaces: ids from 1, and the same numbers in two types, are no rows and no other's.
func TestTrapIDSpaces(t *testing.T) {
	g, err := read(files{"s.yaml": "nodes: [{type: a, files: n.csv, id: id, label: l}, {type: b, files: n.csv, id: id}]\nedges: [{type: a:to:b, files: e.csv, src: x, dst: y}]", "n.csv": "id,l\n1,0\n2,1\n", "e.csv": "x,y\n1,1\n2,1\n"}.write(t), Options{})
	require.NoError(t, err)
	require.Equal(t, []ingest.NodeType{{Name: "a", Count: 2, IDs: ingest.IntIDs}, {Name: "b", IDs: ingest.IntIDs}}, g.schema.NodeTypes)
	require.Equal(t, map[string][]string{"a": {"1", "2"}, "b": {"1", "2"}}, g.ids)
}

// TestTrapPaths: paths with pt, blanks and brackets in them, and no order of bytes.
func TestTrapPaths(t *testing.T) {
	body := func(n int) string { return fmt.Sprintf("x,y\n%d,0\n", n) }
	dir := files{
		"s.yaml":                         "edges:\n  - type: a:to:a\n    files: ['my script/empty pt/part_*.csv', 'odd [1].csv']\n    src: x\n    dst: y\n",
		"my script/empty pt/part_10.csv": body(10), "my script/empty pt/part_2.csv": body(2), "my script/empty pt/part_3.csv": "", "odd [1].csv": body(11), "odd 1.csv": body(12),
	}.write(t)
	g, err := read(dir, Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"2>0", "10>0", "11>0"}, g.edges["a__to__a"])
}

// TestTrapNaturalOrder: part_2 comes before part_10, in patterns.
func TestTrapNaturalOrder(t *testing.T) {
	f := files{"s.yaml": "edges: [{type: a:to:a, files: 'p*/part-*.csv', src: x, dst: y}]"}
	for _, n := range []int{10, 9, 2, 1} {
		f[fmt.Sprintf("p%d/part-%d.csv", n%2, n)] = fmt.Sprintf("x,y\n%d,0\n", n)
	}
	g, err := read(f.write(t), Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"2>0", "10>0", "1>0", "9>0"}, g.edges["a__to__a"])
}

// nodesOf reads a table of nodes.
func nodesOf(t *testing.T, n, spec string) graph {
	t.Helper()
	g, err := read(files{"s.yaml": "nodes: [{type: a, files: n.csv, " + spec + "}]\n" + pairs, "n.csv": n, "e.csv": "x,y\n0,0\n"}.write(t), Options{})
	require.NoError(t, err)
	return g
}

// TestTrapVectors: numbers, lists, and numbers parted by semicolons are features alike.
func TestTrapVectors(t *testing.T) {
	g := nodesOf(t, "a,b\n1;2,3\n3; 4;,1e-3\n5;6,-0\n", "features: [b, a]")
	require.Equal(t, []float32{3, 1, 2, 1e-3, 3, 4, 0, 5, 6}, g.rows["a/feat"])
	require.Equal(t, []ingest.Table{{Name: "feat", NodeType: "a", Dim: 3}}, g.schema.Tables)
}

// TestTrapCategories: by value where all are integers, else by their bytes; none is missing.
func TestTrapCategories(t *testing.T) {
	g := nodesOf(t, "c\n10\n9\n\n\"\"\n", "features: [c], categorical: {c: index}")
	require.Equal(t, []float32{1, 0, -1}, g.rows["a/feat"])
	require.Equal(t, []ingest.Table{{Name: "feat", NodeType: "a", Dim: 1}}, g.schema.Tables)
	g = nodesOf(t, "c,d\n10,1\n9,2\nx,3\n,4\n", "features: [c, d], categorical: [c]")
	require.Equal(t, []float32{1, 0, 0, 1, 0, 1, 0, 2, 0, 0, 1, 3, 0, 0, 0, 4}, g.rows["a/feat"])
}

// TestValues: a column of numbers to learn, in text and in Parquet; what is missing is NaN.
func TestValues(t *testing.T) {
	of := func(g graph) (values []float32) {
		require.Equal(t, []ingest.Label{{Name: "label", NodeType: "a", Numbers: true}}, g.schema.Labels)
		for _, bits := range g.labels["a"] {
			values = append(values, math.Float32frombits(uint32(bits)))
		}
		return values
	}
	values := of(nodesOf(t, "v,x\n-1.5,\nNA,\n1e9,\n", "value: v"))
	require.Equal(t, []float32{-1.5, 1e9}, []float32{values[0], values[2]})
	require.True(t, math.IsNaN(float64(values[1])))
	type row struct {
		Value *float64 `parquet:"v"`
	}
	one, two := -1.5, 1e9
	s, err := Open(filepath.Join(files{
		"n.parquet": inParquet(t, row{&one}, row{}, row{&two}), "e.csv": "x,y\n0,1\n",
		"s.yaml": "nodes: [{type: a, files: n.parquet, value: v}]\n" + pairs,
	}.write(t), "s.yaml"), Options{})
	require.NoError(t, err)
	defer s.Close()
	g, err := sourcetest.Read(s)
	require.NoError(t, err)
	for i, bits := range g.Labels[0] {
		require.Equal(t, math.Float32bits(values[i]), uint32(bits))
	}
}

// TestTrapLabels: integers from 0 are classes by number, others by value, texts by name; empty, nan
// and negative are missing.
func TestTrapLabels(t *testing.T) {
	g := nodesOf(t, "l,x\n3,\nnan,\n,\n", "label: l")
	require.Equal(t, []int32{0, -1, -1}, g.labels["a"])
	require.Equal(t, []string{"3"}, g.schema.Labels[0].ClassNames)
	g = nodesOf(t, "l\n0\n-1\n2.0\n", "label: l")
	require.Equal(t, []int32{0, -1, 2}, g.labels["a"])
	require.Zero(t, g.schema.Labels[0].Classes)
	g = nodesOf(t, "l\n10\n9\n-1\n", "label: l")
	require.Equal(t, []string{"9", "10"}, g.schema.Labels[0].ClassNames)
	require.Equal(t, []int32{1, 0, -1}, g.labels["a"])
	g = nodesOf(t, "l\nTrue\nNA\nFALSE\nnull\ntrue\nNone\nNaN\n<NA>\nn/a\nfalse\n", "label: l")
	require.Equal(t, []string{"false", "true"}, g.schema.Labels[0].ClassNames)
	require.Equal(t, []int32{1, -1, 0, -1, 1, -1, -1, -1, -1, 0}, g.labels["a"])
	g = nodesOf(t, "l,f\nTRUE,x\n0,NA\n1,X\n", "label: l, features: [f], categorical: [f]")
	require.Equal(t, []string{"0", "1", "true"}, g.schema.Labels[0].ClassNames)
	require.Equal(t, []float32{0, 1, 0, 0, 1, 0}, g.rows["a/feat"])
	g = nodesOf(t, "l\n007\n7\n", "label: l")
	require.Equal(t, []string{"007", "7"}, g.schema.Labels[0].ClassNames)
}

func TestZstdAndDelimiter(t *testing.T) {
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	g, err := read(files{"s.yaml": "edges: [{type: a:to:a, files: e.csv.zst, delimiter: '|', src: x, dst: y}]", "e.csv.zst": string(w.EncodeAll([]byte("x|y\n\"a|b\"|c\n"), nil))}.write(t), Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"a|b>c"}, g.edges["a__to__a"])
}

// TestMillionthRow: the place of a broken row is told, however far it is.
func TestMillionthRow(t *testing.T) {
	var b strings.Builder
	b.WriteString("x,y\n")
	for range 999_999 {
		b.WriteString("1,2\n")
	}
	b.WriteString("1,2,3\n")
	dir := files{"s.yaml": pairs, "e.csv": b.String()}.write(t)
	_, err := read(dir, Options{})
	require.EqualError(t, err, dir+"/e.csv: line 1000001: found 3 columns, and 2 are expected; is a cell with a delimiter not in quotes?")
	g, err := read(dir, Options{SkipBad: 1})
	require.NoError(t, err)
	require.Len(t, g.edges["a__to__a"], 999_999)
}

func TestRefuses(t *testing.T) {
	const ok = "x,y\n1,2\n"
	nodes := func(spec string) string { return "nodes:\n  - type: a\n    files: n.csv\n" + spec + pairs }
	for _, c := range []struct {
		yaml, n, e string
		want       string // DIR is the folder
	}{
		{"", "", ok, "DIR/s.yaml: there is nothing in it; list edges, and nodes that have features or labels"},
		{"- a\n", "", ok, "DIR/s.yaml: line 1: a schema is expected here, with some of the keys name, reverse, nodes, edges"},
		{"edges: []\n", "", ok, "DIR/s.yaml: line 1: there are no edges; list at least one entry under edges"},
		{"edges: {a: b}\n", "", ok, "DIR/s.yaml: line 1: edges is a list; begin each entry with a dash"},
		{"a: [\n", "", ok, "DIR/s.yaml: not YAML: "},
		{"name: a/b\n" + pairs, "", ok, `DIR/s.yaml: line 1: name "a/b": names are letters, digits, _, - and .; try a_b`},
		{"edge:\n" + pairs, "", ok, `DIR/s.yaml: line 1: a schema has no key "edge"; did you mean edges? there are name, reverse, nodes, edges`},
		{pairs + "edges: []\n", "", ok, "DIR/s.yaml: line 3: key edges is there twice"},
		{"edges:\n  - files: e.csv\n", "", ok, "DIR/s.yaml: line 2: an entry of edges needs type: SOURCE:RELATION:DESTINATION, as in user:buys:item"},
		{"edges:\n  - {type: a:b, files: e.csv}\n", "", ok, `DIR/s.yaml: line 2: type "a:b": edges go from a node type by a relation to a node type, SOURCE:RELATION:DESTINATION, as in user:buys:item`},
		{"edges:\n  - {type: a b:to:a, files: e.csv}\n", "", ok, `DIR/s.yaml: line 2: a node type may not be called "a b": names are up to 100 letters, digits, _ and -, without a _ at either end or two in a row; try a_b`},
		{"edges:\n  - {type: 'a:*:a', files: e.csv, src: x, dst: y}\n", "", ok, `DIR/s.yaml: line 2: type "a:*:a": the star stands for the values of a column; name it with relation_column`},
		{"edges:\n  - {type: 'a:to:a', files: e.csv, src: x, dst: y, relation_column: x}\n", "", ok, `DIR/s.yaml: line 2: type "a:to:a": with a relation_column the relation is a star, a:*:a`},
		{"edges:\n  - {type: a:to:a, src: x, dst: y}\n", "", ok, "DIR/s.yaml: line 2: an entry of edges needs files: a path, a pattern such as part_*.csv, or a list of them"},
		{"edges:\n  - {type: a:to:a, files: none.csv, src: x, dst: y}\n", "", ok, `DIR/s.yaml: line 2: files "none.csv": there is no such file; paths are relative to the schema's folder`},
		{"edges:\n  - {type: a:to:a, files: '[', src: x, dst: y}\n", "", ok, `DIR/s.yaml: line 2: files "[": the pattern is not one: syntax error in pattern`},
		{"edges:\n  - {type: a:to:a, files: [e.csv, e.csv], src: x, dst: y}\n", "", ok, `DIR/s.yaml: line 2: files "e.csv": e.csv is listed twice`},
		{"edges:\n  - {type: a:to:a, files: .., src: x, dst: y}\n", "", ok, `DIR/s.yaml: line 2: files "..": it leads out of the schema's folder; move the schema or the file, or say {follow_links} to read it`},
		{"edges:\n  - {type: a:to:a, files: e.csv, src: x}\n", "", ok, "DIR/s.yaml: line 2: an entry of edges needs dst: the column of destinations"},
		{"edges:\n  - {type: a:to:a, files: e.csv, src: x, dst: [y]}\n", "", ok, "DIR/s.yaml: line 2: the value of dst is expected here, which is one word"},
		{"edges:\n  - {type: a:to:a, files: e.csv, src: x, dst: z}\n", "", ok, `DIR/s.yaml: line 2: dst: there is no column "z" in DIR/e.csv; there are x, y`},
		{"edges:\n  - {type: a:to:a, files: e.csv, src: x, dst: 3}\n", "", ok, `DIR/s.yaml: line 2: dst: there is no column "3" in DIR/e.csv; there are x, y`},
		{"edges:\n  - {type: a:to:a, files: e.csv, src: x, dst: y, format: orc}\n", "", ok, `DIR/s.yaml: line 2: format "orc": choose csv, tsv, parquet or jsonl`},
		{"edges:\n  - {type: a:to:a, files: e.csv, src: x, dst: y, header: maybe}\n", "", ok, `DIR/s.yaml: line 2: header "maybe": choose yes or no`},
		{"edges:\n  - {type: a:to:a, files: e.csv, src: x, dst: y, delimiter: ', '}\n", "", ok, `DIR/s.yaml: line 2: delimiter ", ": it is one character of ASCII, and no quote; "\t" is a tab`},
		{"edges:\n  - {type: a:to:a, files: e.csv, src: x, dst: y, columns: [{name: id, type: i64}]}\n", "", ok, "DIR/s.yaml: line 2: column id: that is an edge's number; choose another name, with column: id"},
		{"edges:\n  - {type: a:to:a, files: e.csv, src: x, dst: y, columns: [{name: z, type: f64}]}\n", "", ok, "DIR/s.yaml: line 2: column z: its type is f32, i64, i32 or u8"},
		{"edges:\n  - {type: a:to:a, files: e.csv, src: x, dst: y, format: parquet}\n", "", ok + "1,2\n1,2\n", `DIR/e.csv: not a Parquet file: it starts with "x,y\n"`},
		{pairs + "  - {type: a:to:a, files: e.csv, src: y, dst: x}\n", "", ok, "DIR/s.yaml: line 3: edges of type a:to:a are also on line 2; list their files in one entry"},
		{"nodes: [{type: b}]\n" + pairs, "", ok, `DIR/s.yaml: line 3: node type a is not declared; there are b; add "- type: a" to nodes, without files if its nodes are those that edges name`},
		{"nodes: [{type: a}, {type: a}]\n" + pairs, "", ok, "DIR/s.yaml: line 1: node type a is also on line 1; list its files in one entry"},
		{"nodes: [{type: a, label: x}]\n" + pairs, "", ok, "DIR/s.yaml: line 1: node type a has no files, and label is about their columns; name them with files"},
		{"nodes: [{type: a, value: x}]\n" + pairs, "", ok, "DIR/s.yaml: line 1: node type a has no files, and value is about their columns; name them with files"},
		{nodes("    label: id\n    value: id\n"), "id\n1\n", ok, "DIR/s.yaml: line 2: label and value: a label names classes, and a value is a number to learn; node type a has one of them"},
		{nodes("    value: v\n"), "v\nmuch\n", ok, `DIR/n.csv: line 2: column v: "much" is not a finite number of 32 bits; a column that names classes is a label`},
		{nodes("    value: v\n"), "v\n1e40\n", ok, `DIR/n.csv: line 2: column v: "1e40" is not a finite number of 32 bits`},
		{nodes("    id: id\n    id_type: uuid\n"), "id\n1\n", ok, `DIR/s.yaml: line 5: id_type "uuid": choose text, int or auto`},
		{nodes("    id_type: text\n"), "id\n1\n", ok, "DIR/s.yaml: line 2: id_type without id: without a column of ids, a node's id is the number of its row, from 0"},
		{nodes("    categorical: [c]\n"), "id\n1\n", ok, "DIR/s.yaml: line 4: categorical c: it is not among the features; list it there as well"},
		{nodes("    features: [c, c]\n"), "c\n1\n", ok, "DIR/s.yaml: line 4: column c is a feature twice"},
		{nodes("    features: [c]\n    categorical: {c: hash}\n"), "c\n1\n", ok, "DIR/s.yaml: line 5: categorical c: choose onehot or index"},
		{nodes("    features: {a__b: [c]}\n"), "c\n1\n", ok, `DIR/s.yaml: line 4: a table may not be called "a__b": names are up to 100 letters`},
		{nodes("    split: {train: n.csv, tset: n.csv}\n"), "c\n1\n", ok, `DIR/s.yaml: line 4: split has no key "tset"; did you mean test? there are train, valid, test`},
		{nodes("    split: {train: n.csv}\n"), "c,d\n1,2\n", ok, "split: DIR/n.csv has the columns c, d; a list of ids has one, or one that is called as the ids are"},
		{nodes("    features: [c]\n"), "c\nx\n", ok, `DIR/s.yaml: line 4: features: column c of DIR/n.csv: "x" is not a number; if they are categories, list the column under categorical`},
		{nodes("    features: [c]\n"), "c,d\n,1\n", ok, `DIR/s.yaml: line 4: features: column c of DIR/n.csv: a number is missing; fill it in, or leave the column out`},
		{nodes("    features: [c]\n"), "c\n", ok, `DIR/s.yaml: line 4: features: column c of DIR/n.csv has no numbers in its first rows`},
		{nodes("    features: [c]\n"), "c\n1\n2\n1;2\n", ok, `DIR/n.csv: line 4: column c: 2 numbers, and 1 in most rows; vectors are of one length`},
		{nodes("    features: [c]\n"), "c\n1\n1e39\n", ok, `DIR/n.csv: line 3: column c: 1e+39 is not a finite number of 32 bits`},
		{nodes("    features: [c]\n"), "c\n1\nnan\n", ok, `DIR/n.csv: line 3: column c: a number is missing; fill it in, leave the column out, or say in the schema what stands for it, as in missing: {c: mean}`},
		{nodes("    features: [c]\n"), "c\n1\n1e999\n", ok, `DIR/n.csv: line 3: column c: +Inf is not a finite number of 32 bits`},
		{nodes("    id: id\n    id_type: int\n"), "id\n1\n02\n", ok, `DIR/n.csv: line 3: column id: "02" is not an integer from 0 to 2⁶³-1 without leading zeros, as the ids of this node type are; for other ids say id_type: text`},
		{nodes("    id: id\n    id_type: text\n"), "id\n" + strings.Repeat("x", 4097) + "\n", ok, `DIR/n.csv: line 2: column id: an id of 4097 bytes, and 4096 are the most`},
		{nodes("    id: id\n"), "id,b\nx,\n,1\n", ok, `DIR/n.csv: line 3: column id: an id is missing`},
		{nodes("    id: id\n    label: l\n"), "id,l\n", ok, `DIR/n.csv: there are no rows in it for node type a`},
		{nodes("    id: id\n    split: s\n"), "id,s\na,maybe\n", ok, `DIR/n.csv: line 2: column s: "maybe" is no part of a split; there are train, valid and test, or 0, 1 and 2, and nothing for none`},
		{nodes("    id: id\n    label: l\n"), "id,l\na," + strings.Repeat("z", 257) + "\n", ok, `DIR/n.csv: line 2: column l: 257 bytes are no class or category`},
		{pairs, "", "x,y\n1,2,3\n" + strings.Repeat("1,2\n", 1500), "DIR/e.csv: line 3: found 2 columns, and 3 are expected; is a cell with a delimiter not in quotes?"},
		{pairs, "", "x,y\n1,\n", "DIR/e.csv: line 2: column y: an id is missing"},
		{pairs, "", "x,y\n\"1,2\n3,4\n", "DIR/e.csv: line 2: a cell's quote does not close; double the quotes inside cells"},
		{pairs, "", "x,y\n1,2\n1\"2,2\n", "DIR/e.csv: line 3: a quote within a cell that does not begin with one; put the cell in quotes, and double those inside"},
		{pairs, "", "x,y\n1,2\n\"1\"2,2\n", "DIR/e.csv: line 3: text follows the closing quote of a cell; double the quotes inside cells"},
		{pairs, "", "x,y\n1,\x002\n", "DIR/e.csv: line 2: the file is not text: it holds a zero byte"},
		{pairs, "", zipped("x,y\n1,2\n")[:28], "DIR/e.csv: truncated or damaged download (unexpected EOF); fetch it again"},
		{"edges:\n  - {type: a:to:a, files: e.csv, src: x, dst: y, weight: w}\n", "", "x,y,w\n1,2,3\n1,2,\n", "DIR/e.csv: line 3: column w: a number is missing; fill it in, or leave the column out"},
		{"edges:\n  - {type: a:to:a, files: e.csv, src: x, dst: y, columns: [{name: w, type: u8}]}\n", "", "x,y,w\n1,2,256\n", "DIR/e.csv: line 2: column w: 256 is not a value of u8, which go from 0 to 255; choose another type"},
		{"edges:\n  - {type: a:to:a, files: e.csv, src: x, dst: y, columns: [{name: w, type: i64}]}\n", "", "x,y,w\n1,2,2.5\n", `DIR/e.csv: line 2: column w: "2.5" is not an integer of 64 bits; round it, or keep it as f32`},
		{"edges:\n  - {type: 'a:*:a', files: e.csv, src: x, dst: y, relation_column: w}\n", "", "x,y,w\n1,2,\n", `DIR/e.csv: line 2: column w: a relation is missing`},
		{"edges:\n  - {type: 'a:*:a', files: e.csv, src: x, dst: y, relation_column: w}\n  - {type: a:r:a, files: e.csv, src: x, dst: y}\n", "", "x,y,w\n1,2,r\n", `DIR/s.yaml: line 3: there are edges of a:r:a in two entries; list their files in one`},
		{"edges:\n  - {type: a:to:a, files: e.csv, format: jsonl, src: x, dst: y}\n", "", `{"x":1,"y":2}` + "\n" + `{"x":1` + "\n", `DIR/e.csv: line 2: not an object of JSON: unexpected EOF`},
		{"edges:\n  - {type: a:to:a, files: e.csv, format: jsonl, src: x, dst: y}\n", "", `{"x":1,"y":2}` + "\n" + `{"x":1,"y":2} {}` + "\n", `DIR/e.csv: line 2: text follows the object of JSON; write one a line`},
		{"edges:\n  - {type: a:to:a, files: e.csv, format: jsonl, src: x, dst: y}\n", "", `{"x":1,"y":["a"]}` + "\n", `DIR/e.csv: line 1: column y: lists of texts are no ids`},
	} {
		dir := files{"s.yaml": c.yaml, "n.csv": c.n, "e.csv": c.e}.write(t)
		_, err := read(dir, Options{})
		require.ErrorContains(t, err, strings.ReplaceAll(c.want, "DIR", dir), "%s", c.yaml)
		require.NotContains(t, err.Error(), "\n")
	}
	_, err := Open(filepath.Join(t.TempDir(), "none.yaml"), Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	dir := files{"s.yaml": strings.Repeat("# long\n", 200_000)}.write(t)
	_, err = read(dir, Options{})
	require.ErrorContains(t, err, "s.yaml: longer than 1048576 bytes; is this a schema?")
}

func TestTooManyValues(t *testing.T) {
	var b strings.Builder
	b.WriteString("c,l\n")
	for i := range maxOneHot + 1 {
		fmt.Fprintf(&b, "v%d,l%d\n", i, i)
	}
	for spec, want := range map[string]string{
		"features: [c], categorical: [c]": "categorical: column c: more than 1024 different values; index takes 65536, onehot 1024",
		"label: l":                        "label: column l: 1025 different labels on 1025 nodes are not classes",
	} {
		_, err := read(files{"s.yaml": "nodes: [{type: a, files: n.csv, " + spec + "}]\n" + pairs, "n.csv": b.String(), "e.csv": "x,y\n0,0\n"}.write(t), Options{})
		require.ErrorContains(t, err, want)
	}
}

// TestMany crosses chunks, in texts and in values.
func TestMany(t *testing.T) {
	const n = ingest.ChunkRows + 1000
	type node struct {
		ID     string    `parquet:"id,delta"`
		Vector []float32 `parquet:"v,list"`
	}
	type edge struct {
		Src string `parquet:"src,dict"`
		Dst string `parquet:"dst,plain"`
	}
	ns, es := make([]node, n), make([]edge, n)
	for i := range n {
		ns[i] = node{fmt.Sprintf("node-number-%08d", i), []float32{float32(i), 1, 2, 3, 4, 5, 6, 7}}
		es[i] = edge{ns[i].ID, fmt.Sprintf("node-number-%08d", n-1-i)}
	}
	g, err := read(files{
		"s.yaml":    "nodes: [{type: a, files: n.parquet, id: id, features: [v]}]\nedges: [{type: a:to:a, files: e.parquet, src: src, dst: dst}]",
		"n.parquet": inParquet(t, ns...), "e.parquet": inParquet(t, es...),
	}.write(t), Options{})
	require.NoError(t, err)
	require.Len(t, g.ids["a"], n)
	require.Len(t, g.rows["a/feat"], 8*n)
	for i := range n {
		if g.ids["a"][i] != ns[i].ID || g.rows["a/feat"][8*i] != float32(i) || g.edges["a__to__a"][i] != es[i].Src+">"+es[i].Dst {
			t.Fatal("row", i)
		}
	}
}

func TestNoSuchSection(t *testing.T) {
	s, err := Open(filepath.Join(shopFiles(t).write(t), "s.yaml"), Options{})
	require.NoError(t, err)
	require.Panics(t, func() { _ = s.Edges(context.Background(), 0, nil) }, "Schema comes first")
	_, err = s.Schema(context.Background())
	require.NoError(t, err)
	require.Panics(t, func() { _ = s.NodeIDs(context.Background(), 2, nil) })
	require.Panics(t, func() { _ = s.Rows(context.Background(), 4, nil) })
}

// FuzzRecords: what encoding/csv reads is read the same, and what it refuses is refused.
func FuzzRecords(f *testing.F) {
	for _, text := range []string{"a,b\nc,d\n", "\"a, b\",\"c\"\"d\"\n", " x ,\"y\"\r\n\n,", "\"a\nb\",c\n", "\"open", "a\"b,c\nd", "\"a\"b\nc", "\"\",\"\"\"\"", "a,b\r"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" || strings.IndexByte("\x1f\x28P\xff\xfe\xefB\xfd", text[0]) >= 0 {
			return // may be packed, or marked
		}
		if strings.ContainsRune(text, 0) || strings.Contains(strings.NewReplacer("\r\n", "").Replace(text), "\r") {
			return // zero bytes are refused, and line ends of CR alone may be
		}
		in, err := lines.New("t", strings.NewReader(text))
		require.NoError(t, err)
		r := records{in: in, delim: ','}
		c := csv.NewReader(strings.NewReader(text))
		c.FieldsPerRecord = -1
		for {
			want, wantErr := c.Read()
			cells, err := r.next()
			if wantErr != nil || err != nil {
				require.Equal(t, wantErr == nil, err == nil, "%v and %v", wantErr, err)
				require.Equal(t, wantErr == io.EOF, err == io.EOF, "%v and %v", wantErr, err)
				return
			}
			var got []string
			for _, c := range cells {
				got = append(got, string(c))
			}
			require.Equal(t, want, got)
		}
	})
}

// FuzzSchema: whatever a schema says, the end is a graph or an error of one line.
func FuzzSchema(f *testing.F) {
	f.Add(shop, "id,f\n1,2\n")
	f.Add(pairs, "x,y\n1,2\n")
	f.Add("nodes: [{type: a, files: e.csv, id: x, label: y}]\n"+pairs, "x,y\na,1\n\"b\",2\n")
	f.Add("nodes: [{type: a, files: e.csv, id: x, features: [y, z], missing: {y: mean, z: indicator}}]\n"+pairs, "x,y,z\n1,,3;4\n0,NA,\n2,7,1;2\n")
	f.Add("edges: &e\n  - *e\n", "x\n")
	dir := f.TempDir() // of this process
	f.Fuzz(func(t *testing.T, yaml, table string) {
		if strings.Contains(yaml, "..") || strings.Contains(yaml, "/") {
			return // of files elsewhere
		}
		files{"s.yaml": yaml, "e.csv": table, "n.csv": table}.writeTo(t, dir)
		g, err := read(dir, Options{SkipBad: 2})
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("not one line: %q", err)
			}
			return
		}
		for _, n := range g.schema.NodeTypes {
			if n.Count > 0 && n.IDs != ingest.RowIDs {
				require.Len(t, g.ids[n.Name], int(n.Count))
			}
			for _, table := range g.schema.Tables {
				if table.NodeType == n.Name && n.Count > 0 {
					require.Len(t, g.rows[n.Name+"/"+table.Name], int(n.Count)*table.Dim)
				}
			}
		}
	})
}

// expect reads what a real dataset has.
func expect(t *testing.T, name string, want any) string {
	root := os.Getenv("GNNSTORE_DATA")
	if root == "" {
		t.Skip("GNNSTORE_DATA is not set: the folder with wn18rr, musae_facebook, bitcoin_otc, soc_slashdot0902 and expected.json")
	}
	raw, err := os.ReadFile(filepath.Join(root, "expected.json"))
	require.NoError(t, err)
	var expected map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &expected))
	require.NoError(t, json.Unmarshal(expected[name], want))
	return filepath.Join(root, name)
}

func TestKnowledgeGraph(t *testing.T) {
	var want struct{ Entities, Relations, Train, Valid, Test int }
	dir := expect(t, "wn18rr", &want)
	yaml := fmt.Sprintf("edges:\n  - type: entity:*:entity\n    files: [%[1]s/train.txt, %[1]s/valid.txt, %[1]s/test.txt]\n    format: tsv\n    header: no\n    src: 1\n    relation_column: 2\n    dst: 3\n", dir)
	g, err := read(files{"s.yaml": yaml}.write(t), Options{FollowLinks: true})
	require.NoError(t, err)
	require.Equal(t, []ingest.NodeType{{Name: "entity", IDs: ingest.TextIDs, Gathered: true}}, g.schema.NodeTypes)
	require.Len(t, g.schema.Relations, want.Relations)
	entities, edges := map[string]bool{}, 0
	for _, list := range g.edges {
		edges += len(list)
		for _, e := range list {
			src, dst, _ := strings.Cut(e, ">")
			entities[src], entities[dst] = true, true
		}
	}
	require.Equal(t, want.Train+want.Valid+want.Test, edges)
	require.Len(t, entities, want.Entities)
	require.True(t, entities["00260881"], "leading zeros stay")
	require.Contains(t, g.edges["entity__hypernym__entity"], "00260881>00260622")
}

func TestPages(t *testing.T) {
	var want struct{ Nodes, Edges, Classes int }
	dir := expect(t, "musae_facebook", &want)
	yaml := fmt.Sprintf("nodes:\n  - {type: page, files: %[1]s/facebook_target.csv, id: id, label: page_type}\nedges:\n  - {type: page:likes:page, files: %[1]s/facebook_edges.csv, src: id_1, dst: id_2}\n", dir)
	g, err := read(files{"s.yaml": yaml}.write(t), Options{FollowLinks: true})
	require.NoError(t, err)
	require.Equal(t, []ingest.NodeType{{Name: "page", Count: int64(want.Nodes)}}, g.schema.NodeTypes)
	require.Equal(t, []string{"company", "government", "politician", "tvshow"}, g.schema.Labels[0].ClassNames)
	require.Len(t, g.edges["page__likes__page"], want.Edges)
	// With the names as ids, which have commas, quotes and all scripts.
	yaml = fmt.Sprintf("nodes:\n  - {type: page, files: %[1]s/facebook_target.csv, id: page_name, label: page_type}\n  - {type: id}\nedges:\n  - {type: page:has:id, files: %[1]s/facebook_target.csv, src: page_name, dst: facebook_id}\n", dir)
	g, err = read(files{"s.yaml": yaml}.write(t), Options{FollowLinks: true})
	require.NoError(t, err)
	raw, err := os.Open(filepath.Join(dir, "facebook_target.csv"))
	require.NoError(t, err)
	defer raw.Close()
	all, err := csv.NewReader(raw).ReadAll()
	require.NoError(t, err)
	var names []string
	for _, row := range all[1:] {
		names = append(names, row[2])
	}
	require.Equal(t, names, g.ids["page"])
	require.Equal(t, ingest.IntIDs, g.schema.NodeTypes[1].IDs)
}

func TestRatings(t *testing.T) {
	var want struct{ Events, Nodes int }
	dir := expect(t, "bitcoin_otc", &want)
	yaml := fmt.Sprintf("edges:\n  - {type: user:trusts:user, files: %s/soc-sign-bitcoinotc.csv, header: no, src: 1, dst: 2, weight: 3, features: [4]}\n", dir)
	g, err := read(files{"s.yaml": yaml}.write(t), Options{FollowLinks: true})
	require.NoError(t, err)
	require.Len(t, g.edges["user__trusts__user"], want.Events)
	require.Equal(t, "6>2 4", g.edges["user__trusts__user"][0])
	require.Len(t, g.rows["user__trusts__user/feat"], want.Events)
	require.True(t, slices.IsSorted(g.rows["user__trusts__user/feat"]))
}

func BenchmarkEdges(b *testing.B) {
	var text strings.Builder
	type edge struct {
		Src string `parquet:"x,plain,snappy"`
		Dst string `parquet:"y,plain,snappy"`
	}
	const n = 300_000
	rows := make([]edge, n)
	text.WriteString("x,y\n")
	for i := range rows {
		rows[i] = edge{fmt.Sprintf("user-%010d", i*7919%n), fmt.Sprintf("item-%010d", i*31%n)}
		fmt.Fprintf(&text, "%s,%s\n", rows[i].Src, rows[i].Dst)
	}
	dir := files{"s.yaml": pairs, "e.csv": text.String(), "p.yaml": strings.ReplaceAll(pairs, "csv", "parquet"), "e.parquet": inParquet(b, rows...)}.write(b)
	for name, file := range map[string]string{"csv": "s.yaml", "parquet": "p.yaml"} {
		s, err := Open(filepath.Join(dir, file), Options{})
		require.NoError(b, err)
		_, err = s.Schema(context.Background())
		require.NoError(b, err)
		b.Run("format="+name, func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, s.Edges(context.Background(), 0, func(ingest.EdgeChunk) error { return nil }))
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}
