package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTrainSeeds trains by three seeds. Each run has the weights that it has alone, and a second
// command goes on with what is missing.
func TestTrainSeeds(t *testing.T) {
	t.Chdir(t.TempDir())
	run := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		code, stdout, stderr := gnnstore(t, args...)
		require.Equal(t, want, code, stderr)
		return stdout, stderr
	}
	run(0, "generate", "citations", "graph.gnn", "--nodes", "2000", "--classes", "3")
	train := []string{"train", "graph.gnn", "--epochs", "2", "--hidden", "4", "--fanout", "3,3"}
	with := func(more ...string) []string { return append(train[:len(train):len(train)], more...) }
	out, _ := run(0, with("--seeds", "3", "--seed", "7", "--run", "runs/s")...)
	require.Contains(t, out, "seed 8, run 2 of 3\n")
	require.Regexp(t, `over 3 seeds of graph.gnn: valid [0-9.]+ ± [0-9.]+ %, test [0-9.]+ ± [0-9.]+ %\n$`, out)

	run(0, with("--seed", "9", "--run", "alone")...)
	listed := func(args ...string) (list runList) {
		out, _ := run(0, args...)
		require.NoError(t, json.Unmarshal([]byte(out), &list))
		return list
	}
	list := listed("runs", "runs/s", "--json", "--sort", "run")
	require.Equal(t, []uint64{7, 8, 9}, list.Seeds[0].Seeds)
	require.Equal(t, listed("runs", "alone", "--json").Runs[0].Params, list.Runs[2].Params)

	// A missing run is trained again, and the others are kept.
	before, err := os.Stat("runs/s/seed-7/result.json")
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll("runs/s/seed-8"))
	require.Equal(t, list.Seeds[0].Valid, listed(with("--seeds", "3", "--seed", "7", "--run", "runs/s", "--resume", "--json")...).Seeds[0].Valid)
	after, err := os.Stat("runs/s/seed-7/result.json")
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime())

	// Runs whose loss is no number do not end the others, and are no part of the mean.
	require.NoError(t, os.WriteFile("edges.csv", []byte("src,dst\n1,2\n2,3\n3,1\n"), 0o666))
	require.NoError(t, os.WriteFile("nodes.csv", []byte("id,x,label,split\n1,3e38,0,train\n2,-3e38,1,train\n3,3e38,1,valid\n"), 0o666))
	run(0, "ingest", "csv", "edges.csv", "large.gnn", "--nodes", "nodes.csv", "--dtype", "f32")
	_, stderr := run(1, "train", "large.gnn", "--epochs", "2", "--seeds", "2", "--run", "bad")
	require.Contains(t, stderr, "seed 1 failed: ")
	require.Contains(t, stderr, "all 2 runs failed; see gnnstore runs bad")

	// A dataset that cannot be opened leaves nothing behind.
	_, stderr = run(1, "train", "edges.csv", "--seeds", "2", "--run", "later")
	require.Contains(t, stderr, "edges.csv: a dataset is a directory, and this is a file")
	require.NoDirExists(t, "later")

	require.NoError(t, os.WriteFile("file", nil, 0o666))
	for want, args := range map[string][]string{
		"--seeds 1: from 2 to 1000; --seed chooses the seed of one run": with("--seeds", "1"),
		"a plan is of one run; leave --seeds out":                       with("--seeds", "2", "--plan"),
		"--seeds makes a directory of runs; choose another":             with("--seeds", "2", "--run", "alone"),
		"name the DATASET, since some of the runs may not have begun":   {"train", "--resume", "--seeds", "2", "--run", "runs/s"},
		"it holds runs already; --resume goes on with them":             with("--seeds", "2", "--run", "runs/s"),
		"it holds other files than the runs of --seeds; choose another": with("--seeds", "2", "--run", "."),
		"run directory: mkdir file: not a directory":                    with("--seeds", "2", "--run", "file"),
		"resume runs/s/seed-7: --hidden is 8 and the run's is 4":        with("--seeds", "2", "--seed", "7", "--hidden", "8", "--run", "runs/s", "--resume"),
	} {
		code, _, stderr := gnnstore(t, args...)
		require.NotZero(t, code)
		require.Contains(t, stderr, want)
	}
	run(0, with("--seeds", "2")...)
	require.DirExists(t, "runs/graph-seeds-1/seed-2")
}
