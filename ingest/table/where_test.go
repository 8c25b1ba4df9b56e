package table

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/parquet"
)

func replace(text, old, new string) string { return strings.Replace(text, old, new, 1) }

func TestWild(t *testing.T) {
	f := func(pattern, text string, want bool) {
		t.Helper()
		require.Equal(t, want, wild(pattern, text))
	}
	f("", "", true)
	f("", "a", false)
	f("*", "", true)
	f("*", "anything", true)
	f("a*", "a", true)
	f("a*a", "a", false)
	f("a*b*c", "a-b-c", true)
	f("a*b*c", "a-c-b", false)
	f(":P", ":P", true)
	f(":P", ":PQ", false)
	f(":P:*", ":P", false)
}

const zoo = `nodes:
  - type: animal
    files: all.csv
    where: {kind: [animal, "animal:*"]}
    id: id
    features: [size]
    missing_words: ["?"]
    missing: {size: "0"}
  - type: keeper
    files: all.csv
    where: {kind: keeper}
    id: id
edges:
  - type: keeper:feeds:animal
    files: all.csv
    where: {link: feeds}
    src: from
    dst: to
  - type: animal:fears:animal
    files: all.csv
    where: {link: fears}
    src: from
    dst: to
`

const zooRows = "id,kind,size,from,to,link\na1,animal,3,,,\na2,animal:old,?,,,\nk1,keeper,,,,\n,,,k1,a2,feeds\n,,,k1,a1,feeds\n,,,a1,a2,fears\n"

// TestWhere: one file feeds types of nodes and relations, chosen by the values of columns.
func TestWhere(t *testing.T) {
	g, err := read(files{"s.yaml": zoo, "all.csv": zooRows}.write(t), Options{})
	require.NoError(t, err)
	require.Equal(t, map[string][]string{"animal": {"a1", "a2"}, "keeper": {"k1"}}, g.ids)
	require.Equal(t, map[string][]string{"keeper__feeds__animal": {"k1>a2", "k1>a1"}, "animal__fears__animal": {"a1>a2"}}, g.edges)
	require.Equal(t, []float32{3, 0}, g.rows["animal/feat"])
	require.Empty(t, g.schema.Skipped)

	g, err = read(files{"s.yaml": zoo, "all.csv": zooRows + "p1,plant,3,,,\n,,,a1,a2,eats\n"}.write(t), Options{})
	require.NoError(t, err)
	require.Len(t, g.schema.Skipped, 1)
	require.Contains(t, g.schema.Skipped[0], `all.csv: 2 of 8 rows are in no entry, by where; the first has kind "plant", link ""`)

	twice := files{"s.yaml": zoo, "all.csv": zooRows}
	twice["s.yaml"] = replace(zoo, "where: {kind: keeper}", "where: {kind: '*'}")
	dir := twice.write(t)
	_, err = read(dir, Options{SkipBad: 9})
	require.EqualError(t, err, filepath.Join(dir, "all.csv")+": line 2: it is a node of two types, animal and keeper; narrow where in the schema")
}

// TestMasks: a split by columns of zeros and ones, and by numbers.
func TestMasks(t *testing.T) {
	const nodes = "nodes:\n  - {type: a, files: n.csv, id: id, masks: {train: tr, test: te}}\n" + pairs
	f := files{"s.yaml": nodes, "n.csv": "id,tr,te\nx,1,0\ny,True,false\nz,0.0,1.0\nw,,\n", "e.csv": "x,y\nx,y\n"}
	g, err := read(f.write(t), Options{})
	require.NoError(t, err)
	require.Equal(t, map[string][3][]string{"a": {{"x", "y"}, nil, {"z"}}}, g.splits)
	f["s.yaml"] = replace(nodes, "masks: {train: tr, test: te}", "split: tr")
	f["n.csv"] = "id,tr,te\nx,0,0\ny,1,0\nz,2,0\nw,,\n"
	g, err = read(f.write(t), Options{})
	require.NoError(t, err)
	require.Equal(t, map[string][3][]string{"a": {{"x"}, {"y"}, {"z"}}}, g.splits)
	f["s.yaml"] = nodes
	for rows, want := range map[string]string{
		"x,1,1\n": "n.csv: line 2: column te: the node is in tr as well, and a node is in one part of a split",
		"x,2,0\n": `n.csv: line 2: column tr: "2" in a mask, which is zeros and ones`,
	} {
		f["n.csv"] = "id,tr,te\n" + rows
		dir := f.write(t)
		_, err := read(dir, Options{})
		require.EqualError(t, err, filepath.Join(dir, want))
	}
}

