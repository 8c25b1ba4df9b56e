package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// ErrLocked is in the chain when somebody else holds the lock.
var ErrLocked = errors.New("it is locked")

// Lock is a lock file that this process holds.
type Lock struct {
	fs   vfs.FS
	name string
	held io.Closer
}

// TakeLock locks the file of this name, and creates it, empty, if it is missing. The lock lasts
// until Release, or until the process ends, which leaves the file. TakeLock returns ErrLocked if
// somebody else holds the lock, in this process or another. It refuses a file that is not empty,
// since no lock file is.
func TakeLock(fsys vfs.FS, name string) (*Lock, error) {
	for range 100 { // between two steps the lock's holder may remove the file, and somebody else make a new one
		f, err := fsys.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			return nil, err
		}
		if f.Fd() == vfs.InvalidFd { // a file system in memory
			held, err := fsys.Lock(name)
			if isHeld(err) {
				err = fmt.Errorf("%s: %w", name, ErrLocked)
			}
			if err = errors.Join(f.Close(), err); err != nil {
				return nil, err
			}
			return &Lock{fsys, name, held}, nil
		}
		has, err := lockFile(f, name)
		if has {
			return &Lock{fsys, name, f}, nil
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: %w", name, ErrLocked)
}

// lockFile locks f, which was opened by this name. It returns false without an error if the name
// has gone meanwhile, or belongs to another file.
func lockFile(f vfs.File, name string) (bool, error) {
	var own, now unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &own); err != nil {
		return false, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if own.Mode&unix.S_IFMT != unix.S_IFREG || own.Size > 0 {
		return false, fmt.Errorf("%s: it is wanted for a lock, and is no empty file; move it away", name)
	}
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return false, fmt.Errorf("%s: %w", name, ErrLocked)
	case errors.Is(err, syscall.EINTR):
		return false, nil
	case err != nil:
		return false, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	switch err := unix.Stat(name, &now); {
	case errors.Is(err, syscall.ENOENT):
		return false, nil
	case err != nil:
		return false, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return own.Dev == now.Dev && own.Ino == now.Ino, nil
}

// Release removes the file and gives up the lock.
func (l *Lock) Release() error { return errors.Join(l.fs.Remove(l.name), l.held.Close()) }
