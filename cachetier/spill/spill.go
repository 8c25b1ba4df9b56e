// Package spill is disk space for what is wanted again soon: bytes that are written once and read
// once, in [Run]s of one [File].
//
// A File is cut into segments of one size, half a MiB, so that every transfer is large whatever the
// order in which runs grow. A Run is a list of segments; the segment that was read is free for
// another Run. The file is reserved at its full length when it is made, so that no write finds the
// disk full, and it never has a name for longer than that takes: it is gone when the process is,
// however that ends.
//
// Each page of 4 KiB has a CRC-32C, which is kept in memory and compared before a byte of the page
// is lent. A page that is not as it was written is an [ErrDamaged]. So is what a failed write left.
//
// Memory: a File owns its buffers, of a segment each, outside the Go heap, and gives them up in
// Close; [Options.MemoryBytes] says beforehand how much they and the checksums take. [File.Buffer]
// lends a buffer to fill, [Run.Append] takes it back.
//
// Concurrency: a File may be used by many at once, and so may a Run be appended to. One goroutine
// at a time reads a Run, when nobody appends to it.
//
// Start at [Run.Append], then [Run.Each].
//
// # Why not
//
// Why not a file for each run: what was read gives its space back at once only by holes or by
// removal, and both cost a discard, 0.2 s a GB on a virtual disk. Segments are written over.
//
// Why not checksums in the segments: they would take a page's end from rows that divide it, and one
// in memory also tells a stale segment from the newest.
package spill

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sync"
	"sync/atomic"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// Sizes of a segment: what is usual, and the least. With half a MiB a virtual disk writes and reads
// as fast as with two: 2.5 and 2.0 GB/s, and with 64 KiB half of that (2026-11-24, 8 transfers at a
// time).
const (
	UsualSegment = 512 << 10
	LeastSegment = 16 << 10
)

// pageBytes have a checksum.
const pageBytes = store.PageSize

// MaxDepth bounds Options.Depth.
const MaxDepth = 64

const defaultDepth = 8

// ErrDamaged is in the chain of an error that says that what is read is not what was appended.
var ErrDamaged = errors.New("damaged spill")

// Options says where a File lies and how large it is.
type Options struct {
	Dir     string // exists, and can be written to
	Bytes   int64  // of the file; what is no whole segment is left out
	Segment int    // bytes, a multiple of 4 KiB. Default UsualSegment
	// Buffers is how many segments are in memory at most, beside Depth for reading: those that are
	// being filled and those on their way to the disk. Whoever fills several at a time needs as
	// many and one more, or waits for ever. Default 2.
	Buffers int
	// Depth is how many transfers are under way at most, each way. Default 8.
	Depth int
	// Faults says what befalls a transfer of so many bytes: an error, or time that passes, before
	// anything is moved. Default: nothing.
	Faults func(write bool, offset int64, size int) error
}

func (o Options) filled() Options {
	if o.Segment == 0 {
		o.Segment = UsualSegment
	}
	o.Buffers = max(o.Buffers, 2)
	if o.Depth == 0 {
		o.Depth = defaultDepth
	}
	return o
}

// Validate reports every option that cannot be followed.
func (o Options) Validate() error {
	var errs []error
	if o = o.filled(); o.Segment < pageBytes || o.Segment%pageBytes != 0 {
		errs = append(errs, fmt.Errorf("segments of %d bytes: use a multiple of %d", o.Segment, pageBytes))
	} else if o.Bytes < int64(o.Segment) {
		errs = append(errs, fmt.Errorf("a spill of %d bytes: one segment takes %d", o.Bytes, o.Segment))
	}
	if o.Depth < 1 || o.Depth > MaxDepth {
		errs = append(errs, fmt.Errorf("%d transfers at a time: use 1 to %d, or 0 for the default", o.Depth, MaxDepth))
	}
	return errors.Join(errs...)
}

// MemoryBytes is what a File takes at most: buffers, and 4 bytes a page of the file.
func (o Options) MemoryBytes() int64 {
	o = o.filled()
	return int64(o.Buffers+o.Depth)*int64(o.Segment) + o.Bytes/pageBytes*4
}

