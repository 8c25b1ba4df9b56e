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
	// writeBuffer is what one write takes: direct writes of 1 MiB reach 1.5 GB/s where buffered
	// ones stay below 0.5.
	writeBuffer = 1 << 20
	// directBytes is the least that is worth a direct write; less goes through the page cache,
	// which joins it.
	directBytes = 256 << 10
	// asideBytes is the least that is worth a goroutine.
	asideBytes = 64 << 10
	// A section of at least syncBytes is synced when it is closed. The next Parts or Seal syncs the
	// smaller ones, many at a time, since thousands of relations have thousands of them.
	syncBytes = 1 << 20
	// maxFilling bounds the buffers that fill at a time, and those that are being written: a
	// Writer's memory.
	maxFilling = 16
)

// sectionWriter writes the payload of one section: appended, or in runs placed anywhere. One buffer
// fills while another is written aside, past the page cache where the file system lets it. The
// header goes in last, when the number of rows is known.
type sectionWriter struct {
	w      *Writer
	out    output
	spec   File
	buf    []byte // bytes that follow at, not yet written; page-aligned; nil when none
	at     int64  // payload offset of buf
	end    int64  // payload bytes, the furthest handed to a write
	placed bool   // some run went elsewhere than to the end, so the hash needs a second reading
	hash   xxh3.Hasher
	sums   sumWriter // of what hash has: a thousandth of the section

	aside   []byte     // what is being written, nil when nothing
	written chan error // what became of it
	err     error      // of the first write that failed
}

// put writes p at payload offset off. Runs that follow each other are joined into large writes,
// which end on pages so that the next begins on one. An error may be an earlier write's.
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

// next is the payload offset behind what was put last.
func (s *sectionWriter) next() int64 { return s.at + int64(len(s.buf)) }

func (s *sectionWriter) append(p []byte) error { return s.put(s.next(), p) }

// flush hands the buffer to a write.
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

// digest takes p, which follows what it had before, into the hash and the page checksums.
func (s *sectionWriter) digest(p []byte) {
	_, _ = s.hash.Write(p) // neither fails
	_, _ = s.sums.Write(p)
}

// wait returns when nothing is being written.
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

// fail keeps the first error.
func (s *sectionWriter) fail(err error) error {
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("write %s: %w", s.spec.Path, err)
	}
	return s.err
}

// inOrder says that all came one behind the other.
func (s *sectionWriter) inOrder() bool { return !s.placed && s.at == s.end }

// close pads, hashes, writes the page checksums and the header, and syncs a large section. rows
// must agree with what was written.
func (s *sectionWriter) close(rows int64) (_ File, err error) {
	defer func() { err = s.finish(err) }()
	s.spec.Rows = rows
	end := max(s.end, s.next())
	if end > s.spec.payload() {
		return File{}, fmt.Errorf("%d bytes written for %d rows of %d", end, rows, s.spec.Stride)
	}
	s.spec.Bytes = s.spec.fileBytes(Version)
	// A last row that ends in padding, or was never written, reads as zeros up to the page
	// boundary.
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

// finish closes the file, says what err is about, and frees what the section held.
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

// discard closes a section that failed; the Writer is about to be aborted.
func (s *sectionWriter) discard() error { return s.finish(nil) }

func (s *sectionWriter) path() string { return s.spec.Path }

// takeBuffer gives s a buffer to fill. Where too many fill, the one that began first is written as
// it is.
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

// pageBuffer makes an empty buffer of writeBuffer bytes that begins on a page.
func pageBuffer() []byte { return alignedPages(writeBuffer)[:0] }

// alignedPages is n bytes that begin on a page of memory.
func alignedPages(n int64) []byte {
	buf := make([]byte, n+PageSize)
	skip := -int64(uintptr(unsafe.Pointer(unsafe.SliceData(buf)))) & (PageSize - 1)
	return buf[skip : skip+n : skip+n]
}

// output is a file that is written past the page cache where that is possible and pays. One
// goroutine uses it at once.
type output struct {
	file   vfs.File
	direct directMode
}

// writeAt writes p, which begins on a page of memory.
func (o *output) writeAt(p []byte, off int64) error {
	if n := len(p) / PageSize * PageSize; off%PageSize == 0 && n >= directBytes && o.direct.set(o.file, true) {
		_, err := o.file.WriteAt(p[:n], off)
		if errors.Is(err, syscall.EINVAL) { // it took the flag, and wants blocks of another size
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

// packed writes a whole section without padding between its rows.
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
