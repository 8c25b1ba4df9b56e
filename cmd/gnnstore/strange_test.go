package main

import (
	"fmt"
	"hash/maphash"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/storetest"
)

// snapshot returns what a directory holds: of each name its mode, time and content.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%v %v", info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %d bytes %x", len(b), maphash.Bytes(seedOfSnapshots, b))
		}
		all[path] = text
		return nil
	}))
	return all
}

var seedOfSnapshots = maphash.MakeSeed()

// strangeRun is a small run, with the commands to make and use it.
type strangeRun struct {
	name    string
	data    []string // the command that makes the dataset, at data
	train   []string
	predict []string
}

// strangeRuns has one run of each kind that is read beyond its weights, and one that is not.
var strangeRuns = []strangeRun{
	{"table", []string{"generate", "reddit", "data", "--nodes", "300", "--edges", "2000"}, []string{"--hidden", "8"}, nil},
	{
		"learnt rows", []string{"generate", "reddit", "data", "--nodes", "300", "--edges", "2000"},
		[]string{"--input", "node=embed:8", "--model", "rsage", "--hidden", "8"}, nil,
	},
	{
		"stream", []string{"generate", "drift-s", "data"}, []string{"--model", "tgn", "--hidden", "4"},
		[]string{"--what", "embeddings", "--type", "user"},
	},
}

// made trains the run in work/run.
func (s strangeRun) made(t *testing.T, work string) (run string) {
	t.Helper()
	data := filepath.Join(work, "d.gnn")
	run = filepath.Join(work, "run")
	make := append([]string{}, s.data...)
	make[2] = data
	for _, args := range [][]string{make, append([]string{"train", data, "--epochs", "2", "--run", run, "--host-memory", "64KiB"}, s.train...)} {
		code, _, stderr := gnnstore(t, args...)
		require.Zero(t, code, stderr)
	}
	return run
}

// readers returns the commands that only read a run, as users type them; they write to out.
func (s strangeRun) readers(run, out string) [][]string {
	return [][]string{
		append([]string{"predict", run, out, "--force"}, s.predict...),
		append([]string{"predict", run, out, "--force", "--checkpoint", "last"}, s.predict...),
		{"eval", run}, {"eval", run, "--json", "--checkpoint", "last"},
		{"stats", run}, {"stats", run, "--json"},
	}
}

