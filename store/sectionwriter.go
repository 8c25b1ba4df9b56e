package store

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zeebo/xxh3"
)

const (
	// writeBuffer is the size of one write in bytes. Direct writes of 1 MiB reach 1.5 GB/s;
	// buffered ones stay below 0.5.
	writeBuffer = 1 << 20
	// directBytes is the smallest direct write. Smaller writes go through the page cache, which
	// joins them.
	directBytes = 256 << 10
	// asideBytes is the smallest write that is worth a goroutine.
	asideBytes = 64 << 10
	// A section of at least syncBytes is synced when it is closed. The next Parts or Seal syncs the
	// smaller ones, many at a time, since thousands of relations have thousands of them.
	syncBytes = 1 << 20
	// maxFilling bounds the buffers that are being filled, and separately those that are being
	// written. So it bounds a Writer's memory.
	maxFilling = 16
)

// sectionWriter writes the payload of one section, in order or in runs placed anywhere. One buffer
// fills while another is written in the background, past the page cache if the file system allows
// it. The header is written last, when the number of rows is known.
type sectionWriter struct {
	w      *Writer
	out    output
	spec   File
	buf    []byte // bytes not yet written, for payload offset at; page-aligned in memory; nil if none
	at     int64  // payload offset of buf
	end    int64  // furthest payload offset handed to a write
	placed bool   // some run was not written at the end, so close reads the payload again to hash it
	hash   xxh3.Hasher
	sums   sumWriter // of the bytes in hash; takes a thousandth of the section's size in memory

	aside   []byte     // buffer being written in the background; nil if none is
	written chan error // the result of that write
	err     error      // of the first write that failed
}

// put writes p at payload offset off. Adjacent runs are joined into large writes that end on a page
// boundary. The error may be an earlier write's.
func (s *sectionWriter) put(off int64, p []byte) error {
	if off != s.next() {
		if err := s.flush(); err != nil {
			return err
		}
		s.at = off
	}
	for len(p) > 0 {
		if s.buf == nil {
			s.buf = s.w.takeBuffer(s)
		}
		room := writeBuffer - int(s.at%PageSize) - len(s.buf)
		n := min(len(p), room)
		s.buf = append(s.buf, p[:n]...)
		p = p[n:]
		if n == room {
			if err := s.flush(); err != nil {
				return err
			}
		}
	}
	return s.err
}

// next returns the payload offset behind the last byte that was put.
func (s *sectionWriter) next() int64 { return s.at + int64(len(s.buf)) }

func (s *sectionWriter) append(p []byte) error { return s.put(s.next(), p) }

// flush hands the buffer to a write, in the background if it is large.
func (s *sectionWriter) flush() error {
	if s.buf == nil {
		return s.err
	}
	buf, at := s.buf, s.at
	s.w.filling = slices.DeleteFunc(s.w.filling, func(o *sectionWriter) bool { return o == s })
	s.buf = nil
	if at != s.end {
		s.placed, s.sums = true, sumWriter{}
	}
	if !s.placed {
		s.digest(buf)
	}
	s.at += int64(len(buf))
	s.end = max(s.end, s.at)
	err := s.wait()
	if err == nil && len(buf) < asideBytes {
		err = s.fail(s.out.writeAt(buf, PageSize+at))
	} else if err == nil {
		if len(s.w.writing) >= maxFilling {
			_ = s.w.writing[0].wait() // an error stays with its section
		}
		s.w.writing = append(s.w.writing, s)
		s.aside = buf
		go func() { s.written <- s.out.writeAt(buf, PageSize+at) }()
		return nil
	}
	s.w.free = append(s.w.free, buf[:0])
	return err
}

// digest adds p, the next bytes of the payload, to the hash and the page checksums.
func (s *sectionWriter) digest(p []byte) {
	_, _ = s.hash.Write(p) // neither call fails
	_, _ = s.sums.Write(p)
}

// wait waits for the write in the background, if there is one, and returns the first error so far.
func (s *sectionWriter) wait() error {
	if s.aside == nil {
		return s.err
	}
	err := s.fail(<-s.written)
	s.w.free = append(s.w.free, s.aside[:0])
	s.aside = nil
	s.w.writing = slices.DeleteFunc(s.w.writing, func(o *sectionWriter) bool { return o == s })
	return err
}

// fail keeps the first error and returns it.
func (s *sectionWriter) fail(err error) error {
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("write %s: %w", s.spec.Path, err)
	}
	return s.err
}

// inOrder reports whether everything that was written followed what came before.
func (s *sectionWriter) inOrder() bool { return !s.placed && s.at == s.end }