// Stats counts what a File did. Its JSON keys are stable.
type Stats struct {
	CapacityBytes int64 `json:"capacity_bytes"`
	UsedBytes     int64 `json:"used_bytes"` // in segments that hold something now
	PeakBytes     int64 `json:"peak_bytes"`
	BytesWritten  int64 `json:"bytes_written"`
	BytesRead     int64 `json:"bytes_read"`
	BytesKept     int64 `json:"bytes_kept"` // appended, and read before they were written
}

// Sub is what was counted since earlier. What is held stays as in s.
func (s Stats) Sub(earlier Stats) Stats {
	s.BytesWritten -= earlier.BytesWritten
	s.BytesRead -= earlier.BytesRead
	s.BytesKept -= earlier.BytesKept
	return s
}

// Add is s with what an earlier File had counted.
func (s Stats) Add(earlier Stats) Stats {
	s.BytesWritten += earlier.BytesWritten
	s.BytesRead += earlier.BytesRead
	s.BytesKept += earlier.BytesKept
	s.PeakBytes = max(s.PeakBytes, earlier.PeakBytes)
	return s
}

// With is what s and another File, which is used beside it, have and did together. PeakBytes need
// not have been at a time.
func (s Stats) With(other Stats) Stats {
	peak := s.PeakBytes + other.PeakBytes
	s = s.Add(other)
	s.CapacityBytes, s.UsedBytes, s.PeakBytes = s.CapacityBytes+other.CapacityBytes, s.UsedBytes+other.UsedBytes, peak
	return s
}

// File is the space. Use Create.
type File struct {
	o       Options
	file    *os.File
	where   string // for errors
	memory  *kernels.HostBuf
	ctx     context.Context // ends with Close
	end     context.CancelFunc
	free    chan *Buffer // to be filled
	reads   chan []byte  // to be read into
	queue   chan *part
	writers sync.WaitGroup

	mu struct {
		sync.Mutex
		changed  *sync.Cond // a write has ended, or the file is closed
		segments []int32    // free
		used     int
		stats    Stats
		closed   bool
	}
	written, read, kept atomic.Int64

	records struct {
		sync.Mutex
		open []*Records // that have a buffer, the oldest first
	}
}

// Create makes a file without a name in o.Dir, reserves its space and starts its writers. The error
// names the directory; too little space is one, found before anything is written.
func Create(o Options) (_ *File, err error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("spill: %w", err)
	}
	o = o.filled()
	n := o.Bytes / int64(o.Segment)
	o.Bytes = n * int64(o.Segment)
	f := &File{o: o, where: "the spill in " + o.Dir}
	f.mu.changed = sync.NewCond(&f.mu)
	if f.file, err = create(o.Dir, o.Bytes); err != nil {
		return nil, fmt.Errorf("spill: reserve %s in %s: %w", kernels.FormatBytes(o.Bytes), o.Dir, err)
	}
	if f.memory, err = kernels.NewHostBuf((o.Buffers + o.Depth) * o.Segment); err != nil {
		_ = f.file.Close() // it holds nothing
		return nil, fmt.Errorf("spill: %d buffers of %s: %w", o.Buffers+o.Depth, kernels.FormatBytes(int64(o.Segment)), err)
	}
	f.ctx, f.end = context.WithCancel(context.Background())
	f.free, f.reads = make(chan *Buffer, o.Buffers), make(chan []byte, o.Depth)
	f.queue = make(chan *part, o.Buffers)
	all := f.memory.Bytes()
	for range o.Buffers {
		f.free <- &Buffer{Bytes: all[:o.Segment:o.Segment]}
		all = all[o.Segment:]
	}
	for range o.Depth {
		f.reads <- all[:o.Segment:o.Segment]
		all = all[o.Segment:]
	}
	for s := n - 1; s >= 0; s-- {
		f.mu.segments = append(f.mu.segments, int32(s))
	}
	f.mu.stats.CapacityBytes = o.Bytes
	for range o.Depth {
		f.writers.Go(f.write)
	}
	return f, nil
}

