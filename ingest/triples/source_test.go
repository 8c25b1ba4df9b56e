package triples

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
	"github.com/gnnstore/gnnstore/store"
)

// write makes a folder of files, packed where they end in .gz.
func write(t testing.TB, files map[string]string) string {
	dir := filepath.Join(t.TempDir(), "graph")
	require.NoError(t, os.Mkdir(dir, 0o777))
	for name, text := range files {
		f, err := os.Create(filepath.Join(dir, name))
		require.NoError(t, err)
		if strings.HasSuffix(name, ".gz") {
			z := gzip.NewWriter(f)
			_, err = z.Write([]byte(text))
			require.NoError(t, err)
			require.NoError(t, z.Close())
		} else {
			_, err = f.WriteString(text)
			require.NoError(t, err)
		}
		require.NoError(t, f.Close())
	}
	return dir
}

// rdf is a graph with all that a line may have, a blank one and comments among them.
const rdf = "# people\n" +
	"<http://x/ann> <http://x/v#knows> <http://x/bob> .\n" +
	"\n" +
	"<http://x/bob>\t<http://y/knows>\t<http://x/ann>.\n" +
	"  _:b1 <http://x/v#knows> <http://x/ann> . # a blank node\n" +
	"<http://x/ann> <http://x/v#name> \"Ann \\\"A\\\" <b> .\"@en-GB .\n" +
	"<http://x/bob> <http://x/v#age> \"7\"^^<http://www.w3.org/2001/XMLSchema#int> .\r\n" +
	"<http://x/ann> <http://x/v#age> \"7\"^^<http://www.w3.org/2001/XMLSchema#int> .\n" +
	"<http://x/ann> <http://x/v#name> \"\" .\n"

// sealed builds the dataset of a source.
func sealed(t testing.TB, path string, o Options, b build.Options) (*store.Dataset, *build.Report) {
	src, err := o.Open(path)
	require.NoError(t, err)
	defer src.Close()
	out := filepath.Join(t.TempDir(), "x.gnn")
	rep, err := build.Build(context.Background(), src, out, b)
	require.NoError(t, err)
	d, err := store.Open(out)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	problems, err := d.Verify(context.Background(), nil)
	require.NoError(t, err)
	require.Empty(t, problems)
	return d, rep
}

// written are the edges of a dataset in words: training edges, and what is held out.
func written(t testing.TB, d *store.Dataset) (edges []string) {
	names := map[store.NodeID]string{}
	require.NoError(t, d.IDs(0).EachName(context.Background(), func(v store.NodeID, name []byte) error {
		names[v] = string(name)
		return nil
	}))
	for i, r := range d.Manifest().Relations {
		g := d.Graph(i)
		for v := range g.Nodes() {
			for _, u := range g.Neighbors(store.NodeID(v)) {
				edges = append(edges, names[u]+" "+r.Name+" "+names[store.NodeID(v)])
			}
		}
		for p := range store.HeldTest + 1 {
			if h, ok := d.HeldEdges(i, p); ok {
				src, dst := h.Ends()
				for k := range src {
					edges = append(edges, fmt.Sprintf("%v: %s %s %s", p, names[src[k]], r.Name, names[dst[k]]))
				}
			}
		}
	}
	return edges
}

func TestStopsBehindNames(t *testing.T) {
	dir := write(t, map[string]string{"graph.nt": "_:a.b <http://x/p> _:y.\n<http://x/a> <http://x/p> \"x\"@en.\n"})
	d, _ := sealed(t, dir, Options{}, build.Options{})
	require.ElementsMatch(t, []string{"_:a.b p _:y", `http://x/a p "x"@en`}, written(t, d))
}

