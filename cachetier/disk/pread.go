package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/gnnstore/gnnstore/store"
)

// pool reads with positioned reads from several goroutines.
type pool struct {
	shards   []store.Shard
	rowBytes int
	readers  int

	mu      sync.Mutex
	buffers [][]byte // of mergeBytes each, unused now; at most readers exist
}

// mergeBytes bounds the bytes of a read that serves several rows. A read costs as much as about 14 KB of transfer, so
// at 128 KiB that share is down to a tenth, and a buffer for every reader is still small.
const mergeBytes = 128 << 10

// maxTake bounds the reads that a reader takes at a time, so that taking, under a lock, costs little for rows in the page
// cache.
const maxTake = 16

// run is one read of the file, which serves the requests want, rows next to each other in one shard.
type run struct {
	shard  *store.Shard
	offset int64
	size   int
	want   []Request
}

// next makes the first requests of want into a read. It looks at want alone, so the reads of a batch are the same
// however many goroutines share them. Rows that follow each other are merged, read through the padding between them;
// this is the place to read through wider gaps too.
func (p *pool) next(want []Request) run {
	row := int64(want[0].Row())
	s := &p.shards[sort.Search(len(p.shards), func(i int) bool { return p.shards[i].FirstRow+p.shards[i].Rows > row })]
	last := s.FirstRow + s.Rows - 1
	if fits := (mergeBytes - int64(p.rowBytes)) / s.Stride; row+fits < last { // a row wider than the buffer goes alone
		last = row + max(0, fits)
	}
	n := 1
	for n < len(want) && int64(want[n].Row()) == row+int64(n) && row+int64(n) <= last {
		n++
	}
	return run{
		shard:  s,
		offset: s.DataOffset + (row-s.FirstRow)*s.Stride,
		size:   (n-1)*int(s.Stride) + p.rowBytes,
		want:   want[:n],
	}
}

func (p *pool) read(dst []byte, want []Request) (reads, bytes int64, err error) {
	workers := min(p.readers, len(want))
	// A few portions for each reader even out that some reads are slower than others.
	portion := min(maxTake, max(1, len(want)/(4*workers)))
	var cursor struct {
		sync.Mutex
		rest         []Request
		reads, bytes int64
	}
	cursor.rest = want
	take := func(runs []run) []run {
		cursor.Lock()
		defer cursor.Unlock()
		for len(runs) < portion && len(cursor.rest) > 0 {
			r := p.next(cursor.rest)
			cursor.rest = cursor.rest[len(r.want):]
			cursor.reads++
			cursor.bytes += int64(r.size)
			runs = append(runs, r)
		}
		return runs
	}
	var failed atomic.Bool
	err = together(workers, func() error {
		var buffer []byte
		defer func() { p.giveBuffer(buffer) }()
		var space [maxTake]run
		for !failed.Load() {
			runs := take(space[:0])
			if len(runs) == 0 {
				break
			}
			for _, r := range runs {
				if err := p.serve(dst, r, &buffer); err != nil {
					failed.Store(true)
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	return cursor.reads, cursor.bytes, nil
}

// serve does one read: straight into dst where the rows lie there as in the file, else through the buffer.
func (p *pool) serve(dst []byte, r run, buffer *[]byte) error {
	if p.straight(r) {
		at := int(r.want[0].Place()) * p.rowBytes
		return readFull(r, dst[at:at+r.size])
	}
	if *buffer == nil {
		*buffer = p.takeBuffer()
	}
	b := (*buffer)[:r.size]
	if err := readFull(r, b); err != nil {
		return err
	}
	for i, q := range r.want {
		at, from := int(q.Place())*p.rowBytes, i*int(r.shard.Stride)
		copy(dst[at:at+p.rowBytes], b[from:])
	}
	return nil
}

// straight says whether the rows of r lie in the destination as they do in the file.
func (p *pool) straight(r run) bool {
	if len(r.want) > 1 && r.shard.Stride != int64(p.rowBytes) {
		return false
	}
	for i, q := range r.want {
		if int(q.Place()) != int(r.want[0].Place())+i {
			return false
		}
	}
	return true
}

func readFull(r run, b []byte) error {
	n, err := r.shard.File.ReadAt(b, r.offset)
	switch {
	case n == len(b):
		return nil
	case errors.Is(err, io.EOF):
		return &store.SectionError{Dataset: r.shard.Dataset, Section: r.shard.Section, Offset: r.offset + int64(n), Err: fmt.Errorf(
			"the file ends %d bytes into a read of %d: it was truncated while in use; restore it and run gnnstore verify", n, len(b))}
	}
	var path *fs.PathError // names the file as it was opened; the shard's path says where it lies
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("read %d bytes of %s at 0x%x: %w", len(b), r.shard.Path, r.offset, err)
}

func (p *pool) takeBuffer() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.buffers); n > 0 {
		b := p.buffers[n-1]
		p.buffers = p.buffers[:n-1]
		return b
	}
	return make([]byte, mergeBytes)
}

func (p *pool) giveBuffer(b []byte) {
	if b == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buffers = append(p.buffers, b)
}
