package graphfile

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/edgelist"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

type opening = func(string, edgelist.Options) (*edgelist.Source, error)

func write(t testing.TB, name, text string) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func read(open opening, path string, o edgelist.Options) (sourcetest.Graph, error) {
	s, err := open(path, o)
	if err != nil {
		return sourcetest.Graph{}, err
	}
	return sourcetest.Read(s)
}

func gzipped(t testing.TB, text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

func tarred(t testing.TB, files ...string) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		h := tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1])), Typeflag: tar.TypeReg}
		require.NoError(t, w.WriteHeader(&h))
		_, err := w.Write([]byte(files[i+1]))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.String()
}

func zipped(t testing.TB, files ...string) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i])
		require.NoError(t, err)
		_, err = f.Write([]byte(files[i+1]))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.String()
}

const pattern = "%%MatrixMarket matrix coordinate pattern symmetric\n%-- made\n\n4 4 3\n2 1\n 4\t3 \n4 4\n"

func TestMatrix(t *testing.T) {
	const skew = "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 0.5\n3 1 -2\n"
	for name, c := range map[string]struct {
		file, text string
		pairs      [][2]int64
		weights    []float32
		undirected bool
	}{
		"symmetric": {"g.mtx", pattern, [][2]int64{{2, 1}, {4, 3}, {4, 4}}, nil, true},
		"packed":    {"g.mtx.gz", gzipped(t, pattern), [][2]int64{{2, 1}, {4, 3}, {4, 4}}, nil, true},
		"in a tar": {"g.tar.gz", gzipped(t, tarred(t, "g/g_coord.mtx", "x", "g/g.mtx", pattern, "g/readme", "y")),
			[][2]int64{{2, 1}, {4, 3}, {4, 4}}, nil, true},
		"in a zip": {"g.zip", zipped(t, "readme.html", "x", "g.mtx", pattern), [][2]int64{{2, 1}, {4, 3}, {4, 4}}, nil, true},
		"general": {"g.mtx", "%%MatrixMarket MATRIX coordinate integer general\r\n4 4 2\r\n1 2 7\r\n% late\r\n4 1 -3\r\n",
			[][2]int64{{1, 2}, {4, 1}}, []float32{7, -3}, false},
		"skew-symmetric":     {"g.mtx", skew, [][2]int64{{2, 1}, {1, 2}, {3, 1}, {1, 3}}, []float32{0.5, -0.5, -2, 2}, false},
		"without a banner":   {"g.mtx", "% 4 4 2\n4 4 2\n1 2 0.5\n2 3 1\n", [][2]int64{{1, 2}, {2, 3}}, []float32{0.5, 1}, false},
		"neither, no values": {"g.mtx", "4 4 2\n1 2\n2 3\n", [][2]int64{{1, 2}, {2, 3}}, nil, false},
		"no entries":         {"g.mtx", "%%MatrixMarket matrix coordinate pattern general\n4 4 0\n", nil, nil, false},
		"pattern, and values": {"g.mtx", "%%MatrixMarket matrix coordinate pattern general\n4 4 1\n3 1 9\n",
			[][2]int64{{3, 1}}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := read(OpenMatrix, write(t, c.file, c.text), edgelist.Options{})
			require.NoError(t, err)
			require.Equal(t, c.pairs, g.Edges[0].Pairs())
			require.Equal(t, c.weights, g.Edges[0].Floats(0))
			require.Equal(t, c.undirected, g.Schema.Undirected)
			require.Equal(t, "g", g.Schema.Name)
			nodes := []int64{1, 2, 3, 4}
			if name == "skew-symmetric" {
				nodes = nodes[:3]
			}
			require.Equal(t, nodes, g.NodeIDs[0].Numbers)
		})
	}
	// A table of nodes gives labels, and {weight} none leaves weights out.
	nodes := write(t, "n.csv", "id,label\n1,a\n2,b\n3,a\n")
	g, err := read(OpenMatrix, write(t, "g.mtx", skew), edgelist.Options{Nodes: nodes, Weight: "none"})
	require.NoError(t, err)
	require.Equal(t, []int32{0, 1, 0}, g.Labels[0])
	require.Empty(t, g.Edges[0].Values)
}