// TestReadersWriteNothing: eval, predict and stats work on a read-only run. Afterwards the run is
// the same, down to the times of its directories.
func TestReadersWriteNothing(t *testing.T) {
	storetest.Long(t)
	for _, s := range strangeRuns {
		t.Run(s.name, func(t *testing.T) {
			work := t.TempDir()
			tmp := filepath.Join(work, "tmp")
			require.NoError(t, os.Mkdir(tmp, 0o777))
			t.Setenv("TMPDIR", tmp)
			run := s.made(t, work)
			closed := func(mode fs.FileMode) {
				require.NoError(t, filepath.WalkDir(run, func(path string, d fs.DirEntry, err error) error {
					if err == nil && d.IsDir() {
						err = os.Chmod(path, mode)
					}
					return err
				}))
			}
			closed(0o555)
			defer closed(0o777)
			before := snapshot(t, run)
			for _, args := range s.readers(run, filepath.Join(work, "out.csv")) {
				code, _, stderr := gnnstore(t, args...)
				require.Zero(t, code, "%v: %s", args, stderr)
				require.Equal(t, before, snapshot(t, run), "%v", args)
			}
			left, err := os.ReadDir(tmp)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// TestLinksInRuns: if a name in a run is a link, a pipe, or a directory instead of a file, each
// command refuses it in one line, or does not use it. Nothing is written through a link, nor in the
// run. Each two of a name, a replacement and a command meet, but not all three. Names that all runs
// have meet other triples in each run.
func TestLinksInRuns(t *testing.T) {
	storetest.Long(t)
	for shift, s := range strangeRuns {
		t.Run(s.name, func(t *testing.T) {
			work := t.TempDir()
			t.Setenv("TMPDIR", work)
			run, victim, out := s.made(t, work), filepath.Join(work, "victim"), filepath.Join(work, "out.csv")
			require.NoError(t, os.Mkdir(victim, 0o777))
			require.NoError(t, os.WriteFile(filepath.Join(victim, "mine"), []byte("mine"), 0o666))
			commands := [][]string{
				append([]string{"predict", run, out, "--force"}, s.predict...), {"eval", run}, {"stats", run},
				{"train", "--resume", "--run", run, "--epochs", "3"},
			}
			there, whole := snapshot(t, run), filepath.Join(work, "whole")
			require.NoError(t, os.CopyFS(whole, os.DirFS(run)))
			require.Greater(t, len(there), 7)
			for i, path := range slices.Sorted(maps.Keys(there)) {
				is := there[path]
				if path == run {
					continue
				}
				moved := filepath.Join(victim, "moved")
				replace := map[string]func() error{
					"link to what was there": func() error { return os.Symlink(moved, path) },
					"link inside the run":    func() error { return os.Symlink(filepath.Join(run, "run.json"), path) },
					"link to nothing":        func() error { return os.Symlink(filepath.Join(victim, "none"), path) },
					"link to a directory":    func() error { return os.Symlink(victim, path) },
					"pipe":                   func() error { return syscall.Mkfifo(path, 0o666) },
				}
				if !strings.HasPrefix(is, "d") {
					replace["directory"] = func() error { return os.Mkdir(path, 0o777) }
				} else {
					replace["file"] = func() error { return os.WriteFile(path, []byte("x"), 0o666) }
				}
				for j, kind := range slices.Sorted(maps.Keys(replace)) {
					require.NoError(t, os.Rename(path, moved))
					require.NoError(t, replace[kind]())
					before := []map[string]string{snapshot(t, run), snapshot(t, victim)}
					args := commands[(i+j+shift)%len(commands)]
					what := fmt.Sprintf("%s, %s: %v", strings.TrimPrefix(path, run), kind, args)
					code, _, stderr := gnnstore(t, args...)
					if kind != "directory" && kind != "file" {
						require.Equal(t, 1, code, "%s: %s", what, stderr)
					}
					if code != 0 {
						require.Equal(t, 1, strings.Count(stderr, "gnnstore: "), "%s: %s", what, stderr)
						require.Contains(t, stderr, path, what)
					}
					if code != 0 || args[0] != "train" {
						require.Equal(t, before, []map[string]string{snapshot(t, run), snapshot(t, victim)}, what)
					}
					require.NoError(t, os.RemoveAll(moved))
					require.NoError(t, os.RemoveAll(run)) // training may replace what it needs
					require.NoError(t, os.CopyFS(run, os.DirFS(whole)))
				}
			}
		})
	}
}

// TestNewestCheckpointMissing: if the newest checkpoint is damaged or gone, commands use an older
// one only on request.
func TestNewestCheckpointMissing(t *testing.T) {
	storetest.Long(t)
	for _, s := range strangeRuns {
		t.Run(s.name, func(t *testing.T) {
			work := t.TempDir()
			t.Setenv("TMPDIR", work)
			run, out := s.made(t, work), filepath.Join(work, "out.csv")
			checkpoints, err := filepath.Glob(filepath.Join(run, "checkpoints", "*.safetensors"))
			require.NoError(t, err)
			require.Greater(t, len(checkpoints), 1)
			newest := checkpoints[len(checkpoints)-1]
			whole, err := os.ReadFile(newest)
			require.NoError(t, err)
			whole[len(whole)-len(whole)/8] ^= 1 // of a tensor
			for kind, do := range map[string]func() error{
				"its newest checkpoint is gone": func() error { return os.Remove(newest) },
				"checksum differs":              func() error { return os.WriteFile(newest, whole, 0o666) },
			} {
				require.NoError(t, do())
				for _, args := range s.readers(run, out) {
					if args[0] == "stats" {
						continue
					}
					code, _, stderr := gnnstore(t, args...)
					require.Equal(t, 1, code, "%s: %v: %s", kind, args, stderr)
					require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
					require.Contains(t, stderr, kind)
					require.Contains(t, stderr, "--older-checkpoint")
					code, _, stderr = gnnstore(t, append(args, "--older-checkpoint")...)
					require.Zero(t, code, "%s: %v: %s", kind, args, stderr)
					require.Contains(t, stderr, kind)
				}
			}
		})
	}
}
