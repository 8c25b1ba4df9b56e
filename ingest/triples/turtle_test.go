package triples

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
)

// spelled returns the triples of a Turtle text as lines, with _: and a number for each node without
// a label.
func spelled(text string, slow bool) (all []string, err error) {
	var r io.Reader = strings.NewReader(text)
	if slow {
		r = iotest.OneByteReader(r)
	}
	err = newTurtle("x.ttl", r, "").each(func(t *triple) error {
		all = append(all, fmt.Sprintf("%s %s %s", t.head, t.relation, t.tail))
		return nil
	})
	return all, err
}

// TestTurtle: each form of writing has the triples of the Recommendation.
func TestTurtle(t *testing.T) {
	const p = "@prefix : <http://x/> . @prefix e.x: <http://y#> .\n"
	nt := func(triples ...string) (all []string) {
		for _, s := range triples {
			long := strings.NewReplacer(":a ", "http://x/a ", ":p ", "http://x/p ", "RDF", rdfNS, "XSD", xsdNS)
			s = long.Replace(s + " ")
			all = append(all, strings.TrimSuffix(s, " "))
		}
		return all
	}
	for text, want := range map[string][]string{
		"":                              nil,
		"# only a comment":              nil,
		p + ":a :p :b . :a :p :b, :c .": nt(":a :p http://x/b", ":a :p http://x/b", ":a :p http://x/c"),
		p + ":a a :T ; :p e.x:b.c ; ; :q <http://z> ; .":    nt(":a RDFtype http://x/T", ":a :p http://y#b.c", ":a http://x/q http://z"),
		p + ":a:b.c :p%20q :\\-\\.d . :a :p :1 . :a :p : .": nt("http://x/a:b.c http://x/p%20q http://x/-.d", ":a :p http://x/1", ":a :p http://x/"),
		"@prefix base: <b#> . @prefix prefix: <p#> . base:x prefix:y base:z . prefix:a a base:b .": {
			"b#x p#y b#z", "p#a " + rdfNS + "type b#b"},
		"PREFIX a: <http://x/> a:a a a:a . prefix a: <> a:b a:p a:c.": nt("http://x/a RDFtype http://x/a", "b p c"),
		"@base <http://h/d/e?q#f> . <> <#g> <g> . <../g> <?y> </g> . <//i/g> <./../../g;x> <a:g> .": {
			"http://h/d/e?q http://h/d/e?q#g http://h/d/g", "http://h/g http://h/d/e?y http://h/g", "http://i/g http://h/g;x a:g"},
		"BASE <http://h> <a> <b> <c> . base <urn:x> <> <b> <#c> .": {"http://h/a http://h/b http://h/c", "urn:x urn:b urn:x#c"},
		p + ":a :p [] . [] :p :a . _:b.1 :p _:b .":                 nt(":a :p _:.1", "_:.2 :p http://x/a", "_:b.1 :p _:b"),
		p + "[ :p :b ; :p [ :p 1 ] ] . [ :p :b ] :p :c .": nt("_:.1 :p http://x/b", "_:.1 :p _:.2", `_:.2 :p "1"^^<XSDinteger>`,
			"_:.3 :p http://x/b", "_:.3 :p http://x/c"),
		p + ":a :p () . () :p (1 (:b) [ :p 2 ]) .": nt(":a :p RDFnil", "RDFnil :p _:.1", `_:.1 RDFfirst "1"^^<XSDinteger>`,
			"_:.1 RDFrest _:.2", "_:.2 RDFfirst _:.3", "_:.3 RDFfirst http://x/b", "_:.3 RDFrest RDFnil", "_:.2 RDFrest _:.4",
			"_:.4 RDFfirst _:.5", `_:.5 :p "2"^^<XSDinteger>`, "_:.4 RDFrest RDFnil"),
		p + "(:b :c) :p :d .": nt("_:.1 RDFfirst http://x/b", "_:.1 RDFrest _:.2", "_:.2 RDFfirst http://x/c",
			"_:.2 RDFrest RDFnil", "_:.1 :p http://x/d"),
		p + ":a :p 1, -2, +.5, 1.5, 1e6, 1.E-3, true, false.": nt(`:a :p "1"^^<XSDinteger>`, `:a :p "-2"^^<XSDinteger>`,
			`:a :p "+.5"^^<XSDdecimal>`,
			`:a :p "1.5"^^<XSDdecimal>`, `:a :p "1e6"^^<XSDdouble>`, `:a :p "1.E-3"^^<XSDdouble>`,
			`:a :p "true"^^<XSDboolean>`, `:a :p "false"^^<XSDboolean>`),
		p + ":a :p 1.": nt(`:a :p "1"^^<XSDinteger>`),
		p + `:a :p 'it"s', "caf\u00e9\t\\\"'", ""@en-GB, '''a` + "\r\n" + `''b'''^^:t, "#"^^<u> .`: nt(`:a :p "it\"s"`,
			`:a :p "café\t\\\"'"`, `:a :p ""@en-GB`,
			`:a :p "a\r\n''b"^^<http://x/t>`, `:a :p "#"^^<u>`),
		"<\\u0061> <b#c>\t\"\"\"\"q\"\" \"\"\" # <x>\r\n.": {`a b#c "\"q\"\" "`},
	} {
		for _, slow := range []bool{false, true} {
			got, err := spelled(text, slow)
			require.NoError(t, err, text)
			require.Equal(t, want, got, text)
		}
	}
}

