package resume

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKill kills a script that never ends at each kind of moment.
func TestKill(t *testing.T) {
	come := make(chan struct{})
	close(come)
	file := filepath.Join(t.TempDir(), "half")
	for name, at := range map[string]Moment{"a line": atLine(1), "a file": AtFile(file), "an event": atEvent(come)} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", `echo; printf 'read 1 %%\rread 2 %%\n' >&2; echo > "$0"; exec sleep 600`, file)
			_, killed, err := Kill(t.Context(), cmd, at)
			require.NoError(t, err)
			require.True(t, killed)
		})
	}
}

// TestKillNever runs scripts that end before the moment.
func TestKillNever(t *testing.T) {
	printed, killed, err := Kill(t.Context(), exec.Command("sh", "-c", `echo whole; echo one line >&2`), atLine(1))
	require.NoError(t, err)
	require.False(t, killed)
	require.Equal(t, "whole\n", string(printed))
	for script, want := range map[string]string{
		`echo why >&2; exit 1`: "exit status 1: why",
		`kill -9 $$`:           "signal: killed",
	} {
		_, killed, err = Kill(t.Context(), exec.Command("sh", "-c", script), never)
		require.ErrorContains(t, err, want)
		require.False(t, killed)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, _, err = Kill(ctx, exec.Command("true"), never)
	require.ErrorIs(t, err, context.Canceled)
}

func TestPick(t *testing.T) {
	require.Equal(t, []int{0, 1, 2}, pick(3, 5))
	require.Equal(t, []int{0, 24, 49, 74, 99}, pick(100, 5))
	require.Equal(t, []int{0}, pick(1, 5))
	require.Empty(t, pick(0, 5))
}
