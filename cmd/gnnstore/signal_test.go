package main

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process starts gnnstore as a process of its own, by way of a shell that sets what it inherits.
func process(t *testing.T, setup string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	link := filepath.Join(t.TempDir(), "gnnstore") // TestMain goes by the name
	require.NoError(t, os.Symlink(exe, link))
	stderr := new(bytes.Buffer)
	cmd := exec.Command("sh", append([]string{"-c", setup + `exec "$0" "$@"`, link}, args...)...)
	cmd.Stderr = stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, stderr
}

// TestSignals: SIGHUP and SIGTERM end a run as Ctrl-C does, with a checkpoint; nohup holds SIGHUP
// off, and nothing SIGTERM.
func TestSignals(t *testing.T) {
	work := t.TempDir()
	data := filepath.Join(work, "d.gnn")
	require.NoError(t, os.WriteFile(filepath.Join(work, "tiny.npz"), tinyNPZ(nil), 0o666))
	code, _, stderr := gnnstore(t, "ingest", "npz", filepath.Join(work, "tiny.npz"), data, "--split", "random:0.5/0.2/0.3")
	require.Zero(t, code, stderr)
	for i, c := range []struct {
		setup string
		sends []syscall.Signal // the last ends it
	}{
		{"", []syscall.Signal{syscall.SIGHUP}},
		{"", []syscall.Signal{syscall.SIGTERM}},
		{"", []syscall.Signal{syscall.SIGINT}},
		{"trap '' HUP INT; ", []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM}},
		{"trap '' TERM; ", []syscall.Signal{syscall.SIGTERM}},
	} {
		if last := c.sends[len(c.sends)-1]; c.setup == "" && signal.Ignored(last) {
			continue // as SIGHUP is under nohup, and so by the program, which respects that
		}
		run := filepath.Join(work, string(rune('a'+i)))
		cmd, stderr := process(t, c.setup, "train", data, "--run", run, "--epochs", "1000000", "--hidden", "4", "--fanout", "2,2", "--batch", "8")
		require.Eventually(t, func() bool {
			r, err := (statsOptions{run: run}).look(t.Context())
			return err == nil && r.Live != nil && r.Live.Updates > 0
		}, time.Minute, 10*time.Millisecond, "%s", stderr)
		for j, s := range c.sends {
			if j > 0 {
				time.Sleep(50 * time.Millisecond)
				r, err := (statsOptions{run: run}).look(t.Context())
				require.NoError(t, err)
				require.NotNil(t, r.Live, "%v ended it", c.sends[j-1])
			}
			require.NoError(t, cmd.Process.Signal(s))
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatalf("%v does not end it", c.sends)
		}
		code := 128 + int(c.sends[len(c.sends)-1])
		require.Equal(t, code, cmd.ProcessState.ExitCode(), "%v: %s", c.sends, stderr)
		require.Contains(t, stderr.String(), "go on with gnnstore train --resume --run "+run)
		found, err := filepath.Glob(filepath.Join(run, "checkpoints", "*.safetensors"))
		require.NoError(t, err)
		require.NotEmpty(t, found)
	}
}

// TestSignalsAtAnyTime: whenever SIGTERM comes, an ingest ends, and leaves all of a dataset or
// none.
func TestSignalsAtAnyTime(t *testing.T) {
	work := t.TempDir()
	out := filepath.Join(work, "d.gnn")
	for delay := time.Duration(0); delay < 600*time.Millisecond; delay = delay*2 + time.Millisecond {
		cmd, stderr := process(t, "", "generate", "reddit", out, "--scale", "0.02")
		time.Sleep(delay)
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			_, serr := os.Stat(out)
			require.Equal(t, err == nil, serr == nil, "after %v: %s", delay, stderr)
			// Without an exit code, the signal came before there was a handler.
			if state := cmd.ProcessState; err != nil && state.Exited() {
				require.Equal(t, 143, state.ExitCode(), "after %v: %s", delay, stderr)
			}
			require.NoError(t, os.RemoveAll(out))
		case <-time.After(10 * time.Second):
			t.Fatalf("SIGTERM after %v does not end it: %s", delay, stderr)
		}
	}
}

// TestSignalsInReplay: whenever SIGTERM comes, a replay ends, and leaves all of a file or nothing,
// and no state in the run.
func TestSignalsInReplay(t *testing.T) {
	work := t.TempDir()
	data, run, out := filepath.Join(work, "d.gnn"), filepath.Join(work, "run"), filepath.Join(work, "x.npy")
	for _, args := range [][]string{{"generate", "drift-s", data}, {"train", data, "--model", "tgn", "--epochs", "1", "--hidden", "4", "--run", run}} {
		code, _, stderr := gnnstore(t, args...)
		require.Zero(t, code, stderr)
	}
	for delay := time.Duration(0); delay < 200*time.Millisecond; delay = delay*2 + time.Millisecond {
		cmd, stderr := process(t, "", "predict", run, out, "--type", "user", "--force")
		time.Sleep(delay)
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		err := cmd.Wait()
		_, serr := os.Stat(out)
		require.Equal(t, err == nil, serr == nil, "after %v: %s", delay, stderr)
		for _, left := range []string{"*.partial", "*.lock", "gnnstore-scratch-*"} {
			found, err := filepath.Glob(filepath.Join(work, left))
			require.NoError(t, err)
			require.Empty(t, found, "after %v: %s", delay, stderr)
		}
		if serr == nil {
			require.NoError(t, os.Remove(out))
			require.NoError(t, os.Remove(filepath.Join(work, "x.ids.npy")))
		}
	}
}
