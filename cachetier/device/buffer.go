package device

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gnnstore/gnnstore/kernels"
)

// Buffer is a region of a backend's memory. Slots and Rows, and Close of parts, may be called by
// several goroutines.
//
// A nil Buffer is no region: rows then have host memory of their own, and there are no slots.
type Buffer struct {
	be     kernels.Backend
	memory kernels.Tensor // F16, a column
	host   []byte         // its bytes,
	remote bool           // or the host cannot address them

	mu struct {
		sync.Mutex
		near, far int // bytes before near are slots', those from far on rows'
		parts     int // that are not closed
	}
}

// New allocates a region of zeros for so many bytes of slots and of rows, each the sum of Size over
// its parts. Where the host cannot address the backend's memory there are slots in it alone, since
// it is the host that gathers rows. The caller closes it.
func New(be kernels.Backend, slots, rows int64) (b *Buffer, err error) {
	if slots < 0 || rows < 0 || slots > maxBytes || rows > maxBytes {
		return nil, fmt.Errorf("device: a region for %d bytes of slots and %d of rows", slots, rows)
	}
	defer func() {
		if err != nil {
			b, err = nil, fmt.Errorf("the device region of %s: %w", kernels.FormatBytes(slots+rows), err)
		}
	}()
	defer kernels.RecoverMemory(&err)
	b = &Buffer{be: be, memory: kernels.Tensor{Type: kernels.F16, Cols: 1}}
	b.alloc(slots + rows)
	host, ok := be.Host(b.memory)
	if b.host, b.remote = host, !ok; b.remote {
		be.Free(b.memory.Buf)
		b.alloc(slots)
	}
	b.mu.far = 2 * b.memory.Rows
	return b, nil
}

const (
	line     = 64 // bytes of a cache line, at which parts start
	maxBytes = 1 << 61
)

func (b *Buffer) alloc(bytes int64) {
	b.memory.Rows = int(Size(bytes) / 2)
	b.memory.Buf = b.be.Alloc(kernels.F16, b.memory.Rows)
}

// Size is what a part of so many bytes takes of the region.
func Size(bytes int64) int64 { return (bytes + line - 1) / line * line }

// SlotsSize is what so many slots for hidden rows of some columns take.
func SlotsSize(slots, cols int) int64 { return Size(2 * int64(slots) * int64(cols)) }

// Part is what a tenant has of a region. Its bytes die with Close.
type Part struct {
	region *Buffer
	bytes  []byte
	slots  kernels.Tensor
	own    *kernels.HostBuf // of rows without a region
	lent   atomic.Int64
}

// Slots takes the next bytes from the start, for so many hidden rows in float16.
func (b *Buffer) Slots(slots, cols int) (*Part, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, size := b.mu.near, int(SlotsSize(slots, cols))
	if size > b.mu.far-at {
		return nil, fmt.Errorf("device: %d slots of %d columns: the region has %d bytes left", slots, cols, b.mu.far-at)
	}
	b.mu.near += size
	b.mu.parts++
	return &Part{region: b, slots: kernels.Tensor{Buf: b.memory.Buf, Type: kernels.F16, Off: at / 2, Rows: slots, Cols: cols}}, nil
}

// Rows takes bytes for feature rows from the end, before those that are taken already.
func (b *Buffer) Rows(bytes int) (*Part, error) {
	if b == nil || b.remote {
		own, err := kernels.NewHostBuf(bytes)
		if err != nil {
			return nil, err
		}
		return &Part{bytes: own.Bytes(), own: own}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	size := int(Size(int64(bytes)))
	if size > b.mu.far-b.mu.near {
		return nil, fmt.Errorf("device: rows of %d bytes: the region has %d bytes left", bytes, b.mu.far-b.mu.near)
	}
	b.mu.far -= size
	b.mu.parts++
	return &Part{region: b, bytes: b.host[b.mu.far : b.mu.far+bytes : b.mu.far+bytes]}, nil
}

// Bytes lends those of rows.
func (p *Part) Bytes() []byte { return p.bytes }

// Tensor lends slots, a row each.
func (p *Part) Tensor() kernels.Tensor { return p.slots }

// Lend is Bytes for a borrower who calls Return when done.
func (p *Part) Lend() []byte {
	p.lent.Add(1)
	return p.bytes
}

// Return ends a Lend.
func (p *Part) Return() { p.lent.Add(-1) }

// Close gives the part up. It panics while somebody has borrowed it. A second Close does nothing.
func (p *Part) Close() {
	if n := p.lent.Load(); n != 0 {
		panic(fmt.Sprintf("device: a part is closed while %d borrowers have it", n))
	}
	if p.own != nil {
		p.own.Close()
	}
	if b := p.region; b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.mu.parts--
	}
	p.region, p.own, p.bytes, p.slots = nil, nil, nil, kernels.Tensor{}
}

// Close gives the memory back. It panics while a part is not closed. A second Close does nothing.
func (b *Buffer) Close() {
	if b == nil || b.memory.Buf == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.parts > 0 {
		panic(fmt.Sprintf("device: the region is closed and %d parts of it are not", b.mu.parts))
	}
	b.be.Free(b.memory.Buf)
	b.memory, b.host, b.mu.near, b.mu.far = kernels.Tensor{}, nil, 0, 0
}
