package clib

import (
	"os"
	"path/filepath"
)

// BuildDriver builds libcuda.so.1 in folder, which it makes if it is not there. flags go to the
// compiler, as "-fsanitize=undefined". It takes some ten seconds. The caller runs somewhere inside
// the repository.
func BuildDriver(folder string, flags ...string) error {
	dir, err := sourceDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	return Build(filepath.Join(folder, "libcuda.so.1"), append(flags, filepath.Join(dir, "driver.cc"))...)
}