// TestTurtleRefused: an error is one line with the file, the line and the reason.
func TestTurtleRefused(t *testing.T) {
	const p = "@prefix : <http://x/> .\n"
	for text, want := range map[string]string{
		p + ":a :p :b":                      "x.ttl: line 2: the file ends within a statement; is it complete?",
		p + ":a :p\n\n":                     "line 3: the file ends within",
		p + ":a :p \"\"\"b\n\n\n":           "line 4: the file ends within",
		p + ":a :p [ :p (":                  "line 2: the file ends within",
		"@prefix : <http://x/>":             "line 1: the file ends within",
		p + ":a :p \"b\n\" .":               "line 2: no quote ends the text on its line",
		p + ":a :p <b c> .":                 `line 2: ' ' in an IRI; is its > missing, or should it be %20?`,
		p + ":a :p <b":                      "line 2: the file ends within",
		p + ":a :p ex:b .":                  `line 2: prefix "ex" is not declared: add @prefix ex: <…> . before it`,
		p + ":a :p \"b\"^^_:c .":            "^^ and an IRI name the type of a text",
		p + ":a :p \"b\"^^1 .":              "^^ and an IRI name the type of a text",
		p + "\"a\" :p :b .":                 "the subject is the literal \"a\"; only objects are literals",
		p + ":a \"p\" :b .":                 "the predicate is the literal \"p\"",
		p + ":a _:p :b .":                   "the predicate is the blank node _:p; predicates are IRIs",
		p + ":a :p :b :c .":                 "':' follows an object; a comma, a semicolon or a full stop does",
		p + ":a :p [ :p :b . ] .":           "'.' follows an object; a comma, a semicolon or ] does",
		"<a> <p> <b> <g> .":                 "'<' follows an object; if it is the name of a graph, as N-Quads have it, rename the file to end in .nq",
		p + ":a :p :b ] .":                  "']' follows an object",
		p + ":a .":                          `'.' begins no term`,
		p + "[] .":                          `'.' begins no term`,
		"PREFIX a: <> <s> a: <o> .":         "line 1: the IRI is empty, and means the file itself",
		p + ":a :p <> .":                    "the IRI is empty, and means the file itself",
		p + ":g { :a :p :b }":               "a { begins a graph of TriG",
		"<!DOCTYPE html>\n":                 "line 1: a web page or XML, and not Turtle",
		"<?xml version='1.0'?><rdf:RDF>":    "line 1: a web page or XML, and not Turtle",
		"{ <a> <b> <c> }":                   "a { begins a graph of TriG, which is not read; convert it: rapper",
		p + "<< :a :p :b >> :q :c .":        "<< begins a quoted triple of RDF-star, which is not read",
		p + "@forAll :x .":                  "@forAll is neither @prefix nor @base",
		p + ":a :p 1x .":                    `"1x" begins no number`,
		p + ":a :p b .":                     `"b" is no term: prefixed names have a colon, and texts have quotes`,
		p + ":a :p \"b\"@ .":                "a language as in @en follows the @",
		p + ":a :p \"b\"^^\"c\" .":          "^^ and an IRI name the type of a text",
		p + ":a :p \"\\x\" .":               `"\\x" is no escape`,
		p + ":a :p \"\\uD800\" .":           `is no escape`,
		p + ":a :p :b%2 .":                  "a percent sign in a prefixed name",
		p + ":a :p :-b .":                   "and not with -",
		"\x00\x01":                          "line 1: the file is not text: it holds a zero byte",
		p + ":" + strings.Repeat("a", 5000): "a name of more than 4096 bytes",
	} {
		for _, slow := range []bool{false, true} {
			_, err := spelled(text, slow)
			require.ErrorContains(t, err, want, text)
			require.True(t, strings.HasPrefix(err.Error(), "x.ttl: line "), err)
			require.NotContains(t, err.Error(), "\n")
		}
	}
}

