//go:build cuda && linux

package cuda

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/clib"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
)

// TestLibrary: the backend conforms over a libcuda.so.1, by the provider that this binary was built
// with, whatever order the driver runs work in. Each order is a process: the library reads it once.
func TestLibrary(t *testing.T) {
	t.Parallel()
	if library := os.Getenv("GNN_CUDA_TEST_LIBRARY"); library != "" {
		b, err := Open(Options{Library: library, Products: OwnProducts})
		require.NoError(t, err)
		kerneltest.Run(t, func() kernels.Backend { return b })
		require.NoError(t, b.Close())
		return
	}
	folder := t.TempDir()
	err := clib.BuildDriver(folder)
	if errors.Is(err, clib.ErrNoCompiler) {
		t.Skip(err)
	}
	require.NoError(t, err)
	for _, order := range []string{"lazy", "fifo", "copies-first", "reverse"} {
		t.Run(order, func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.v", "-test.run", "^TestLibrary$")
			child.Env = append(os.Environ(), "GNN_CUDA_ORDER="+order,
				"GNN_CUDA_TEST_LIBRARY="+filepath.Join(folder, driver.DefaultLibrary))
			out, err := child.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "--- PASS: TestLibrary")
		})
	}
}
