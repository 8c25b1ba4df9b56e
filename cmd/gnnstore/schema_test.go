package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest/table"
)

// TestSchemaHelp: --template prints a schema, and an error about a schema names the topic in one
// line.
func TestSchemaHelp(t *testing.T) {
	code, stdout, stderr := gnnstore(t, "ingest", "table", "--template")
	require.Zero(t, code, stderr)
	require.Equal(t, string(table.Template()), stdout)
	code, _, stderr = gnnstore(t, "ingest", "csv", "--template")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "--template: it goes with format table, and this is csv")

	dir := t.TempDir()
	schema := filepath.Join(dir, "s.yaml")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "e.csv"), []byte("x,y\n0,0\n"), 0o644))
	require.NoError(t, os.WriteFile(schema, []byte("edges: [{type: \"a:to:a\", files: e.csv, src: x, dst: y, feature: [x]}]\n"), 0o644))
	code, _, stderr = gnnstore(t, "ingest", "table", schema, filepath.Join(dir, "out.gnn"))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, `has no key "feature"; did you mean features? there are type,`)
	require.True(t, strings.HasSuffix(stderr, "; gnnstore help schema lists all keys\n"), stderr)
	require.Equal(t, 1, strings.Count(stderr, "\n"))
	require.NoDirExists(t, filepath.Join(dir, "out.gnn"))
}
