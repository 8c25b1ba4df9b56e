// Package clib builds, for tests, a shared library of the CUDA backend's kernels compiled for the
// host: the sources of ../src with the runtime of src/, which runs the threads of a block as
// fibres. So results, bounds and barriers are tested without a GPU. src/launch.h has the library's
// functions. Start at [Build]. Its own tests hold every kernel against package kernels.
//
// [BuildDriver] builds a libcuda.so.1 that runs these kernels. With it a binary with the tag cuda
// trains without a GPU. src/driver.cc lists its differences from a driver. src/driver/settings.h
// has its environment variables: the device's memory, the order of work on several streams, calls
// that fail.
//
// [BuildCublas] builds a libcublas.so.12 beside it, with which products are cuBLAS's. src/cublas.cc
// lists its differences.
package clib

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
)

// ErrNoCompiler is returned where there is neither clang++-19 nor g++.
var ErrNoCompiler = errors.New("no tool: neither clang++-19 nor g++ is installed")

// compilers are tried in this order.
var compilers = []string{"clang++-19", "g++"}

// Build compiles launch.cc, and further C++ sources that the caller names, to the shared library at
// path. It takes some ten seconds. The caller runs somewhere inside the repository, as tests do.
func Build(path string, sources ...string) error {
	dir, err := sourceDir()
	if err != nil {
		return err
	}
	return compile(dir, path, append([]string{filepath.Join(dir, "launch.cc")}, sources...)...)
}

// compile makes a shared library of sources.
func compile(dir, path string, sources ...string) error {
	for _, compiler := range compilers {
		found, err := exec.LookPath(compiler)
		if err != nil {
			continue
		}
		args := arguments(dir, path)
		// For some processors g++ 12 warns that a variable may not be set. It is set.
		if compiler == "g++" {
			args = append(args, "-Wno-maybe-uninitialized")
		}
		c := exec.Command(found, slices.Concat(args, sources, []string{"-lpthread"})...)
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", compiler, err, out)
		}
		return nil
	}
	return ErrNoCompiler
}

// arguments are what both compilers take. Products and sums are not contracted, as in the PTX.
func arguments(dir, path string) []string {
	args := []string{"-std=c++17", "-O2", "-ffp-contract=off", "-fno-math-errno", "-fPIC", "-shared",
		"-fvisibility=hidden", "-Wall", "-Wextra", "-Werror",
		"-I", dir, "-I", filepath.Join(dir, "../../src"), "-o", path}
	if runtime.GOARCH == "amd64" {
		args = append([]string{"-march=native"}, args...) // fused products are calls without it
	}
	return args
}

// sourceDir finds src/ from the directory of go.mod down.
func sourceDir() (string, error) {
	at, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return filepath.Join(at, "kernels", "cuda", "clib", "src"), nil
		}
		up := filepath.Dir(at)
		if up == at {
			return "", errors.New("the working directory is in no module")
		}
		at = up
	}
}
