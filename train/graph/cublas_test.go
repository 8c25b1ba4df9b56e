//go:build cuda && linux

package graph

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels/cuda"
	"github.com/gnnstore/gnnstore/kernels/cuda/clib"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestCublas: networks train to the losses of the CPU with products by a cuBLAS of the host. A step
// of GraphSAGE with three layers launches at most 36 kernels and products. Its matrices are small,
// so cuBLAS makes all products.
func TestCublas(t *testing.T) {
	const variable = "GNN_CUBLAS_TEST_FOLDER"
	folder := os.Getenv(variable)
	if folder == "" { // in a process of its own, since a process calls one driver
		folder = t.TempDir()
		err := errors.Join(clib.BuildDriver(folder), clib.BuildCublas(folder))
		if errors.Is(err, clib.ErrNoCompiler) {
			t.Skip(err)
		}
		require.NoError(t, err)
		child := exec.Command(os.Args[0], "-test.v", "-test.run", "^TestCublas$")
		child.Env = append(os.Environ(), variable+"="+folder)
		out, err := child.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "--- PASS: TestCublas")
		return
	}
	be, err := cuda.Open(cuda.Options{
		Library: filepath.Join(folder, driver.DefaultLibrary), Products: cuda.CublasProducts, CublasFolder: folder,
	})
	require.NoError(t, err)
	h := run.Hooks{Backend: be}
	runs := aheadRuns(t)
	for _, name := range []string{"sage", "gcn", "gat", "hgt", "links", "history"} {
		c := runs[name]
		c.o.LogEvery, c.o.Batch = 1, 40
		closeLosses(t, lossesIn(t, 20, c.ds, c.o, run.Hooks{}), lossesIn(t, 20, c.ds, c.o, h), name)
	}
	ds, o := open(t, storetest.Communities(6000, 4, 8, 64, 2)), small()
	o.Layers, o.Fanouts, o.Hidden, o.Batch, o.Epochs = 3, []int{5, 4, 3}, 64, 100, 1
	// A step also launches work for the next one, but the last step of an epoch has no next one. So
	// two epochs differ by the launches of the longer epoch's extra steps.
	launches := func(steps int) (n int64) {
		before := be.Counts()
		h.Step = func(int, int, int, float64) { n = be.Counts().Sub(before).Launches }
		o.EpochSteps = steps
		lossesIn(t, steps+1, ds, o, h)
		return n
	}
	few := launches(4)
	require.LessOrEqual(t, launches(12)-few, int64(36*8)) // 1 of 36 for rows on the device
	require.NoError(t, be.Close())
}
