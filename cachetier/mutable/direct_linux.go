package mutable

import (
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// setDirect switches O_DIRECT for f on or off: with it, writes bypass the page cache. It reports
// whether the file system accepts that.
func setDirect(f vfs.File, on bool) bool {
	fd := f.Fd()
	if fd == vfs.InvalidFd {
		return false
	}
	flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
	if err == nil && on {
		_, err = unix.FcntlInt(fd, unix.F_SETFL, flags|unix.O_DIRECT)
	} else if err == nil {
		_, err = unix.FcntlInt(fd, unix.F_SETFL, flags&^unix.O_DIRECT)
	}
	return err == nil
}
