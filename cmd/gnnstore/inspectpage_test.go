package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/page"
)

// TestInspectHTML: the page has the degrees, the classes, the missing values and the ranges of
// columns. It is written whole, or not at all.
func TestInspectHTML(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o666)) }
	write("nodes.csv", "id,age,colour,label\na,10,red,x\nb,30,blue,y\nc,,red,x\nd,20,green,\n")
	write("edges.csv", "src,dst\na,b\nc,b\nd,b\nb,a\n")
	write("graph.yaml", "name: shops\nnodes:\n- {type: shop, files: nodes.csv, id: id, features: [age, colour], categorical: [colour], "+
		"missing: {age: mean}, label: label}\nedges:\n- {type: \"shop:near:shop\", files: edges.csv, src: src, dst: dst}\n")
	code, _, stderr := gnnstore(t, "ingest", "table", "graph.yaml", "graph.gnn", "--undirected=false")
	require.Zero(t, code, stderr)
	code, out, stderr := gnnstore(t, "inspect", "graph.gnn", "--html", "graph.html")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "nodes")
	text, err := os.ReadFile("graph.html")
	require.NoError(t, err)
	t.Logf("%d bytes", len(text))
	require.LessOrEqual(t, len(text), page.MaxBytes)
	for _, want := range []string{"In-degrees of ", "2 to 3</th>", "Classes of ", "0 x</th>", "<h1>shops</h1>", ">mean</td>", ">age</th>", "colour = red</th>"} {
		require.True(t, bytes.Contains(text, []byte(want)), want)
	}

	for want, args := range map[string][]string{
		"--html graph.html: it exists already":                 {"inspect", "graph.gnn", "--html", "graph.html"},
		"--ids and --html: choose one of them":                 {"inspect", "graph.gnn", "--html", "b.html", "--ids", "shop"},
		"end its name in .html":                                {"trace", "graph.gnn", "--html", "b.png"},
		"--html nowhere: no such directory":                    {"trace", "graph.gnn", "--html", "nowhere/b.html"},
		"--svg and --html draw how batches grow, and caches; ": {"trace", "graph.gnn", "--history", "--html", "b.html"},
	} {
		code, _, stderr := gnnstore(t, args...)
		require.NotZero(t, code, want)
		require.Contains(t, stderr, want)
	}
	files, err := filepath.Glob(".*")
	require.NoError(t, err)
	require.Empty(t, files, "nothing half-written is left")
}
