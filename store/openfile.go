package store

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// OpenFile opens an ordinary file for reading, as everything does that the user, a schema or a run
// directory names. It refuses what else may have a name: a read of a pipe or a device may wait
// forever.
func OpenFile(path string) (*os.File, error) {
	f, _, err := OpenSized(path)
	return f, err
}

// OpenSized is [OpenFile], and says how large the file is.
func OpenSized(path string) (*os.File, int64, error) {
	if info, err := os.Stat(path); err == nil { // before it is opened: to open some devices changes them
		if err := Regular(path, info.Mode()); err != nil {
			return nil, 0, err
		}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe that took its place does not wait for a writer
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

// Regular refuses a file of that mode unless it is an ordinary one.
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
