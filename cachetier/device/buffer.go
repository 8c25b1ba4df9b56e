package device

import (
	"fmt"

	"github.com/gnnstore/gnnstore/kernels"
)

// Buffer is the bytes of a region, in host memory.
//
// What it lends dies with Close, which wants every borrower gone. It is plain memory: who plans knows where the junction
// is, and so whether a byte belongs to a slot or to a row.
type Buffer struct {
	layout Layout
	memory *kernels.HostBuf
}

// NewBuffer allocates a region of zeros. The caller closes it.
func NewBuffer(l Layout) (*Buffer, error) {
	if err := l.Validate(); err != nil {
		return nil, fmt.Errorf("device: %w", err)
	}
	memory, err := kernels.NewHostBuf(int(l.Bytes))
	if err != nil {
		return nil, fmt.Errorf("device: %w", err)
	}
	return &Buffer{layout: l, memory: memory}, nil
}

// Layout says what lies where.
func (b *Buffer) Layout() Layout { return b.layout }

// Bytes lends the region.
func (b *Buffer) Bytes() []byte { return b.memory.Bytes() }

// Lend is Bytes for a borrower who calls Return when done; see [kernels.HostBuf].
func (b *Buffer) Lend() []byte { return b.memory.Lend() }

// Return ends a Lend.
func (b *Buffer) Return() { b.memory.Return() }

// Slot lends slot s, SlotBytes long. An embedding that is narrower lies at its start.
func (b *Buffer) Slot(s uint32) []byte {
	return cut(b.memory.Bytes(), b.layout.SlotOffset(s), b.layout.SlotBytes)
}

// Feature lends feature row v, RowBytes long.
func (b *Buffer) Feature(v uint32) []byte {
	return cut(b.memory.Bytes(), b.layout.FeatureOffset(v), b.layout.RowBytes)
}

// cut is the size bytes of all from at on.
func cut(all []byte, at int64, size int) []byte {
	end := at + int64(size)
	return all[at:end:end] // panics outside the region
}

// Close gives the memory back. A second Close does nothing.
func (b *Buffer) Close() { b.memory.Close() }
