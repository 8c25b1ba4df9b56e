//go:build cuda && linux

package clib

import (
	"errors"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
	"github.com/gnnstore/gnnstore/kernels/cuda/ptx"
)

// build returns the path of a library. A test skips without a compiler.
func build(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "kernels.so")
	err := Build(path)
	if errors.Is(err, ErrNoCompiler) {
		t.Skip(err)
	}
	require.NoError(t, err)
	return path
}

// The layouts of the host's compiler are the PTX's. Kernels run, and a fault has a text.
func TestLibrary(t *testing.T) {
	path := build(t)
	testLayouts(t, path)
	testLaunch(t, path)
}

func testLayouts(t *testing.T, path string) {
	library, err := driver.OpenLibrary(path)
	require.NoError(t, err)
	size, err := library.Symbol("gnn_kernel_size")
	require.NoError(t, err)
	param, err := library.Symbol("gnn_kernel_param")
	require.NoError(t, err)
	memory, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(memory)) }()
	name, place := memory[:64], (*[2]uint64)(unsafe.Pointer(&memory[64]))
	at := func(p *byte) uintptr { return uintptr(unsafe.Pointer(p)) }
	all, err := ptx.Kernels()
	require.NoError(t, err)
	for kernel, k := range all {
		name[copy(name, kernel)] = 0
		require.Equal(t, k.Size, int(size.Call(at(&name[0]))), kernel)
		for i, p := range k.Params {
			require.Zero(t, param.Call(at(&name[0]), uintptr(i), at(&memory[64]), at(&memory[72])), kernel)
			require.Equal(t, [2]uint64{uint64(p.Offset), uint64(p.Size)}, *place, "%s, parameter %d", kernel, i)
		}
		none := param.Call(at(&name[0]), uintptr(len(k.Params)), at(&memory[64]), at(&memory[72]))
		require.Equal(t, int32(1), none, kernel)
	}
}

func testLaunch(t *testing.T, path string) {
	l, err := Open(path)
	require.NoError(t, err)
	memory, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(memory)) }()
	text, err := ptx.Source("elementwise")
	require.NoError(t, err)
	lists, err := driver.ParamLists(string(text))
	require.NoError(t, err)
	p, err := driver.NewParams()
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	fill := func(kernel string, first int) error {
		at := driver.Ptr(uintptr(unsafe.Pointer(&memory[4*first])))
		p.Start(lists[kernel]).Ptr(at).U64(100).F32(2)
		return l.Launch(kernel, driver.Dim{X: 3}, driver.Dim{X: 32}, 0, p.Bytes())
	}
	values := unsafe.Slice((*float32)(unsafe.Pointer(&memory[0])), 1024)
	for seed := range 3 {
		l.Order(seed)
		clear(values)
		require.NoError(t, fill("fill", 1))
		for i, v := range values {
			require.Equal(t, map[bool]float32{true: 2}[i >= 1 && i < 101], v, "element %d, order %d", i, seed)
		}
	}
	l.Order(0)
	require.NoError(t, fill("fill_wide", 4))
	require.ErrorContains(t, fill("fill_wide", 1), "16") // an odd address under a wide store
	require.ErrorContains(t, l.Launch("none", driver.Dim{}, driver.Dim{}, 0, nil), "none: gnn_launch returns 1")
}
