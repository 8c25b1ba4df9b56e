package trace

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFullDisk: the error is one line with a remedy.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	require.NoError(t, err)
	r, err := newRequests(t.TempDir())
	require.NoError(t, err)
	defer r.close()
	require.NoError(t, r.file.Close())
	r.file = full
	require.NoError(t, r.add([]uint32{1, 2, 3}))
	err = r.finish()
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, "make room, take fewer {steps}, or give another directory with {tmp}")
}
