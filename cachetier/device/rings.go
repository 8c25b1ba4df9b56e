package device

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/gnnstore/gnnstore/kernels"
)

// ChunkBytes is the most bytes of slots that a ring takes at a time.
const ChunkBytes = 2 << 20

// leastChunks is the least number of chunks of the largest ring: small rings have smaller chunks.
const leastChunks = 16

// Rings are the near end of a region that is apart: slots for hidden rows of several rings, all of
// one width. Room is reserved for all of them, but a ring takes it a chunk at a time, as slots of
// higher numbers come into use. Until then feature rows lie there: see [Buffer.Rows].
//
// A slot has a number in its ring, and a place, its row in Table. Take and Taken are called by one
// goroutine, which plans. Place may be called at any time for a slot that was taken.
type Rings struct {
	region *Buffer
	table  kernels.Tensor
	per    int // slots of a chunk

	first [][]atomic.Uint32 // by ring and chunk of the ring: the place of its first slot plus 1; 0: not taken

	mu struct {
		sync.Mutex
		since []int // of each chunk that is taken, by place: the first step that stores there
	}
}

// chunk returns the number of slots of a chunk.
func chunk(cols int, slots []int) int {
	largest := 0
	for _, n := range slots {
		largest = max(largest, n)
	}
	return max(1, min(ChunkBytes/max(2*cols, 1), (largest+leastChunks-1)/leastChunks))
}

// RingsSize returns the bytes of the region that rings of so many slots may take, for hidden rows
// of cols columns.
func RingsSize(cols int, slots ...int) int64 {
	return Size(2 * int64(cols) * int64(places(cols, slots)))
}

// places returns how many places rings of so many slots have.
func places(cols int, slots []int) (n int) {
	per := chunk(cols, slots)
	for _, of := range slots {
		n += (of + per - 1) / per * per
	}
	return n
}

// Rings reserves the start of a region for the slots of several rings. The region must be apart,
// and have no other slots.
func (b *Buffer) Rings(cols int, slots ...int) (*Rings, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	size := RingsSize(cols, slots...)
	switch {
	case !b.apart || b.mu.slotsEnd > 0:
		return nil, fmt.Errorf("device: rings in a region that the host addresses, or that has slots")
	case size > int64(b.mu.rowsBegin):
		return nil, fmt.Errorf("device: rings of %d bytes: the region has %d bytes left", size, b.mu.rowsBegin)
	}
	r := &Rings{region: b, per: chunk(cols, slots), table: b.memory}
	r.table.Rows, r.table.Cols = places(cols, slots), cols
	for _, n := range slots {
		r.first = append(r.first, make([]atomic.Uint32, (n+r.per-1)/r.per))
	}
	b.mu.slotsEnd, b.rings = int(size), r
	b.mu.parts++
	return r, nil
}

// Table lends the slots of all rings, a row a slot.
func (r *Rings) Table() kernels.Tensor { return r.table }

// Take notes that a step stores in slots of a ring. Chunks that have none of them yet come next
// after those taken.
func (r *Rings) Take(ring, step int, slots []uint32) {
	of := r.first[ring]
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range slots {
		c := int(s) / r.per
		first := of[c].Load()
		if first == 0 {
			first = uint32(len(r.mu.since)*r.per) + 1
			r.mu.since = append(r.mu.since, step)
			of[c].Store(first)
		}
		if since := &r.mu.since[int(first-1)/r.per]; step < *since {
			*since = step // planned anew
		}
	}
}

// Place returns the row of Table that has a slot of a ring. ok is false if its chunk is not taken.
func (r *Rings) Place(ring int, slot uint32) (place uint32, ok bool) {
	first := r.first[ring][int(slot)/r.per].Load()
	return first - 1 + slot%uint32(r.per), first > 0
}

// Taken returns the bytes from the start of the region to the end of the last chunk that a step
// before step stores in.
func (r *Rings) Taken(step int) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.mu.since)
	for n > 0 && r.mu.since[n-1] >= step {
		n--
	}
	return int64(n) * int64(r.per) * 2 * int64(r.table.Cols)
}

// Chunk returns how many slots of a ring, from slot on, lie one behind the other.
func (r *Rings) Chunk(slot int) int { return r.per - slot%r.per }

// Close ends the use of the slots. A second Close does nothing.
func (r *Rings) Close() {
	b := r.region
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.parts--
	r.region, r.table = nil, kernels.Tensor{}
}

// Taken returns how many bytes of the region, from its start, slots have taken so far.
func (b *Buffer) Taken() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	r := b.rings
	b.mu.Unlock()
	if r == nil {
		return 0
	}
	return r.Taken(math.MaxInt)
}

// Left returns how many rows, from row 0 on, are still there once slots have taken so many bytes
// from the start of the region.
func (p *Part) Left(taken int64) int {
	begin, size := 2*int64(p.rows.Off), 2*int64(p.rows.Cols)
	if taken <= begin {
		return p.rows.Rows
	}
	return max(0, p.rows.Rows-int((taken-begin+size-1)/size))
}