// close pads and hashes the payload, writes the page checksums and the header, and syncs a large
// section. rows must agree with what was written.
func (s *sectionWriter) close(rows int64) (_ File, err error) {
	defer func() { err = s.finish(err) }()
	s.spec.Rows = rows
	end := max(s.end, s.next())
	if end > s.spec.payload() {
		return File{}, fmt.Errorf("%d bytes written for %d rows of %d", end, rows, s.spec.Stride)
	}
	s.spec.Bytes = s.spec.fileBytes(Version)
	// Zeros stand for the padding of the last row, for rows that were never written at the end, and
	// for the rest of the last page.
	for size := s.spec.sumsAt() - PageSize; end < size; {
		n := min(size-end, int64(len(zeros)))
		if err := s.put(end, zeros[:n]); err != nil {
			return File{}, err
		}
		end += n
	}
	if err := s.flush(); err != nil {
		return File{}, err
	}
	if err := s.wait(); err != nil {
		return File{}, err
	}
	s.out.direct.set(s.out.file, false)
	if s.placed {
		s.hash.Reset()
		payload := io.NewSectionReader(s.out.file, PageSize, s.spec.sumsAt()-PageSize)
		if _, err := io.CopyBuffer(io.MultiWriter(&s.hash, &s.sums), payload, make([]byte, 64<<10)); err != nil {
			return File{}, err
		}
	}
	sums := s.sums.padded()
	if _, err := s.out.file.WriteAt(sums, s.spec.sumsAt()); err != nil {
		return File{}, err
	}
	_, _ = s.hash.Write(sums) // it does not fail
	s.spec.XXH3 = hex64(s.hash.Sum64())
	h := encodeHeader(&s.spec, xxh3.Hash(sums))
	if _, err := s.out.file.WriteAt(h[:], 0); err != nil {
		return File{}, err
	}
	if s.spec.Bytes < syncBytes {
		s.w.unsynced = append(s.w.unsynced, s.w.fs.PathJoin(s.w.partial, s.spec.Path))
		return s.spec, nil
	}
	return s.spec, s.out.file.Sync()
}

var zeros [64 << 10]byte

// finish closes the file, adds the section's path to err, and frees the section's buffers.
func (s *sectionWriter) finish(err error) error {
	if werr := s.wait(); err == nil {
		err = werr
	}
	if s.buf != nil {
		s.w.free = append(s.w.free, s.buf[:0])
		s.buf = nil
	}
	s.w.filling = slices.DeleteFunc(s.w.filling, func(o *sectionWriter) bool { return o == s })
	s.w.closed(s)
	if cerr := s.out.file.Close(); err == nil {
		err = cerr
	}
	if err != nil && err != s.err {
		err = fmt.Errorf("write %s: %w", s.spec.Path, err)
	}
	return err
}

// discard closes a section that failed. The Writer is about to be aborted.
func (s *sectionWriter) discard() error { return s.finish(nil) }

func (s *sectionWriter) path() string { return s.spec.Path }

// takeBuffer returns an empty buffer for s. If maxFilling sections fill one already, it first
// writes the buffer of the section that began first.
func (w *Writer) takeBuffer(s *sectionWriter) []byte {
	if len(w.filling) >= maxFilling {
		_ = w.filling[0].flush() // an error stays with its section
	}
	w.filling = append(w.filling, s)
	if n := len(w.free); n > 0 {
		buf := w.free[n-1]
		w.free = w.free[:n-1]
		return buf
	}
	return pageBuffer()
}

// pageBuffer returns an empty buffer of writeBuffer bytes that begins on a page.
func pageBuffer() []byte { return alignedPages(writeBuffer)[:0] }

// alignedPages returns n bytes that begin on a page of memory.
func alignedPages(n int64) []byte {
	buf := make([]byte, n+PageSize)
	skip := -int64(uintptr(unsafe.Pointer(unsafe.SliceData(buf)))) & (PageSize - 1)
	return buf[skip : skip+n : skip+n]
}

// output is a file that is written past the page cache where that is possible and pays. Only one
// goroutine may use it at a time.
type output struct {
	file   vfs.File
	direct directMode
}

// writeAt writes p, which must begin on a page of memory.
func (o *output) writeAt(p []byte, off int64) error {
	if n := len(p) / PageSize * PageSize; off%PageSize == 0 && n >= directBytes && o.direct.set(o.file, true) {
		_, err := o.file.WriteAt(p[:n], off)
		if errors.Is(err, syscall.EINVAL) { // the file took the flag, but wants blocks of another size
			o.direct.refuse(o.file)
			n = 0
		} else if err != nil {
			return err
		}
		if p = p[n:]; len(p) == 0 {
			return nil
		}
		off += int64(n)
	}
	o.direct.set(o.file, false)
	_, err := o.file.WriteAt(p, off)
	return err
}

// packed writes a whole section, with no padding between its rows.
func packed[T scalar](w *Writer, name string, e Elem, rows, cols int64, v []T) (File, error) {
	s, err := w.section(name, e, cols, cols*int64(e.Size()), 0)
	if err != nil {
		return File{}, err
	}
	if err := s.append(bytesOf(v)); err != nil {
		return File{}, errors.Join(err, s.discard())
	}
	return s.close(rows)
}
