package lines

import (
	"archive/zip"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/gnnstore/gnnstore/store"
)

const (
	firstBuffer = 128 << 10
	MaxLine     = 16 << 20  // a row of a million floats; beyond it, the file is no table
	maxWindow   = 128 << 20 // what zstd itself inflates without being told to (--long=27)
)

// Scanner gives the lines of one file.
type Scanner struct {
	name   string
	close  []func() error
	r      io.Reader // inflated
	packed bool      // r checks its bytes: it inflates
	buf    []byte
	pos    int   // of the next line in buf
	end    int   // of what is read into buf
	done   bool  // all is read
	made   bool  // r converts another format to text
	zero   bool  // a zero byte was read
	utf8   bool  // text must be UTF-8
	odd    bool  // some text is not UTF-8
	cut    int   // bytes of a character that the last read cut off
	lossy  bool  // r decodes text, and writes U+FFFD for what it cannot decode
	lone   bool  // a CR without an LF was read
	line   int64 // number of the line read last, from 1
	err    error // the first stays
}

// Open opens a file, compressed or not.
func Open(path string) (*Scanner, error) { return open(path, Foreign) }

func open(path string, refuse refusal) (*Scanner, error) {
	f, err := store.OpenFile(path)
	if err != nil {
		return nil, err
	}
	s, err := unpack(path, f, refuse)
	if err != nil {
		f.Close()
		return nil, err
	}
	s.close = append(s.close, f.Close)
	return s, nil
}

// OpenBytes opens a file as Open does, for text that does not come in lines. A byte order mark is
// no part of it. Errors of Read name the file.
func OpenBytes(path string) (io.ReadCloser, error) {
	s, err := Open(path)
	if err != nil {
		return nil, err
	}
	s.skipMark()
	return unpacked{s}, nil
}

// skipMark skips a byte order mark.
func (s *Scanner) skipMark() {
	in := s.r.(*bufio.Reader) // nothing is read from it yet
	if head, _ := in.Peek(len(byteOrderMark)); bytes.Equal(head, byteOrderMark) {
		_, _ = in.Discard(len(byteOrderMark))
	}
}

// OpenAny opens a file as OpenBytes does, and takes also the formats that are no tables.
func OpenAny(path string) (io.ReadCloser, error) {
	s, err := open(path, func(string, []byte) error { return nil })
	if err != nil {
		return nil, err
	}
	return unpacked{s}, nil
}

type unpacked struct{ s *Scanner }

func (i unpacked) Close() error { return i.s.Close() }

func (i unpacked) Read(b []byte) (int, error) {
	n, err := i.s.r.Read(b)
	if err != nil && err != io.EOF {
		err = damaged(i.s.name, err)
	}
	return n, err
}

// New scans r, which holds text, or text that gzip or zstd packed: the first bytes tell. The name
// is for messages.
func New(name string, r io.Reader) (*Scanner, error) { return unpack(name, r, Foreign) }

func unpack(name string, r io.Reader, refuse refusal) (*Scanner, error) {
	in, head, err := peek(name, r, refuse)
	if err != nil {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return inflate(name, in, refuse)
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, damaged(name, err)
		}
		s, err := inflated(name, z, refuse)
		if err != nil {
			z.Close()
			return nil, err
		}
		s.close = append(s.close, func() error { z.Close(); return nil })
		return s, nil
	}
	return scan(name, in, false), nil
}

// NewChecked scans r, whose text is not packed any more: r inflates and checks it, as a member of a
// zip archive does.
func NewChecked(name string, r io.Reader) (*Scanner, error) {
	in, _, err := peek(name, r, Foreign)
	if err != nil {
		return nil, err
	}
	return scan(name, in, true), nil
}

// NewMade scans text that r converts from another format. Its cells may hold any byte, so a zero
// byte is not damage.
func NewMade(name string, r io.Reader) (*Scanner, error) {
	s, err := NewChecked(name, r)
	if err == nil {
		s.made = true
	}
	return s, err
}

// NewGzip scans r, which must be gzipped.
func NewGzip(name string, r io.Reader) (*Scanner, error) {
	in, head, err := peek(name, r, Foreign)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(head, []byte{0x1f, 0x8b}) {
		return nil, fmt.Errorf("%s: not a gzip file: it starts with %q; fetch it again, or compress it", name, start(in))
	}
	return inflate(name, in, Foreign)
}

