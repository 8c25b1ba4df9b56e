//go:build cuda

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// program calls a function of the driver before and after gnnstore_cuda_bind, with 11 arguments.
const program = `
#include <dlfcn.h>
#include <stdio.h>
int cuInit(unsigned), gnnstore_cuda_init(unsigned), cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned,
	unsigned, unsigned, unsigned, void *, void **, void **), cuMemFree_v2(unsigned long);
void gnnstore_cuda_bind(void *);
static int launch(void) {
	void *extra[2];
	int code = cuLaunchKernel((void *)0x1111111111, 2, 3, 4, 5, 6, 7, 8, (void *)0x9999999999, 0, extra);
	return code == 0 ? (int)(long)extra[0] : -1;
}
int main(int n, char **arg) {
	printf("%d %d %d\n", cuInit(0), gnnstore_cuda_init(0), launch());
	void *library = dlopen(arg[1], RTLD_NOW);
	if (!library) return 1;
	gnnstore_cuda_bind(library);
	printf("%d %d %d %d\n", cuInit(0), gnnstore_cuda_init(7), launch(), cuMemFree_v2(1));
	return 0;
}
`

const library = `
int cuInit(unsigned flags) { return flags; }
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
	unsigned shared, void *stream, void **params, void **extra) {
	if (f != (void *)0x1111111111 || gx != 2 || gy != 3 || gz != 4 || bx != 5 || by != 6 || bz != 7 || shared != 8 ||
		stream != (void *)0x9999999999 || params) return 1;
	extra[0] = (void *)42;
	return 0;
}
`

// TestJumps links a program with libcuda.a, and binds it to a library that lacks most functions.
func TestJumps(t *testing.T) {
	cc, err := compiler()
	if err != nil {
		t.Skip("no tool: needs gcc or clang-19")
	}
	if _, err := exec.LookPath("ar"); err != nil {
		t.Skip("no tool: needs ar, of binutils")
	}
	dir := t.TempDir()
	for range 2 { // the second time over the first
		require.NoError(t, write(filepath.Join(dir, "lib"), cc))
	}
	for file, text := range map[string]string{"p.c": program, "l.c": library} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o666))
	}
	require.NoError(t, run(dir, cc, "-shared", "-fPIC", "-o", "l.so", "l.c"))
	for _, pie := range []string{"-pie", "-no-pie"} {
		require.NoError(t, run(dir, cc, pie, "-fPIE", "-o", "p", "p.c", "-Llib", "-lcuda", "-ldl"))
		out, err := exec.Command(filepath.Join(dir, "p"), filepath.Join(dir, "l.so")).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, "0 100 -1\n0 7 42 500\n", string(out))
	}
}

// TestARM assembles the jumps for arm64, where clang can.
func TestARM(t *testing.T) {
	cc, err := exec.LookPath("clang-19")
	if err != nil {
		t.Skip("no tool: needs clang-19")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jumps.S"), assembly(strings.Fields(symbols)), 0o666))
	require.NoError(t, run(dir, cc, "--target=aarch64-linux-gnu", "-c", "jumps.S"))
}
