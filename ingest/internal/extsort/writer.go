package extsort

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/kernels"
)

const (
	// stageBytes is the size at which an Appender takes a bucket's lock with what it has collected:
	// for 512 buckets it holds 1 MiB, half of a second-level cache.
	stageBytes = 2048
	// MinBlock and MaxBlock bound the writes. Below 256 KiB a disk is bound by the number of
	// writes; above 1 MiB nothing was gained.
	MinBlock = 256 << 10
	MaxBlock = 1 << 20
	// writers is the number of writes under way: two to four saturate a virtual disk.
	writers = 3
)

// Writer parts records into buckets. Append from many goroutines, each with an Appender of its own,
// then Close.
type Writer struct {
	area    *Area
	name    string
	block   int
	buckets []bucket
	mem     *kernels.HostBuf
	free    chan []byte // empty blocks
	full    chan blockWrite
	wg      sync.WaitGroup
	failed  atomic.Pointer[error]
}

type bucket struct {
	mu   sync.Mutex
	file vfs.File
	name string
	cur  []byte // the block that fills
	end  int64  // bytes handed over
}

// blockWrite is a write to be done.
type blockWrite struct {
	file vfs.File
	at   int64
	data []byte
}

// WriterBytes is the memory of a Writer of buckets with blocks of block bytes.
func WriterBytes(buckets, block int) int64 { return int64(buckets+writers+1) * int64(block) }

// NewWriter begins buckets that are named after name. It takes WriterBytes(buckets, block) of
// memory; block is a multiple of 4096.
func (a *Area) NewWriter(name string, buckets, block int) (*Writer, error) {
	if a.Block > 0 {
		block = min(block, a.Block)
	}
	mem, err := kernels.NewHostBuf(int(WriterBytes(buckets, block)))
	if err != nil {
		return nil, err
	}
	w := &Writer{
		area: a, name: name, block: block, buckets: make([]bucket, buckets), mem: mem,
		free: make(chan []byte, buckets+writers+1), full: make(chan blockWrite, writers),
	}
	for at := 0; at < len(mem.Bytes()); at += block {
		w.free <- mem.Bytes()[at : at : at+block]
	}
	for range writers {
		w.wg.Go(w.write)
	}
	return w, nil
}

// write does the writes until there are no more.
func (w *Writer) write() {
	for b := range w.full {
		if w.failed.Load() == nil {
			n, err := b.file.WriteAt(b.data, b.at)
			if errors.Is(err, syscall.EINVAL) { // see open
				setDirect(b.file, false)
				n, err = b.file.WriteAt(b.data, b.at)
			}
			w.area.written.Add(int64(n))
			if err != nil {
				w.fail(err)
			}
		}
		w.free <- b.data[:0]
	}
}

func (w *Writer) fail(err error) {
	err = fmt.Errorf("write to spill directory: %w", err)
	w.failed.CompareAndSwap(nil, &err)
}

// append copies whole records to the end of bucket i.
func (w *Writer) append(i int, records []byte) {
	b := &w.buckets[i]
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(records) > 0 {
		if b.cur == nil {
			b.cur = <-w.free
		}
		n := min(len(records), w.block-len(b.cur))
		b.cur = append(b.cur, records[:n]...)
		records = records[n:]
		if len(b.cur) == w.block {
			w.handOver(i, b)
		}
	}
}

// handOver sends the block of a bucket to be written. The bucket is locked.
func (w *Writer) handOver(i int, b *bucket) {
	if b.file == nil && w.failed.Load() == nil {
		b.name = fmt.Sprintf("%s-%04d", w.name, i)
		f, err := w.area.fs.OpenReadWrite(w.area.path(b.name), vfs.WriteCategoryUnspecified)
		if err != nil {
			w.fail(err)
		} else {
			setDirect(f, true)
			b.file = f
		}
	}
	if b.file == nil {
		w.free <- b.cur[:0]
	} else {
		data := b.cur
		if pad := int(RoundUp(int64(len(data)))) - len(data); pad > 0 { // the last of the bucket
			data = data[:len(data)+pad]
			clear(data[len(b.cur):])
		}
		w.full <- blockWrite{b.file, b.end, data}
	}
	b.end += int64(len(b.cur))
	b.cur = nil
}

// Err is the first error of a write so far: a hint to stop early. Close tells it as well.
func (w *Writer) Err() error {
	if err := w.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Close writes the records that are left and returns all buckets, empty ones too. [Area.Sync] makes
// them durable. Flush every Appender first. After an error the files stay until the Area's
// directory is removed.
func (w *Writer) Close() ([]Bucket, error) {
	done := make([]Bucket, len(w.buckets))
	for i := range w.buckets {
		switch b := &w.buckets[i]; {
		case len(b.cur) == 0:
		case b.file == nil && len(b.cur) <= w.area.packedBytes() && w.failed.Load() == nil:
			var err error
			if done[i], err = w.area.pack(b.cur); err != nil {
				w.failed.CompareAndSwap(nil, &err)
			}
			w.area.held.Add(done[i].Bytes)
		default:
			w.handOver(i, b)
		}
	}
	close(w.full)
	w.wg.Wait()
	w.mem.Close()
	for i := range w.buckets {
		b := &w.buckets[i]
		if b.file == nil {
			continue
		}
		done[i] = Bucket{Name: b.name, Bytes: b.end}
		w.area.held.Add(b.end)
		if w.failed.Load() == nil {
			if err := b.file.Sync(); err != nil {
				w.fail(err)
			}
		}
		if err := b.file.Close(); err != nil {
			w.fail(err)
		}
	}
	return done, w.Err()
}

// CloseAfter closes a writer. It returns err, or the error of closing if err is nil.
func CloseAfter[T any](err error, closeIt func() (T, error)) (T, error) {
	closed, cerr := closeIt()
	return closed, cmp.Or(err, cerr)
}

// Appender is one goroutine's way into a Writer.
type Appender struct {
	w     *Writer
	stage []byte  // stageBytes of each bucket
	used  []int32 // of them
}

// NewAppender takes 2 KiB a bucket.
func (w *Writer) NewAppender() *Appender {
	return &Appender{w, make([]byte, stageBytes*len(w.buckets)), make([]int32, len(w.buckets))}
}

// Put8 appends a record of eight bytes, little-endian.
func (p *Appender) Put8(bucket int, record uint64) {
	n := p.used[bucket]
	if n > stageBytes-8 {
		p.flush(bucket)
		n = 0
	}
	binary.LittleEndian.PutUint64(p.stage[bucket*stageBytes+int(n):], record)
	p.used[bucket] = n + 8
}

// Put appends a record.
func (p *Appender) Put(bucket int, record []byte) {
	n := int(p.used[bucket])
	if n+len(record) > stageBytes {
		p.flush(bucket)
		n = 0
		if len(record) > stageBytes/2 {
			p.w.append(bucket, record)
			return
		}
	}
	copy(p.stage[bucket*stageBytes+n:], record)
	p.used[bucket] = int32(n + len(record))
}

func (p *Appender) flush(bucket int) {
	at := bucket * stageBytes
	p.w.append(bucket, p.stage[at:at+int(p.used[bucket])])
	p.used[bucket] = 0
}

// Flush hands everything over; the Appender may be used again.
func (p *Appender) Flush() {
	for i := range p.used {
		if p.used[i] > 0 {
			p.flush(i)
		}
	}
}