// Segment is how many bytes a segment has.
func (f *File) Segment() int { return f.o.Segment }

// Stats is a copy of the counters.
func (f *File) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.mu.stats
	s.UsedBytes = int64(f.mu.used) * int64(f.o.Segment)
	s.BytesWritten, s.BytesRead, s.BytesKept = f.written.Load(), f.read.Load(), f.kept.Load()
	return s
}

// Close waits for what is being written, and gives up the memory and the space. Nobody may use the
// file or its runs meanwhile, or afterwards. A second Close does nothing.
func (f *File) Close() {
	f.mu.Lock()
	closed := f.mu.closed
	f.mu.closed = true
	f.mu.Unlock()
	if closed {
		return
	}
	f.end()
	f.writers.Wait()
	_ = f.file.Close() // it has no name, and goes with its descriptor
	f.memory.Close()
}

// Buffer is a segment in memory.
type Buffer struct {
	Bytes []byte
	Used  int // of Bytes, from the first on
	Count int // the caller's: such as how many rows there are
}

// Buffer lends a buffer to fill, of which nothing is used: it waits until there is one. An error is
// the end of ctx.
func (f *File) Buffer(ctx context.Context) (*Buffer, error) {
	select {
	case b := <-f.free:
		b.Used, b.Count = 0, 0
		return b, nil
	default:
	}
	select {
	case b := <-f.free:
		b.Used, b.Count = 0, 0
		return b, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Return takes back a buffer that holds nothing of use.
func (f *File) Return(b *Buffer) { f.free <- b }

// take is a free segment.
func (f *File) take() (int32, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.mu.segments)
	if n == 0 {
		return 0, false
	}
	s := f.mu.segments[n-1]
	f.mu.segments = f.mu.segments[:n-1]
	f.mu.used++
	f.mu.stats.PeakBytes = max(f.mu.stats.PeakBytes, int64(f.mu.used)*int64(f.o.Segment))
	return s, true
}

// give takes back a segment.
func (f *File) give(s int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.segments = append(f.mu.segments, s)
	f.mu.used--
}

// write writes parts until the file is closed.
func (f *File) write() {
	for {
		select {
		case p := <-f.queue:
			f.writePart(p)
		case <-f.ctx.Done():
			return
		}
	}
}

// writePart writes a part, unless whoever reads it was faster.
func (f *File) writePart(p *part) {
	f.mu.Lock()
	if p.state != queued {
		f.mu.Unlock()
		return
	}
	p.state = writing
	f.mu.Unlock()
	n := pages(p.used) * pageBytes
	clear(p.buf.Bytes[p.used:n])
	err := f.transfer(true, p.buf.Bytes[:n], p.offset(f))
	f.written.Add(int64(n))
	f.mu.Lock()
	p.state, p.err = written, err
	b := p.buf
	p.buf = nil
	f.mu.changed.Broadcast()
	f.mu.Unlock()
	f.free <- b
}

// transfer moves all of b.
func (f *File) transfer(write bool, b []byte, at int64) error {
	if f.o.Faults != nil {
		if err := f.o.Faults(write, at, len(b)); err != nil {
			return err
		}
	}
	var n int
	var err error
	if write {
		n, err = f.file.WriteAt(b, at)
	} else {
		n, err = f.file.ReadAt(b, at)
	}
	if n < len(b) && err == nil {
		err = fmt.Errorf("%d bytes of %d", n, len(b))
	}
	return err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// pages is how many hold so many bytes.
func pages(bytes int) int { return (bytes + pageBytes - 1) / pageBytes }

// sums are the checksums of the pages of b, the last of which may be short.
func sums(b []byte) []uint32 {
	all := make([]uint32, pages(len(b)))
	for i := range all {
		all[i] = crc32.Checksum(b[i*pageBytes:min((i+1)*pageBytes, len(b))], castagnoli)
	}
	return all
}
