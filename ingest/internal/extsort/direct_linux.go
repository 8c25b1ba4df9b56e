package extsort

import (
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// setDirect asks that transfers of f go around the page cache, or not. Where that is not to be had,
// they go through it.
func setDirect(f vfs.File, on bool) {
	fd := f.Fd()
	if fd == vfs.InvalidFd {
		return
	}
	if flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0); err == nil {
		if flags &^= unix.O_DIRECT; on {
			flags |= unix.O_DIRECT
		}
		_, _ = unix.FcntlInt(fd, unix.F_SETFL, flags)
	}
}