func TestMatrixRefuses(t *testing.T) {
	const banner = "%%MatrixMarket matrix coordinate real general\n"
	for _, c := range []struct{ text, want string }{
		{"", "the file is empty; fetch it again"},
		{banner, "there is no size line in it; it is truncated"},
		{banner + "3 3 2\n", "its size line declares 2 entries, and none follows"},
		{banner + "3 3 2\n1 2 1\n", "it declares 2 entries and has 1; it may be damaged"},
		{banner + "3 3 1\n1 2 1\n2 2 1\n", "it declares 1 entries and has 2"},
		{banner + "3 4 1\n1 2 1\n", "line 2: a matrix of 3 rows and 4 columns joins two kinds of nodes"},
		{strings.ReplaceAll(banner+"3 3 1\n1 2 1\n", "\n", "\r"), "line 1: its lines end in CR alone"},
		{banner + "3 3\n", "line 2: found 2 numbers where the size line has three, of rows, columns and entries"},
		{"1 2\n2 3\n", "line 1: found 2 numbers where the size line has three, of rows, columns and entries; if it is a list of edges, say gnnstore ingest csv"},
		{banner + "3 x 1\n", `line 2: "x" is no count of rows, columns or entries`},
		{banner + "0 0 0\n", "a matrix without rows has no nodes"},
		{banner + "5000000000 5000000000 1\n", "5000000000 rows, and a graph has at most 4294967295 nodes"},
		{banner + "4000000000 4000000000 1\n1 1 1\n", "so that nearly no node has an edge"},
		{banner + "3 3 9000000000000000000\n1 1 1\n", "it declares 9000000000000000000 entries and has 1"},
		{banner + "3 3 1\n1 2\n", "line 3: the entry has no value, and its banner says that entries have one; write pattern there in its place"},
		{banner + "3 3 1\n1 2 3 4\n", "line 3: an entry has a row, a column and perhaps a value, and the first one has 4 cells"},
		{banner + "3 3 2\n1 2 3\n1 2\n", "line 4: found 2 columns, and the first row has 3"},
		{banner + "3 3 1\n0 2 3\n", "line 3, column 1: 0 is no node; they are numbered 1 to 3"},
		{banner + "3 3 1\n1 4 3\n", "line 3, column 2: 4 is no node; they are numbered 1 to 3"},
		{banner + "3 3 1\n1 x 3\n", `line 3, column 2: "x" is no number of a node`},
		{banner + "3 3 1\n1 2 x\n", `line 3, column 3: "x" is not a number`},
		{strings.Replace(banner, "real", "pattern", 1) + "3 3 1\n1 7\n", "line 3, column 2: 7 is no node"},
		{strings.Replace(banner, "coordinate", "array", 1) + "3 3\n1\n", "line 1: it has an array of all entries, zeros too, which is no list of edges; write coordinates: "},
		{strings.Replace(banner, "real", "complex", 1), "line 1: its values are complex"},
		{strings.Replace(banner, "general", "hermitian", 1), `line 1: the banner has "hermitian" in place of general`},
		{strings.Replace(banner, "real", "text", 1), `line 1: the banner has "text" in place of real, integer or pattern`},
		{strings.Replace(banner, "matrix", "vector", 1), `line 1: it has a "vector", and a graph is a matrix`},
		{"%%MatrixMarket matrix\n", "line 1: the banner is incomplete"},
		{strings.Replace(banner, "general", "skew-symmetric", 1) + "3 3 1\n2 2 1\n", "line 3: an entry of the diagonal"},
		{strings.Replace(banner, "general", "skew-symmetric", 1) + "3 3 2\n2 1 1\n3 9 1\n", "entry 2, attribute col: 9 is no node"},
		{strings.Replace(banner, "general", "skew-symmetric", 1) + "3 3 2\n2 1 1\n", "it declares 2 entries and has 1"},
		{gzipped(t, pattern)[:40], "truncated or damaged download"},
		{gzipped(t, tarred(t, "g/a.mtx", pattern, "g/b.mtx", pattern)), "an archive with 2 files .mtx"},
		{tarred(t, "a.txt", pattern), "an archive without a file .mtx"},
		{zipped(t, "a.txt", pattern), "an archive without a file .mtx"},
		{zipped(t, "a.mtx", pattern)[:50], "zip: not a valid zip file"},
		{tarred(t, "g/g.mtx", pattern)[:540], "truncated or damaged"},
	} {
		refused(t, OpenMatrix, "g.mtx", c.text, c.want, edgelist.Options{})
	}
}

// refused requires an error of one line that begins with the file.
func refused(t *testing.T, open opening, name, text, want string, o edgelist.Options) {
	t.Helper()
	path := write(t, name, text)
	_, err := read(open, path, o)
	require.ErrorContains(t, err, want, "%.200s", text)
	require.True(t, strings.HasPrefix(err.Error(), path+": "), err)
	require.False(t, strings.HasPrefix(err.Error(), path+": "+path), err)
	require.NotContains(t, err.Error(), "\n")
}

