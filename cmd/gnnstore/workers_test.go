package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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

// TestWorkersMisuse: what several workers cannot do is refused in a line.
func TestWorkersMisuse(t *testing.T) {
	data := tinyDataset(t)
	for _, c := range []struct{ args, want string }{
		{"--dist local", "gnnstore: --dist \"local\": there are auto, off, local:V, mpi and mpi:V, where V is the number of workers\n"},
		{"--dist local:0", "gnnstore: --dist \"local:0\": from 1 to 4096 workers\n"},
		{"--dist mpi:2", "gnnstore: --dist mpi: this program has no MPI: start gnnstore-mpi, which is built with -tags mpi\n"},
		{"--dist-timeout 5s", "gnnstore: --dist-timeout 5s: it goes with --dist\n"},
		{"--dist local:2 --history", "gnnstore: --dist local:2: --history: rows of earlier steps are not shared among workers; leave one of the two out\n"},
		{"--dist local:2 --plan", "gnnstore: --dist local:2: a plan is of one worker; leave --dist out\n"},
		{"--dist local:2 --parallel alone", "gnnstore: --parallel alone: there are independent and parts\n"},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		code, stdout, stderr := gnnstore(t, append([]string{"train", data, "--run", dir}, strings.Fields(c.args)...)...)
		require.NotZero(t, code)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.want)
		require.NoDirExists(t, dir)
	}
}
