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

// BuildCublas builds libcublas.so.12 in folder, which it makes if it is not there, for processes
// that have the libcuda.so.1 of BuildDriver open. flags and the working directory are as
// BuildDriver's.
func BuildCublas(folder string, flags ...string) error {
	dir, err := sourceDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	return compile(dir, filepath.Join(folder, "libcublas.so.12"), append(flags, filepath.Join(dir, "cublas.cc"))...)
}
