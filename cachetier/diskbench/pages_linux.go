package diskbench

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropPages writes what is dirty of f, and takes its pages out of the page cache. Pages that a
// memory map holds stay.
func dropPages(f *os.File) error {
	if err := f.Sync(); err != nil {
		return err
	}
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}
