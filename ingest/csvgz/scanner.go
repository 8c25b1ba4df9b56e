package csvgz

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
)

const (
	firstBuffer = 128 << 10
	maxLine     = 16 << 20 // a row of a million floats; beyond it, the file is no table
)

// Scanner reads one table from its first line.
type Scanner struct {
	name string
	file io.Closer // nil when the caller's
	r    io.Reader // inflated
	buf  []byte
	pos  int   // of the next line in buf
	end  int   // of what is read into buf
	done bool  // all is read
	line int64 // number of the line read last, from 1
	err  error // the first stays

	blanks int64 // missing labels still to be given for a run of blank lines
}

// Open opens a .csv.gz file.
func Open(path string) (*Scanner, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	s, err := NewScanner(path, f)
	if err != nil {
		f.Close()
		return nil, err
	}
	s.file = f
	return s, nil
}

// NewScanner scans r; the name is for messages.
func NewScanner(name string, r io.Reader) (*Scanner, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	head, err := in.Peek(2)
	switch {
	case len(head) == 0 && err == io.EOF:
		return nil, fmt.Errorf("%s: the file is empty; fetch it again", name)
	case err != nil && err != io.EOF:
		return nil, fmt.Errorf("%s: %w", name, err)
	case !bytes.Equal(head, []byte{0x1f, 0x8b}):
		return nil, fmt.Errorf("%s: not a gzip file: it starts with %q; fetch it again, or compress it", name, start(in))
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, damaged(name, err)
	}
	return &Scanner{name: name, r: z, buf: make([]byte, firstBuffer)}, nil
}

// start is the beginning of a file that should have been something else.
func start(in *bufio.Reader) string {
	head, _ := in.Peek(24)
	if i := bytes.IndexByte(head, '\n'); i >= 0 {
		head = head[:i]
	}
	return string(head)
}