func TestNTriples(t *testing.T) {
	dir := write(t, map[string]string{"graph.nt.gz": rdf, "README.txt": "no triples"})
	d, rep := sealed(t, dir, Options{}, build.Options{Features: "none"})
	const seven = `"7"^^<http://www.w3.org/2001/XMLSchema#int>`
	// The two relations called knows are told apart, in the order of their IRIs.
	require.ElementsMatch(t, []string{
		"http://x/ann knows http://x/bob", "_:b1 knows http://x/ann", "http://x/bob knows_2 http://x/ann",
		`http://x/ann name "Ann \"A\" <b> ."@en-GB`, `http://x/ann name ""`, "http://x/bob age " + seven, "http://x/ann age " + seven,
	}, written(t, d))
	require.Contains(t, rep.Notes, "4 triples end in a literal, and literals are nodes; {literals} drop leaves them out")
	require.Contains(t, rep.Notes, "1 relations have the name of another and a number behind it, the first of them http://y/knows")

	d, rep = sealed(t, dir, Options{Literals: LiteralsDrop}, build.Options{Features: "none"})
	require.EqualValues(t, 3, d.Manifest().NodeTypes[0].Count)
	require.Len(t, d.Manifest().Relations, 2)
	require.Contains(t, rep.Dropped, "4 triples that end in a literal: {literals} drop leaves them out")
}

// TestParts: files called train, valid and test are parts; names of relations become safe ones, and
// ids keep their zeros.
func TestParts(t *testing.T) {
	parts := map[string]string{
		"train.txt": "001\t_hypernym\t002\n002\t/film/film/genre\t003\n003\t/film/film/genre\t001\n", "valid.txt": "001\t_hypernym\t003\n",
		"test.txt": "004\t/film/film/genre\t001", "relations.dict": "0\t_hypernym\n",
	}
	d, rep := sealed(t, write(t, parts), Options{}, build.Options{Features: "none"})
	require.ElementsMatch(t, []string{
		"001 hypernym 002", "002 genre 003", "003 genre 001", "valid: 001 hypernym 003", "test: 004 genre 001",
	}, written(t, d))
	require.Equal(t, build.EdgeSplitReport{Name: "given", Relation: "entity__hypernym__entity", Train: 1, Valid: 1}, rep.EdgeSplits[1])

	// Between blanks, packed, under other names.
	blanks := map[string]string{}
	for from, to := range map[string]string{"train.txt": "train.tsv.gz", "valid.txt": "dev.tsv.gz", "test.txt": "test.tsv.gz"} {
		blanks[to] = strings.ReplaceAll(parts[from], "\t", "  ")
	}
	again, _ := sealed(t, write(t, blanks), Options{}, build.Options{Features: "none", Name: "other"})
	require.ElementsMatch(t, written(t, d), written(t, again))

	one, _ := sealed(t, filepath.Join(write(t, parts), "train.txt"), Options{}, build.Options{Features: "none"})
	require.Len(t, written(t, one), 3)
}

func TestLabels(t *testing.T) {
	files := map[string]string{
		"graph.nt":            rdf,
		"trainingSet.tsv":     "person\tid\tlabel_group\nhttp://x/bob\t1.0\thttp://x/two\n",
		"testSet.tsv":         "id\tperson\tlabel_group\r\n2\thttp://x/ann\thttp://x/one\r\n",
		"completeDataset.tsv": "id\tperson\tlabel_group\n1\thttp://x/bob\thttp://x/two\n2\thttp://x/ann\thttp://x/one\n",
	}
	d, rep := sealed(t, write(t, files), Options{}, build.Options{Features: "none"})
	// If nodes have labels, each relation gets a reverse by default, with a note.
	require.True(t, slices.ContainsFunc(rep.Notes, func(n string) bool { return strings.Contains(n, "{reverse}=false stores them as given") }), rep.Notes)
	half := len(d.Manifest().Relations) / 2
	for i := range half {
		require.Equal(t, d.Graph(i).Relation.Key(), d.Graph(half+i).Relation.ReverseOf)
	}
	for _, o := range []build.Options{{OneWay: true}, {Undirected: true}} {
		o.Features = "none"
		d, rep := sealed(t, write(t, files), Options{}, o)
		require.Len(t, d.Manifest().Relations, half)
		require.Equal(t, "false", d.Manifest().Provenance.Options["reverse"])
		require.NotContains(t, strings.Join(rep.Notes, " "), "{reverse}=false")
	}
	node := func(name string) store.NodeID {
		v, ok, err := d.IDs(0).Find([]byte(name))
		require.NoError(t, err)
		require.True(t, ok)
		return v
	}
	l := d.Labels(0)
	require.Equal(t, "label_group", l.Label.Name)
	require.Equal(t, []string{"http://x/one", "http://x/two"}, l.Label.ClassNames)
	require.Equal(t, []int32{1, 0, -1}, []int32{l.Class(node("http://x/bob")), l.Class(node("http://x/ann")), l.Class(node("_:b1"))})
	require.Equal(t, store.Sets{Train: []store.NodeID{node("http://x/bob")}, Test: []store.NodeID{node("http://x/ann")}}, d.Split(0))

	for _, c := range []struct{ name, text, want string }{
		{"testSet.tsv", "person\tlabel_group\n<http://x/ann>\tone\n", `testSet.tsv: line 2, column 1: "<http://x/ann>" is no entity of the triples`},
		{"testSet.tsv", "person\tlabel_group\nhttp://x/bob\tone\n", `testSet.tsv: line 2, column 1: "http://x/bob" has a label before`},
		{"testSet.tsv", "person\tlabel_group\nhttp://x/ann\n", "testSet.tsv: line 2: found 1 columns, and the header has 2"},
		{"testSet.tsv", "person\tlabel_group\nhttp://x/ann\t\n", "testSet.tsv: line 2, column 2: the label is empty"},
		{"testSet.tsv", "person\tgroup\n", "testSet.tsv: line 1: the columns are"},
		{"testSet.tsv", "person\tlabel_other\n", "testSet.tsv: line 1: labels are called label_other, and label_group in the table before"},
	} {
		files[c.name] = c.text
		src, err := Options{}.Open(write(t, files))
		require.NoError(t, err)
		_, err = src.Schema(context.Background())
		require.ErrorContains(t, err, c.want)
	}
}

