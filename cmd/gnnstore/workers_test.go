package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/graph"
	"github.com/gnnstore/gnnstore/train/run"
)

// tinyDataset makes a dataset with a split.
func tinyDataset(t *testing.T) string {
	t.Helper()
	work := t.TempDir()
	data := filepath.Join(work, "d.gnn")
	require.NoError(t, os.WriteFile(filepath.Join(work, "tiny.npz"), tinyNPZ(nil), 0o666))
	code, _, stderr := gnnstore(t, "ingest", "npz", filepath.Join(work, "tiny.npz"), data, "--split", "random:0.5/0.2/0.3")
	require.Zero(t, code, stderr)
	return data
}

// TestWorkers: workers of one process print once, leave a run that others read, and resume as many
// as they were.
func TestWorkers(t *testing.T) {
	data := tinyDataset(t)
	dir := filepath.Join(t.TempDir(), "run")
	train := []string{"train", data, "--run", dir, "--epochs", "2", "--hidden", "4", "--fanout", "2,2", "--batch", "8"}
	code, stdout, stderr := gnnstore(t, append(train, "--dist", "local:3")...)
	require.Zero(t, code, stderr)
	require.Regexp(t, `(?m)^3 workers, independent: 0 to 2 on .* \(process \d+\)$`, stdout)
	require.Regexp(t, `(?s)^run .*epoch 1/2.*epoch 2/2.*done after 2 epochs.*predict: gnnstore predict [^\n]*\n$`, stdout)
	require.Regexp(t, `(?m)^3 workers: rows \d+ \(worker \d most, \d+\), read from disk .*, sent .*, time in exchanges .*\. Below: worker 0$`, stdout)
	code, stdout, stderr = gnnstore(t, "stats", dir, "--worker", "2")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, ". Below: worker 2\n")
	code, stdout, stderr = gnnstore(t, "stats", dir, "--json", "--worker", "2")
	require.Zero(t, code, stderr)
	var r run.Result
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	require.Equal(t, run.Done, r.Status)
	require.Len(t, r.Epochs, 2)
	require.NoFileExists(t, filepath.Join(dir, "workers", "2", "last.safetensors"))
	code, _, stderr = gnnstore(t, "eval", dir)
	require.Zero(t, code, stderr)
	code, _, stderr = gnnstore(t, "predict", dir, filepath.Join(t.TempDir(), "p.csv"))
	require.Zero(t, code, stderr)

	code, stdout, stderr = gnnstore(t, "train", "--resume", "--run", dir, "--epochs", "3")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "\n3 workers, independent")
	require.NotContains(t, stderr, "goes on with")
	code, stdout, stderr = gnnstore(t, "train", "--resume", "--run", dir, "--epochs", "4", "--dist", "off")
	require.Zero(t, code, stderr)
	require.NotContains(t, stdout, "workers, independent")
	require.Contains(t, stderr, "note: the run began with 3 workers and goes on with 1: results will differ in their last bits\n")
}

// TestLearntRowsOfWorkers: a run whose workers own learnt rows is measured, and predicts nodes, by
// as many workers as it had. What they cannot do is refused in a line.
func TestLearntRowsOfWorkers(t *testing.T) {
	data := tinyDataset(t)
	tmp := t.TempDir()
	dir := filepath.Join(tmp, "run")
	train := []string{"train", data, "--run", dir, "--epochs", "2", "--hidden", "4", "--fanout", "2,2", "--batch", "8"}
	code, stdout, stderr := gnnstore(t, append(train, "--dist", "local:3", "--parallel", "parts", "--input", "node=embed:4")...)
	require.Zero(t, code, stderr)
	require.Regexp(t, `(?m)^3 workers, parts: 0 to 2 on `, stdout)
	code, stdout, stderr = gnnstore(t, "eval", dir)
	require.Zero(t, code, stderr)
	require.Regexp(t, `(?m)^test +accuracy `, stdout)
	code, _, stderr = gnnstore(t, "predict", dir, filepath.Join(tmp, "p.csv"))
	require.Zero(t, code, stderr)
	rows := filepath.Join(tmp, "rows.csv")
	code, stdout, stderr = gnnstore(t, "predict", dir, rows, "--what", "embeddings", "--layer", "0")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "60 nodes of type node")
	code, _, stderr = gnnstore(t, "predict", dir, filepath.Join(tmp, "x"), "--plan")
	require.NotZero(t, code)
	require.Contains(t, stderr, "--plan: the learnt rows of the run are dealt out among 3 workers, and a plan is made for one worker; leave --plan out\n")
	code, _, stderr = gnnstore(t, "train", "--resume", "--run", dir, "--epochs", "3", "--dist", "local:2")
	require.NotZero(t, code)
	require.Contains(t, stderr, "learnt rows of 3 workers, and there are 2 now; go on with --dist local:3, or mpi:3\n")
	code, _, stderr = gnnstore(t, "train", "--resume", "--run", dir, "--epochs", "3")
	require.Zero(t, code, stderr)
	next := []string{"train", data, "--run", filepath.Join(tmp, "next"), "--epochs", "1", "--hidden", "4", "--fanout", "2,2", "--batch", "8"}
	code, _, stderr = gnnstore(t, append(next, "--dist", "local:2", "--parallel", "parts", "--input", "node=embed:4", "--init-rows", "node="+rows)...)
	require.Zero(t, code, stderr)
}