const keys = `<key id="k0" for="node" attr.name="age" attr.type="long"><default>7</default></key>` +
	`<key id="k1" for="node" attr.name="job" attr.type="string"/>` +
	`<key id="k2" for="node" attr.name="ok" attr.type="boolean"/>` +
	`<key id="k3" for="edge" attr.name="weight" attr.type="double"><default>1.5</default></key>` +
	`<key id="k4" for="node" attr.name="age" attr.type="double"/>` +
	`<key id="k5" for="node" yfiles.type="nodegraphics"/>`

func wrapped(direction, inside string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">` + keys +
		`<graph edgedefault="` + direction + `">` + inside + `</graph></graphml>`
}

const people = `<node id="a&amp;b"><data key="k1">cook, "chef"</data><data key="k2">true</data></node>` +
	`<node id="c"><data key="k4">3.5</data><data key="k5"><y:Shape>x<y:B/></y:Shape></data><data key="k2">False</data><data key="k1"> </data></node>`

func TestGraphML(t *testing.T) {
	pair := people + `<edge source="a&amp;b" target="c" directed="false"><data key="k3">2</data></edge><edge source="c" target="c"/>`
	for _, packed := range []bool{false, true} {
		text := wrapped("undirected", pair)
		if packed {
			text = gzipped(t, text)
		}
		g, err := read(OpenGraphML, write(t, "g.graphml", text), edgelist.Options{Label: "job"})
		require.NoError(t, err)
		require.True(t, g.Schema.Undirected)
		require.Equal(t, []string{"a&b", "c"}, g.NodeIDs[0].Texts)
		require.Equal(t, []string{"a&b>c", "c>c"}, g.Edges[0].Lines())
		require.Equal(t, []float32{2, 1.5}, g.Edges[0].Floats(0))
		require.Equal(t, []float32{7, 1, 3.5, 0}, g.Rows[0])
		require.Equal(t, []int32{0, -1}, g.Labels[0])
		require.Equal(t, []string{`cook, "chef"`}, g.Schema.Labels[0].ClassNames)
	}
	g, err := read(OpenGraphML, write(t, "g.graphml", wrapped("directed", pair)), edgelist.Options{})
	require.NoError(t, err)
	require.False(t, g.Schema.Undirected)
	require.Equal(t, []string{"a&b>c", "c>a&b", "c>c"}, g.Edges[0].Lines(), "an undirected edge of a directed graph is two")
	require.Equal(t, []float32{2, 2, 1.5}, g.Edges[0].Floats(0))
}

// TestClassByName: an attribute that is called label is the class, if its values repeat.
func TestClassByName(t *testing.T) {
	text := func(labels ...string) string {
		s := `<graphml><key id="k" for="node" attr.name="label" attr.type="string"/><graph edgedefault="directed">`
		for i, l := range labels {
			s += fmt.Sprintf(`<node id="%d"><data key="k">%s</data></node>`, i, l)
		}
		return s + `<edge source="0" target="1"/></graph></graphml>`
	}
	for _, i := range []int{0, 20} {
		path := write(t, "g.graphml", text(strings.Split(strings.Repeat("x y ", i+1), " ")...))
		s, err := OpenGraphML(path, edgelist.Options{})
		require.NoError(t, err)
		schema, err := s.Schema(context.Background())
		require.NoError(t, err)
		require.Equal(t, []string{"x", "y"}, schema.Labels[0].ClassNames)
		require.Contains(t, schema.Skipped, path+": the label is column label, by its name; {label} none takes no label")
	}
	var names []string
	for i := range 200 {
		names = append(names, fmt.Sprintf("name %d", i))
	}
	path := write(t, "g.graphml", text(names...))
	_, err := OpenGraphML(path, edgelist.Options{})
	require.ErrorContains(t, err, path+": column label is called as a label, and holds 200 different texts: {label} label makes each a class, and {label} none passes over it")
	s, err := OpenGraphML(path, edgelist.Options{Label: "none"})
	require.NoError(t, err)
	schema, err := s.Schema(context.Background())
	require.NoError(t, err)
	require.Empty(t, schema.Labels)
	require.Empty(t, schema.Tables)
}

func TestGraphMLRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "the file is empty; fetch it again"},
		{"src,dst\n", "there is no <graph> in it"},
		{"<gexf></gexf>", "line 1: it starts with <gexf>, and GraphML with <graphml>"},
		{"<graphml></graphml>", "there is no <graph> in it"},
		{"<graphml>\n<key id='a'>", "line 2: the file ends within <key>; it is truncated"},
		{"<graphml><key/></graphml>", "line 1: a <key> without id"},
		{"<graphml><key id='a'/><key id='a'/></graphml>", `line 1: key "a" is there twice`},
		{"<graphml><key id='a' for='edge' attr.name='target'/></graphml>", `attribute "target" of a edge has the name of what GraphML has for itself`},
		{wrapped("directed", people)[:600], "it is truncated"},
		{wrapped("directed", "<node id='1'/><node/>"), "line 1: a <node> without id"},
		{wrapped("directed", "<node id=''/>"), "node 1, attribute id: an id is missing"},
		{wrapped("directed", "<node id='1'/><edge source='1'/>"), "line 1: a <edge> without target"},
		{wrapped("directed", "<node id='1'><graph><node id='2'/></graph></node>"), "line 1: a <graph> inside a <node>"},
		{wrapped("directed", "<node id='1'/><hyperedge/>"), "line 1: a <hyperedge> joins more than two nodes"},
		{wrapped("directed", "<node id='1'/></graph><graph>"), "line 1: a second <graph>"},
		{wrapped("undirected", "<node id='1'/><edge source='1' target='1' directed='true'/>"), "edge 1 is directed, and the graph undirected"},
		{wrapped("directed", "<node id='1'><data key='k9'>1</data></node>"), `data of a node has key "k9", which no <key> before the graph declares`},
		{wrapped("directed", "<node id='1'><data key='k0'>1</data><data key='k0'>1</data></node>"), `attribute "age" of a node is there twice`},
		{wrapped("directed", "<node id='1'><data key='k2'>1</data></node><node id='2'><data key='k0'>x</data><data key='k2'>1</data></node>"), ""},
		{wrapped("directed", "<node id='1'><data key='k2'>1</data></node><edge source='1' target='1'><data key='k3'>x</data></edge>"),
			`edge 1, attribute weight: "x" is not a number`},
		{wrapped("directed", "<node id='1'>&bomb;</node>"), "line 1: invalid character entity &bomb;"},
		{"<!DOCTYPE a [<!ENTITY x 'y'><!ENTITY z '&x;&x;'>]>" + wrapped("directed", people), "it declares entities, which are not read"},
		{"<graphml>" + strings.Repeat("<a>", 10_000), "elements nest more than 100 deep"},
		{wrapped("directed", "<node id='1'>"+strings.Repeat("<a>", 10_000)), "elements nest more than 100 deep"},
		{wrapped("directed", "<node id='1'></edge>"), "line 1: </edge> closes no element that is open"},
		{"<?xml version='1.0' encoding='ISO-8859-1'?><graphml/>", "convert it to UTF-8"},
		{gzipped(t, wrapped("directed", people))[:100], "truncated or damaged download"},
		{wrapped("directed", ""), "there are no rows in it"},
	} {
		if c.want != "" {
			refused(t, OpenGraphML, "g.graphml", c.text, c.want, edgelist.Options{})
		}
	}
	long := wrapped("directed", "<node id='1'><data key='k1'>"+strings.Repeat("x", 17<<20)+"</data></node>")
	refused(t, OpenGraphML, "g.graphml", long, "a value takes more than 16777216 bytes", edgelist.Options{})
}