// TestOneSpelling: a literal has the same name in N-Triples and in Turtle.
func TestOneSpelling(t *testing.T) {
	for _, literal := range []string{
		`"\u0022\"\\\u005c"`, `"\'\u0027'"`, "\"\t\\t\\u0009\x7f\\u007f\x01\"", `"\u000a\U0000000D\b\f"@en`, `"\u00e9é"^^<x:\u00e9>`,
	} {
		term, _, _, err := cutTerm([]byte(literal + " ."))
		require.NoError(t, err)
		all, err := spelled("<a> <b> "+literal+" .", false)
		require.NoError(t, err)
		require.Equal(t, []string{"a b " + string(term)}, all)
	}
}

// repeated reads a text, then another n times, then a third.
func repeated(head, text string, n int64, tail string) io.Reader {
	return io.MultiReader(strings.NewReader(head),
		io.LimitReader(&endless{text: text}, n*int64(len(text))), strings.NewReader(tail))
}

type endless struct {
	text string
	at   int
}

func (e *endless) Read(b []byte) (n int, err error) {
	for n < len(b) {
		k := copy(b[n:], e.text[e.at:])
		n, e.at = n+k, (e.at+k)%len(e.text)
	}
	return n, nil
}

// TestTurtleHostile: brackets, texts and names without end are refused, and a list of any length is
// read, within a few MiB.
func TestTurtleHostile(t *testing.T) {
	for _, c := range []struct {
		in   io.Reader
		want string
	}{
		{repeated("<a> <b> ", "[ <b> ", 1<<22, ""),
			"x.ttl: line 1: more than 1000 brackets in one another; is a ] or ) missing?"},
		{repeated("<a> <b> ", "(\n", 1<<22, ""), "x.ttl: line 1002: more than 1000 brackets"},
		{repeated("<a> <b> '''", "x", 1<<30, "''' ."), "a literal of more than 16777216 bytes"},
		{repeated("<a> <b> '''", "\\\\", 1<<30, "''' ."), "a literal of more than 16777216 bytes"},
		{repeated("<a> <", "\\u0061", 1<<26, ""), "an IRI of more than 4096 bytes"},
		{repeated("<a> <b> ", "'c'^^", 1<<26, ""), "^^ and an IRI name the type of a text"},
		{repeated("<a> <", "x", 1<<30, ""), "an IRI of more than 4096 bytes"},
		{repeated("@prefix ", "x", 1<<30, ""), "a prefix is a name"},
		{repeated("@base <http://x/> . ", "@base <xxx/> . ", 1<<26, ""), "an IRI of more than 4096 bytes"},
		{repeated("<a> <b> ", "x", 1<<30, ""), "begins no term"},
		{repeated("<a> <b> _:x", ".", 1<<30, ""), "'.' begins no term"},
		{repeated("<a> <b> ", "1", 1<<30, ""), "a number of more than 4096 bytes"},
		{repeated("<a> <b> 'c'@", "x", 1<<30, ""), "a language of more than 4096 bytes"},
		{repeated("", "@prefix a: <b> . ", 1<<12, "@prefix c: <b> . <a> <b> <c> ."), ""},
		{repeated("<a> <b> (", "1 ", 1<<18, ") ."), ""},
		{repeated("", "#\n", 1<<20, "x"), "line 1048577: "},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		in := newTurtle("x.ttl", c.in, "")
		err := in.each(func(*triple) error { return nil })
		runtime.ReadMemStats(&after)
		require.LessOrEqual(t, cap(in.buf), 1<<20)
		require.Less(t, after.HeapInuse, before.HeapInuse+200<<20)
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.want)
	}
}

