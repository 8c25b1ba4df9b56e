// Package extsort sorts more records than fit in memory: it parts them into buckets on disk by
// ranges of their keys, so that each bucket fits, and whoever reads the buckets one after another
// reads the records in order.
//
// An [Area] is the directory. A [Writer] parts records into [Bucket]s, from any number of
// goroutines with an [Appender] each; [Area.Load] brings a bucket into memory, and [Area.Each]
// streams one. [Texts] sorts texts of any length, by merging. Files are written and read around the
// page cache where the file system can: through it, writing was bound by the processor at a fifth
// of the speed (334 MB/s against 1.5 GB/s on the machine where this was measured).
//
// Records have a fixed width and no meaning here. An Area and its methods are safe for concurrent
// use.
package extsort

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/kernels"
)

// sector is the unit of direct transfers: their sizes and places are multiples of it, and so are
// buffers that Load and Each fill.
const sector = 4096

// Area is a directory of buckets.
type Area struct {
	Packed int // the largest bucket, in bytes, that shares a file with others; default 64 KiB
	Block  int // the most bytes of a Writer's block, a multiple of 4096; default: no bound

	fs            vfs.FS
	dir           string
	written, read atomic.Int64
	held          atomic.Int64
	packs         packs
}

// Open makes the directory dir if need be.
func Open(fs vfs.FS, dir string) (*Area, error) {
	if err := fs.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("spill directory: %w", err)
	}
	return At(fs, dir), nil
}

// At is the directory dir, which is there if anything is.
func At(fs vfs.FS, dir string) *Area {
	return &Area{fs: fs, dir: dir, packs: packs{live: map[string]int{}}}
}

// Traffic is the bytes written and read so far.
func (a *Area) Traffic() (written, read int64) { return a.written.Load(), a.read.Load() }

// Bucket is a finished run of records. A large one has a file of its own; small ones share files.
// The zero Bucket is empty and has no file.
type Bucket struct {
	Name   string `json:"name,omitempty"` // of the file, inside the Area
	Bytes  int64  `json:"bytes"`
	At     int64  `json:"at,omitempty"` // of the first byte in the file
	Packed bool   `json:"packed,omitempty"`
}

func (a *Area) path(name string) string { return a.fs.PathJoin(a.dir, name) }

// Has reports whether a bucket is there, whole.
func (a *Area) Has(b Bucket) bool {
	if b.Bytes == 0 {
		return true
	}
	fi, err := a.fs.Stat(a.path(b.Name))
	return err == nil && fi.Size() >= b.At+b.Bytes
}

// Remove removes buckets.
func (a *Area) Remove(buckets ...Bucket) error {
	for _, b := range buckets {
		if b.Name == "" {
			continue
		}
		remove := a.removeFile
		if b.Packed {
			remove = a.removePacked
		}
		if err := remove(b); err != nil {
			return fmt.Errorf("spill directory: %w", err)
		}
		a.held.Add(-b.Bytes)
	}
	return nil
}

func (a *Area) removeFile(b Bucket) error { return a.fs.Remove(a.path(b.Name)) }

// RoundUp is the room that Load needs for bytes.
func RoundUp(bytes int64) int64 { return (bytes + sector - 1) / sector * sector }

// readStep is the size of one read: 1 to 4 MiB were level, 256 KiB took a fifth longer.
const readStep = 2 << 20

// Load fills dst with bytes of the bucket from offset at on, a multiple of 4096; dst has room for
// RoundUp(n), lies on a page (as a [kernels.HostBuf] does), and is returned cut to n.
func (a *Area) Load(b Bucket, at, n int64, dst []byte) ([]byte, error) {
	if at+n > b.Bytes || RoundUp(n) > int64(len(dst)) || at%sector != 0 {
		panic("extsort: Load past the end of a bucket or a buffer")
	}
	if n == 0 {
		return dst[:0], nil
	}
	if b.Packed && a.loadPacked(b, at, dst[:n]) {
		return dst[:n], nil
	}
	f, err := a.open(b)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for done := int64(0); done < n; {
		want := min(readStep, RoundUp(n-done))
		if b.Packed { // it lies anywhere
			want = min(readStep, n-done)
		}
		got, err := f.ReadAt(dst[done:done+want], b.At+at+done)
		if errors.Is(err, syscall.EINVAL) {
			setDirect(f, false)
			got, err = f.ReadAt(dst[done:done+want], b.At+at+done)
		}
		a.read.Add(int64(got))
		done += int64(got)
		if done >= n {
			break
		}
		if err == io.EOF || err == nil && int64(got) < want {
			err = fmt.Errorf("ends at byte %d of %d: something else changed it", at+done, b.Bytes)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", a.path(b.Name), err)
		}
	}
	return dst[:n], nil
}