func TestNodeLink(t *testing.T) {
	const text = `{"directed": true, "multigraph": false, "graph": {"x": [{}, [1]]}, "nodes": [
		{"id": "a", "f": [1, 2.5], "job": "cook", "ok": true, "age": null, "o": {"a": [1]}},
		{"f": [-3e1, 0], "id": "b\u00e4\"", "job": "cook", "ok": false, "age": 4}],
		"links": [{"source": "a", "target": "b\u00e4\"", "weight": 2, "key": 0}, {"weight": 0.5, "target": "a", "source": "a"}]}`
	for name, text := range map[string]string{"plain": text, "packed": gzipped(t, text), "edges": strings.Replace(text, "links", "edges", 1), "marked": "\ufeff" + text + "\n"} {
		g, err := read(OpenNodeLink, write(t, "g.json", text), edgelist.Options{Label: "job", Columns: []string{"ok", "f"}})
		require.NoError(t, err, name)
		require.False(t, g.Schema.Undirected)
		require.Equal(t, []string{"a", "bä\""}, g.NodeIDs[0].Texts)
		require.Equal(t, []string{"a>bä\"", "a>a"}, g.Edges[0].Lines())
		require.Equal(t, []float32{2, 0.5}, g.Edges[0].Floats(0))
		require.Equal(t, []float32{1, 1, 2.5, 0, -30, 0}, g.Rows[0])
		require.Equal(t, []int32{0, 0}, g.Labels[0])
		require.Equal(t, "g", g.Schema.Name)
	}
	// D3's form: nodes without ids, named by their number, and before them the links.
	g, err := read(OpenNodeLink, write(t, "g.json", `{"links": [{"source": 1, "target": 0, "value": 3}], "nodes": [{"name": "x"}, {"name": "y"}, {}]}`), edgelist.Options{})
	require.NoError(t, err)
	require.True(t, g.Schema.Undirected)
	require.Equal(t, int64(3), g.Schema.NodeTypes[0].Count)
	require.Equal(t, [][2]int64{{1, 0}}, g.Edges[0].Pairs())
	// Other names.
	g, err = read(OpenNodeLink, write(t, "g.json", `{"edges": [{"from": "x", "to": "y"}], "nodes": [{"name": "x"}, {"name": "y"}]}`),
		edgelist.Options{ID: "name", Src: "from", Dst: "to"})
	require.NoError(t, err)
	require.Equal(t, []string{"x>y"}, g.Edges[0].Lines())
}

// TestNestedNames: a note about an attribute with objects stays on its line, whatever the name is.
func TestNestedNames(t *testing.T) {
	s, err := OpenNodeLink(write(t, "g.json", `{"nodes": [{"id": 0, "a\nb": {}}], "edges": []}`), edgelist.Options{})
	require.NoError(t, err)
	schema, err := s.Schema(t.Context())
	require.NoError(t, err)
	require.Contains(t, schema.Skipped[0], "attributes of nodes with objects or lists of lists (a?b)")
}

func TestNodeLinkRefuses(t *testing.T) {
	deep := strings.Repeat("[", 10_000)
	for _, c := range []struct{ text, want string }{
		{"", "the file is empty; fetch it again"},
		{"[]", "byte 0: it does not start with {"},
		{"{}", "JSON without a list nodes and a list links or edges at its top"},
		{`{"adjacency": [[]], "nodes": []}`, "networkx.adjacency_graph"},
		{`{"elements": {"nodes": []}}`, "networkx.cytoscape_graph"},
		{`{"nodes": [], "links": []}`, "its list of nodes is empty"},
		{`{"nodes": [{"id": 1}], "links": [], "edges": []}`, `it has a list "links" and a list "edges"`},
		{`{"nodes": [{"id": 1}], "nodes": []}`, `key "nodes" is there twice`},
		{`{"nodes": [{"id": 1}], "edges": [{"source": 1, "target`, "the file ends within a text; it is truncated"},
		{`{"nodes": [{"id": 1}], "edges": [{"source": 1`, "the file ends within the graph; it is truncated"},
		{`{"nodes": [{"id": 1}], "edges": []`, "the file ends within the graph; it is truncated"},
		{`{"nodes": [{"id": 1}], "edges": []} {`, "something follows the end of the graph"},
		{`{"nodes": [{"id": 1}, 7], "edges": []}`, "byte 22: nodes 1 is no object"},
		{`{"nodes": [{"id": 1,}], "edges": []}`, "byte 20: a key in quotes belongs here"},
		{`{"nodes": [{"id": 1} {"id": 2}], "edges": []}`, `a comma or ']' belongs here`},
		{`{"nodes": [{"id" 1}], "edges": []}`, "a colon follows a key"},
		{`{"nodes": [{"id": nil}], "edges": []}`, `"nil" where a value belongs`},
		{`{"nodes": [{"id": 01}], "edges": []}`, `"01" where a value belongs`},
		{`{"nodes": [{"id": "\x"}], "edges": []}`, "is no text of JSON"},
		{"{\"nodes\": [{\"id\": \"caf\xe9\"}], \"edges\": []}", `byte 18: the text "caf\xe9" is not UTF-8; convert it: iconv`},
		{"{\"nodes\": [{\"id\": 1, \"\xe9\": 2}], \"edges\": []}", "is not UTF-8; convert it"},
		{`{"nodes": [{"id": 1, "id": 2}], "edges": []}`, `attribute "id" is there twice`},
		{`{"nodes": [{"id": [0, 1]}], "edges": []}`, `attribute "id", which names nodes, holds lists or objects`},
		{`{"nodes": [{"id": 0, "x": 1}, {"x": 2}], "edges": []}`, "node 2, attribute id: an id is missing"},
		{`{"nodes": [{"name": "a"}], "edges": [{"source": "a", "target": "a"}]}`, "its nodes have no id, and edges name them by texts; say {id}"},
		{`{"nodes": [{"id": 0}], "edges": [{"source": 0, "target": 0, "weight": 1}, {"source": 0, "target": 0}]}`,
			"edge 2, attribute weight: a weight is missing; fill it in, or leave weights out with {weight} none"},
		{`{"nodes": [{"id": 0, "x": 1}, {"id": 1}], "edges": []}`, "node 2, attribute x: a feature is missing"},
		{`{"graph": ` + deep, "values nest more than 100 deep"},
		{`{"nodes": [{"id": 1, "x": ` + deep, "values nest more than 100 deep"},
		{`{"graph": [}`, `'}' closes what '[' opens`},
		{gzipped(t, `{"nodes": [{"id": 1}], "edges": []}`)[:40], "truncated or damaged download"},
		{`{"nodes": [{"id": "` + strings.Repeat("x", 17<<20), "a value takes more than 16777216 bytes"},
		{`{"nodes": [{"id": "` + strings.Repeat("x", 5000) + `"}], "edges": []}`, "node 1, attribute id: an id of 5000 bytes"},
	} {
		refused(t, OpenNodeLink, "g.json", c.text, c.want, edgelist.Options{})
	}
	var wide strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&wide, `{"id": %d, "a%d": 1},`, i, i)
	}
	refused(t, OpenNodeLink, "g.json", `{"edges": [], "nodes": [`+strings.TrimSuffix(wide.String(), ",")+"]}", "fewer than one in 50 of them at an object", edgelist.Options{})
}

