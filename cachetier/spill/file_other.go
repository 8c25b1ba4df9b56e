//go:build !linux

package spill

import (
	"errors"
	"os"
)

// create makes a file without a name, as long as told. Its space is not reserved.
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

// Free is how many bytes a directory's disk has for this user: not known here.
func Free(string) (int64, error) { return 0, errors.ErrUnsupported }

// InMemory tells whether files of a directory lie in memory: not known here.
func InMemory(string) bool { return false }
