package kernels

import (
	"errors"
	"math/bits"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"
)

// HostBuf is anonymous memory outside the Go heap: for slabs, rings and arenas alike. The garbage
// collector neither counts nor scans it, and the system is asked to back it with huge pages, which
// the Go heap does not get.
//
// Memory: whoever made a HostBuf closes it; nothing else gives the memory back, and one that is
// lost stays allocated until the process ends. Bytes and the typed views lend: what they return
// dies with Close, and so does everything cut from it. Until Close the memory stays at its address,
// so that [HostBuf.Lock] can have it page-locked for a GPU.
//
// Concurrency: NewHostBuf, HostBytes, Lend and Return are safe for concurrent use. The memory is
// plain memory. Close wants every other user gone; who hands the memory to a goroutine says so with
// Lend and Return, and under the build tag gnncheck Close panics while anything is lent.
//
// Small ones (below a page) lie in the Go heap after all, as do all of them under the race
// detector, which sees nothing else, and on systems without memory maps. A HostBuf is all zeros at
// first.
type HostBuf struct {
	bytes  []byte       // what was asked for; nil once closed
	whole  []byte       // the map that bytes is the start of; nil in the Go heap
	unlock func() error // nil unless the memory is page-locked
	lent   loans
}

const (
	hugePage  = 2 << 20
	sector    = 4 << 10
	cacheLine = 64
)

var pageSize = os.Getpagesize()

// NewHostBuf allocates bytes of zeros, aligned to 2 MiB if there are as many, else to 4 KiB, or to
// 64 bytes below 4 KiB. The error is a *MemoryError.
func NewHostBuf(bytes int) (*HostBuf, error) {
	if bytes < 0 || bytes > maxHostBuf {
		return nil, &MemoryError{Bytes: bytes, Err: errors.New("no machine has that many")}
	}
	if bytes < pageSize || !canMap {
		return &HostBuf{bytes: alignedHeap(bytes)}, nil
	}
	size := roundSize(bytes)
	whole := spare.take(size)
	if whole != nil {
		clear(whole[:bytes])
	} else {
		var err error
		if whole, err = mapMemory(size); err != nil {
			return nil, &MemoryError{Bytes: bytes, Err: err}
		}
	}
	hostBytes.Add(int64(size))
	return &HostBuf{bytes: whole[:bytes:bytes], whole: whole}, nil
}

// alignedHeap returns a slice of the Go heap that starts on a cache line, or on a sector if it is
// at least that long. Direct transfers of disks need whole sectors under the race detector too, and
// where pages are larger.
func alignedHeap(bytes int) []byte {
	if bytes == 0 {
		return nil
	}
	align := cacheLine
	if bytes >= sector {
		align = sector
	}
	b := make([]byte, bytes+align-1)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % uintptr(align))
	return b[skip : skip+bytes : skip+bytes]
}

// roundSize is the size of the map for bytes: whole pages, and up to maxSpare a multiple of a
// quarter of the power of two below, so that a freed one fits the next request of about its size.
func roundSize(bytes int) int {
	unit := pageSize
	if bytes <= maxSpare {
		unit = max(unit, 1<<(bits.Len(uint(bytes-1))-1)/4)
	}
	return (bytes + unit - 1) / unit * unit
}

// Bytes lends the memory.
func (h *HostBuf) Bytes() []byte { return h.bytes }

// Float32s, Float64s, Uint16s, Uint32s and Uint64s lend the memory in elements of their type; its
// size must be a multiple of theirs.
func (h *HostBuf) Float32s() []float32 { return cast[float32](h.bytes) }
func (h *HostBuf) Float64s() []float64 { return cast[float64](h.bytes) }
func (h *HostBuf) Uint16s() []uint16   { return cast[uint16](h.bytes) }
func (h *HostBuf) Uint32s() []uint32   { return cast[uint32](h.bytes) }
func (h *HostBuf) Uint64s() []uint64   { return cast[uint64](h.bytes) }

// Lend is Bytes for a borrower who calls Return when done, and must not be outrun by Close.
func (h *HostBuf) Lend() []byte {
	h.lent.add(1)
	return h.bytes
}

// Return ends a Lend.
func (h *HostBuf) Return() { h.lent.add(-1) }

// Close gives the memory back: to the system, or to a store of a few buffers for the next
// NewHostBuf. It unlocks the memory first: see Lock. Bytes is empty from here on. A second Close
// does nothing.
func (h *HostBuf) Close() {
	h.lent.none()
	unlocked, whole := h.release(), h.whole
	h.bytes, h.whole = nil, nil
	if whole == nil || !unlocked {
		return
	}
	hostBytes.Add(-int64(len(whole)))
	poison(whole)
	if !spare.put(whole) {
		unmapMemory(whole)
	}
}

var hostBytes atomic.Int64

// HostBytes returns the bytes outside the Go heap that the open HostBufs of the process take. Up to
// [MaxSpareBytes] more are kept to be used again. A program can set GOMEMLIMIT to its memory limit
// less these two.
func HostBytes() int64 { return hostBytes.Load() }

// MaxSpareBytes bounds the closed HostBufs that are kept to be used again, unless LimitSpare sets a
// lower bound.
const MaxSpareBytes = 16 << 20

// LimitSpare bounds the closed HostBufs that are kept from now on, up to MaxSpareBytes, and gives
// back those beyond: for a process that has little memory. before is the bound so far.
func LimitSpare(bytes int64) (before int64) { return spare.setLimit(min(max(0, bytes), MaxSpareBytes)) }

// SpareBytes is the bound at present.
func SpareBytes() int64 {
	spare.Lock()
	defer spare.Unlock()
	return spare.limit
}

// maxSpare is the largest map that is kept. Clearing 64 KiB to 1 MiB took a tenth of the time of a
// new map's page faults, and 4 MiB as long as new huge pages (BenchmarkHostBuf).
const maxSpare = hugePage

// spares are closed maps, by size.
type spares struct {
	sync.Mutex
	bySize map[int][][]byte
	bytes  int
	limit  int64
}

var spare = spares{bySize: map[int][][]byte{}, limit: MaxSpareBytes}

func (s *spares) setLimit(bytes int64) (before int64) {
	s.Lock()
	defer s.Unlock()
	before, s.limit = s.limit, bytes
	for size, list := range s.bySize {
		for len(list) > 0 && int64(s.bytes) > s.limit {
			unmapMemory(list[len(list)-1])
			list, s.bytes = list[:len(list)-1], s.bytes-size
		}
		s.bySize[size] = list
	}
	return before
}

func (s *spares) take(size int) []byte {
	s.Lock()
	defer s.Unlock()
	list := s.bySize[size]
	if len(list) == 0 {
		return nil
	}
	last := list[len(list)-1]
	list[len(list)-1] = nil
	s.bySize[size] = list[:len(list)-1]
	s.bytes -= size
	return last
}

func (s *spares) put(whole []byte) bool {
	s.Lock()
	defer s.Unlock()
	if len(whole) > maxSpare || int64(s.bytes+len(whole)) > s.limit {
		return false
	}
	s.bySize[len(whole)] = append(s.bySize[len(whole)], whole)
	s.bytes += len(whole)
	return true
}

// cast views b as elements of T. It is the only place that does.
func cast[T float32 | float64 | uint16 | uint32 | uint64](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	size := int(unsafe.Sizeof(*new(T)))
	p := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(p)%uintptr(size) != 0 || len(b)%size != 0 {
		panic("kernels: HostBuf of a size that is no multiple of the element's")
	}
	return unsafe.Slice((*T)(p), len(b)/size)
}
