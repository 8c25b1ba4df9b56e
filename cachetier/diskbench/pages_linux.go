package diskbench

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropPages takes the pages of f out of the page cache, those apart that a map holds. What is not written yet is, first.
func dropPages(f *os.File) error {
	if err := f.Sync(); err != nil {
		return err
	}
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}