// damaged tells a broken gzip stream from a broken disk.
func damaged(name string, err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.As(err, &corrupt) {
		return fmt.Errorf("%s: truncated or damaged download (%w); fetch it again", name, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// Close closes the file that Open opened.
func (s *Scanner) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// Name is the file's, for messages.
func (s *Scanner) Name() string { return s.name }

// Line is the number of the line read last, from 1.
func (s *Scanner) Line() int64 { return s.line }

// lookAhead is how far Errorf reads: a broken deflate stream rarely stays undetected for a block of 64 KiB, and a sound
// one of gigabytes should not keep its reader from the message.
const lookAhead = 64 << 20

// Errorf is an error about the line read last. Damage to the file is the likeliest cause of nonsense in it, so the bytes
// that follow are held against gzip's checks first; the Scanner reads nothing more after that.
func (s *Scanner) Errorf(format string, args ...any) error {
	if s.err == nil {
		s.err = fmt.Errorf("%s: line %d: %w", s.name, s.line, fmt.Errorf(format, args...))
		if _, err := io.CopyN(io.Discard, s.r, lookAhead); err != nil && err != io.EOF {
			s.err = damaged(s.name, err)
		}
	}
	return s.err
}

// Columns is the number of cells in the next line that is not blank, which becomes the next; 0 at the end of the table.
func (s *Scanner) Columns() (int, error) {
	text, size, err := s.peek()
	for ; err == nil && len(text) == 0; text, size, err = s.peek() {
		s.take(size)
	}
	if err == io.EOF {
		return 0, nil
	}
	return bytes.Count(text, []byte{','}) + 1, err
}

// Rest reads to the end of the file, past gzip's last check, and counts the lines that are not blank.
func (s *Scanner) Rest() (int64, error) {
	rows := int64(0)
	for {
		text, size, err := s.peek()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		s.take(size)
		if len(text) > 0 {
			rows++
		}
	}
}

// Ints reads a line of len(dst) integers; io.EOF after the last.
func (s *Scanner) Ints(dst []int64) error {
	text, err := s.row()
	if err != nil {
		return err
	}
	rest, last := text, len(dst)-1
	for i := range dst {
		// The usual cell is up to 18 digits, which cannot overflow.
		v, n := int64(0), 0
		for n < len(rest) && n < 19 && rest[n]-'0' <= 9 {
			v = v*10 + int64(rest[n]-'0')
			n++
		}
		if 0 < n && n < 19 && (i == last && n == len(rest) || i < last && n < len(rest) && rest[n] == ',') {
			dst[i] = v
			rest = rest[min(n+1, len(rest)):]
			continue
		}
		cell, after, err := s.cell(text, rest, i, len(dst))
		if err != nil {
			return err
		}
		v, ok := integer(cell)
		if !ok {
			return s.Errorf("%q is not an integer", clip(cell))
		}
		dst[i], rest = v, after
	}
	return nil
}

// Floats reads a line of len(dst) numbers, NaN where one is missing; io.EOF after the last.
func (s *Scanner) Floats(dst []float32) error {
	text, err := s.row()
	if err != nil {
		return err
	}
	rest := text
	for i := range dst {
		cell, after, err := s.cell(text, rest, i, len(dst))
		if err != nil {
			return err
		}
		rest = after
		if len(cell) == 0 {
			dst[i] = float32(math.NaN())
			continue
		}
		v, err := strconv.ParseFloat(string(cell), 32)
		if err != nil && !errors.Is(err, strconv.ErrRange) { // what is too large becomes infinite, as in NumPy
			return s.Errorf("%q is not a number", clip(cell))
		}
		dst[i] = float32(v)
	}
	return nil
}

// Labels reads a line of len(dst) classes, -1 where one is missing: empty, nan or negative. In a table of one column a
// blank line is a missing label too, unless only blank lines follow. io.EOF after the last.
func (s *Scanner) Labels(dst []int32) error {
	if len(dst) == 1 {
		missing, err := s.blankLabel()
		if err != nil {
			return err
		}
		if missing {
			dst[0] = -1
			return nil
		}
	}
	text, err := s.row()
	if err != nil {
		return err
	}
	rest := text
	for i := range dst {
		cell, after, err := s.cell(text, rest, i, len(dst))
		if err != nil {
			return err
		}
		rest = after
		v, ok := int64(-1), true
		if len(cell) > 0 && !strings.EqualFold(string(cell), "nan") {
			v, ok = integer(cell)
		}
		if !ok || v > math.MaxInt32 {
			return s.Errorf("%q is not the number of a class", clip(cell))
		}
		dst[i] = int32(max(v, -1))
	}
	return nil
}

// blankLabel says whether the next line is blank and others follow. It counts a run of blank lines in one go: whether
// they mean anything is known at its end.
func (s *Scanner) blankLabel() (bool, error) {
	if s.blanks == 0 {
		text, size, err := s.peek()
		for run := int64(1); err == nil && len(text) == 0; run++ {
			s.take(size)
			if text, size, err = s.peek(); len(text) > 0 {
				s.blanks = run
			}
		}
		if err != nil || s.blanks == 0 {
			return false, err
		}
	}
	s.blanks--
	return true, nil
}

// row is the next line that is not blank; blank lines may only be the last.
func (s *Scanner) row() ([]byte, error) {
	text, size, err := s.peek()
	if err != nil {
		return nil, err
	}
	s.take(size)
	if len(text) > 0 {
		return text, nil
	}
	blank := s.line
	for len(text) == 0 {
		if text, size, err = s.peek(); err != nil {
			return nil, err
		}
		s.take(size)
	}
	s.line = blank
	return nil, s.Errorf("the line is blank, and others follow")
}

// cell cuts number i of n cells off rest, the unread part of text.
func (s *Scanner) cell(text, rest []byte, i, n int) (cell, after []byte, err error) {
	comma := bytes.IndexByte(rest, ',')
	if (comma < 0) != (i == n-1) {
		return nil, nil, s.Errorf("found %d columns, %d are expected", bytes.Count(text, []byte{','})+1, n)
	}
	cell = rest
	if comma >= 0 {
		cell, after = rest[:comma], rest[comma+1:]
	}
	cell = bytes.TrimSpace(cell)
	if len(cell) >= 2 && cell[0] == '"' && cell[len(cell)-1] == '"' {
		cell = bytes.TrimSpace(cell[1 : len(cell)-1])
	}
	return cell, after, nil
}

// integer reads what Python writes for one: 3, -3, 3.0, 1e+06.
func integer(cell []byte) (int64, bool) {
	whole, fraction, _ := strings.Cut(string(cell), ".")
	if strings.Trim(fraction, "0") == "" {
		if v, err := strconv.ParseInt(whole, 10, 64); err == nil {
			return v, true
		}
	}
	v, err := strconv.ParseFloat(string(cell), 64)
	if err != nil || v != math.Trunc(v) || math.Abs(v) > 1<<53 { // beyond 2⁵³ a float has lost the ones
		return 0, false
	}
	return int64(v), true
}

// peek gives the next line without its end, and its size with it. The text is lent until the next peek.
func (s *Scanner) peek() (text []byte, size int, err error) {
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
	return text, size, nil
}

func (s *Scanner) take(size int) {
	s.pos += size
	s.line++
}

// fill reads more, after moving the unfinished line to the front of the buffer.
func (s *Scanner) fill() {
	s.end = copy(s.buf, s.buf[s.pos:s.end])
	s.pos = 0
	if s.end == len(s.buf) {
		if s.end >= maxLine {
			s.err = fmt.Errorf("%s: line %d: longer than %d bytes; is this a table?", s.name, s.line+1, maxLine)
			return
		}
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	n, err := s.r.Read(s.buf[s.end:])
	s.end += n
	if err == io.EOF {
		s.done = true
	} else if err != nil {
		s.err = damaged(s.name, err)
	}
}

// clip shortens a cell for a message.
func clip(cell []byte) string {
	const most = 40
	if len(cell) <= most {
		return string(cell)
	}
	return strings.ToValidUTF8(string(cell[:most]), "") + "…"
}
