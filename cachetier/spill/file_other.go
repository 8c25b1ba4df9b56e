//go:build !linux

package spill

import (
	"errors"
	"os"
)

// create makes a file of so many bytes, and removes its name. Its space is not reserved.
func create(dir string, bytes int64) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".gnnstore-spill-*")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Remove(f.Name()), f.Truncate(bytes)); err != nil {
		_ = f.Close() // it holds nothing
		return nil, err
	}
	return f, nil
}

// Free returns an error: the free space of a disk is not known here.
func Free(string) (int64, error) { return 0, errors.ErrUnsupported }

// InMemory reports false: it is not known here whether files lie in memory.
func InMemory(string) bool { return false }
