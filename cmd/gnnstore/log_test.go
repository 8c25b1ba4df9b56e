package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLog: with --quiet only results and errors are printed. With --log json each line on stderr is
// a JSON object, also for errors and misuse.
func TestLog(t *testing.T) {
	dir := t.TempDir()
	code, out, stderr := gnnstore(t, "generate", "drift-s", filepath.Join(dir, "a.gnn"), "--quiet")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "sealed")
	require.Empty(t, stderr)
	code, _, stderr = gnnstore(t, "inspect", filepath.Join(dir, "none"), "--quiet")
	require.Equal(t, 1, code)
	require.Equal(t, "gnnstore: "+filepath.Join(dir, "none")+": no such dataset\n", stderr)

	for _, c := range []struct {
		args []string
		code int
		last string
	}{
		{[]string{"generate", "drift-s", filepath.Join(dir, "b.gnn")}, 0, `"level":"INFO"`},
		{[]string{"inspect", filepath.Join(dir, "none")}, 1, `"level":"ERROR"`},
		{[]string{"inspect", "a", "b"}, 2, `"level":"ERROR"`},
	} {
		code, _, stderr := gnnstore(t, append(c.args, "--log", "json")...)
		require.Equal(t, c.code, code, stderr)
		lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
		for _, line := range lines {
			var event struct{ Time, Level, Msg string }
			require.NoError(t, json.Unmarshal([]byte(line), &event), line)
			require.NotEmpty(t, event.Time)
			require.NotEmpty(t, event.Msg)
		}
		require.Contains(t, lines[len(lines)-1], c.last)
	}
	code, _, stderr = gnnstore(t, "inspect", filepath.Join(dir, "a.gnn"), "--log", "xml")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "gnnstore: --log xml: choose text or json\n")

	code, out, _ = gnnstore(t, "--version")
	require.Zero(t, code)
	require.Equal(t, "gnnstore "+version()+"\n", out)
}
