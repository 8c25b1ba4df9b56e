package store

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zeebo/xxh3"
)

// sectionWriter writes the payload of one section: appended, or in runs placed anywhere. Its header goes in last, when
// the number of rows is known.
type sectionWriter struct {
	w      *Writer
	file   vfs.File
	spec   File
	buf    []byte // bytes that follow at, not yet written
	at     int64  // payload offset of buf
	end    int64  // payload bytes, the furthest written
	placed bool   // some run went elsewhere than to the end, so the hash needs a second reading
	hash   xxh3.Hasher
}

const writeBuffer = 1 << 20

// put writes p at payload offset off. Runs that follow each other are joined into large writes.
func (s *sectionWriter) put(off int64, p []byte) error {
	if off != s.at+int64(len(s.buf)) || len(s.buf)+len(p) > writeBuffer {
		if err := s.flush(); err != nil {
			return err
		}
		s.at = off
	}
	s.buf = append(s.buf, p...)
	return nil
}

func (s *sectionWriter) append(p []byte) error {
	for len(p) > 0 {
		n := min(len(p), writeBuffer)
		if err := s.put(s.at+int64(len(s.buf)), p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

func (s *sectionWriter) flush() error {
	if len(s.buf) == 0 {
		return nil
	}
	if s.at != s.end {
		s.placed = true
	}
	if !s.placed {
		s.hash.Write(s.buf)
	}
	if _, err := s.file.WriteAt(s.buf, PageSize+s.at); err != nil {
		return fmt.Errorf("write %s: %w", s.spec.Path, err)
	}
	s.at += int64(len(s.buf))
	s.end = max(s.end, s.at)
	s.buf = s.buf[:0]
	return nil
}

// close pads, hashes, writes the header and syncs. rows must agree with what was written.
func (s *sectionWriter) close(rows int64) (_ File, err error) {
	s.w.open = slices.DeleteFunc(s.w.open, func(o *sectionWriter) bool { return o == s })
	defer func() {
		if cerr := s.file.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			err = fmt.Errorf("write %s: %w", s.spec.Path, err)
		}
	}()
	if err := s.flush(); err != nil {
		return File{}, err
	}
	s.spec.Rows = rows
	if s.end > s.spec.payload() {
		return File{}, fmt.Errorf("%d bytes written for %d rows of %d", s.end, rows, s.spec.Stride)
	}
	s.spec.Bytes = PageSize + roundUp(s.spec.payload(), PageSize)
	// A last row that ends in padding, or was never written, reads as zeros up to the page boundary.
	if tail := s.spec.Bytes - PageSize - s.end; tail > 0 {
		zeros := make([]byte, min(tail, writeBuffer))
		for at := s.end; at < s.end+tail; at += int64(len(zeros)) {
			z := zeros[:min(int64(len(zeros)), s.end+tail-at)]
			if !s.placed {
				s.hash.Write(z)
			}
			if _, err := s.file.WriteAt(z, PageSize+at); err != nil {
				return File{}, err
			}
		}
	}
	if s.placed {
		s.hash.Reset()
		written := io.NewSectionReader(s.file, PageSize, s.spec.Bytes-PageSize)
		if _, err := io.CopyBuffer(&s.hash, written, make([]byte, writeBuffer)); err != nil {
			return File{}, err
		}
	}
	s.spec.XXH3 = hex64(s.hash.Sum64())
	h := encodeHeader(&s.spec)
	if _, err := s.file.WriteAt(h[:], 0); err != nil {
		return File{}, err
	}
	return s.spec, s.file.Sync()
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

// discard closes a section that failed; the Writer is about to be aborted.
func (s *sectionWriter) discard() error {
	s.w.open = slices.DeleteFunc(s.w.open, func(o *sectionWriter) bool { return o == s })
	return s.file.Close()
}
