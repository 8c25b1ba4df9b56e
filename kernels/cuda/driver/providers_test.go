//go:build cuda && linux && !gorgonia

package driver

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGorgonia builds the other provider as doc.go describes, and runs with it the tests of this
// package and the scenarios of package clib. NVIDIA's headers come from the folder that
// GNNSTORE_CUDA_HEADERS names.
func TestGorgonia(t *testing.T) {
	headers := os.Getenv("GNNSTORE_CUDA_HEADERS")
	if _, err := os.Stat(filepath.Join(headers, "cuda.h")); headers == "" || err != nil {
		t.Skip("GNNSTORE_CUDA_HEADERS names no folder with NVIDIA's cuda.h")
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no tool: needs gcc")
	}
	own, err := filepath.Abs("_cuda13")
	require.NoError(t, err)
	library := t.TempDir()
	run := func(args ...string) string {
		cmd := exec.Command("go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "CGO_CFLAGS=-I"+own+" -I"+headers, "CGO_LDFLAGS=-L"+library)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	run("run", "../../../tools/libcuda", library)
	flags := []string{"test", "-count=1", "-v", "-tags", "cuda,gorgonia"}
	if testing.Short() {
		flags = append(flags, "-short")
	}
	require.Contains(t, run(append(flags, ".")...), "--- PASS: TestABI")
	require.Contains(t, run(append(flags, "-run", "^TestDriver$", "../clib")...), "--- PASS: TestDriver/")
}
