package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/storetest"
)

// gnnstore runs a command that has to end, and gives its exit code and what it printed.
func gnnstore(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	done := make(chan int, 1)
	go func() { done <- execute(args, &out, &errs) }()
	select {
	case code = <-done:
	case <-time.After(time.Minute):
		t.Fatalf("gnnstore %s hangs", strings.Join(args, " "))
	}
	return code, out.String(), errs.String()
}

// pipeFor puts a named pipe, which nobody writes to, in the place of a file.
func pipeFor(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	require.NoError(t, syscall.Mkfifo(path, 0o666))
}

// TestPipesAsSources: an open of a pipe waits forever. No file of any source is opened so.
func TestPipesAsSources(t *testing.T) {
	storetest.Long(t)
	work := t.TempDir()
	at := func(name string) string { return filepath.Join(work, name) }
	fixtures := func(name, format string) string {
		require.NoError(t, os.CopyFS(at(name), os.DirFS(filepath.Join("..", "..", "ingest", format, "testdata"))))
		return at(name)
	}
	raw := func(kind string) string {
		code, _, stderr := gnnstore(t, "generate", kind, at(kind), "--raw", "--scale", "0.0001")
		require.Zero(t, code, stderr)
		return at(kind)
	}
	require.NoError(t, writeGraphSAINT(at("saint")))
	require.NoError(t, os.WriteFile(at("edges.csv"), []byte("0,1\n1,2\n2,0\n"), 0o666))
	require.NoError(t, os.WriteFile(at("nodes.csv"), []byte("id,label\n0,a\n1,b\n2,a\n"), 0o666))
	require.NoError(t, os.Mkdir(at("tables"), 0o777))
	for name, text := range map[string]string{"edges.csv": "src,dst\n0,1\n1,2\n2,0\n", "nodes.csv": "id,x\n0,1.5\n1,2\n2,3\n",
		"schema.yaml": "nodes:\n  - type: item\n    files: nodes.csv\n    id: id\n    features: [x]\nedges:\n" +
			"  - type: item:likes:item\n    files: edges.csv\n    src: src\n    dst: dst\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(at("tables"), name), []byte(text), 0o666))
	}
	graphbolt := fixtures("graphbolt", "graphbolt")
	mag := raw("mag240m")
	for _, source := range []struct {
		dir  string   // each file in it becomes a pipe in turn
		args []string // of ingest, without OUT
	}{
		{fixtures("planetoid", "planetoid"), []string{"planetoid", at("planetoid")}},
		{fixtures("hgb", "hgb") + "/tiny", []string{"hgb", at("hgb") + "/tiny"}},
		{graphbolt + "/typed", []string{"graphbolt", graphbolt + "/typed"}},
		{graphbolt + "/preprocessed", []string{"graphbolt", graphbolt + "/preprocessed"}},
		{at("saint"), []string{"graphsaint", at("saint")}},
		{raw("products"), []string{"ogb", at("products")}},
		{mag, []string{"mag240m", mag}},
		{at("tables"), []string{"table", at("tables") + "/schema.yaml"}},
	} {
		refused, files := 0, 0
		require.NoError(t, filepath.WalkDir(source.dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			files++
			body, err := os.ReadFile(path)
			require.NoError(t, err)
			pipeFor(t, path)
			for _, args := range [][]string{source.args, {"auto", source.args[1]}} {
				code, _, stderr := gnnstore(t, append(append([]string{"ingest"}, args...), at("out.gnn"))...)
				if code != 0 && strings.Contains(stderr, ": it is a named pipe, not a file; ") {
					refused++
				}
				if code == 0 { // it is not read
					require.NoError(t, os.RemoveAll(at("out.gnn")))
				}
				require.NoError(t, os.RemoveAll(at("out.gnn.partial")))
			}
			require.NoError(t, os.Remove(path))
			return os.WriteFile(path, body, 0o666)
		}))
		require.Greater(t, refused, files/2, source.dir)
		code, _, stderr := gnnstore(t, append(append([]string{"ingest"}, source.args...), at("out.gnn"))...)
		require.Zero(t, code, "%s", stderr)
		require.NoError(t, os.RemoveAll(at("out.gnn")))
	}
	for _, args := range [][]string{
		{"csv", "PIPE.csv"}, {"csv", "PIPE.csv.gz"}, {"npy", "PIPE.npy"}, {"npz", "PIPE.npz"}, {"pt", "PIPE.pt"}, {"hgb", "PIPE.zip"},
		{"ogb", "PIPE.zip"}, {"table", "PIPE.yaml"}, {"graphbolt", "bolt/metadata.yaml"}, {"csv", "edges.csv", "--nodes", "PIPE.csv"},
		{"csv", "edges.csv", "--nodes", "nodes.csv", "--node-features", "PIPE.json"},
	} {
		for i, a := range args {
			if !strings.ContainsRune(a, '.') {
				continue
			}
			args[i] = at(a)
			if strings.HasPrefix(a, "PIPE") || strings.HasPrefix(a, "bolt") {
				require.NoError(t, os.MkdirAll(filepath.Dir(args[i]), 0o777))
				pipeFor(t, args[i])
			}
		}
		code, _, stderr := gnnstore(t, append(append([]string{"ingest"}, args...), at("out.gnn"))...)
		require.Equal(t, 1, code, "%q", args)
		require.Contains(t, stderr, ": it is a named pipe, not a file; write what it gives to a file, and name that", "%q", args)
		require.Equal(t, 1, strings.Count(stderr, "\n"))
		code, _, stderr = gnnstore(t, "ingest", "auto", args[1], at("out.gnn"), "--plan")
		require.Equal(t, 1, code, stderr)
	}
	code, _, stderr := gnnstore(t, "ingest", "mag240m", mag, at("out.gnn"), "--full-features", at("PIPE.npy"))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "PIPE.npy: it is a named pipe, not a file")
}

