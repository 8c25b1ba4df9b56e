package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/run"
)

// TestRunsPrune: prune lists runs, and removes them only with --yes. It leaves everything that is
// no run, is at work, or holds files of the user.
func TestRunsPrune(t *testing.T) {
	t.Chdir(t.TempDir())
	do := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		code, stdout, stderr := gnnstore(t, args...)
		require.Equal(t, want, code, "%s\n%s", args, stderr)
		return stdout, stderr
	}
	pruned := func(args ...string) (why map[string]string) {
		t.Helper()
		out, _ := do(0, append([]string{"runs", "prune", "--json"}, args...)...)
		var list struct{ Runs []prunedRun }
		require.NoError(t, json.Unmarshal([]byte(out), &list))
		why = map[string]string{}
		for _, p := range list.Runs {
			require.Positive(t, p.Bytes)
			why[p.Run] = p.Why
		}
		return why
	}
	do(0, "generate", "citations", "graph.gnn", "--nodes", "1000", "--classes", "3")
	for seed, name := range []string{"a", "b", "c", "died", "failed", "lost", "notes", "busy"} {
		do(0, "train", "graph.gnn", "--epochs", "1", "--hidden", "4", "--fanout", "3,3", "--run", "runs/"+name, "--seed", string(rune('0'+seed)))
	}
	out, _ := do(0, "runs", "prune")
	require.Contains(t, out, "nothing to prune")

	edit := func(name string, change func(r *run.Result)) {
		r, err := run.Read("runs/" + name)
		require.NoError(t, err)
		change(r)
		text, err := json.Marshal(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile("runs/"+name+"/result.json", text, 0o666))
	}
	for name, valid := range map[string]float64{"a": 0.5, "b": 0.7, "c": 0.6} {
		edit(name, func(r *run.Result) { r.Best.ValidAcc = &valid })
	}
	edit("failed", func(r *run.Result) { r.Status, r.Error = run.Failed, "the disk is full" })
	edit("lost", func(r *run.Result) { r.Status, r.Error = run.Failed, "no memory" })
	for _, name := range []string{"died", "lost", "notes", "busy"} {
		require.NoError(t, os.RemoveAll("runs/"+name+"/checkpoints"))
	}
	for _, name := range []string{"died", "notes", "busy"} {
		require.NoError(t, os.Remove("runs/"+name+"/result.json"))
	}
	require.NoError(t, os.WriteFile("runs/notes/notes.txt", []byte("mine"), 0o666))
	require.NoError(t, os.Mkdir("runs/other", 0o777))
	require.NoError(t, os.WriteFile("runs/other/result.json", []byte("{}"), 0o666))
	require.NoError(t, os.CopyFS("outside", os.DirFS("runs/died")))
	require.NoError(t, os.Symlink("../outside", "runs/link"))
	require.NoError(t, os.CopyFS("runs/damaged", os.DirFS("runs/a")))
	require.NoError(t, os.WriteFile("runs/damaged/result.json", []byte("{"), 0o666))
	// Killed before its first step: it has run.json and empty metrics.
	require.NoError(t, os.CopyFS("runs/first", os.DirFS("runs/died")))
	require.NoError(t, os.WriteFile("runs/first/metrics.jsonl", nil, 0o666))
	require.Equal(t, run.Died, readListed("runs/first").Status)
	require.NoError(t, os.CopyFS("runs/starting", os.DirFS("runs/first")))
	starting, _, err := run.Open("runs/starting")
	require.NoError(t, err)
	require.Equal(t, run.Running, readListed("runs/starting").Status)
	busy, _, err := run.Open("runs/busy")
	require.NoError(t, err)

	none := map[string]string{"runs/died": "no checkpoint", "runs/lost": "no checkpoint", "runs/notes": "no checkpoint", "runs/first": "no checkpoint"}
	require.Equal(t, none, pruned())
	more := map[string]string{"runs/failed": "failed", "runs/c": "number 2 by validation", "runs/a": "number 3 by validation"}
	for name, why := range none {
		more[name] = why
	}
	require.Equal(t, more, pruned("--failed", "--keep", "1"))
	out, _ = do(0, "runs", "prune", "runs")
	require.Regexp(t, `4 runs, .*; the same command with --yes removes them\n$`, out)
	require.DirExists(t, "runs/died")

	// A run with a file of the user stays. The other runs are removed.
	out, stderr := do(1, "runs", "prune", "--failed", "--keep", "1", "--yes")
	require.Regexp(t, `removed 6 runs, `, out)
	require.Contains(t, stderr, "run runs/notes: notes.txt in it is no file of a run; move it elsewhere first\n")
	require.Contains(t, stderr, "gnnstore: 1 of 7 runs were not removed\n")
	require.FileExists(t, "runs/notes/run.json")
	for _, gone := range []string{"died", "lost", "failed", "a", "c", "first"} {
		require.NoDirExists(t, "runs/"+gone)
	}
	for _, stays := range []string{"runs/b/best.safetensors", "runs/busy/run.json", "runs/starting/run.json", "runs/other/result.json", "runs/damaged/run.json", "outside/run.json"} {
		require.FileExists(t, stays)
	}
	require.NoError(t, busy.Close())
	require.NoError(t, starting.Close())
	require.NoError(t, os.Remove("runs/notes/notes.txt"))
	do(0, "runs", "prune", "--yes")
	require.NoDirExists(t, "runs/notes")
	require.NoDirExists(t, "runs/busy")
	require.DirExists(t, "outside")

	for want, args := range map[string][]string{
		"--keep 0: at least 1":                                {"runs", "prune", "--keep", "0"},
		"runs/b is a run; name the directory that holds runs": {"runs", "prune", "runs/b"},
		"\"more\" is one argument too many":                   {"runs", "prune", "runs", "more"},
	} {
		_, stderr := do(2, args...)
		require.Contains(t, stderr, want)
	}
	_, stderr = do(1, "runs", "prune", "nowhere")
	require.Contains(t, stderr, "name a run, or a directory of runs")
}