// TestRefused: each mistake is one line with file, place and reason.
func TestRefused(t *testing.T) {
	long := strings.Repeat("x", ingest.MaxIDBytes+1)
	for text, want := range map[string]string{
		"<a> <b> <c>":                      "line 1: no full stop behind the object",
		"<a> <b> <c> <g> .":                "line 1: no full stop behind the object, but the name of a graph, as N-Quads have it; rename the file to end in .nq",
		"@prefix e: <http://e/> .":         "line 1: \"@prefix e: <http://e/> .\" is Turtle's; rename the file to end in .ttl",
		"<a> <b> <c> . <d>":                "follows the full stop",
		"<a> <b> <c> .\n<a> \"b\" <c> .":   "line 2: predicate: \"b\" is a literal, which is an object only",
		"<a> _:b <c> .":                    "predicate: _:b is a blank node",
		"\"a\" <b> <c> .":                  "subject: \"a\" is a literal",
		"<a <b <c .":                       "subject: no > ends the IRI",
		"<a> <b> \"c .":                    "object: no quote ends the literal",
		"<a> <b> \"c\\\" .":                "object: no quote ends the literal",
		"<a> <b> \"c\"^^<d .":              "object: no > ends the type of the literal",
		"<a> <b> c .":                      "object: \"c .\" begins neither an IRI",
		"<a> <> <c> .":                     "predicate: an IRI of no letters",
		"<a> <b>":                          "object: it is missing",
		"<" + long + "> <b> <c> .":         "subject: it has 4097 bytes; names have 1 to 4096",
		"# nothing\n":                      "no triple in it",
		"<a> <b> \"\\uZZZZ\" .":            `object: "\\uZZZZ" is no escape`,
		"<a> <b> \"\\ud800\" .":            `object: "\\ud800" is no escape`,
		"<a> <b> \"\\U00110000\" .":        "is no escape",
		"<a> <b> \"\\u00\" .":              "is no escape",
		"<a> <b> \"\\q\" .":                "is no escape",
		"<a\\t> <b> <c> .":                 "subject: \"\\\\t\" is no escape",
		"<a\\u0009> <b> <c> .":             "subject: \\u0009 is not allowed in an IRI",
		"<a> <b> <c> .\n<a> <b\x00> <c> .": "line 2: the file is not text: it holds a zero byte",
	} {
		src, err := Options{}.Open(filepath.Join(write(t, map[string]string{"g.nt": text}), "g.nt"))
		require.NoError(t, err)
		_, err = src.Schema(context.Background())
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, "g.nt")
		require.NotContains(t, err.Error(), "\n")
	}
	for text, want := range map[string]string{
		"a\tb\n":            "line 1: found 2 columns; a triple has three",
		"a\tb\tc\na\t\tc\n": "line 2, column 2: it has 0 bytes",
		"a b c\na b c d\n":  "line 2: found 4 columns",
		"a\tb\t" + long:     "column 3: it has 4097 bytes",
	} {
		src, err := Options{}.Open(write(t, map[string]string{"train.txt": text}))
		require.NoError(t, err)
		_, err = src.Schema(context.Background())
		require.ErrorContains(t, err, want)
	}
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"test.txt": "a b c"}, "there is test.txt, and no train.txt beside it"},
		{map[string]string{"train.txt": "a b c", "train.tsv": "a b c"}, "two files of train triples, train.tsv and train.txt"},
		{map[string]string{"edges.csv": "a b c"}, "no train.txt, train.tsv, .nt, .nq or .ttl file in it"},
		{map[string]string{"train.txt": "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"}, "Git LFS pointer"},
	} {
		_, err := Options{}.Open(write(t, c.files))
		require.ErrorContains(t, err, c.want)
	}
	require.ErrorContains(t, Options{Literals: "keep"}.Validate(), "choose node or drop")
	src, err := Options{Memory: 100}.Open(write(t, map[string]string{"g.nt": rdf, "trainingSet.tsv": "a\tlabel\n", "testSet.tsv": "a\tlabel\n"}))
	require.NoError(t, err)
	_, err = src.Schema(context.Background())
	require.ErrorContains(t, err, "more than a quarter of {memory}")
}