func TestConform(t *testing.T) {
	const many = ingest.ChunkRows + 9
	var mtx, skew, xml, json strings.Builder
	fmt.Fprintf(&mtx, "%%%%MatrixMarket matrix coordinate real general\n%d %d %d\n", many, many, many)
	const some = 5000
	fmt.Fprintf(&skew, "%%%%MatrixMarket matrix coordinate integer skew-symmetric\n%d %d %d\n", some+1, some+1, some)
	xml.WriteString(`<graphml><key id="c" for="node" attr.name="c"/><key id="x" for="node" attr.name="x"/><key id="w" for="edge" attr.name="weight"/><graph edgedefault="directed">`)
	json.WriteString(`{"directed": true, "nodes": [`)
	for i := range many {
		fmt.Fprintf(&mtx, "%d %d %d\n", i+1, i*7%many+1, i)
		if i >= some {
			continue
		}
		fmt.Fprintf(&skew, "%d %d 1\n", i+2, i+1)
		if i%100 == 0 {
			fmt.Fprintf(&xml, `<node id="n%d"><data key="c">%d</data><data key="x">%d</data></node>`, i, i%3, i)
		}
		fmt.Fprintf(&json, `{"id": %d, "x": [%d, 1], "c": "k%d"},`, 10*i, i, i%3)
	}
	text := strings.TrimSuffix(json.String(), ",") + `], "links": [`
	json.Reset()
	for i := range some / 100 {
		fmt.Fprintf(&xml, `<edge source="n%d" target="n0" directed="false"><data key="w">%d</data></edge>`, 100*i, i)
		fmt.Fprintf(&json, `{"source": %d, "target": 0, "weight": %d},`, 10*i, i)
	}
	xml.WriteString("</graph></graphml>")
	input := func(open opening, name, text string, o edgelist.Options) func() (ingest.Source, error) {
		path := write(t, name, text)
		return func() (ingest.Source, error) { return open(path, o) }
	}
	sourcetest.Conform(t, input(OpenMatrix, "g.mtx", mtx.String(), edgelist.Options{}),
		input(OpenMatrix, "g.mtx", skew.String(), edgelist.Options{EdgeFeatures: []string{"value"}}),
		input(OpenMatrix, "g.mtx", strings.Replace(mtx.String(), "\n2 8 1\n", "\n2 x 1\n", 1), edgelist.Options{SkipBad: 1, Weight: "none"}),
		input(OpenGraphML, "g.graphml", xml.String(), edgelist.Options{Label: "c"}),
		input(OpenNodeLink, "g.json", text+strings.TrimSuffix(json.String(), ",")+"]}", edgelist.Options{Label: "c"}))
}
