//go:build cuda && linux && gorgonia

package driver

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOneDriver: a process calls one driver. Opening it again is fine, and another is refused.
func TestOneDriver(t *testing.T) {
	f := openFake(t)
	_, err := Open(f.file)
	require.NoError(t, err)
	folder := filepath.Join(fakeFolder, "another")
	require.NoError(t, os.MkdirAll(folder, 0o777))
	_, err = Open(compile(t, folder))
	require.ErrorContains(t, err, "the process has opened another driver")
	v, err := f.DriverGetVersion() // of the first, still
	require.NoError(t, err)
	require.Equal(t, 13000, v)
	_, err = NewGPU(f.Calls, 0, MinVersion)
	require.NoError(t, err)
}

// TestCodes: the errors of gorgonia.org/cu have their code, and others have none.
func TestCodes(t *testing.T) {
	f := openFake(t)
	f.control(t, "fake_echo", 1)
	for _, code := range []Code{1, 2, 46, 222, 700, 999, 54321} { // some have no name in gorgonia.org/cu
		f.control(t, "fake_fail", 0, uintptr(code))
		require.ErrorIs(t, f.StreamSynchronize(0), code)
	}
	require.Equal(t, ErrUnknown, codeOf(errors.ErrUnsupported))
}
