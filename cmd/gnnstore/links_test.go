package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLinks: a source that somebody packed does not choose which other files of the machine are
// read.
func TestLinks(t *testing.T) {
	work := t.TempDir()
	at := func(name string) string { return filepath.Join(work, name) }
	out := at("out.gnn")
	ingest := func(want string, args ...string) {
		t.Helper()
		code, _, stderr := gnnstore(t, append(append([]string{"ingest"}, args...), out, "--split", "given")...)
		if want == "" {
			require.Zero(t, code, stderr)
			require.NoError(t, os.RemoveAll(out))
			return
		}
		require.Equal(t, 1, code, stderr)
		last := stderr[strings.LastIndex(strings.TrimSuffix(stderr, "\n"), "\n")+1:] // auto tells the format first
		require.Equal(t, "gnnstore: "+want+"; replace it by the file, or say --follow-links to read it\n", last)
	}
	moved := func(from, to string) { // and a link in its place
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o777))
		require.NoError(t, os.Rename(from, to))
		require.NoError(t, os.Symlink(to, from))
	}
	out1 := func(link, to string) string { return link + ": it is a symbolic link out of its folder, to " + to }

	code, _, stderr := gnnstore(t, "generate", "products", at("ogb"), "--raw", "--scale", "0.0001")
	require.Zero(t, code, stderr)
	feat := at("ogb/raw/node-feat.csv.gz")
	moved(feat, at("ogb/parts/feat.csv.gz"))
	ingest("", "ogb", at("ogb")) // a link inside the folder
	require.NoError(t, os.Symlink(at("ogb"), at("link")))
	ingest("", "ogb", at("link")) // one that the user named
	require.NoError(t, os.Remove(feat))
	require.NoError(t, os.Symlink("/etc/passwd", feat))
	for _, format := range []string{"ogb", "auto"} {
		ingest(out1(feat, "/etc/passwd"), format, at("ogb"))
		ingest(out1(at("link/raw/node-feat.csv.gz"), "/etc/passwd"), format, at("link"))
	}
	code, _, stderr = gnnstore(t, "ingest", "ogb", at("ogb"), out, "--follow-links")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, feat+": not a gzip file", "it is read, as the user wants")
	require.NoError(t, os.Remove(feat))
	require.NoError(t, os.Rename(at("ogb/parts/feat.csv.gz"), feat))
	moved(at("ogb/split"), at("elsewhere")) // a folder
	ingest(out1(at("ogb/split"), at("elsewhere")), "ogb", at("ogb"))
	ingest("", "ogb", at("ogb"), "--follow-links")

	require.NoError(t, os.CopyFS(at("planetoid"), os.DirFS("../../ingest/planetoid/testdata")))
	moved(at("planetoid/ind.tiny.graph"), at("graph"))
	ingest(out1(at("planetoid/ind.tiny.graph"), at("graph")), "planetoid", at("planetoid"))
	ingest(out1(at("planetoid/ind.tiny.graph"), at("graph")), "planetoid", at("planetoid/ind.tiny"))
	ingest("", "planetoid", at("planetoid/ind.tiny"), "--follow-links")

	require.NoError(t, os.CopyFS(at("bolt"), os.DirFS("../../ingest/graphbolt/testdata/homogeneous")))
	moved(at("bolt/edges.npy"), at("e.npy"))
	ingest(out1(at("bolt/edges.npy"), at("e.npy")), "graphbolt", at("bolt"))
	ingest(out1(at("bolt/edges.npy"), at("e.npy")), "graphbolt", at("bolt/metadata.yaml"))

	require.NoError(t, os.Mkdir(at("tables"), 0o777))
	for name, text := range map[string]string{"e.csv": "src,dst\n0,1\n", "n.csv": "id,x\n0,1\n1,2\n",
		"s.yaml": "nodes:\n  - type: item\n    files: n.csv\n    id: id\n    features: [x]\nedges:\n  - type: item:likes:item\n    files: e.csv\n    src: src\n    dst: dst\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(at("tables"), name), []byte(text), 0o666))
	}
	moved(at("tables/n.csv"), at("n.csv"))
	ingest(out1(at("tables/n.csv"), at("n.csv")), "table", at("tables/s.yaml"))
	ingest(out1(at("tables/n.csv"), at("n.csv")), "auto", at("tables/s.yaml"))
	_, yaml, stderr := gnnstore(t, "ingest", "table", "--infer", at("tables"))
	require.Empty(t, yaml)
	require.True(t, strings.HasPrefix(stderr, "gnnstore: "+out1(at("tables/n.csv"), at("n.csv"))), stderr)
}
