//go:build cuda && linux

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels/cuda/clib"
)

// TestCUDA runs the commands with --device cuda, as a user does, on a libcuda.so.1 that runs the
// kernels on the host, some with a libcublas.so.12 that computes products there. The scripts in
// testdata/cuda are the tests.
func TestCUDA(t *testing.T) {
	library, cublas := t.TempDir(), t.TempDir()
	err := errors.Join(clib.BuildDriver(library), clib.BuildCublas(cublas))
	if errors.Is(err, clib.ErrNoCompiler) {
		t.Skip(err)
	}
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/cuda",
		Setup: func(e *testscript.Env) error {
			e.Setenv("TMPDIR", e.WorkDir)
			e.Setenv("LD_LIBRARY_PATH", library)
			e.Setenv("CUBLAS", cublas) // for scripts that set GNNSTORE_CUBLAS
			return os.WriteFile(filepath.Join(e.WorkDir, "tiny.npz"), tinyNPZ(nil), 0o666)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			// sameresult A.json B.json compares losses and weights.
			"sameresult": func(ts *testscript.TestScript, neg bool, args []string) {
				if bytes.Equal(resultOf(ts, args[0]), resultOf(ts, args[1])) == neg {
					ts.Fatalf("same result: %v", !neg)
				}
			},
			"nearlosses": nearLosses,
		},
	})
}
