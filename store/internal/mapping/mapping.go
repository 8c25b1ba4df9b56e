// Package mapping maps files read-only and turns a fault on mapped memory into an error. It is the
// only package that maps files. Memory outside the Go heap comes from it as well.
//
// A [Map] lends its bytes until Close. A file cut short under its map makes the next read of a lost
// page a SIGBUS; code that reads mapped bytes therefore runs inside [Guard], on every goroutine of
// its own. Mapped bytes are never passed to C or to a system call, where a fault would be a short
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

// Map is a whole file mapped read-only. Its bytes may be read by any number of goroutines until
// Close.
type Map struct {
	data             mmap.MMap
	dataset, section string
}

// Open maps the first size bytes of f, which must be at least that long: the caller has compared
// the size. dataset and section are what a Fault says of it. f may be closed afterwards.
func Open(f *os.File, dataset, section string, size int) (*Map, error) {
	data, err := mmap.MapRegion(f, size, mmap.RDONLY, 0, 0)
	if errors.Is(err, unix.ENOMEM) { // a map takes addresses, and no memory
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

// WillNeed has the system read the pages of size bytes from offset on into the page cache, without
// waiting for them.
func (m *Map) WillNeed(offset int64, size int) error {
	lo := offset &^ int64(os.Getpagesize()-1)
	return unix.Madvise(m.data[lo:offset+int64(size)], unix.MADV_WILLNEED)
}

// Forget takes the pages out of the process's resident memory. They stay in the page cache, as far
// as the system likes, and come back when they are read.
func (m *Map) Forget() error { return unix.Madvise(m.data, unix.MADV_DONTNEED) }

// Close unmaps; every slice lent is invalid from here on.
func (m *Map) Close() error {
	live.Lock()
	delete(live.maps, m)
	live.Unlock()
	return m.data.Unmap()
}

// Anonymous returns size zero bytes outside the Go heap, for as long as the caller likes: Free
// gives them back.
func Anonymous(size int) ([]byte, error) {
	b, err := mmap.MapRegion(nil, size, mmap.RDWR, mmap.ANON, 0)
	if err != nil {
		return nil, fmt.Errorf("%d bytes of memory: %w", size, err)
	}
	return b, nil
}

// Free gives back what Anonymous returned.
func Free(b []byte) error {
	m := mmap.MMap(b)
	return m.Unmap()
}

// live holds every open map, so that a fault's address can be given its file.
var live = struct {
	sync.RWMutex
	maps map[*Map]struct{}
}{maps: map[*Map]struct{}{}}

// Fault says which mapped page could not be read.
type Fault struct {
	Dataset string // its path
	Section string // the file inside it
	Offset  int64
}

func (f *Fault) Error() string {
	return fmt.Sprintf("%s: %s at 0x%x: page cannot be read; the file was truncated or replaced, or the disk failed",
		f.Dataset, f.Section, f.Offset)
}

// Guard runs fn and returns its error, or a *Fault where fn read a page of a Map that is no longer
// there. Any other panic passes through.
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
