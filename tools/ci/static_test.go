package main

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInterpreter: a program that is linked by Go alone needs none, and the system's shell, mostly,
// does.
func TestInterpreter(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("programs of Linux are looked at")
	}
	file := filepath.Join(t.TempDir(), "static")
	build := exec.Command("go", "build", "-o", file, "github.com/gnnstore/gnnstore/tools/check")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	needs, err := interpreter(file)
	require.NoError(t, err)
	require.False(t, needs)
	if shell, err := exec.LookPath("bash"); err == nil {
		needs, err := interpreter(shell)
		require.NoError(t, err)
		require.True(t, needs, shell)
	}
}

func TestBuildLine(t *testing.T) {
	found := buildLine.FindStringSubmatch("text\n    CGO_ENABLED=0 go build -o gnnstore ./cmd/gnnstore     # static\n")
	require.Equal(t, []string{"CGO_ENABLED=0 go build -o ", " ./cmd/gnnstore"}, found[1:])
	require.NotNil(t, buildLine.FindStringSubmatch("    go build -o gnnstore ./cmd/gnnstore\n"))
	require.Nil(t, buildLine.FindStringSubmatch("go build ./cmd/gnnstore\n"))
}

func TestPlain(t *testing.T) { require.NoError(t, plain(t.Context())) }
