// Package mapping maps files read-only and turns a fault on mapped memory into an error. No other
// package maps files. It also provides memory outside the Go heap.
//
// A [Map] lends its bytes until Close. If a file is cut short under its map, the next read of a
// lost page raises SIGBUS. So code that reads mapped bytes runs inside [Guard], on each goroutine
// separately. Never pass mapped bytes to C or to a system call, where a fault would be a short
// count or worse.
package mapping

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"unsafe"

	"github.com/edsrzf/mmap-go"
	"golang.org/x/sys/unix"
)

// Map is a whole file mapped read-only. Any number of goroutines may read its bytes until Close.
type Map struct {
	data             mmap.MMap
	dataset, section string
}

// Open maps the first size bytes of f. f must be at least that long: the caller has compared the
// size. A Fault names dataset and section. f may be closed afterwards.
func Open(f *os.File, dataset, section string, size int) (*Map, error) {
	data, err := mmap.MapRegion(f, size, mmap.RDONLY, 0, 0)
	if errors.Is(err, unix.ENOMEM) { // a map takes addresses, not memory
		return nil, fmt.Errorf("map %d bytes: %w; the address space seems limited: raise ulimit -v", size, err)
	}
	if err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	m := &Map{data: data, dataset: dataset, section: section}
	live.Lock()
	live.maps[m] = struct{}{}
	live.Unlock()
	return m, nil
}

// Bytes lends the mapped file. Writing to it is a fault.
func (m *Map) Bytes() []byte { return m.data }

// WillNeed asks the system to read size bytes from offset on into the page cache, and does not
// wait.
func (m *Map) WillNeed(offset int64, size int) error {
	lo := offset &^ int64(os.Getpagesize()-1)
	return unix.Madvise(m.data[lo:offset+int64(size)], unix.MADV_WILLNEED)
}

// Forget takes the pages out of the process's resident memory. They stay in the page cache as long
// as the system keeps them, and come back when they are read.
func (m *Map) Forget() error { return unix.Madvise(m.data, unix.MADV_DONTNEED) }

// Close unmaps the file. Every slice that was lent is invalid from here on.
func (m *Map) Close() error {
	live.Lock()
	delete(live.maps, m)
	live.Unlock()
	return m.data.Unmap()
}

// Anonymous returns size zero bytes outside the Go heap. They stay until the caller passes them to
// Free.
func Anonymous(size int) ([]byte, error) {
	b, err := mmap.MapRegion(nil, size, mmap.RDWR, mmap.ANON, 0)
	if err != nil {
		return nil, fmt.Errorf("%d bytes of memory: %w", size, err)
	}
	return b, nil
}

// Free frees memory from Anonymous.
func Free(b []byte) error {
	m := mmap.MMap(b)
	return m.Unmap()
}

// live holds every open map, to find the file that a fault's address belongs to.
var live = struct {
	sync.RWMutex
	maps map[*Map]struct{}
}{maps: map[*Map]struct{}{}}

// Fault is the error for a mapped page that could not be read.
type Fault struct {
	Dataset string // its path
	Section string // the file inside it
	Offset  int64  // byte in the file
}

func (f *Fault) Error() string {
	return fmt.Sprintf("%s: %s at 0x%x: page cannot be read; the file was truncated or replaced, or the disk failed",
		f.Dataset, f.Section, f.Offset)
}

// Guard runs fn and returns its error, or a *Fault if fn read a page of a Map that can no longer be
// read. Any other panic passes through.
func Guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface {
			runtime.Error
			Addr() uintptr
		}:
			f := locate(r.Addr())
			if f == nil {
				panic(r)
			}
			err = f
		default:
			panic(r)
		}
	}()
	return fn()
}

func locate(addr uintptr) *Fault {
	live.RLock()
	defer live.RUnlock()
	for m := range live.maps {
		base := uintptr(unsafe.Pointer(unsafe.SliceData(m.data)))
		if addr >= base && addr < base+uintptr(len(m.data)) {
			return &Fault{Dataset: m.dataset, Section: m.section, Offset: int64(addr - base)}
		}
	}
	return nil
}
