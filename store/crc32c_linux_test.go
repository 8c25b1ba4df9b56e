package store

import (
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestPageSumsBetweenFences checksums pages next to unreadable memory, at either end.
func TestPageSumsBetweenFences(t *testing.T) {
	n := max(unix.Getpagesize(), PageSize)
	m, err := unix.Mmap(-1, 0, 3*n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(m)) }()
	require.NoError(t, unix.Mprotect(m[:n], unix.PROT_NONE))
	require.NoError(t, unix.Mprotect(m[2*n:], unix.PROT_NONE))
	for _, page := range [][]byte{m[n : n+PageSize], m[2*n-PageSize : 2*n]} {
		page[7] = 77
		for _, way := range sumRoutines() {
			require.Equal(t, crc32.Checksum(page, castagnoli), way.sum(page), way.name)
		}
	}
}
