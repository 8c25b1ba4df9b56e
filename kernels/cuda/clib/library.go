//go:build cuda && linux

package clib

import (
	"fmt"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
)

// Library is an open library of kernels. It is safe for concurrent use.
type Library struct {
	launch, fault, setenv driver.Symbol

	mu     sync.Mutex
	memory []byte // outside the Go heap, for what the library reads: see the constants
}

const (
	paramsAt   = 0
	nameAt     = 4096
	textAt     = nameAt + 256
	memorySize = 8192
)

// Open opens a library that Build has made. It stays open until the process ends.
func Open(path string) (*Library, error) {
	kernels, err := driver.OpenLibrary(path)
	if err != nil {
		return nil, err
	}
	c, err := driver.OpenLibrary("libc.so.6")
	if err != nil {
		return nil, err
	}
	l := &Library{}
	for _, f := range []struct {
		of   *driver.Library
		name string
		to   *driver.Symbol
	}{{kernels, "gnn_launch", &l.launch}, {kernels, "gnn_fault_text", &l.fault}, {c, "setenv", &l.setenv}} {
		if *f.to, err = f.of.Symbol(f.name); err != nil {
			return nil, err
		}
	}
	l.memory, err = unix.Mmap(-1, 0, memorySize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("memory for the arguments of a launch: %w", err)
	}
	return l, nil
}

// Launch runs a kernel on addresses of this process, to its end. params is laid out as
// driver.Params packs it.
func (l *Library) Launch(kernel string, grid, block driver.Dim, shared uint32, params []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	copy(l.memory[paramsAt:nameAt], params)
	l.put(nameAt, kernel)
	grid, block = grid.Full(), block.Full()
	code := l.launch.Call(l.at(nameAt), uintptr(grid.X), uintptr(grid.Y), uintptr(grid.Z),
		uintptr(block.X), uintptr(block.Y), uintptr(block.Z), uintptr(shared), l.at(paramsAt))
	switch code {
	case 0:
		return nil
	case 3:
		l.fault.Call(l.at(textAt), memorySize-textAt)
		return fmt.Errorf("%s: %s", kernel, unix.ByteSliceToString(l.memory[textAt:]))
	}
	return fmt.Errorf("%s: gnn_launch returns %d", kernel, code)
}

// Order sets the order in which blocks and threads run; 0 is the plain one.
func (l *Library) Order(seed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(nameAt, "GNN_LAUNCH_ORDER")
	l.put(textAt, strconv.Itoa(seed))
	l.setenv.Call(l.at(nameAt), l.at(textAt), 1)
}

// put writes a C string.
func (l *Library) put(at int, s string) { l.memory[at+copy(l.memory[at:], s)] = 0 }

func (l *Library) at(offset int) uintptr { return uintptr(unsafe.Pointer(&l.memory[offset])) }
