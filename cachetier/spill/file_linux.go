package spill

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// create makes a file without a name, with space for so many bytes. Its transfers bypass the page
// cache if the file system can.
func create(dir string, bytes int64) (f *os.File, err error) {
	for _, direct := range []int{unix.O_DIRECT, 0} {
		if f, err = open(dir, direct); err != nil {
			if direct != 0 && errors.Is(err, unix.EINVAL) {
				continue
			}
			return nil, err
		}
		break
	}
	if err = reserve(f, dir, bytes); err != nil {
		_ = f.Close() // it holds nothing
		return nil, err
	}
	return f, nil
}

// open makes the file by O_TMPFILE, or under a name that is removed at once.
func open(dir string, flags int) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE|unix.O_EXCL|flags, 0o600)
	if err == nil || !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.ENOENT) {
		return f, err
	}
	named, err := os.CreateTemp(dir, ".gnnstore-spill-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(named.Name())
	defer named.Close()
	return os.OpenFile(named.Name(), os.O_RDWR|flags, 0)
}

// reserve reserves space for so many bytes. If there is too little, the error names the free bytes.
func reserve(f *os.File, dir string, bytes int64) error {
	if free, err := Free(dir); err == nil && free < bytes {
		return fmt.Errorf("%d bytes are free: %w", free, unix.ENOSPC)
	}
	err := unix.Fallocate(int(f.Fd()), 0, 0, bytes)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return f.Truncate(bytes) // a write may find the disk full; Each then returns that error
	}
	return err
}

// Free returns the bytes that are free for this user on the disk of a directory.
func Free(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

// InMemory reports whether files of a directory lie in memory (tmpfs), which a spill is meant to
// save.
func InMemory(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && (st.Type == unix.TMPFS_MAGIC || st.Type == unix.RAMFS_MAGIC)
}
