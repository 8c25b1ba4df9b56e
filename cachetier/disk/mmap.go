package disk

import (
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/store"
)

// mapped copies rows out of the table's memory map.
type mapped struct {
	table   Table
	readers int
}

// mappedChunk is how many rows a reader takes at a time: enough that taking costs nothing, few enough that a cold
// chunk, 64 × 35 µs, does not leave the others idle for long.
const mappedChunk = 64

func (m *mapped) read(dst []byte, want []Request) (reads, bytes int64, err error) {
	chunks := (len(want) + mappedChunk - 1) / mappedChunk
	var taken atomic.Int64
	var failed atomic.Bool
	work := func() error {
		err := store.Guard(func() error {
			for !failed.Load() {
				c := int(taken.Add(1)) - 1
				if c >= chunks {
					break
				}
				m.copyRows(dst, want[c*mappedChunk:min(len(want), (c+1)*mappedChunk)])
			}
			return nil
		})
		if err != nil {
			failed.Store(true)
		}
		return err
	}
	if err := together(min(m.readers, chunks), work); err != nil {
		return 0, 0, err
	}
	return int64(len(want)), int64(len(want)) * int64(m.table.RowBytes()), nil
}

func (m *mapped) copyRows(dst []byte, want []Request) {
	size := m.table.RowBytes()
	for _, q := range want {
		at := int(q.Place()) * size
		copy(dst[at:at+size], m.table.Row(q.Row()))
	}
}

// together runs work on n goroutines, of which the caller's is one if n is 1, waits for all, and returns the first
// error.
func together(n int, work func() error) error {
	if n == 1 {
		return work()
	}
	var g errgroup.Group
	for range n {
		g.Go(work)
	}
	return g.Wait()
}
