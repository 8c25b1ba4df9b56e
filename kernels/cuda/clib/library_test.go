//go:build cuda && linux

package clib

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels/cuda/ptx"
)

// A library is the kernels' shared library, opened.
type library struct {
	kernels map[string]ptx.Kernel // by name, as the PTX has them

	launch, fault, size, param uintptr // gnn_launch and the others
	malloc, free, setenv       uintptr // the C library's

	mu       sync.Mutex
	launched map[string]int // launches by kernel
}

// address is a place in memory of the C library.
type address uintptr

// shared is built once: it takes ten seconds.
var shared struct {
	once sync.Once
	dir  string
	lib  *library
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

// open builds and opens the library. A test skips without a compiler.
func open(t *testing.T) *library {
	shared.once.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "clib-"); shared.err != nil {
			return
		}
		// A build by hand, as for the sanitizers, is used as it is.
		path := os.Getenv("GNN_CLIB")
		if path == "" {
			path = filepath.Join(shared.dir, "kernels.so")
			if shared.err = Build(path); shared.err != nil {
				return
			}
		}
		shared.lib, shared.err = openAt(path)
	})
	if errors.Is(shared.err, ErrNoCompiler) {
		t.Skip(shared.err)
	}
	require.NoError(t, shared.err)
	return shared.lib
}

func openAt(path string) (*library, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, err
	}
	all, err := ptx.Kernels()
	if err != nil {
		return nil, err
	}
	l := &library{kernels: all, launched: map[string]int{}}
	for name, to := range map[string]*uintptr{
		"gnn_launch": &l.launch, "gnn_fault": &l.fault, "gnn_kernel_size": &l.size, "gnn_kernel_param": &l.param,
	} {
		if *to, err = purego.Dlsym(handle, name); err != nil {
			return nil, err
		}
	}
	for name, to := range map[string]*uintptr{"malloc": &l.malloc, "free": &l.free, "setenv": &l.setenv} {
		if *to, err = purego.Dlsym(purego.RTLD_DEFAULT, name); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// alloc returns size bytes of the C library, zeroed, at a multiple of 16.
func (l *library) alloc(size int) address {
	at, _, _ := purego.SyscallN(l.malloc, uintptr(max(size, 1)))
	if at == 0 {
		panic("malloc failed")
	}
	clear(bytesAt(address(at), size))
	return address(at)
}

func (l *library) release(at address) { purego.SyscallN(l.free, uintptr(at)) }

// order sets the order in which blocks and threads run; 0 is the plain one.
func (l *library) order(seed int) {
	name, value := cString("GNN_LAUNCH_ORDER"), cString(fmt.Sprint(seed))
	purego.SyscallN(l.setenv, pointer(name), pointer(value), 1)
}

func cString(s string) []byte { return append([]byte(s), 0) }

func pointer[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

// bytesAt is memory of the C library as a slice.
func bytesAt(at address, size int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), size)
}

// slice is memory of the C library as n numbers.
func slice[T any](at address, n int) []T {
	return unsafe.Slice(*(**T)(unsafe.Pointer(&at)), n)
}

// A grid is the blocks of a launch, by direction.
type grid struct{ x, y, z int }

// try launches a kernel with blocks of 256 threads. It panics where args do not fit the parameters
// of the PTX.
func (l *library) try(name string, g grid, args ...any) error {
	k, ok := l.kernels[name]
	if !ok {
		panic("no kernel " + name)
	}
	l.mu.Lock()
	l.launched[name]++
	l.mu.Unlock()
	params, cName := pack(k, args), cString(name)
	code, _, _ := purego.SyscallN(l.launch, pointer(cName), uintptr(g.x), uintptr(g.y), uintptr(g.z), 256, 1, 1, 0,
		pointer(params))
	switch int32(code) {
	case 0:
		return nil
	case 3:
		text, _, _ := purego.SyscallN(l.fault)
		return fmt.Errorf("%s: %s", name, goString(address(text)))
	}
	return fmt.Errorf("%s: gnn_launch returns %d", name, int32(code))
}

func (l *library) run(name string, g grid, args ...any) {
	if err := l.try(name, g, args...); err != nil {
		panic(err)
	}
}

func goString(at address) string {
	b := bytesAt(at, 256)
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// pack lays args out as the kernel's parameters. Integers of Go fit either size.
func pack(k ptx.Kernel, args []any) []byte {
	if len(args) != len(k.Params) {
		panic(fmt.Sprintf("%s: %d arguments for %d parameters", k.Name, len(args), len(k.Params)))
	}
	buffer := make([]byte, k.Size)
	for i, arg := range args {
		p := k.Params[i]
		to, fits := buffer[p.Offset:][:p.Size], false
		switch v := arg.(type) {
		case address:
			if fits = p.Kind == "u64"; fits {
				binary.LittleEndian.PutUint64(to, uint64(v))
			}
		case int:
			if fits = p.Kind == "u64" || p.Kind == "u32" && int(uint32(v)) == v; fits && p.Size == 8 {
				binary.LittleEndian.PutUint64(to, uint64(v))
			} else if fits {
				binary.LittleEndian.PutUint32(to, uint32(v))
			}
		case uint64:
			if fits = p.Kind == "u64"; fits {
				binary.LittleEndian.PutUint64(to, v)
			}
		case uint32:
			if fits = p.Kind == "u32"; fits {
				binary.LittleEndian.PutUint32(to, v)
			}
		case float32:
			if fits = p.Kind == "f32"; fits {
				binary.LittleEndian.PutUint32(to, math.Float32bits(v))
			}
		case float64:
			if fits = p.Kind == "f64"; fits {
				binary.LittleEndian.PutUint64(to, math.Float64bits(v))
			}
		}
		if !fits {
			panic(fmt.Sprintf("%s: argument %d is %T(%v), and the kernel takes %s", k.Name, i, arg, arg, p.Kind))
		}
	}
	return buffer
}

// The layouts of the host's compiler are the PTX's.
func TestLayouts(t *testing.T) {
	l := open(t)
	var place [2]uint64
	for name, k := range l.kernels {
		cName := cString(name)
		size, _, _ := purego.SyscallN(l.size, pointer(cName))
		require.Equal(t, k.Size, int(size), name)
		for i, p := range k.Params {
			code, _, _ := purego.SyscallN(l.param, pointer(cName), uintptr(i), pointer(place[:1]), pointer(place[1:]))
			require.Zero(t, int32(code), name)
			require.Equal(t, [2]uint64{uint64(p.Offset), uint64(p.Size)}, place, "%s, parameter %d", name, i)
		}
		code, _, _ := purego.SyscallN(l.param, pointer(cName), uintptr(len(k.Params)), pointer(place[:1]),
			pointer(place[1:]))
		require.Equal(t, int32(1), int32(code), name)
	}
}
