package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// hostile sets a terminal's title, in both sets of control characters, turns text round, and begins
// a line of its own.
const hostile = "a\x1b]0;gone\x07\u009b2J\u202e\r\nFORGED: all is well\n\x7f"

// requireVisible holds what a command printed against what a terminal would obey, and against
// forged lines.
func requireVisible(t *testing.T, what, printed string) {
	t.Helper()
	require.True(t, utf8.ValidString(printed), what)
	for _, c := range printed {
		require.False(t, obeyed(c) && c != '\n' && c != '\t', "%s prints %q in %q", what, c, printed)
	}
	require.NotContains(t, "\n"+printed, "\nFORGED", what)
}

// TestHostileTexts: classes, ids, names of files, and damage that tells of them, all by somebody
// else.
func TestHostileTexts(t *testing.T) {
	work := filepath.Join(t.TempDir(), hostile)
	require.NoError(t, os.Mkdir(work, 0o777))
	at := func(name string) string { return filepath.Join(work, name) }
	var nodes, edges bytes.Buffer
	for i := range 30 {
		id := func(i int) string { return fmt.Sprint(hostile, i%30) }
		require.NoError(t, json.NewEncoder(&nodes).Encode(map[string]any{"id": id(i), "y": fmt.Sprint(hostile, i%2), "x": i % 7}))
		require.NoError(t, json.NewEncoder(&edges).Encode(map[string]any{"src": id(i), "dst": id(i + 1)}))
	}
	schema := "nodes:\n  - type: item\n    files: nodes.jsonl\n    id: id\n    label: y\n    features: [x]\n" +
		"edges:\n  - type: item:likes:item\n    files: edges.jsonl\n    src: src\n    dst: dst\n"
	data, run := at(hostile+".gnn"), at(hostile+"run")
	for name, text := range map[string]string{"nodes.jsonl": nodes.String(), "edges.jsonl": edges.String(), hostile + "s.yaml": schema,
		hostile + "bad.csv": "src,dst\n1,\x1b]0;x\x07\n", hostile + ".pt": "\x80\x02c\x1b]0;x\x07\nsystem\n.", hostile + ".yaml": "nodes:\n  - \"\\e]0;x\": 1\n"} {
		require.NoError(t, os.WriteFile(at(name), []byte(text), 0o666))
	}
	for _, c := range []struct {
		code int
		args []string
	}{
		{0, []string{"ingest", "table", at(hostile + "s.yaml"), data, "--split", "random:0.5/0.2/0.3", "--name", "x"}},
		{0, []string{"inspect", data}},
		{0, []string{"inspect", data, "--json"}},
		{0, []string{"verify", data}},
		{0, []string{"train", data, "--run", run, "--epochs", "1", "--hidden", "4", "--fanout", "2,2"}},
		{0, []string{"stats", run}},
		{0, []string{"stats", run, "--watch"}},
		{0, []string{"stats", run, "--json"}},
		{0, []string{"export", data, at(hostile + "out")}},
		{1, []string{"ingest", "csv", at(hostile + "bad.csv"), at("o"), "--id-type", "int"}},
		{1, []string{"ingest", "pt", at(hostile + ".pt"), at("o")}},
		{1, []string{"ingest", "auto", at(hostile + ".pt"), at("o")}},
		{1, []string{"ingest", "table", at(hostile + ".yaml"), at("o")}},
		{1, []string{"ingest", "csv", at(hostile + "none"), at("o")}},
		{1, []string{"train", at(hostile + "none")}},
		{1, []string{"stats", at(hostile + "none")}},
		{2, []string{"ingest", hostile, "x", at("o")}},
		{2, []string{hostile}},
	} {
		code, stdout, stderr := gnnstore(t, c.args...)
		require.Equal(t, c.code, code, "%q: %s", c.args, stderr)
		requireVisible(t, strings.Join(c.args, " "), stdout)
		requireVisible(t, strings.Join(c.args, " "), stderr)
		if c.code == 1 {
			require.Equal(t, 1, strings.Count(stderr, "\ngnnstore: ")+strings.Count(stderr[:10], "gnnstore: "), stderr)
		}
	}
	_, stdout, _ := gnnstore(t, "inspect", data, "--json")
	var in inspection
	require.NoError(t, json.Unmarshal([]byte(stdout), &in))
	require.Equal(t, []string{hostile + "0", hostile + "1"}, in.Labels[0].ClassNames, "JSON keeps every character")
	require.Equal(t, data, in.Path)
}

// TestVisible: what commands print is theirs, and a text that they print stays in its line.
func TestVisible(t *testing.T) {
	var b bytes.Buffer
	w := visible{&b}
	n, err := w.Write([]byte("é\t|\x1b[2J|\r|\u009b|\u202e|\u2028|\x9b|\n"))
	require.NoError(t, err)
	require.Equal(t, len("é\t|\x1b[2J|\r|\u009b|\u202e|\u2028|\x9b|\n"), n)
	require.Equal(t, "é\t|?[2J|?|?|?|?|\ufffd|\n", b.String())
	b.Reset()
	printf(w, "%s %-4s|%d\n", "a\nb", autoFormat, 7)
	require.Equal(t, "a?b auto|7\n", b.String())
}
