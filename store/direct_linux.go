package store

import (
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// directMode records whether writes to a file bypass the page cache (O_DIRECT). Such writes need
// aligned memory, offsets and sizes, and cost a quarter of the processor time.
type directMode struct{ on, refused bool }

// set switches O_DIRECT on or off, and reports whether f now has the wanted mode. Files without a
// descriptor, and file systems that refuse the flag, keep using the page cache.
func (d *directMode) set(f vfs.File, on bool) bool {
	if d.on == on {
		return true
	}
	fd := f.Fd()
	if d.refused || fd == vfs.InvalidFd {
		return !on
	}
	flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
	if err == nil && on {
		_, err = unix.FcntlInt(fd, unix.F_SETFL, flags|unix.O_DIRECT)
	} else if err == nil {
		_, err = unix.FcntlInt(fd, unix.F_SETFL, flags&^unix.O_DIRECT)
	}
	if err != nil {
		d.refused = true
		return false
	}
	d.on = on
	return true
}

// refuse makes f use the page cache from now on.
func (d *directMode) refuse(f vfs.File) {
	d.set(f, false)
	d.refused = true
}
