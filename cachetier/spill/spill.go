// Package spill keeps bytes on disk that are wanted again soon: they are written once and read
// once, in [Run]s of one [File].
//
// A File is cut into segments of one size, half a MiB, so that every transfer is large in whatever
// order runs grow. A Run is a list of segments; a segment that was read is free for another Run.
// The file is reserved at its full length when it is made, so that no write finds the disk full,
// where the file system can reserve. It has no name, or only while it is made: the file is gone
// when the process is, however that ends.
//
// Each page of 4 KiB has a CRC-32C, which is kept in memory and compared before a byte of the page
// is lent. A page that is not as it was written is an [ErrDamaged], and so is one whose write
// failed.
//
// Memory: a File owns its buffers, one segment each, outside the Go heap, and frees them in Close.
// [Options.MemoryBytes] returns in advance how much they and the checksums take. [File.Buffer]
// lends a buffer to fill, and [Run.Append] takes it back.
//
// Concurrency: several goroutines may use a File at once, and several may append to a Run at once.
// One goroutine at a time reads a Run, while nobody appends to it.
//
// Start at [Run.Append], then [Run.Each].
//
// # Why not
//
// Why not a file for each run: to free the space that was read at once takes holes or removals, and
// both cost a discard, 0.2 s a GB on a virtual disk. Segments are overwritten.
//
// Why not checksums in the segments: rows whose size divides a page would no longer fill it. A
// checksum in memory also tells a stale segment from the newest.
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

// UsualSegment is the default size of a segment in bytes. LeastSegment is the smallest that callers
// should plan for rows; Validate accepts less. With half a MiB a virtual disk writes and reads as
// fast as with two: 2.5 and 2.0 GB/s. With 64 KiB it reaches half of that (2026-11-24, 8 transfers
// at a time).
const (
	UsualSegment = 512 << 10
	LeastSegment = 16 << 10
)

// pageBytes is the number of bytes that share a checksum.
const pageBytes = store.PageSize

// MaxDepth bounds Options.Depth.
const MaxDepth = 64

const defaultDepth = 8

// ErrDamaged is wrapped by the error of a read that finds other bytes than were appended.
var ErrDamaged = errors.New("damaged spill")

// Options sets where a File lies, how large it is, and how it is read and written.
type Options struct {
	Dir     string // an existing, writable directory
	Bytes   int64  // size of the file, rounded down to whole segments
	Segment int    // bytes, a multiple of 4 KiB. Default UsualSegment
	// Buffers is the number of segments in memory that are being filled or on their way to the
	// disk. Depth more are for reading. A caller that fills several at a time needs one more than
	// that, or waits forever. Default and minimum 2.
	Buffers int
	// Depth bounds the writes under way, and the reads under way, up to MaxDepth. Default 8.
	Depth int
	// Faults is called before each transfer of size bytes. It may return an error, which fails the
	// transfer, or let time pass. Default: nothing.
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

// MemoryBytes returns the most memory that a File takes: its buffers, and 4 bytes for each page of
// the file.
func (o Options) MemoryBytes() int64 {
	o = o.filled()
	return int64(o.Buffers+o.Depth)*int64(o.Segment) + o.Bytes/pageBytes*4
}

// Stats counts the work of a File. Its JSON keys are stable.
type Stats struct {
	CapacityBytes int64 `json:"capacity_bytes"`
	UsedBytes     int64 `json:"used_bytes"` // in segments that hold something now
	PeakBytes     int64 `json:"peak_bytes"`
	BytesWritten  int64 `json:"bytes_written"`
	BytesRead     int64 `json:"bytes_read"`
	BytesKept     int64 `json:"bytes_kept"` // appended, and read before they were written
}

// Sub returns the counts since earlier. Capacity, use and peak stay as in s.
func (s Stats) Sub(earlier Stats) Stats {
	s.BytesWritten -= earlier.BytesWritten
	s.BytesRead -= earlier.BytesRead
	s.BytesKept -= earlier.BytesKept
	return s
}

// Add returns s plus the counts of an earlier File, with the higher peak. Capacity and use stay as
// in s.
func (s Stats) Add(earlier Stats) Stats {
	s.BytesWritten += earlier.BytesWritten
	s.BytesRead += earlier.BytesRead
	s.BytesKept += earlier.BytesKept
	s.PeakBytes = max(s.PeakBytes, earlier.PeakBytes)
	return s
}

// With returns the sums of s and other, a File that is used at the same time. The two peaks are
// added, although they need not have been at the same time.
func (s Stats) With(other Stats) Stats {
	peak := s.PeakBytes + other.PeakBytes
	s = s.Add(other)
	s.CapacityBytes, s.UsedBytes, s.PeakBytes = s.CapacityBytes+other.CapacityBytes, s.UsedBytes+other.UsedBytes, peak
	return s
}

// File is the disk space. Make one with Create.
type File struct {
	o       Options
	file    *os.File
	where   string // for errors
	memory  *kernels.HostBuf
	ctx     context.Context // ends with Close
	end     context.CancelFunc
	free    chan *Buffer // buffers to fill
	reads   chan []byte  // memory to read into
	queue   chan *part
	writers sync.WaitGroup

	mu struct {
		sync.Mutex
		changed  *sync.Cond // a write has ended
		segments []int32    // free segments
		used     int
		stats    Stats
		closed   bool
	}
	written, read, kept atomic.Int64

	records struct {
		sync.Mutex
		open []*Records // Records that have a buffer, the oldest first
	}
}

// Create makes a file without a name in o.Dir, reserves its space and starts its writers. Too
// little space is an error, found before anything is written. If the file cannot be made, the error
// names the directory.
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

// Segment returns the bytes of a segment.
func (f *File) Segment() int { return f.o.Segment }

// Stats returns a copy of the counters.
func (f *File) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.mu.stats
	s.UsedBytes = int64(f.mu.used) * int64(f.o.Segment)
	s.BytesWritten, s.BytesRead, s.BytesKept = f.written.Load(), f.read.Load(), f.kept.Load()
	return s
}

// Close waits for the writes under way, and frees the memory and the space. Nobody may use the file
// or its runs meanwhile, or afterwards. A second Close does nothing.
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
	Used  int // bytes in use, from the first on
	Count int // for the caller, such as a number of rows
}

// Buffer lends an empty buffer to fill, and waits until one is free. The only error is the end of
// ctx.
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

// Return takes back a buffer whose contents nobody needs.
func (f *File) Return(b *Buffer) { f.free <- b }

// take takes a free segment, and reports whether there was one.
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

// give frees a segment.
func (f *File) give(s int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.segments = append(f.mu.segments, s)
	f.mu.used--
}

// write writes queued parts until the file is closed.
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

// writePart writes a part, unless a reader took it before.
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

// transfer writes or reads all of b, at offset at.
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

// pages returns the number of pages that hold so many bytes.
func pages(bytes int) int { return (bytes + pageBytes - 1) / pageBytes }

// sums returns the checksums of the pages of b. The last page may be short.
func sums(b []byte) []uint32 {
	all := make([]uint32, pages(len(b)))
	for i := range all {
		all[i] = crc32.Checksum(b[i*pageBytes:min((i+1)*pageBytes, len(b))], castagnoli)
	}
	return all
}
