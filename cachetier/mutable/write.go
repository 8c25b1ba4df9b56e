package mutable

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

const (
	// maxRun bounds the bytes of one write.
	maxRun = disk.MaxExtent
	// writers is the number of concurrent writes.
	writers = 16
	// bridge is the largest gap in bytes that a run spans, if it bypasses the page cache: to read
	// and write so much takes as long as another read and write.
	bridge = 32 << 10
)

// putBytes is the size of the buffer for writing, and copyBytes of the buffer for copying; tests
// make both small.
var putBytes, copyBytes int64 = 4 << 20, 4 << 20

// putter has the buffers of write.
type putter struct {
	memory *kernels.HostBuf // nil before the first write
	runs   []run
	pages  []page
}

// run is a range of whole pages in a file, written at once: the records of rows [lo, hi) of a
// write, and what lies between them.
type run struct {
	offset   int64
	at, size int // offset and length in the memory
	lo, hi   int
}

// page is a page that is written in part, and whose rest must be read first.
type page struct {
	offset int64
	at     int
}

// reserve allocates the memory before the first write.
func (p *putter) reserve(stride int64) (err error) {
	if p.memory == nil {
		p.memory, err = kernels.NewHostBuf(int(max(putBytes, stride+2*store.PageSize)) &^ (store.PageSize - 1))
	}
	return err
}

func (p *putter) free() {
	if p.memory != nil {
		p.memory.Close()
	}
}

// write writes n rows, in ascending order, to the file of a slot, and returns the bytes written.
// has reports whether the file has a row that must be kept; nil: it may have any.
//
// Pages are written whole, so a page that is written in part is read first.
func (t *rows) write(slot byte, n int, row func(i int) (uint32, []byte), has func(v uint32) bool) (bytes int64, err error) {
	p, f := &t.put, t.slots[slot]
	if err := p.reserve(t.stride); err != nil {
		return 0, err
	}
	for i := 0; i < n; {
		before := int64(-1) // the last row that earlier runs have written
		if i > 0 {
			v, _ := row(i - 1)
			before = int64(v)
		}
		gap := int64(0)
		if f.direct {
			gap = bridge
		}
		i = t.layOut(i, n, row, gap)
		memory := p.memory.Lend() // the goroutines of Read and putRuns use it
		var reread disk.Traffic
		if reread, err = t.reread(slot, memory, row, func(v uint32) bool { return has == nil || int64(v) <= before || has(v) }); err == nil {
			err = t.putRuns(f, memory, row)
		}
		p.memory.Return()
		if err != nil {
			return bytes, err
		}
		for _, r := range p.runs {
			bytes += int64(r.size)
		}
		t.state.Lock()
		t.counts.BytesReread += reread.Bytes
		t.state.Unlock()
	}
	return bytes, nil
}

// pagesOf returns the offsets of the whole pages [lo, hi) on which the record of a row lies.
func (t *rows) pagesOf(v uint32) (lo, hi int64) {
	lo = t.offset(v)
	return lo &^ (store.PageSize - 1), (lo + t.stride + store.PageSize - 1) &^ (store.PageSize - 1)
}

// layOut makes runs of the rows from i on, until the memory is full, and returns the index of the
// row after them. Rows at most gap bytes apart share a run, up to maxRun bytes. No two runs share a
// page.
func (t *rows) layOut(i, n int, row func(i int) (uint32, []byte), gap int64) int {
	p, used := &t.put, 0
	p.runs = p.runs[:0]
	for ; i < n; i++ {
		v, _ := row(i)
		lo, hi := t.pagesOf(v)
		if last := len(p.runs) - 1; last >= 0 {
			r := &p.runs[last]
			end := r.offset + int64(r.size)
			more := int(hi - end)
			if lo <= end+gap && r.size+more <= maxRun && used+more <= len(p.memory.Bytes()) {
				r.size, r.hi, used = r.size+more, i+1, used+more
				continue
			}
			if lo < end {
				break
			}
		}
		if used+int(hi-lo) > len(p.memory.Bytes()) {
			break
		}
		p.runs = append(p.runs, run{lo, used, int(hi - lo), i, i + 1})
		used += int(hi - lo)
	}
	return i
}

// reread reads the pages of the runs that are written in part, and whose other parts have rows.
func (t *rows) reread(slot byte, memory []byte, row func(i int) (uint32, []byte), has func(v uint32) bool) (disk.Traffic, error) {
	p := &t.put
	p.pages = p.pages[:0]
	for _, r := range p.runs {
		clear(memory[r.at : r.at+r.size])
		next := r.lo
		for at := 0; at < r.size; at += store.PageSize {
			offset := r.offset + int64(at)
			first := uint32((offset - headerSize) / t.stride)
			last := uint32(min(int64(t.shape.rows)-1, (offset+store.PageSize-1-headerSize)/t.stride))
			for v, _ := row(next); next < r.hi-1 && v < first; v, _ = row(next) {
				next++
			}
			i := next
			for v := first; v <= last; v++ {
				if i < r.hi {
					if w, _ := row(i); w == v {
						i++
						continue
					}
				}
				if has(v) {
					p.pages = append(p.pages, page{offset, r.at + at})
					break
				}
			}
		}
	}
	return t.readPages(slot, memory)
}

// readPages reads the listed pages into their places in memory.
func (t *rows) readPages(slot byte, memory []byte) (disk.Traffic, error) {
	pages := t.put.pages
	if len(pages) == 0 {
		return disk.Traffic{}, nil
	}
	next := t.reader.Merge(len(pages), func(i int) disk.Request {
		return disk.Request{File: t.place[slot], Offset: pages[i].offset, Size: store.PageSize}
	})
	return t.readExtents(context.Background(), slot, next, func(s disk.Extent, b []byte) error {
		for _, p := range pages[s.Lo:s.Hi] {
			copy(memory[p.at:][:store.PageSize], b[p.offset-s.Offset:])
		}
		return nil
	})
}

// putRuns writes the runs, several at once.
func (t *rows) putRuns(f *rowFile, memory []byte, row func(i int) (uint32, []byte)) error {
	var mu sync.Mutex // guards taken and failed
	taken, failed := 0, false
	take := func() (r run, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if failed || taken == len(t.put.runs) {
			return r, false
		}
		taken++
		return t.put.runs[taken-1], true
	}
	work := func() error {
		for r, ok := take(); ok; r, ok = take() {
			b := memory[r.at : r.at+r.size]
			for i := r.lo; i < r.hi; i++ {
				v, bytes := row(i)
				f.encode(b[t.offset(v)-r.offset:][:t.stride], v, bytes)
			}
			if err := f.writeAt(b, r.offset); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = true
				return err
			}
		}
		return nil
	}
	var g errgroup.Group
	for range min(writers, len(t.put.runs)) {
		g.Go(work)
	}
	return g.Wait()
}

// writeAt writes whole pages at offset.
func (f *rowFile) writeAt(b []byte, offset int64) error {
	_, err := f.file.WriteAt(b, offset)
	if f.direct && errors.Is(err, syscall.EINVAL) { // some file systems accept the flag, and then refuse to write
		setDirect(f.file, false)
		_, err = f.file.WriteAt(b, offset)
	}
	if err != nil {
		return fmt.Errorf("write %d bytes of %s at 0x%x: %w", len(b), f.path, offset, err)
	}
	return nil
}