func peek(name string, r io.Reader, refuse refusal) (*bufio.Reader, []byte, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	head, err := in.Peek(foreignBytes)
	switch {
	case len(head) == 0 && err == io.EOF:
		return nil, nil, fmt.Errorf("%s: the file is empty; fetch it again", name)
	case len(head) == 0 && err != nil:
		return nil, nil, damaged(name, err)
	}
	if err := refuse(name, head); err != nil {
		return nil, nil, err
	}
	return in, head, nil
}

type refusal = func(name string, head []byte) error

func inflate(name string, in io.Reader, refuse refusal) (*Scanner, error) {
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, damaged(name, err)
	}
	return inflated(name, z, refuse)
}

// inflated scans what z inflates, unless its first bytes are refused. Damage shows later.
func inflated(name string, z io.Reader, refuse refusal) (*Scanner, error) {
	in := bufio.NewReaderSize(z, foreignBytes)
	head, _ := in.Peek(foreignBytes)
	if err := refuse(name, head); err != nil {
		return nil, err
	}
	return scan(name, in, true), nil
}

func scan(name string, r io.Reader, packed bool) *Scanner {
	return &Scanner{name: name, r: r, packed: packed, buf: make([]byte, firstBuffer)}
}

// start is the beginning of a file that should have been something else.
func start(in *bufio.Reader) string {
	head, _ := in.Peek(24)
	if i := bytes.IndexByte(head, '\n'); i >= 0 {
		head = head[:i]
	}
	return string(head)
}

