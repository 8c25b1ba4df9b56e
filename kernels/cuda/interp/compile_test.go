package interp

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// clangVersion made the PTX of testdata. Another may write other text for the same kernels.
const clangVersion = "19.1.7"

// clang makes the PTX of testdata from the sources beside it, byte for byte.
func TestSourcesCompileToTheirPTX(t *testing.T) {
	clang, err := exec.LookPath("clang-19")
	if err != nil {
		t.Skip("no tool: clang-19 is not installed, and the PTX of testdata is not compared with its sources")
	}
	version, err := exec.Command(clang, "--version").Output()
	require.NoError(t, err)
	if !strings.Contains(string(version), "version "+clangVersion+" ") {
		t.Skipf("another version: clang-19 is not %s, and the PTX of testdata is not compared with its sources", clangVersion)
	}
	sources, err := filepath.Glob("testdata/*.cu")
	require.NoError(t, err)
	require.Len(t, sources, 6)
	for _, source := range sources {
		name := strings.TrimSuffix(filepath.Base(source), ".cu")
		out := filepath.Join(t.TempDir(), name+".ptx")
		cmd := exec.Command(clang, "-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_80", "--cuda-feature=+ptx78",
			"-nocudainc", "-nocudalib", "-O3", "-Wall", "-Werror", "-S", "-o", out, filepath.Base(source))
		cmd.Dir = "testdata"
		said, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", said)
		want, err := os.ReadFile(out)
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join("testdata", name+".ptx"))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "%s has changed since it was compiled", source)
	}
}
