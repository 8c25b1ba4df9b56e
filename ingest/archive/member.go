package archive

import (
	"archive/zip"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/klauspost/compress/flate"
)

// ErrDamaged marks a member whose bytes are not those that were packed.
var ErrDamaged = errors.New("damaged or truncated download")

// Member is one file of an archive, and the storage of an array: npy.Storage.
type Member struct {
	Name string
	Size int64 // bytes, inflated

	archive *Archive
	file    *zip.File
	find    func() (*io.SectionReader, error) // packed, once
}

// Deflated reports whether the member is inflated as it is read.
func (m *Member) Deflated() bool { return m.file.Method != zip.Store }

func damaged(err error) error { return fmt.Errorf("%w (%w); fetch it again", ErrDamaged, err) }

// packed finds the bytes as they lie in the file.
func (m *Member) packed() (*io.SectionReader, error) {
	f := m.file
	switch {
	case f.Flags&1 != 0:
		return nil, errors.New("it is encrypted; save it without a password")
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return nil, fmt.Errorf("compression method %d is not read; save it with method 0 or 8", f.Method)
	case f.Method == zip.Store && f.CompressedSize64 != f.UncompressedSize64 || f.CompressedSize64 > 1<<62:
		return nil, damaged(fmt.Errorf("%d bytes stored as %d", f.UncompressedSize64, f.CompressedSize64))
	}
	at, err := f.DataOffset()
	if err != nil {
		return nil, short(err) // an EOF here is the end of the archive, not of the member
	}
	return io.NewSectionReader(m.archive.r, at, int64(f.CompressedSize64)), nil
}

// wrap marks the content's errors as damage, and leaves the disk's alone.
func wrap(err error) error {
	if path := (*fs.PathError)(nil); err == nil || err == io.EOF || errors.As(err, &path) || errors.Is(err, ErrDamaged) {
		return err
	}
	return damaged(err)
}

// maxPrefix is the most that Stream reads before its part in order to compare the checksum: the
// header of an npy array.
const maxPrefix = 64 << 10

// Stream reads n bytes from off on, front to back; the checksum is compared when these are all but
// a header.
func (m *Member) Stream(off, n int64) io.Reader {
	if off < 0 || n < 0 || off > m.Size || n > m.Size-off {
		panic(fmt.Sprintf("archive: bytes %d to %d of %s, which has %d", off, off+n, m.Name, m.Size))
	}
	packed, err := m.find()
	if err != nil {
		return &stream{err: err}
	}
	in := io.NewSectionReader(packed, 0, packed.Size())
	s := &stream{skip: off, left: n}
	if n == m.Size-off && n > 0 && off <= maxPrefix {
		s.want = m.file.CRC32
	}
	switch {
	case m.Deflated():
		s.r = flate.NewReader(in)
	case s.want != 0:
		s.r = in
	default:
		s.r, s.skip = io.NewSectionReader(in, off, n), 0
	}
	return s
}

// stream is a part of a member.
type stream struct {
	r    io.Reader
	skip int64 // before the part
	left int64
	sum  uint32
	want uint32 // 0: nothing is compared
	err  error
}

func (s *stream) Read(b []byte) (int, error) {
	if s.err == nil && s.skip > 0 {
		if _, err := io.CopyN(summing{s}, s.r, s.skip); err != nil {
			s.err = short(err)
		}
		s.skip = 0
	}
	if s.err != nil {
		return 0, s.err
	}
	if s.left == 0 {
		return 0, io.EOF
	}
	n, err := s.r.Read(b[:min(int64(len(b)), s.left)])
	summing{s}.Write(b[:n])
	s.left -= int64(n)
	switch {
	case s.left == 0 && s.want != 0 && s.sum != s.want: // before the last bytes are believed
		s.err = damaged(zip.ErrChecksum)
		return 0, s.err
	case s.left == 0:
		return n, nil
	case err != nil:
		s.err = short(err)
	}
	return n, s.err
}

// summing adds what it is given to a stream's checksum, where that is compared.
type summing struct{ s *stream }

func (w summing) Write(b []byte) (int, error) {
	if w.s.want != 0 {
		w.s.sum = crc32.Update(w.s.sum, crc32.IEEETable, b)
	}
	return len(b), nil
}

// short is for an error before the end.
func short(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return wrap(err)
}

// ReadAt reads anywhere. A deflated member is held in memory for it, the last one of the archive.
func (m *Member) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 || off > m.Size {
		return 0, io.EOF
	}
	if !m.Deflated() {
		in, err := m.find()
		if err != nil {
			return 0, err
		}
		return in.ReadAt(b, off)
	}
	a := m.archive
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held != m {
		if m.Size > MaxInflated {
			return 0, fmt.Errorf("it is compressed, has %d bytes and is needed out of order, which goes up to %d MiB; save it uncompressed",
				m.Size, MaxInflated>>20)
		}
		all, err := m.ReadAll(MaxInflated)
		if err != nil {
			return 0, err
		}
		a.held, a.bytes = m, all
	}
	n := copy(b, a.bytes[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// ReadAll returns all of a member of at most so many bytes.
func (m *Member) ReadAll(most int64) ([]byte, error) {
	if m.Size > most {
		return nil, fmt.Errorf("%s has %d bytes, and %d are the most", m.Name, m.Size, most)
	}
	all, err := io.ReadAll(m.Stream(0, m.Size)) // grows with what is there, whatever is declared
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	return all, nil
}