// TestWorkersMisuse: what several workers cannot do is refused in a line.
func TestWorkersMisuse(t *testing.T) {
	data := tinyDataset(t)
	for _, c := range []struct{ args, want string }{
		{"--dist local", "gnnstore: --dist \"local\": there are auto, off, local:V, mpi and mpi:V, where V is the number of workers\n"},
		{"--dist local:0", "gnnstore: --dist \"local:0\": from 1 to 4096 workers\n"},
		{"--dist mpi:2", "gnnstore: --dist mpi: this program has no MPI: start gnnstore-mpi, which is built with -tags mpi\n"},
		{"--dist-timeout 5s", "gnnstore: --dist-timeout 5s: it goes with --dist\n"},
		{"--topology x.yaml", "gnnstore: --topology x.yaml: it goes with --dist\n"},
		{"--dist local:2 --topology /nothing.yaml", "gnnstore: --topology: open /nothing.yaml: no such file or directory; " +
			"name another file, or take --topology none\n"},
		{"--dist local:2 --plan --topology /dev/null", "gnnstore: --topology: /dev/null: "},
		{"--dist mpi --plan", "gnnstore: --dist mpi: a plan starts no processes; say how many there will be: --dist mpi:V\n"},
		{"--dist mpi:2 --plan --network fast", "gnnstore: --network \"fast\": a rate and, if known, the time of a small exchange, such as 10Gbit or 1Gbit,200us\n"},
		{"--dist local:2 --network 1Gbit", "gnnstore: --network 1Gbit: it goes with --plan; --parallel auto measures the network\n"},
		{"--dist local:2 --plan --network 1Gbit", "gnnstore: --network 1Gbit: it goes with --dist mpi:V; workers of one process exchange in memory\n"},
		{"--dist local:2 --parallel alone", "gnnstore: --parallel alone: there are independent, parts, cooperative and auto\n"},
		{"--dist local:2 --parallel parts --sampler rw --plan", "gnnstore: --parallel parts: --sampler rw compares lists, which have different owners"},
		{"--parallel parts", "gnnstore: --parallel parts: it goes with --dist\n"},
		{"--dist local:2 --parallel independent --input node=embed:4", "--dist local:2: each worker would change its own copy of learnt rows; " +
			"take --parallel parts, or give the types --input TYPE=table or TYPE=constant\n"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		code, stdout, stderr := gnnstore(t, append([]string{"train", data, "--run", dir}, strings.Fields(c.args)...)...)
		require.NotZero(t, code)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.want)
		require.NoDirExists(t, dir)
	}
}

