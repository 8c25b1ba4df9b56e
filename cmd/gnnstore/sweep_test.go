package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/run"
)

// TestSweep: a sweep by halving that is killed again and again has the result of an undisturbed
// one. The command that a sweep prints repeats the chosen runs.
func TestSweep(t *testing.T) {
	t.Chdir(t.TempDir())
	do := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		code, stdout, stderr := gnnstore(t, args...)
		require.Equal(t, want, code, "%s: %s", args, stderr)
		return stdout, stderr
	}
	do(0, "generate", "citations", "graph.gnn", "--nodes", "2000", "--classes", "3", "--undirected")
	require.NoError(t, os.WriteFile("grid.yaml", []byte("dataset: graph.gnn\nepochs: 9\nhidden: 4\nfanout: [3, 3]\nmodel: [sage, gcn]\n"+
		"lr: {log: [1e-3, 1e-1]}\ntrials: 5\nseeds: 2\nhalving: {min_epochs: 2, eta: 2}\n"), 0o666))
	read := func(out string) (r sweepResult) {
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		for _, s := range r.Settings {
			require.Equal(t, s == r.Settings[0], s.Test != nil, "only the chosen setting is tested")
			for i := range s.Runs {
				s.Runs[i].Run, s.Runs[i].Seconds, s.Seconds = "", 0, 0
			}
		}
		r.Run, r.Chosen = "", nil
		return r
	}
	out, stderr := do(0, "sweep", "-f", "grid.yaml", "--run", "whole", "--json")
	require.Contains(t, stderr, "rung 2: 2 settings up to epoch 4\n")
	require.Contains(t, stderr, "rung 1   trial 5, seed 2   valid ")
	want := read(out)
	require.Len(t, want.Settings, 5)
	require.Equal(t, 3, want.Settings[0].Rung)

	for _, trial := range []string{"trial-1-seed-1", "trial-3-seed-2", "trial-5-seed-2"} {
		cmd, _ := process(t, "", "sweep", "-f", "grid.yaml", "--run", "killed", "--resume")
		require.Eventually(t, func() bool {
			_, err := os.Stat(filepath.Join("killed", trial, "run.json"))
			return err == nil
		}, time.Minute, time.Millisecond, "%s begins", trial)
		require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
		require.ErrorContains(t, cmd.Wait(), "killed", "it was at work")
	}
	do(0, "sweep", "-f", "grid.yaml", "--run", "killed", "--resume")
	before, err := os.Stat("killed/trial-1-seed-1/result.json")
	require.NoError(t, err)
	out, _ = do(0, "sweep", "-f", "grid.yaml", "--run", "killed", "--resume", "--json")
	require.Equal(t, want, read(out))
	after, err := os.Stat("killed/trial-1-seed-1/result.json")
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime(), "a run that has ended is not trained again")

	again := append(strings.Fields(want.Command)[1:], "--run", "again", "--json")
	out, _ = do(0, again...)
	var list runList
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	require.Equal(t, want.Valid, list.Seeds[0].Valid)
	require.Equal(t, want.Test, list.Seeds[0].Test)
	for i, r := range want.Settings[0].Runs {
		require.Equal(t, r.Params, list.Runs[i].Params)
	}
	out, _ = do(0, "runs", "killed", "--csv")
	require.Equal(t, 11, strings.Count(out, "\n"))

	for text, args := range map[string][]string{
		"lr is 0.1 here, and one of log 0.001 to 0.1 there":            {"--run", "killed", "--resume", "--lr", "0.1"},
		"it holds a sweep; go on with it by --resume":                  {"--run", "killed"},
		"and no sweep; choose another":                                 {"--run", ".", "--resume"},
		"it holds a run, and a sweep makes a directory of runs":        {"--run", "killed/trial-1-seed-1"},
		"--resume: no runs/graph-sweep-N has a sweep of this grid":     {"--resume", "--seeds", "3"},
		"a sweep measures the test part for the setting that it chose": {"--eval-test", "best"},
		"halving trains the best settings further, and --schedule":     {"--schedule", "cosine"},
		"halving needs --epochs N":                                     {"--epochs", "auto"},
		"setting 1 of 5, --model ":                                     {"--hidden", "0"},
	} {
		if strings.HasPrefix(text, "lr is") {
			args = append(args, "--vary", "model=sage,gcn", "--trials", "2")
		}
		code, _, stderr := gnnstore(t, append([]string{"sweep", "-f", "grid.yaml"}, args...)...)
		require.NotZero(t, code, args)
		require.Contains(t, stderr, text)
	}
	require.NoDirExists(t, "runs")
}

// TestSweepFailures: a setting that cannot train does not end the sweep, and its error is printed.
func TestSweepFailures(t *testing.T) {
	t.Chdir(t.TempDir())
	code, _, stderr := gnnstore(t, "generate", "citations", "graph.gnn", "--nodes", "2000", "--classes", "3")
	require.Zero(t, code, stderr)
	small := []string{"sweep", "graph.gnn", "--epochs", "1", "--hidden", "8"}
	code, out, stderr := gnnstore(t, append(small, "--vary", "model=tgn,sage", "--history=false", "--reciprocal=false")...)
	require.Zero(t, code, stderr)
	require.Contains(t, out, "trial 1 failed   --model tgn: graph.gnn has no stream of events")
	require.Contains(t, out, "note: 1 of 2 runs failed, and means are over the others\nbest: trial 2, chosen by validation: valid ")
	require.Contains(t, out, "\n  gnnstore train graph.gnn --epochs 1 --hidden 8 --history=false --reciprocal=false --model sage\n")
	r, err := run.Read(filepath.Join("runs", "graph-sweep-1", "trial-2-seed-1"))
	require.NoError(t, err)
	require.NotNil(t, r.Best.TestAcc)

	code, out, stderr = gnnstore(t, append(small, "--vary", "model=tgn,jodie")...)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "all 2 runs failed; see gnnstore runs runs/graph-sweep-2")
	require.NotContains(t, out, "best:")

	code, out, stderr = gnnstore(t, append(small, "--vary", "heads=2,4", "--run", "alike")...)
	require.Zero(t, code, stderr)
	require.Contains(t, out, "note: trials 1 and 2 have the same weights")

	code, out, stderr = gnnstore(t, append(small, "--vary", "model=tgn,sage", "--plan")...)
	require.Zero(t, code, stderr)
	require.Regexp(t, `\n +1 +tgn +fails +- *\n +2 +sage +[0-9.]+ [KMG]iB`, out)
	require.Contains(t, out, "\n2 settings, 2 runs, one after the other, so the sweep takes the memory of one run\n")
}
