package run

import (
	"os"

	"golang.org/x/sys/unix"
)

// preallocate reserves space for a file without changing its size.
func preallocate(f *os.File, offset, size int64) error {
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, offset, size)
}