// TestTurtleCut: a text that is cut anywhere is refused with its last line, or has the triples
// before the cut.
func TestTurtleCut(t *testing.T) {
	whole, err := spelled(turtleGraph, false)
	require.NoError(t, err)
	for n := range turtleGraph {
		got, err := spelled(turtleGraph[:n], false)
		require.LessOrEqual(t, len(got), len(whole))
		if err == nil {
			require.True(t, slices.Equal(whole[:len(got)], got))
			continue
		}
		require.Contains(t, err.Error(), "x.ttl: line ")
	}
}

// turtleGraph is the graph of rdf.
const turtleGraph = `@prefix x: <http://x/> .
PREFIX v: <http://x/v#>
@base <http://x/> .
<ann> v:knows x:bob . # people
x:bob <http://y/knows> x:ann.
_:b1 v:knows x:ann .
x:ann v:name "Ann \"A\" <b> ."@en-GB, "" ; v:age "7"^^<http://www.w3.org/2001/XMLSchema#int> .
x:bob v:age '7'^^<http://www.w3.org/2001/XMLSchema#int> .
`

// TestFormsOfRDF: N-Triples, N-Quads and Turtle, packed or not, give one graph.
func TestFormsOfRDF(t *testing.T) {
	quads := strings.NewReplacer("bob> .", "bob> <http://x/g> .", "ann>.", "ann> _:g.").Replace(rdf)
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed)
	require.NoError(t, err)
	_, err = z.Write([]byte(turtleGraph))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	want, _ := sealed(t, write(t, map[string]string{"a.nt": rdf}), Options{}, build.Options{Features: "none"})
	for name, text := range map[string]string{
		"a.nq": quads, "a.nq.gz": quads, "a.ttl": turtleGraph, "a.ttl.gz": turtleGraph, "a.ttl.zst": packed.String(),
	} {
		dir := write(t, map[string]string{name: text})
		for _, path := range []string{dir, filepath.Join(dir, name)} {
			for _, memory := range []int64{0, 16} { // 16: the triples do not fit
				d, rep := sealed(t, path, Options{Memory: memory}, build.Options{Features: "none"})
				require.ElementsMatch(t, written(t, want), written(t, d), name)
				notes := strings.Join(rep.Notes, "\n")
				said := strings.Contains(notes, name+": 2 statements name a graph, and the names are left out")
				require.Equal(t, strings.Contains(name, ".nq"), said)
				require.Contains(t, notes, "4 triples end in a literal")
			}
		}
	}
	both := write(t, map[string]string{"a.ttl": turtleGraph, "b.nq": quads})
	_, rep := sealed(t, both, Options{}, build.Options{Features: "none"})
	require.Contains(t, strings.Join(rep.Notes, "\n"),
		"a.ttl is not read beside b.nq: name it, or move it to a folder of its own, if it has other triples")
}

