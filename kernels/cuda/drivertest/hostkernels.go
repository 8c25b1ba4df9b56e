//go:build cuda && linux

package drivertest

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels/cuda/clib"
)

// HostKernels returns the kernels compiled for the host, which it builds once in a process. A test
// skips without a compiler.
func HostKernels(t testing.TB) *clib.Library {
	t.Helper()
	l, err := hostKernels()
	if errors.Is(err, clib.ErrNoCompiler) {
		t.Skip(err)
	}
	require.NoError(t, err)
	return l
}

var hostKernels = sync.OnceValues(func() (*clib.Library, error) {
	folder, err := os.MkdirTemp("", "kernels-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder) // an open library needs its file no longer
	file := filepath.Join(folder, "kernels.so")
	if err := clib.Build(file); err != nil {
		return nil, err
	}
	return clib.Open(file)
})
