package diskbench

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropPages writes the dirty pages of f, and drops all its pages from the page cache, except pages
// that a memory map holds.
func dropPages(f *os.File) error {
	if err := f.Sync(); err != nil {
		return err
	}
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}