// damaged distinguishes a broken stream from a broken disk.
func damaged(name string, err error) error {
	var corrupt flate.CorruptInputError
	for _, cause := range []error{
		io.EOF, io.ErrUnexpectedEOF, gzip.ErrChecksum, gzip.ErrHeader, zip.ErrChecksum, zip.ErrFormat,
		zstd.ErrMagicMismatch, zstd.ErrCRCMismatch, zstd.ErrReservedBlockType, zstd.ErrCompressedSizeTooBig, zstd.ErrBlockTooSmall,
		zstd.ErrUnexpectedBlockSize, zstd.ErrWindowSizeTooSmall, zstd.ErrFrameSizeExceeded, zstd.ErrFrameSizeMismatch,
	} {
		if errors.Is(err, cause) || errors.As(err, &corrupt) {
			return fmt.Errorf("%s: truncated or damaged download (%w); fetch it again", name, err)
		}
	}
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return fmt.Errorf("%s: packed by zstd with a window beyond %d MiB; pack it again without --long", name, maxWindow>>20)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// Close closes what Open opened.
func (s *Scanner) Close() error {
	var errs []error
	for _, f := range s.close {
		errs = append(errs, f())
	}
	s.close = nil
	return errors.Join(errs...)
}

// Name is the file's, for messages.
func (s *Scanner) Name() string { return s.name }

// Line is the number of the line read last, from 1.
func (s *Scanner) Line() int64 { return s.line }

// lookAhead bounds the bytes that Errorf reads: a broken deflate stream rarely stays undetected for
// a block of 64 KiB, and a sound one of gigabytes should not keep its reader from the message.
const lookAhead = 64 << 20

// Errorf is an error about the line read last. Damage to a packed file is the likeliest cause of
// nonsense in it, so the bytes that follow are held against its checks first; the Scanner reads
// nothing more after that.
func (s *Scanner) Errorf(format string, args ...any) error {
	return s.fail(s.line, "", format, args)
}

// ErrorAt is Errorf for another line.
func (s *Scanner) ErrorAt(line int64, format string, args ...any) error {
	return s.fail(line, "", format, args)
}

// ErrorIn is Errorf for a cell of the line read last; columns count from 1.
func (s *Scanner) ErrorIn(column int, format string, args ...any) error {
	return s.fail(s.line, fmt.Sprintf(", column %d", column), format, args)
}

func (s *Scanner) fail(line int64, column, format string, args []any) error {
	if s.err == nil {
		s.err = fmt.Errorf("%s: line %d%s: %w", s.name, line, column, fmt.Errorf(format, args...))
		if s.packed {
			if _, err := io.CopyN(io.Discard, s.r, lookAhead); err != nil && err != io.EOF {
				s.err = damaged(s.name, err)
			}
		}
	}
	return s.err
}

// Peek returns the next line without its end, and its size with it; io.EOF after the last. A byte
// order mark is no part of the first, and before another it is refused, since it would be part of a
// cell. The text is lent until the next call of Peek.
func (s *Scanner) Peek() (text []byte, size int, err error) {
	searched := 0
	for {
		if s.err != nil {
			return nil, 0, s.err
		}
		if i := bytes.IndexByte(s.buf[s.pos+searched:s.end], '\n'); i >= 0 {
			size = searched + i + 1
			text = s.buf[s.pos : s.pos+size-1]
			break
		}
		searched = s.end - s.pos
		if s.done {
			if searched == 0 {
				return nil, 0, io.EOF
			}
			text, size = s.buf[s.pos:s.end], searched
			break
		}
		s.fill()
	}
	if n := len(text); n > 0 && text[n-1] == '\r' {
		text = text[:n-1]
	}
	if s.zero && bytes.IndexByte(text, 0) >= 0 {
		return nil, 0, s.ErrorAt(s.line+1, "%w", errZero)
	}
	if s.odd || s.lossy {
		if err := s.errText(text); err != nil {
			return nil, 0, s.ErrorAt(s.line+1, "%w", err)
		}
	}
	if s.line == 0 {
		text = bytes.TrimPrefix(text, byteOrderMark)
		if endsInCR(text) {
			return nil, 0, s.ErrorAt(1, "%w", errCR)
		}
	} else if len(text) > 2 && text[0] == byteOrderMark[0] && !s.made && bytes.HasPrefix(text, byteOrderMark) {
		return nil, 0, s.ErrorAt(s.line+1, "%w", errMark)
	}
	return text, size, nil
}

var byteOrderMark = []byte("\xef\xbb\xbf")

var errMark = errors.New("it begins with a byte order mark, as where files were joined; take the mark away, and the header behind it")

var errZero = errors.New("the file is not text: it holds a zero byte, as a file does that a crash cut short; make it again")

// CheckEnds refuses a line that holds other lines which end in CR alone. Call it for the first line
// of a row: a quoted cell may hold any line end.
func (s *Scanner) CheckEnds(text []byte) error {
	if s.lone && endsInCR(text) {
		return s.Errorf("%w", errCR)
	}
	return nil
}

var errCR = errors.New(`its lines end in CR alone, as old Macs wrote them; convert them: tr '\r' '\n'`)

// endsInCR reports whether a line holds others that end in CR alone: one outside quotes, with text
// after it.
func endsInCR(text []byte) bool {
	i := bytes.IndexByte(text, '\r')
	return i >= 0 && i < len(bytes.TrimRight(text, "\r")) && bytes.Count(text[:i], []byte{'"'})%2 == 0
}

// Take passes over the line that Peek gave with that size.
func (s *Scanner) Take(size int) {
	s.pos += size
	s.line++
}

// Next is Peek and Take.
func (s *Scanner) Next() ([]byte, error) {
	text, size, err := s.Peek()
	if err == nil {
		s.Take(size)
	}
	return text, err
}

// fill reads more, after moving the unfinished line to the front of the buffer.
func (s *Scanner) fill() {
	s.end = copy(s.buf, s.buf[s.pos:s.end])
	s.pos = 0
	if s.end == len(s.buf) {
		if s.end >= MaxLine {
			if s.line == 0 && endsInCR(s.buf) {
				_ = s.ErrorAt(1, "%w", errCR)
				return
			}
			s.err = fmt.Errorf("%s: line %d: longer than %d bytes; is this a table?", s.name, s.line+1, MaxLine)
			return
		}
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	n, err := s.r.Read(s.buf[s.end:])
	s.look(s.buf[s.end : s.end+n])
	s.end += n
	if s.utf8 && !s.odd && n > 0 {
		s.checkText(n)
	}
	if err == io.EOF {
		s.done, s.odd = true, s.odd || s.cut > 0
	} else if err != nil {
		s.err = damaged(s.name, err)
	}
}

// look notes zero bytes and lone CRs in what was read. Looking at each line instead costs more.
func (s *Scanner) look(read []byte) {
	s.zero = s.zero || !s.made && bytes.IndexByte(read, 0) >= 0
	for !s.lone {
		i := bytes.IndexByte(read, '\r')
		if i < 0 {
			return
		}
		// At the end of a read an LF may still come; then lines are checked for nothing, which is
		// cheap.
		s.lone = i+1 == len(read) || read[i+1] != '\n'
		read = read[i+1:]
	}
}
