package store

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// OpenFile opens an ordinary file for reading. Use it for every file that the user, a schema or a
// run directory names. It refuses pipes, devices and the like, since reading one may wait forever.
func OpenFile(path string) (*os.File, error) {
	f, _, err := OpenSized(path)
	return f, err
}

// OpenSized is [OpenFile], and also returns the size of the file in bytes.
func OpenSized(path string) (*os.File, int64, error) {
	if info, err := os.Stat(path); err == nil { // before opening: opening changes some devices
		if err := Regular(path, info.Mode()); err != nil {
			return nil, 0, err
		}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // never wait for a writer of a pipe
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil {
		err = Regular(path, info.Mode())
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// Regular returns an error unless mode is an ordinary file's.
func Regular(path string, mode fs.FileMode) error {
	kind := ""
	switch mode.Type() {
	case 0:
		return nil
	case fs.ModeDir:
		return fmt.Errorf("%s: it is a directory, not a file; name a file in it", path)
	case fs.ModeNamedPipe:
		kind = "named pipe"
	case fs.ModeSocket:
		kind = "socket"
	default:
		kind = "device"
	}
	return fmt.Errorf("%s: it is a %s, not a file; write what it gives to a file, and name that", path, kind)
}
