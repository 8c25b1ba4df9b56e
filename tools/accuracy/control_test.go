package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestControls: with the norms of a control, the package that ranks them builds, and rejects other
// rows.
func TestControls(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a package twice")
	}
	t.Chdir("../..")
	text, err := os.ReadFile(controlled)
	require.NoError(t, err)
	file, err := filepath.Abs(controlled)
	require.NoError(t, err)
	for _, name := range controlNames() {
		changed, err := control(text, name)
		require.NoError(t, err)
		dir := t.TempDir()
		other, overlay := filepath.Join(dir, "verdict.go"), filepath.Join(dir, "overlay.json")
		require.NoError(t, os.WriteFile(other, changed, 0o666))
		require.NoError(t, os.WriteFile(overlay, []byte(`{"Replace":{"`+file+`":"`+other+`"}}`), 0o666))
		cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-vet=off", "-run", "TestCacheForLong", "./train/history")
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), "--- FAIL: TestCacheForLong", "it builds, and does not keep the rows of the smallest gradients")
	}
	_, err = control(text, "largest")
	require.EqualError(t, err, "-control largest: want inverse or random")
	_, err = control([]byte("package history\n"), "random")
	require.ErrorContains(t, err, "has another form than this tool knows")
}
