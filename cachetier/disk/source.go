package disk

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/store"
)

// source is the files of an engine that reads by descriptor.
type source struct {
	files  []store.SectionFile
	open   []*os.File // of files; kept, since a collected *os.File closes its descriptor
	fds    []int      // descriptors of open
	block  int64      // unit of offsets, sizes and memory of reads: whole pages, which have checksums
	faults Faults
	meter  *meter
}

// cached returns files to be read through the page cache, by their own descriptors.
func cached(files []store.SectionFile) source {
	src := source{files: files, block: store.PageSize}
	for _, f := range files {
		src.add(f.File)
	}
	return src
}

func (src *source) add(f *os.File) {
	fd := -1 // reading it fails, with an error that names the file
	if f != nil {
		fd = int(f.Fd())
	}
	src.open, src.fds = append(src.open, f), append(src.fds, fd)
}

// hull returns the bounds of the whole blocks around s.
func hull(s Extent, block int64) (lo, hi int64) {
	return s.Offset &^ (block - 1), (s.Offset + int64(s.Size) + block - 1) &^ (block - 1)
}

// maxTries bounds the reads in a row that bring nothing new, yet do not fail.
const maxTries = 16

// transfer is an extent that is being read: by one read or, if reads come short, by several.
type transfer struct {
	extent Extent
	at     int64  // where the hull starts in the file
	buf    []byte // the hull
	got    int    // bytes of it that have come
	tries  int    // reads since the last byte came
}

// begin returns a transfer of s into buf, which has room for its hull. Nothing has been read yet.
func (src *source) begin(s Extent, buf []byte) transfer {
	lo, hi := hull(s, src.block)
	return transfer{extent: s, at: lo, buf: buf[:hi-lo]}
}

// rest returns the memory and the offset for the next read, from the first incomplete block on.
func (t *transfer) rest(block int64) (buf []byte, offset int64) {
	from := int64(t.got) &^ (block - 1)
	return t.buf[from:], t.at + from
}

// lent returns the bytes of the extent itself, without the rest of its hull.
func (t *transfer) lent() []byte {
	from := int(t.extent.Offset - t.at)
	return t.buf[from : from+t.extent.Size : from+t.extent.Size]
}

// took adds the result of a read of rest, and reports whether the transfer is complete. If so, it
// has compared the pages with their checksums, and err is the outcome.
func (src *source) took(t *transfer, n int, err error) (done bool, _ error) {
	s, f := t.extent, &src.files[t.extent.File]
	want := int(min(int64(len(t.buf)), f.Size-t.at))
	switch {
	case err != nil && !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN):
		return false, failed(f, s, err)
	case err == nil:
		if got := int(int64(t.got)&^(src.block-1)) + n; got > t.got {
			if t.got, t.tries = got, 0; got < want {
				return false, nil
			}
			return true, f.Check(t.at, t.buf[:want])
		}
		// No progress: the file ends here, or the device brought nothing new.
		if size, err := src.size(s.File); err != nil {
			return false, failed(f, s, err)
		} else if n == 0 || t.at+int64(t.got) >= size {
			return false, &store.SectionError{Dataset: f.Dataset, Section: f.Section, Offset: t.at + int64(t.got), Err: fmt.Errorf(
				"the file ends %d bytes into a read of %d: it was truncated while in use; restore it and run gnnstore verify", t.got, want)}
		}
		err = errors.New("the device brings nothing and names no reason")
	}
	if t.tries++; t.tries == maxTries {
		return false, failed(f, s, err)
	}
	time.Sleep(time.Duration(t.tries) * 100 * time.Microsecond)
	return false, nil
}

// ReadError is a read that the system failed. The file may be intact, and a later read may succeed.
type ReadError struct {
	Path   string
	Offset int64
	Size   int
	Err    error // usually an errno
}

func (e *ReadError) Error() string {
	return fmt.Sprintf("read %d bytes of %s at 0x%x: %v", e.Size, e.Path, e.Offset, e.Err)
}

// Unwrap returns Err.
func (e *ReadError) Unwrap() error { return e.Err }

func failed(f *store.SectionFile, s Extent, err error) error {
	return &ReadError{Path: f.Path, Offset: s.Offset, Size: s.Size, Err: err}
}

func (src *source) size(file int) (int64, error) {
	info, err := src.open[file].Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
