package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKeptRun: later builds open a dataset and a run of the first release, measure and predict as
// it did, and go on with the run. testdata/kept is never written anew: a build that cannot read it
// breaks a promise (see topics/promises.md).
func TestKeptRun(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/kept")))
	at := func(name string) string { return filepath.Join(dir, name) }
	do := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := gnnstore(t, args...)
		require.Zero(t, code, "%v: %s", args, stderr)
		return stdout
	}
	do("verify", at("graph.gnn"))
	require.Contains(t, do("inspect", at("graph.gnn")), "node: 60, numbered by degree order")
	require.Contains(t, do("stats", at("run")), "done after 20 epochs; best epoch 13: valid 100.00 %, test 50.00 %")
	require.Regexp(t, `run +graph\.gnn +done +20 +13 +accuracy`, do("runs", dir))
	require.Regexp(t, `(?m)^test +accuracy 50\.00 %, 12 nodes`, do("eval", at("run"), at("graph.gnn")))
	do("predict", at("run"), at("graph.gnn"), at("again.csv"))
	again, err := os.ReadFile(at("again.csv"))
	require.NoError(t, err)
	want, err := os.ReadFile(at("classes.csv"))
	require.NoError(t, err)
	require.Equal(t, string(want), string(again))
	t.Run("resume", func(t *testing.T) {
		code, stdout, stderr := gnnstore(t, "train", at("graph.gnn"), "--run", at("run"), "--resume", "--epochs", "22")
		if code != 0 && strings.Contains(stderr, "does not run here") {
			t.Skip("no such CPU feature as the run was trained with: " + stderr)
		}
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, "epoch 22/22")
	})
}
