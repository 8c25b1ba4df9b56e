// Libcuda makes libraries that stand in for NVIDIA's driver.
//
// It writes a libcuda.a for binaries that use gorgonia.org/cu (the build tags cuda and
// gorgonia), so that they link without a driver, and start without one:
//
//	go run ./tools/libcuda [-cc COMPILER] FOLDER
//
// It has the functions of the driver that lib/symbols.txt lists. Each is a jump through a pointer.
// At first the pointer leads to a function that returns 100 (CUDA_ERROR_NO_DEVICE).
// gnnstore_cuda_bind makes the pointers lead to the functions of an open library, or to one that
// returns 500 (CUDA_ERROR_NOT_FOUND) where that has none of the name.
//
// The exception is cuInit. gorgonia.org/cu calls it when the program starts, and ends the process
// if it fails. So cuInit does nothing and returns 0, and gnnstore_cuda_init is the driver's cuInit.
//
// lib/symbols.txt has what nm lists as undefined in gorgonia.org/cu v0.9.6, built with the headers
// of CUDA 12.9 and of 13.5, and what package kernels/cuda/driver calls itself. The linker names one
// that is missing.
//
// The other libraries are for tests without a GPU: a driver that runs our kernels on the host, and
// a libcublas.so.12 that computes products there. See package kernels/cuda/clib. They need clang-19
// or g++.
//
//	go run ./tools/libcuda -host [-sanitize address,undefined] FOLDER
//	LD_LIBRARY_PATH=FOLDER BINARY
//
// BINARY is built with the tag cuda. With a sanitizer it also wants the sanitizer's library, and no
// search for leaks. For clang on x86-64:
//
//	LD_PRELOAD=$(clang-19 -print-file-name=libclang_rt.asan-x86_64.so) ASAN_OPTIONS=detect_leaks=0
package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed lib/symbols.txt
var symbols string

//go:embed lib/bind.c
var bind []byte

func main() {
	cc := flag.String("cc", "", "the C `compiler`; default gcc, clang or clang-19, whichever there is")
	onHost := flag.Bool("host", false, "write a libcuda.so.1 and a libcublas.so.12 that compute on the host")
	sanitizers := flag.String("sanitize", "", "with -host, build with these `sanitizers`: address, undefined")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: libcuda [-cc COMPILER] FOLDER")
		fmt.Fprintln(os.Stderr, "       libcuda -host [-sanitize SANITIZERS] FOLDER")
		os.Exit(2)
	}
	run := func() error { return write(flag.Arg(0), *cc) }
	if *onHost {
		run = func() error { return host(flag.Arg(0), *sanitizers) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "libcuda:", err)
		os.Exit(1)
	}
}

// write makes libcuda.a in folder.
func write(folder, cc string) error {
	if cc == "" {
		var err error
		if cc, err = compiler(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "libcuda-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	names := strings.Fields(symbols)
	for file, text := range map[string][]byte{"jumps.S": assembly(names), "names.h": list(names), "bind.c": bind} {
		if err := os.WriteFile(filepath.Join(work, file), text, 0o666); err != nil {
			return err
		}
	}
	archive, err := filepath.Abs(filepath.Join(folder, "libcuda.a"))
	if err != nil {
		return err
	}
	if err := os.Remove(archive); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // ar would add to it
	}
	if err := run(work, cc, "-c", "-O2", "-fPIC", "-Wall", "-Werror", "jumps.S", "bind.c"); err != nil {
		return err
	}
	return run(work, "ar", "rcs", archive, "jumps.o", "bind.o")
}

// compiler returns a C compiler of this machine.
func compiler() (string, error) {
	names := []string{"gcc", "clang", "clang-19"}
	for _, name := range names {
		if _, err := exec.LookPath(name); err == nil {
			return name, nil
		}
	}
	return "", fmt.Errorf("none of %s is installed", strings.Join(names, ", "))
}

func run(folder, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// list returns the names as C strings with commas.
func list(names []string) []byte {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "%q,\n", name)
	}
	return []byte(b.String())
}

// assembly returns the jumps and their pointers, for amd64 and arm64.
func assembly(names []string) []byte {
	var b strings.Builder
	b.WriteString("\t.text\n")
	for i, name := range names {
		if name == "cuInit" {
			name = "gnnstore_cuda_init"
		}
		fmt.Fprintf(&b, "\t.globl %s\n\t.type %[1]s, %%function\n%[1]s:\n", name)
		// The jump leaves registers and stack as they are: the driver returns to the caller. x16 is
		// for such code (Arm, Procedure Call Standard for AArch64, section 6.1.1).
		fmt.Fprintf(&b, `#if defined(__x86_64__)
	jmp *gnnstore_cuda_jumps+%[1]d(%%rip)
#elif defined(__aarch64__)
	adrp x16, gnnstore_cuda_jumps+%[1]d
	ldr x16, [x16, :lo12:gnnstore_cuda_jumps+%[1]d]
	br x16
#else
#error "no jump for this processor"
#endif
`, 8*i)
	}
	b.WriteString("\t.data\n\t.p2align 3\n\t.globl gnnstore_cuda_jumps\n\t.hidden gnnstore_cuda_jumps\ngnnstore_cuda_jumps:\n")
	for range names {
		b.WriteString("\t.quad gnnstore_cuda_no_driver\n")
	}
	b.WriteString("\t.section .note.GNU-stack,\"\",%progbits\n")
	return []byte(b.String())
}