// TestTurtleFiles: nodes without a label differ between files, and files of a split may be Turtle.
func TestTurtleFiles(t *testing.T) {
	d, _ := sealed(t, write(t, map[string]string{
		"train.ttl": "<a> <r> [] . <a> <r> <b> . <b> <r> <c> .", "test.ttl": "<b> <r> [] .",
	}), Options{}, build.Options{Features: "none"})
	require.ElementsMatch(t, []string{"a r _:.0.1", "a r b", "b r c", "test: b r _:.1.1"}, written(t, d))
	for text, o := range map[string]Options{
		"\ufeff<a> <r> <é> .": {},
		"<a> <r> <\xe9> .":    {Encoding: "latin1"},
		"\xff\xfe<\x00a\x00>\x00<\x00r\x00>\x00<\x00\xe9\x00>\x00.\x00": {Encoding: "utf-16"},
	} {
		d, _ := sealed(t, write(t, map[string]string{"a.ttl": text}), o, build.Options{Features: "none"})
		require.Equal(t, []string{"a r é"}, written(t, d))
	}
	src, err := Options{}.Open(write(t, map[string]string{"a.ttl": "# caf\u00e9\n<a> <r> <\xe9> ."}))
	require.NoError(t, err)
	_, err = src.Schema(t.Context())
	require.ErrorContains(t, err, "a.ttl: line 2: the text is not UTF-8; if it is Latin-1, as Excel writes it, say {encoding} latin1")
	bad := write(t, map[string]string{"a.ttl.gz": turtleGraph})
	path := filepath.Join(bad, "a.ttl.gz")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text[:len(text)-9], 0o666))
	src, err = Options{}.Open(path)
	require.NoError(t, err)
	_, err = src.Schema(t.Context())
	require.Error(t, err)
	require.Equal(t, 1, strings.Count(err.Error(), path), err)
	for text, want := range map[string]string{
		"<a> <b> <c> <d> .\n":     "a.nt: line 1: no full stop behind the object, but the name of a graph, as N-Quads have it",
		"<a> <b> <c> ; <d> <e> .": "line 1: no full stop behind the object; a file of RDF has one statement a line, unless it is Turtle",
	} {
		src, err := Options{}.Open(write(t, map[string]string{"a.nt": text}))
		require.NoError(t, err)
		_, err = src.Schema(t.Context())
		require.ErrorContains(t, err, want)
	}
	for name, want := range map[string]string{
		"a.trig": "convert it: rapper -i trig -o nquads FILE > graph.nq", "a.owl.gz": "rapper -i rdfxml", "a.n3": "rapper -i turtle",
		"a.rdf": "rapper -i rdfxml -o ntriples FILE > graph.nt", "a.jsonld": "format='json-ld'",
	} {
		_, err := Options{}.Open(filepath.Join(write(t, map[string]string{name: "x"}), name))
		require.ErrorContains(t, err, want)
	}
	for text, want := range map[string]string{
		"<a> <b> <c> <d\n":      "a.nq: line 1: graph: no > ends the IRI",
		"<a> <b> <c> <d> <e> .": "a.nq: line 1: no full stop behind the object",
		"<a> <b> <c> \"d\" .\n": "a.nq: line 1: no full stop behind the object",
	} {
		src, err := Options{}.Open(write(t, map[string]string{"a.nq": text}))
		require.NoError(t, err)
		_, err = src.Schema(t.Context())
		require.ErrorContains(t, err, want)
	}
}

// FuzzTurtle: whatever a file holds, each triple has names that a dataset can keep, reading it byte
// by byte gives the same, and an error is one line.
func FuzzTurtle(f *testing.F) {
	f.Add(turtleGraph)
	f.Add("@prefix : <x:> . [ :p (1 2.5 -3e1 [] () ) ] . :a a '''b''' , \"c\"@d , \"e\"^^:f .")
	f.Add("BASE <http://a/b/c?d#e> <../x> <?y> <#z> ; a :% .")
	f.Add("<a> <b> '\\u00e9\\t', _:c.d .")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := spelled(text, false)
		again, errAgain := spelled(text, true)
		require.Equal(t, got, again)
		require.Equal(t, fmt.Sprint(err), fmt.Sprint(errAgain))
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
		}
		_ = newTurtle("x.ttl", strings.NewReader(text), "").each(func(tr *triple) error {
			for _, name := range [][]byte{tr.head, tr.relation, tr.tail} {
				require.NotEmpty(t, name)
				require.LessOrEqual(t, len(name), ingest.MaxIDBytes)
			}
			require.False(t, slices.Contains(tr.relation, '\n'))
			return nil
		})
	})
}
