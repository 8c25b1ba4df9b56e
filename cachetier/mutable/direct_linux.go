package mutable

import (
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// setDirect has writes to f go past the page cache (O_DIRECT) or not, and says whether the file
// system does as it is told.
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