// TestEscapes: a character has one spelling, however a file writes it. Quotes and control
// characters of a literal are escaped.
func TestEscapes(t *testing.T) {
	text := `<http://x/\u0041> <b> "caf\u00e9 \U0001F600 \"q\" \u0022 \' \\u0041 \n \u000A \u007F` + "\t" + `" .` + "\n<http://x/A> <b> <c> .\n"
	d, _ := sealed(t, write(t, map[string]string{"g.nt": text}), Options{}, build.Options{Features: "none"})
	require.EqualValues(t, 3, d.Manifest().NodeTypes[0].Count)
	for _, name := range []string{"http://x/A", "c", `"café 😀 \"q\" \" ' \\u0041 \n \n \u007F\t"`} {
		_, ok, err := d.IDs(0).Find([]byte(name))
		require.NoError(t, err)
		require.True(t, ok, name)
	}
}

// TestLongLiteral: what is too long for a name is known by its beginning and a hash.
func TestLongLiteral(t *testing.T) {
	long := strings.Repeat("x", 5000)
	text := fmt.Sprintf("<a> <b> \"%s\" .\n<a> <b> \"%s1\" .\n<c> <b> \"%s\" .\n", long, long, long)
	d, _ := sealed(t, write(t, map[string]string{"g.nt": text}), Options{}, build.Options{Features: "none"})
	require.EqualValues(t, 4, d.Manifest().NodeTypes[0].Count)
}

// TestManyRelations: the triples of a graph that fits stay in memory, and its files are read once.
// The relations of a larger graph are loaded in groups, which give the same triples.
func TestManyRelations(t *testing.T) {
	const n = 1000
	var b strings.Builder
	for i := range 3 * n {
		fmt.Fprintf(&b, "<s%d> <p%d> <o%d> .\n", i, i*7%n, i%9)
	}
	big := func(r int) bool { return r >= 500 && r < 600 && r%2 == 0 } // too much to be held
	for r := range n {
		for i := range 300 {
			if big(r) {
				fmt.Fprintf(&b, "<%s%d> <p%d> <o> .\n", strings.Repeat("x", 100), i, r)
			}
		}
	}
	path := filepath.Join(write(t, map[string]string{"g.nt": b.String()}), "g.nt")
	src, err := Options{}.Open(path)
	require.NoError(t, err)
	want, err := sourcetest.Read(src)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path), "it is not read again")
	_, err = sourcetest.Read(src)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o666))

	src, err = Options{Memory: 1 << 20}.Open(path)
	require.NoError(t, err)
	_, err = src.Schema(t.Context())
	require.NoError(t, err)
	require.Nil(t, src.kept)
	groups, last := 0, (*kept)(nil)
	for r := range n {
		var heads []string
		require.NoError(t, src.Edges(t.Context(), r, func(c ingest.EdgeChunk) error {
			for i := range c.Len() {
				heads = append(heads, string(c.SrcTexts.At(i)))
			}
			return nil
		}))
		require.Equal(t, len(want.Edges[r].SrcTexts), len(heads))
		for i, head := range heads {
			require.Equal(t, string(want.Edges[r].SrcTexts[i]), head)
		}
		held := src.kept != nil && src.kept.of[src.relations[r]] != nil
		require.Equal(t, len(heads) < 10, held, "relation %s", src.relations[r])
		if src.kept != last {
			groups, last = groups+1, src.kept
			require.LessOrEqual(t, last.bytes, last.room)
		}
	}
	require.Greater(t, groups, 3)
	require.Less(t, groups, 20)
}

