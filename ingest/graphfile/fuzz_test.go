package graphfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/edgelist"
)

func FuzzMatrix(f *testing.F) {
	fuzz(f, OpenMatrix, "g.mtx", pattern, "3 3 1\n1 2 3\n", "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 0.5\n3 1 -2\n",
		"%%MatrixMarket matrix coordinate integer general\r\n2 2 2\r\n1 1 1\n%\n2 2 9\n", "4000000000 4000000000 9\n1 1\n")
}

func FuzzGraphML(f *testing.F) {
	fuzz(f, OpenGraphML, "g.graphml", wrapped("directed", people+`<edge source="c" target="c" directed="false"/>`), wrapped("", people),
		wrapped("undirected", `<node id="1"><!-- x --><data key="k1"><![CDATA[<]]></data></node>`))
}

func FuzzNodeLink(f *testing.F) {
	fuzz(f, OpenNodeLink, "g.json", `{"nodes": [{"id": 1, "x": [1, 2], "y": null}, {"id": 2, "x": [3, NaN]}], "links": [{"source": 1, "target": 2, "weight": 1e2}]}`,
		`{"directed": true, "edges": [{"source": 0, "target": 1}], "nodes": [{"n": "a\n\u00e9"}, {"l": ["a", "b"]}], "graph": {"a": [[1], {}]}}`)
}

// fuzz requires of any text a graph whose sections fit together, or an error of one line.
func fuzz(f *testing.F, open opening, name string, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	path := filepath.Join(f.TempDir(), name) // of this process
	o := edgelist.Options{}
	if name != "g.mtx" {
		o.Missing = "zeros"
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(path, text, 0o644))
		s, err := open(path, o)
		if err == nil {
			defer s.Close()
			schema, serr := s.Schema(t.Context())
			if serr == nil && schema.NodeTypes[0].Count > 1<<20 {
				return // takes long to read, and has nothing to show
			}
		}
		g, err := read(open, path, o)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			require.True(t, strings.HasPrefix(err.Error(), path+": "), err)
			return
		}
		n := int(g.Schema.NodeTypes[0].Count)
		if g.Schema.NodeTypes[0].IDs != ingest.RowIDs {
			require.Equal(t, n, len(g.NodeIDs[0].Numbers)+len(g.NodeIDs[0].Texts))
		}
		if declared := g.Schema.Relations[0].Edges; declared >= 0 {
			require.Len(t, g.Edges[0].Lines(), int(declared))
		}
		for i, table := range g.Schema.Tables {
			require.Len(t, g.Rows[i], n*table.Dim)
		}
		if len(g.Schema.Labels) > 0 {
			require.Len(t, g.Labels[0], n)
		}
	})
}
