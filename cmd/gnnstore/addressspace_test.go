package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAddressSpace: what ulimit -v has no room for is refused before it is tried; what is not told
// fits into what there is.
func TestAddressSpace(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says how much address space is taken")
	}
	const limit = "ulimit -v 4194304 && " // KiB; the program takes 1.2 GiB, most of it what Go reserves
	work := t.TempDir()
	npz, data := filepath.Join(work, "tiny.npz"), filepath.Join(work, "d.gnn")
	require.NoError(t, os.WriteFile(npz, tinyNPZ(nil), 0o666))
	ends := func(code int, args ...string) string {
		cmd, stderr := process(t, limit, args...)
		_ = cmd.Wait()
		require.Equal(t, code, cmd.ProcessState.ExitCode(), "%q: %s", args, stderr)
		return stderr.String()
	}
	ends(0, "ingest", "npz", npz, data, "--split", "random:0.5/0.2/0.3")
	train := []string{"train", data, "--run", filepath.Join(work, "run"), "--epochs", "1", "--hidden", "4", "--fanout", "2,2"}
	ends(0, train...)
	ends(0, "verify", data)
	refused := func(what string, args ...string) {
		stderr := ends(1, args...)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		require.Regexp(t, `^gnnstore: .*`+what+`: ulimit -v allows 4 GiB of address space, and [23].\d GiB of it are left beside the program; `+
			`raise it by [5-9].\d GiB, or set it to unlimited`, stderr)
	}
	refused("--memory is 8 GiB", "ingest", "npz", npz, filepath.Join(work, "o.gnn"), "--memory", "8GiB")
	refused("--memory is 8 GiB", "generate", "reddit", filepath.Join(work, "o.gnn"), "--memory", "8GiB")
	refused("d.gnn has .* to map, and --memory is 8 GiB", append(train, "--memory", "8GiB", "--run", filepath.Join(work, "other"))...)
	require.NoFileExists(t, filepath.Join(work, "other"))
	parts, own := filepath.Join(work, "parts"), filepath.Join(work, "byparts")
	ends(0, "partition", data, parts, "--parts", "2")
	train[1], train[3] = parts, own
	ends(0, train...)
	for _, args := range [][]string{append(train, "--run", filepath.Join(work, "more")), {"eval", own}, {"predict", own, filepath.Join(work, "p.csv")}} {
		refused("part-[01].gnn has .* to map, and --memory is 8 GiB", append(args, "--memory", "8GiB")...)
	}
	require.NoFileExists(t, filepath.Join(work, "p.csv"))
	large, err := os.Create(filepath.Join(data, "large"))
	require.NoError(t, err)
	require.NoError(t, large.Truncate(8<<30)) // a hole
	require.NoError(t, large.Close())
	for _, command := range []string{"verify", "inspect", "trace"} {
		refused("d.gnn has 8.0 GiB to map", command, data)
	}
}