const joins = `nodes:
  - type: a
    files: n.csv
    id: id
    features: [f]
    join:
      - {files: l.csv, id: key, label: c, missing_words: [unknown]}
      - {files: p.csv, id: "1", header: no, split: "2"}
edges:
  - {type: a:to:a, files: e.csv, src: x, dst: y, empty_ends: skip}
`

// TestJoin: labels and splits from files of their own, in another order and with other rows.
func TestJoin(t *testing.T) {
	f := files{
		"s.yaml": joins, "n.csv": "id,f\n70,1\n30,2\n50,3\n10,4\n", "e.csv": "x,y\n70,30.0\n50,\nNA,10\n10,50\n",
		"l.csv": "key,c\n10,b\n70,a\n50,unknown\n99,a\n", "p.csv": "30,train\n10,val\n",
	}
	dir := f.write(t)
	s, err := Open(filepath.Join(dir, "s.yaml"), Options{})
	require.NoError(t, err)
	defer s.Close()
	g, err := readAll(s)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, g.schema.Labels[0].ClassNames)
	require.Equal(t, []int32{0, -1, -1, 1}, g.labels["a"])
	require.Equal(t, [3][]string{{"30"}, {"10"}, nil}, g.splits["a"])
	require.Equal(t, []string{"70>30", "10>50"}, g.edges["a__to__a"])
	require.Equal(t, []string{
		filepath.Join(dir, "e.csv") + ": 2 rows have no x or no y, and make no edge",
		filepath.Join(dir, "l.csv") + ": 1 of its 4 rows name no node of " + filepath.Join(dir, "n.csv"),
	}, s.Remarks())

	for _, c := range []struct{ file, text, want string }{
		{"l.csv", "key,c\n10,b\n70,a\n10,a\n", "l.csv: row 3 (counting from 1): id 10 is there twice, and a node has one label and is in one part of a split"},
		{"l.csv", "key,c\n010,b\n", `l.csv: line 2: column key: "010" is not an integer from 0 to 2⁶³-1 without leading zeros`},
		{"l.csv", "key\n10\n", `line 7: label: there is no column "c"`},
		{"s.yaml", replace(joins, "features: [f]", "label: f"), "line 7: node type a has two labels; name one of them"},
		{"s.yaml", replace(joins, ", label: c", ""), "line 7: an entry of join gives nodes a label, a value, a split or masks; name its column"},
		{"s.yaml", replace(joins, "id: key, ", ""), "line 7: an entry of join needs id: the column of the ids that name the nodes"},
		{"s.yaml", replace(joins, "files: n.csv", "id_type: int"), "node type a has no files"},
	} {
		bad := files{}
		for name, text := range f {
			bad[name] = text
		}
		bad[c.file] = c.text
		_, err := read(bad.write(t), Options{})
		require.ErrorContains(t, err, c.want)
	}
	_, err = read(dir, Options{Memory: 300})
	require.ErrorContains(t, err, "l.csv: more than 1 rows to join, 32 bytes each, take more than a quarter of {memory}")
	f["l.csv"] = "key,c\nb7,0.5\n70,2\n50,unknown\n"
	f["s.yaml"] = replace(replace(joins, "label: c", "value: c"), "    id: id\n", "    id: id\n    id_type: text\n")
	g, err = read(f.write(t), Options{})
	require.NoError(t, err)
	require.True(t, g.schema.Labels[0].Numbers)
	require.Equal(t, ingest.TextIDs, g.schema.NodeTypes[0].IDs)
}

// TestRowText: a note on a row has its cells as they are written, integers too, and a column once.
func TestRowText(t *testing.T) {
	columns := []column{{word{"kind", 1}, "where"}, {word{"n", 1}, "where"}, {word{"kind", 2}, "where"}}
	cells := []value{{Kind: parquet.Text, Text: []byte("a\nb")}, {Kind: parquet.Int, Int: -7}, {Kind: parquet.Text, Text: []byte("a\nb")}}
	require.Equal(t, `kind "a?b", n "-7"`, rowText(columns, cells))
}