func (a *Area) open(b Bucket) (vfs.File, error) {
	f, err := a.fs.Open(a.path(b.Name))
	if err != nil {
		return nil, fmt.Errorf("spill directory: %w", err)
	}
	if b.Packed {
		return f, nil
	}
	setDirect(f, true) // refused with EINVAL where blocks or memory lie in another way
	return f, nil
}

// Each streams a bucket of records of width bytes through buf, in chunks of whole records. buf is
// made by [Area.Buffer].
func (a *Area) Each(b Bucket, width int, buf []byte, visit func(records []byte) error) error {
	step := Chunk(width, len(buf))
	for at := int64(0); at < b.Bytes; at += step {
		records, err := a.Load(b, at, min(step, b.Bytes-at), buf)
		if err != nil {
			return err
		}
		if err := visit(records); err != nil {
			return err
		}
	}
	return nil
}

// Chunk is the largest size up to bytes that is a multiple of a sector and of width.
func Chunk(width, bytes int) int64 {
	unit := int64(sector * width)
	for _, d := range []int64{8, 4, 2} { // widths are multiples of 4 as a rule
		if int64(width)%d == 0 {
			unit /= d
			break
		}
	}
	return max(1, int64(bytes)/unit) * unit
}

// Buffer is memory for Each over records of width bytes: about bytes, and at least one chunk.
func Buffer(width, bytes int) (*kernels.HostBuf, error) {
	return kernels.NewHostBuf(int(max(Chunk(width, bytes), sector)))
}

// Keep writes bytes to a bucket.
func (a *Area) Keep(name string, bytes []byte) (Bucket, error) {
	w, err := a.NewWriter(name, 1, MaxBlock)
	if err != nil {
		return Bucket{}, err
	}
	w.append(0, bytes)
	kept, err := w.Close()
	return kept[0], err
}

// Fill reads a whole bucket into buf, which is as large.
func (a *Area) Fill(b Bucket, buf *kernels.HostBuf) error {
	step, err := kernels.NewHostBuf(readStep)
	if err != nil {
		return err
	}
	defer step.Close()
	dst := buf.Bytes()
	for at := int64(0); at < b.Bytes; at += readStep {
		part, err := a.Load(b, at, min(readStep, b.Bytes-at), step.Bytes())
		if err != nil {
			return err
		}
		copy(dst[at:], part)
	}
	return nil
}

// Retain removes every file but the files of buckets, which must be there.
func (a *Area) Retain(buckets []Bucket) error {
	names, err := a.fs.List(a.dir)
	if err != nil {
		return fmt.Errorf("spill directory: %w", err)
	}
	wanted := map[string]bool{}
	held := int64(0)
	for _, b := range buckets {
		if !a.Has(b) {
			return fmt.Errorf("%s: is gone or cut short, and the ingest that is to be gone on with needs it; remove the .partial directory and begin again", a.path(b.Name))
		}
		wanted[b.Name] = true
		held += b.Bytes
	}
	for _, n := range names {
		if !wanted[n] {
			if err := a.fs.Remove(a.path(n)); err != nil {
				return fmt.Errorf("spill directory: %w", err)
			}
		}
	}
	a.held.Store(held)
	a.packs.retain(buckets)
	return nil
}

// Held is the bytes of the buckets on disk.
func (a *Area) Held() int64 { return a.held.Load() }

// Sync makes all finished buckets durable.
func (a *Area) Sync() error {
	a.packs.mu.Lock()
	err := a.writePack()
	a.packs.mu.Unlock()
	if err != nil {
		return err
	}
	d, err := a.fs.OpenDir(a.dir)
	if err != nil {
		return fmt.Errorf("spill directory: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("spill directory: %w", err)
	}
	return nil
}

// RemoveAll removes the directory.
func (a *Area) RemoveAll() error { return a.fs.RemoveAll(a.dir) }
