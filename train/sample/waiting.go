package sample

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// Room keeps records until their turn when there are more than memory holds: a spill. A record is a
// packed batch, or some KiB. At a time at most two runs for each part of a horizon are appended to,
// and maxRanges (128) for each relation.
type Room interface {
	// NewRun returns a run without records.
	NewRun() Run
}

// Run is a set of records that are appended and then read once, in any order. Records are never
// appended while it is read.
type Run interface {
	// Append copies record to the run, whole or not at all. Several goroutines may call it at once.
	Append(record []byte) error
	// Each calls do with all records, in pieces of whole records, in any order; several calls run
	// at once. A piece is lent until do returns. The first error ends it, as ctx does, and when it
	// returns no call of do is under way. Without an error the run is then empty, and may be
	// appended to again.
	Each(ctx context.Context, do func(records []byte) error) error
}

// recordPool is the memory that records wait in, and the room for records that do not fit.
type recordPool struct {
	room Room
	mu   sync.Mutex
	left int64    // bytes that new chunks may take; free chunks are counted already
	free [][]byte // of chunkBytes
	runs []Run    // empty, for later use
}

// chunkBytes is the memory that a run takes at a time.
const chunkBytes = 32 << 10

// waiting is a run that keeps records in memory while the pool has room, and the rest in the Room.
type waiting struct {
	pool   *recordPool
	mu     sync.Mutex
	chunks [][]byte
	run    Run // nil until memory was full
	bytes  int64
}

func (h *recordPool) newRun() *waiting { return &waiting{pool: h} }

// chunk returns a chunk with room for n bytes, or nil if memory is full.
func (h *recordPool) chunk(n int) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	size, last := max(n, chunkBytes), len(h.free)-1
	if size == chunkBytes && last >= 0 {
		c := h.free[last]
		h.free = h.free[:last]
		return c
	}
	for ; h.left < int64(size) && last >= 0; last-- {
		h.free[last], h.free = nil, h.free[:last]
		h.left += chunkBytes
	}
	if h.left < int64(size) {
		return nil
	}
	h.left -= int64(size)
	return make([]byte, 0, size)
}

// giveBack takes chunks back, for other runs.
func (h *recordPool) giveBack(chunks [][]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range chunks {
		if cap(c) == chunkBytes {
			h.free = append(h.free, c[:0])
		} else {
			h.left += int64(cap(c))
		}
	}
}

// emptyRun returns an empty run of the room.
func (h *recordPool) emptyRun() Run {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := len(h.runs) - 1
	if last < 0 {
		return h.room.NewRun()
	}
	r := h.runs[last]
	h.runs = h.runs[:last]
	return r
}

// append appends a record, as Run.Append does.
func (w *waiting) append(record []byte) error {
	w.mu.Lock()
	w.bytes += int64(len(record))
	if w.run == nil {
		last := len(w.chunks) - 1
		if last < 0 || cap(w.chunks[last])-len(w.chunks[last]) < len(record) {
			if c := w.pool.chunk(len(record)); c != nil {
				w.chunks = append(w.chunks, c)
				last++
			} else {
				w.run = w.pool.emptyRun()
			}
		}
		if w.run == nil {
			w.chunks[last] = append(w.chunks[last], record...)
			w.mu.Unlock()
			return nil
		}
	}
	w.mu.Unlock()
	return w.run.Append(record)
}

// each calls do with all records, as Run.Each does, on the workers of s for records in memory. The
// run is given up: nothing can be appended to it any more.
func (w *waiting) each(ctx context.Context, s *Sampler, do func(records []byte) error) error {
	var came atomic.Int64
	count := func(records []byte) error {
		came.Add(int64(len(records)))
		return do(records)
	}
	err := s.each(ctx, len(w.chunks), func(_ *drawer, i int) error { return count(w.chunks[i]) })
	if err != nil {
		return err
	}
	w.pool.giveBack(w.chunks)
	w.chunks = nil
	if w.run != nil {
		if err := w.run.Each(ctx, count); err != nil {
			return err
		}
		w.pool.mu.Lock()
		w.pool.runs = append(w.pool.runs, w.run)
		w.pool.mu.Unlock()
		w.run = nil
	}
	if came.Load() != w.bytes {
		return fmt.Errorf("sample: %d bytes were appended to a run, and it gives %d", w.bytes, came.Load())
	}
	return nil
}