func TestConform(t *testing.T) {
	input := func(files map[string]string) func() (ingest.Source, error) {
		dir := write(t, files)
		return func() (ingest.Source, error) { return Options{}.Open(dir) }
	}
	// a graph whose files are read for each relation
	few := func(files map[string]string) func() (ingest.Source, error) {
		dir := write(t, files)
		return func() (ingest.Source, error) { return Options{Memory: 1 << 20}.Open(dir) }
	}
	var train, nt, ttl strings.Builder
	for i := range ingest.ChunkRows + 99 {
		fmt.Fprintf(&train, "e%d\tr%d\te%d\n", i%1000, min(i%50, 1), i*7%1000)
		fmt.Fprintf(&nt, "<e%d> <r> <e%d> .\n", i%700, i*3%900)
		fmt.Fprintf(&ttl, "<e%d> <r> <e%d>, [] .\n", i%700, i*3%900)
	}
	sourcetest.Conform(t, input(map[string]string{"train.txt": train.String(), "valid.txt": "e1\tr0\te2\n", "test.txt": "x\tr1\ty\n"}),
		few(map[string]string{"train.txt": train.String(), "valid.txt": "e1\tr0\te2\n", "test.txt": "x\tr1\ty\n"}),
		few(map[string]string{"g.ttl": ttl.String()}),
		input(map[string]string{"g.nt": nt.String(), "trainingSet.tsv": "n\tlabel\ne1\ta\ne2\tb\n", "testSet.tsv": "n\tlabel\ne3\ta\n"}))
}

// TestReal compares with the counts of the real graphs.
func TestReal(t *testing.T) {
	root := os.Getenv("GNNSTORE_DATA")
	if root == "" {
		t.Skip("GNNSTORE_DATA is not set: the folder with aifb, wn18rr and expected.json")
	}
	text, err := os.ReadFile(filepath.Join(root, "expected.json"))
	require.NoError(t, err)
	var want struct {
		AIFB struct{ Triples, Terms, Predicates, Train, Test, Classes int64 }
		WN   struct{ Entities, Relations, Train, Valid, Test int64 } `json:"wn18rr"`
	}
	require.NoError(t, json.Unmarshal(text, &want))

	d, rep := sealed(t, filepath.Join(root, "wn18rr"), Options{}, build.Options{})
	got := want.WN
	got.Entities, got.Relations, got.Train, got.Valid, got.Test = d.Manifest().NodeTypes[0].Count, int64(len(d.Manifest().Relations)), 0, 0, 0
	for _, s := range rep.EdgeSplits {
		got.Train, got.Valid, got.Test = got.Train+s.Train, got.Valid+s.Valid, got.Test+s.Test
	}
	require.Equal(t, want.WN, got)

	d, rep = sealed(t, filepath.Join(root, "aifb"), Options{}, build.Options{Features: "none", OneWay: true})
	aifb := want.AIFB
	aifb.Terms, aifb.Predicates, aifb.Triples = d.Manifest().NodeTypes[0].Count, int64(len(d.Manifest().Relations)), 0
	for _, r := range d.Manifest().Relations {
		aifb.Triples += r.Edges
	}
	aifb.Train, aifb.Test, aifb.Classes = int64(rep.Splits[0].Train), int64(rep.Splits[0].Test), d.Manifest().Labels[0].Classes
	require.Equal(t, want.AIFB, aifb)
	require.Contains(t, strings.Join(rep.Notes, "\n"), "8705 triples end in a literal")
}
