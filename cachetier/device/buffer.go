package device

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gnnstore/gnnstore/kernels"
)

// Buffer is a region of a backend's memory. Several goroutines may call Slots and Rows, and close
// parts, at once.
//
// A nil Buffer stands for no region: Rows then allocates host memory, and Slots must not be called.
type Buffer struct {
	be     kernels.Backend
	memory kernels.Tensor // F16, one column
	host   []byte         // memory as the host addresses it
	apart  bool           // the host cannot address memory
	rings  *Rings         // guarded by mu

	mu struct {
		sync.Mutex
		slotsEnd, rowsBegin int  // slots have the bytes before slotsEnd, rows the bytes from rowsBegin on
		shared              bool // rows that slots will displace lie before rowsBegin
		parts               int  // not closed yet
	}
}

// New allocates a zeroed region for so many bytes of slots and of rows. Each is the sum of Size
// over its parts. The caller closes it.
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
	b.memory.Rows = int(Size(slots+rows) / 2)
	b.memory.Buf = be.Alloc(kernels.F16, b.memory.Rows)
	host, ok := be.Host(b.memory)
	b.host, b.apart = host, !ok
	b.mu.rowsBegin = 2 * b.memory.Rows
	return b, nil
}

// Apart reports whether the host cannot address the memory of be, so that a region of it is apart:
// see [Part.Apart].
func Apart(be kernels.Backend) bool {
	t := kernels.NewTensor(be, kernels.F16, 1, 1)
	defer be.Free(t.Buf)
	_, ok := be.Host(t)
	return !ok
}

// Apart reports whether the host cannot address the region. A nil Buffer is not apart.
func (b *Buffer) Apart() bool { return b != nil && b.apart }

const (
	line     = 64 // bytes of a cache line; parts start at multiples of it
	maxBytes = 1 << 61
)

// Size returns the bytes of the region that a part of so many bytes takes.
func Size(bytes int64) int64 { return (bytes + line - 1) / line * line }

// SlotsSize returns the bytes of the region that so many slots take, for hidden rows of cols
// columns.
func SlotsSize(slots, cols int) int64 { return Size(2 * int64(slots) * int64(cols)) }

// Part is a tenant's share of a region. Its bytes are valid until Close.
type Part struct {
	region *Buffer
	bytes  []byte
	slots  kernels.Tensor
	rows   kernels.Tensor   // of a part for rows that is apart: the last of them is row 0
	own    *kernels.HostBuf // memory of rows outside a region
	lent   atomic.Int64
}

// Slots takes the next bytes from the start of the region, for so many hidden rows in float16.
func (b *Buffer) Slots(slots, cols int) (*Part, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, size := b.mu.slotsEnd, int(SlotsSize(slots, cols))
	if size > b.mu.rowsBegin-at {
		return nil, fmt.Errorf("device: %d slots of %d columns: the region has %d bytes left", slots, cols, b.mu.rowsBegin-at)
	}
	b.mu.slotsEnd += size
	b.mu.parts++
	return &Part{region: b, slots: kernels.Tensor{Buf: b.memory.Buf, Type: kernels.F16, Off: at / 2, Rows: slots, Cols: cols}}, nil
}

// Rows takes room for rows feature rows of size bytes each, from the end of the region, before the
// rows taken already. It takes host memory if there is no region, or if the region is apart and
// size is odd: halves cannot hold such rows.
//
// In a region that is apart, up to more rows follow them, as far as there is room. They lie where
// slots will, and slots displace them, the last row first. After that no other rows can be taken.
func (b *Buffer) Rows(rows, more, size int) (*Part, error) {
	bytes := rows * size
	if b == nil || b.apart && size%2 != 0 {
		own, err := kernels.NewHostBuf(bytes)
		if err != nil {
			return nil, err
		}
		return &Part{bytes: own.Bytes(), own: own}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	room := int(Size(int64(bytes)))
	switch {
	case room > b.mu.rowsBegin-b.mu.slotsEnd:
		return nil, fmt.Errorf("device: rows of %d bytes: the region has %d bytes left", bytes, b.mu.rowsBegin-b.mu.slotsEnd)
	case b.mu.shared && rows+more > 0:
		return nil, errors.New("device: rows behind rows that slots will displace")
	}
	end := b.mu.rowsBegin
	b.mu.rowsBegin -= room
	b.mu.parts++
	if b.apart {
		if more = min(more, (end-bytes)/max(size, 1)); more > 0 {
			b.mu.shared = true
			rows += more
		}
		table := b.memory
		table.Off, table.Rows, table.Cols = (end-rows*size)/2, rows, size/2
		return &Part{region: b, rows: table}, nil
	}
	return &Part{region: b, bytes: b.host[b.mu.rowsBegin : b.mu.rowsBegin+bytes : b.mu.rowsBegin+bytes]}, nil
}

// Apart reports whether the part is for rows and the host cannot address it: Bytes lends nothing
// then, Put writes the rows, and an operation of the backend reads them.
func (p *Part) Apart() bool { return p.rows.Buf != nil }

// Table lends the rows of a part that is apart, as the table hot of kernels.Backend.RowsOf. Its
// last row is row 0 of the tenant: see At.
func (p *Part) Table() kernels.Tensor { return p.rows }

// At returns where row v lies in Table.
func (p *Part) At(v int) uint32 { return uint32(p.rows.Rows - 1 - v) }

// Put writes rows to a part that is apart, as the tenant's rows first, first+1 and so on. rows has
// them one after the other, two bytes an element. Put changes rows: it reverses their order.
func (p *Part) Put(first int, rows []uint16) {
	cols := p.rows.Cols
	n := len(rows) / max(cols, 1)
	for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
		for c := range cols {
			rows[i*cols+c], rows[j*cols+c] = rows[j*cols+c], rows[i*cols+c]
		}
	}
	last := int(p.At(first)) + 1
	p.region.be.UploadHalf(p.rows.Slice(last-n, last), rows)
}

// Bytes lends the memory of a part for rows. It is empty if the part is apart.
func (p *Part) Bytes() []byte { return p.bytes }

// Tensor lends the memory of a part for slots, one row a slot.
func (p *Part) Tensor() kernels.Tensor { return p.slots }

// Lend is Bytes for a borrower who calls Return when done.
func (p *Part) Lend() []byte {
	p.lent.Add(1)
	return p.bytes
}

// Return ends a Lend.
func (p *Part) Return() { p.lent.Add(-1) }

// Close ends the use of the part; the region does not give its bytes out again. It panics while
// somebody has borrowed it. A second Close does nothing.
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
	p.region, p.own, p.bytes, p.slots, p.rows = nil, nil, nil, kernels.Tensor{}, kernels.Tensor{}
}

// Close frees the memory. It panics while a part is open. A second Close does nothing.
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
	b.memory, b.host, b.mu.slotsEnd, b.mu.rowsBegin = kernels.Tensor{}, nil, 0, 0
}
