package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInspectIDs: inspect --ids prints every node of a type in stored order, under numbers or
// texts, whatever characters these have.
func TestInspectIDs(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("edges.csv", []byte("src,dst\n7,9\n9,3\n7,3\n"), 0o666))
	require.NoError(t, os.WriteFile("texts.tsv", []byte("é \"q\"\tr\ta\u009b,b\n"), 0o666))
	for _, args := range [][]string{
		{"ingest", "csv", "edges.csv", "numbers.gnn", "--order", "original", "--features", "none"},
		{"ingest", "triples", "texts.tsv", "texts.gnn", "--order", "original"},
		{"partition", "numbers.gnn", "parts", "--parts", "2"},
	} {
		code, _, stderr := gnnstore(t, args...)
		require.Zero(t, code, "%q: %s", args, stderr)
	}
	for _, c := range []struct {
		path, nodeType string
		code           int
		stdout, stderr string
	}{
		{"numbers.gnn", "node", 0, `{"stored":0,"id":3}` + "\n" + `{"stored":1,"id":7}` + "\n" + `{"stored":2,"id":9}` + "\n", ""},
		{"texts.gnn", "entity", 0, `{"stored":0,"id":"a\u009b,b"}` + "\n" + `{"stored":1,"id":"é \"q\""}` + "\n", ""},
		{"numbers.gnn", "nodes", 2, "", "gnnstore: --ids nodes: no such node type; there are node\n"},
		{"none.gnn", "node", 1, "", "none.gnn: no such dataset"},
		{filepath.Join("parts", "part-0.gnn"), "node", 1, "", "part"},
	} {
		code, stdout, stderr := gnnstore(t, "inspect", c.path, "--ids", c.nodeType)
		require.Equal(t, c.code, code, stderr)
		require.Equal(t, c.stdout, stdout)
		require.Contains(t, stderr, c.stderr)
	}
}
