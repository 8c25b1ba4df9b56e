//go:build cuda && linux

package driver

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A fakeDriver is testdata/fake.c, opened.
type fakeDriver struct {
	*Calls
	file    string
	library *Library
	memory  []byte // outside the Go heap
}

// fakeFolder holds the libraries that the tests build: a library stays open until the process ends.
var fakeFolder string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if fakeFolder, err = os.MkdirTemp("", "driver-"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(fakeFolder)
		return m.Run()
	}())
}

// compile builds fake.c to a file of this folder, and skips without a compiler.
func compile(t testing.TB, folder string, flags ...string) string {
	t.Helper()
	for _, name := range []string{"gcc", "clang", "clang-19"} {
		cc, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		file := filepath.Join(folder, DefaultLibrary)
		args := append(flags, "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-pthread", "-o", file, "testdata/fake.c")
		out, err := exec.Command(cc, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return file
	}
	t.Skip("no tool: needs gcc or clang-19")
	return ""
}

var fakeOnce = sync.OnceValues(func() (*fakeDriver, error) {
	file := filepath.Join(fakeFolder, DefaultLibrary)
	f := &fakeDriver{file: file}
	var err error
	if f.Calls, err = Open(file); err != nil {
		return nil, err
	}
	if f.library, err = OpenLibrary(file); err != nil {
		return nil, err
	}
	f.memory, err = unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	return f, err
})

var compileOnce sync.Mutex

// openFake returns the fake driver as after its start. The test stays on its thread.
func openFake(t testing.TB) *fakeDriver {
	t.Helper()
	compileOnce.Lock()
	defer compileOnce.Unlock()
	if _, err := os.Stat(filepath.Join(fakeFolder, DefaultLibrary)); errors.Is(err, os.ErrNotExist) {
		compile(t, fakeFolder)
	}
	f, err := fakeOnce()
	require.NoError(t, err)
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	f.control(t, "fake_reset")
	return f
}

// at returns an address in f's memory.
func (f *fakeDriver) at(offset int) unsafe.Pointer { return unsafe.Pointer(&f.memory[offset]) }

// control calls a function of fake.c.
func (f *fakeDriver) control(t testing.TB, name string, args ...uintptr) int32 {
	t.Helper()
	s, err := f.library.Symbol(name)
	require.NoError(t, err)
	return s.Call(args...)
}

// last returns the last call of this thread, and its arguments as C got them.
func (f *fakeDriver) last(t testing.TB) (string, []uint64) {
	t.Helper()
	n := f.control(t, "fake_last", uintptr(f.at(0)), uintptr(f.at(256)))
	return unix.ByteSliceToString(f.memory[:256]), append([]uint64{}, (*[20]uint64)(f.at(256))[:n]...)
}

// counts returns the launches, the calls without a context, the retained contexts, and all calls.
func (f *fakeDriver) counts(t testing.TB) (launches, lost, retained, calls uint64) {
	t.Helper()
	f.control(t, "fake_counts", uintptr(f.at(0)))
	n := (*[4]uint64)(f.at(0))
	return n[0], n[1], n[2], n[3]
}