// TestTopology: a run that exchanges in rounds has the weights of one that does not. A resumed run
// may have another topology, or none. What is no topology of its workers is refused in a line.
func TestTopology(t *testing.T) {
	storetest.Long(t)
	tmp := t.TempDir()
	data := filepath.Join(tmp, "d.gnn")
	code, _, stderr := gnnstore(t, "generate", "reddit", data, "--nodes", "2000", "--edges", "20k", "--dim", "128", "--undirected")
	require.Zero(t, code, stderr)
	write := func(name string, workers ...string) string {
		text := "workers: [" + strings.Join(workers, ", ") + "]\nlinks:\n"
		for _, w := range workers {
			text += "  - {between: [" + w + ", switch], rate: 10Gbit}\n"
		}
		file := filepath.Join(tmp, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
		return file
	}
	four, again, three := write("four.yaml", "a", "b", "c", "d"), write("again.yaml", "d", "c", "b", "a"), write("three.yaml", "a", "b", "c")
	runs := 0
	train := func(more ...string) (dir, params string) {
		runs++
		dir = filepath.Join(tmp, fmt.Sprint("run", runs))
		code, stdout, stderr := gnnstore(t, append([]string{
			"train", data, "--run", dir, "--epochs", "1", "--epoch-steps", "3", "--fanout", "10,5",
			"--hidden", "256", "--eval", "sampled", "--eval-nodes", "50", "--dist", "local:4", "--json",
		}, more...)...)
		require.Zero(t, code, stderr)
		var r run.Result
		require.NoError(t, json.Unmarshal([]byte(stdout), &r))
		return dir, r.ParamsXXH3
	}
	for _, way := range []string{"independent", "parts"} { // both have messages of more than 64 KiB
		_, want := train("--parallel", way)
		dir, params := train("--parallel", way, "--topology", four)
		require.Equal(t, want, params, way)
		text, err := os.ReadFile(filepath.Join(dir, "run.json"))
		require.NoError(t, err)
		require.Contains(t, string(text), fmt.Sprintf("%q: %q", "topology", four))
	}
	resumed := map[string]string{}
	for _, topology := range []string{four, again, "none"} {
		dir, _ := train("--topology", four)
		code, stdout, stderr := gnnstore(t, "train", "--resume", "--run", dir, "--epochs", "2", "--topology", topology, "--json")
		require.Zero(t, code, stderr)
		var r run.Result
		require.NoError(t, json.Unmarshal([]byte(stdout), &r))
		resumed[r.ParamsXXH3] = topology
		code, _, stderr = gnnstore(t, "train", "--resume", "--run", dir, "--epochs", "3", "--dist", "local:3", "--topology", again)
		require.NotZero(t, code)
		require.Equal(t, "gnnstore: --topology "+again+": it has 4 workers, and the run has 3; give a file for as many, or --topology none\n", stderr)
		code, _, stderr = gnnstore(t, "train", "--resume", "--run", dir, "--epochs", "3", "--dist", "local:3", "--topology", three)
		require.Zero(t, code, stderr)
	}
	require.Len(t, resumed, 1)
	require.NoError(t, os.WriteFile(three, []byte("workers: [a, b, c]\nlinks: [{between: [a, b], rate: 1GB}]\n"), 0o666))
	code, _, stderr = gnnstore(t, "train", data, "--dist", "local:3", "--topology", three)
	require.NotZero(t, code)
	require.Equal(t, "gnnstore: --topology "+three+": no links lead from worker \"a\" to worker \"c\"; add what is missing between them\n", stderr)
}

// TestWorkersAuto: --parallel auto takes a way and says so once. A resumed run keeps it, also if it
// is given auto again.
func TestWorkersAuto(t *testing.T) {
	data := tinyDataset(t)
	dir := filepath.Join(t.TempDir(), "run")
	train := []string{"train", data, "--run", dir, "--epochs", "2", "--hidden", "4", "--fanout", "2,2", "--batch", "8"}
	code, stdout, stderr := gnnstore(t, append(train, "--dist", "local:3", "--parallel", "auto")...)
	require.Zero(t, code, stderr)
	choice := regexp.MustCompile(`(?m)^note: --parallel (independent|parts): a step takes about .*, limited by \w+; ` +
		`\w+ would take .*, limited by \w+; a worker sends .* a second$`)
	said := choice.FindAllStringSubmatch(stderr, -1)
	require.Len(t, said, 1, stderr)
	way := said[0][1]
	require.Contains(t, stdout, "\n3 workers, "+way+": 0 to 2 on ")
	record := func() (r run.Record) {
		text, err := os.ReadFile(filepath.Join(dir, "run.json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &r))
		return r
	}
	began := record()
	require.Equal(t, way, began.Options.Parallel)
	require.Equal(t, way, began.AutoParallel.Way)
	for _, again := range [][]string{nil, {"--parallel", "auto"}} {
		code, stdout, stderr = gnnstore(t, append([]string{"train", "--resume", "--run", dir, "--epochs", fmt.Sprint(3 + len(again))}, again...)...)
		require.Zero(t, code, stderr)
		require.NotContains(t, stderr, "note: --parallel")
		require.Contains(t, stdout, "\n3 workers, "+way)
		require.Equal(t, began.AutoParallel, record().AutoParallel)
	}
	code, _, stderr = gnnstore(t, "train", "--resume", "--run", dir, "--epochs", "6", "--parallel", "parts")
	require.Zero(t, code, stderr)
	code, _, stderr = gnnstore(t, "train", "--resume", "--run", dir, "--epochs", "7", "--dist", "off")
	require.Zero(t, code, stderr, "one worker goes on with a run by parts")
	other := map[string]string{"independent": "parts", "parts": "independent"}[way]
	code, stdout, stderr = gnnstore(t, "train", "--resume", "--run", dir, "--epochs", "8", "--dist", "local:3", "--parallel", other)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "\n3 workers, "+other)
}

// TestWorkersPlan: a plan of several workers compares the ways, without processes.
func TestWorkersPlan(t *testing.T) {
	data := tinyDataset(t)
	plan := []string{"train", data, "--plan", "--hidden", "4", "--fanout", "2,2", "--batch", "8"}
	code, stdout, stderr := gnnstore(t, append(plan, "--dist", "mpi:3", "--network", "1kbit")...)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "3 workers, on a machine each, like this one. Each: memory ")
	require.Contains(t, stdout, "(--network 1kbit)\n")
	require.Regexp(t, `(?m)^ +takes +processors +disk +network +computing +drawing +gathering$`, stdout)
	require.Regexp(t, `(?m)^ +independent( +[\d.]+ m?s){7}$`, stdout)
	require.Regexp(t, `(?m)^ +parts( +[\d.]+ m?s){7}$`, stdout)
	require.Regexp(t, `(?m)^ +cooperative( +[\d.]+ m?s){7}$`, stdout)
	require.Contains(t, stdout, "\nadvised: --parallel independent, limited by computing\nan epoch of ")
	code, stdout, stderr = gnnstore(t, append(plan, "--dist", "mpi:3", "--parallel", "parts", "--json")...)
	require.Zero(t, code, stderr)
	var p graph.WorkersPlan
	require.NoError(t, json.Unmarshal([]byte(stdout), &p))
	require.Equal(t, []any{"parts", "assumed", 3, 1}, []any{p.Way, p.LinkFrom, p.Workers, p.Machine})
	for _, key := range []string{
		"dataset", "options", "workers", "workers_of_machine", "memory", "link", "bytes_per_second", "latency_seconds", "link_from", "steps", "drawn",
		"ways", "way", "seconds", "limiting_stage", "stages", "name", "input_rows", "sent_bytes", "ids", "lists", "rows", "hidden", "gradients", "row_bytes",
		"list_bytes", "most_sent_bytes", "most_read_bytes", "advised", "epoch_seconds",
	} {
		require.Contains(t, stdout, fmt.Sprintf("%q:", key))
	}
	code, stdout, stderr = gnnstore(t, append(plan, "--dist", "local:2", "--sampler", "rw")...)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "2 workers, on one machine. Each: ")
	require.Contains(t, stdout, "(measured in this process)\n")
	require.Contains(t, stdout, "\nparts is refused: --parallel parts: --sampler rw compares lists")
	code, stdout, stderr = gnnstore(t, append(plan, "--dist", "local:1")...)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "limited by ", "the plan of one worker")
	require.NotContains(t, stdout, "workers")

	parts := filepath.Join(t.TempDir(), "parts")
	code, _, stderr = gnnstore(t, "partition", data, parts, "--parts", "2")
	require.Zero(t, code, stderr)
	code, _, stderr = gnnstore(t, "train", parts, "--plan")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "a plan is made for a whole dataset; give that one, and --dist mpi:2\n")
}