// TestPipesInRuns: files of a run directory, and initial weights, are not read from pipes either.
func TestPipesInRuns(t *testing.T) {
	work := t.TempDir()
	data, pipe := filepath.Join(work, "d.gnn"), filepath.Join(work, "pipe.safetensors")
	require.NoError(t, os.WriteFile(filepath.Join(work, "tiny.npz"), tinyNPZ(nil), 0o666))
	code, _, stderr := gnnstore(t, "ingest", "npz", filepath.Join(work, "tiny.npz"), data, "--split", "random:0.5/0.2/0.3")
	require.Zero(t, code, stderr)
	train := func(run string, more ...string) []string {
		return append([]string{"train", data, "--run", run, "--epochs", "2", "--hidden", "4", "--fanout", "2,2"}, more...)
	}
	pipeFor(t, pipe)
	code, _, stderr = gnnstore(t, train(filepath.Join(work, "new"), "--init", pipe)...)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, pipe+": it is a named pipe, not a file; ")

	of := func(status string) string {
		run := filepath.Join(work, status)
		code, _, stderr := gnnstore(t, train(run, "--checkpoint-every", "1")...)
		require.Zero(t, code, stderr)
		if status == "died" {
			require.NoError(t, os.Remove(filepath.Join(run, "result.json")))
		}
		return run
	}
	for _, status := range []string{"done", "died"} {
		whole := of(status)
		require.NoError(t, os.WriteFile(filepath.Join(whole, "stats.addr"), nil, 0o666))
		require.NoError(t, os.WriteFile(filepath.Join(whole, "cache.resident"), nil, 0o666))
		refused := 0
		require.NoError(t, filepath.WalkDir(whole, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			name, err := filepath.Rel(whole, path)
			require.NoError(t, err)
			for _, command := range []string{"stats", "resume"} {
				run := filepath.Join(work, "copy")
				require.NoError(t, os.CopyFS(run, os.DirFS(whole)))
				pipeFor(t, filepath.Join(run, name))
				args := []string{"stats", run}
				if command == "resume" {
					args = []string{"train", "--resume", "--run", run}
				}
				code, _, stderr := gnnstore(t, args...)
				if code != 0 {
					require.Contains(t, stderr, name+": it is a named pipe; ", "%s with %s", command, name)
					require.Equal(t, 1, strings.Count(strings.TrimSuffix(stderr[strings.LastIndex(stderr, "gnnstore:"):], "\n")+"\n", "\n"))
					refused++
				}
				require.NoError(t, os.RemoveAll(run))
			}
			return nil
		}))
		require.GreaterOrEqual(t, refused, 3)
	}
}

// TestPipesAsDirectories: a pipe in the place of a dataset or of a run is refused at once.
func TestPipesAsDirectories(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	pipeFor(t, pipe)
	out := pipe + ".csv"
	for _, args := range [][]string{
		{"train", pipe, "--run", out}, {"train", pipe, "--resume", "--run", pipe}, {"stats", pipe}, {"eval", pipe},
		{"predict", pipe, out}, {"verify", pipe}, {"inspect", pipe}, {"trace", pipe}, {"export", pipe, out},
	} {
		code, _, stderr := gnnstore(t, args...)
		require.Equal(t, 1, code, "%q: %s", args, stderr)
		require.Contains(t, stderr, pipe+":", "%q", args)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		require.NoFileExists(t, out)
		require.NoDirExists(t, out)
	}
}
