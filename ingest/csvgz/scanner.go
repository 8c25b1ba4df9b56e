package csvgz

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/lines"
)

// Scanner reads one table from its first line.
type Scanner struct {
	*lines.Scanner
	blanks int64 // missing labels still to be given for a run of blank lines
}

// NewScanner scans r; the name is for messages.
func NewScanner(name string, r io.Reader) (*Scanner, error) { return table(lines.NewGzip(name, r)) }

// NewUnpacked scans r, which may have been gunzipped.
func NewUnpacked(name string, r io.Reader) (*Scanner, error) { return table(lines.New(name, r)) }

func table(in *lines.Scanner, err error) (*Scanner, error) {
	if err != nil {
		return nil, err
	}
	return &Scanner{Scanner: in}, nil
}

// Columns is the number of cells in the next line that is not blank, which becomes the next; 0 at
// the end of the table.
func (s *Scanner) Columns() (int, error) {
	text, size, err := s.Peek()
	for ; err == nil && len(text) == 0; text, size, err = s.Peek() {
		s.Take(size)
	}
	if err == io.EOF {
		return 0, nil
	}
	return bytes.Count(text, []byte{','}) + 1, err
}

// Rest reads to the end of the file, past gzip's last check, and counts the lines that are not
// blank.
func (s *Scanner) Rest() (int64, error) {
	rows := int64(0)
	for {
		text, size, err := s.Peek()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		s.Take(size)
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
		v, ok := lines.Integer(cell)
		if !ok {
			return s.Errorf("%q is not an integer", lines.Clip(cell))
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
		v, err := lines.Float(cell, 32)
		if err != nil && !errors.Is(err, strconv.ErrRange) { // what is too large becomes infinite, as in NumPy
			return s.Errorf("%q is not a number", lines.Clip(cell))
		}
		dst[i] = float32(v)
	}
	return nil
}

// Labels reads a line of len(dst) classes, -1 where one is missing: empty, nan or negative. In a
// table of one column a blank line is a missing label too, unless only blank lines follow. io.EOF
// after the last.
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
			v, ok = lines.Integer(cell)
		}
		if !ok || v > math.MaxInt32 {
			return s.Errorf("%q is not the number of a class", lines.Clip(cell))
		}
		dst[i] = int32(max(v, -1))
	}
	return nil
}

// blankLabel reports whether the next line is blank and others follow. It counts a run of blank
// lines in one go, since only the end of the run shows whether they mean anything.
func (s *Scanner) blankLabel() (bool, error) {
	if s.blanks == 0 {
		text, size, err := s.Peek()
		for run := int64(1); err == nil && len(text) == 0; run++ {
			s.Take(size)
			if text, size, err = s.Peek(); len(text) > 0 {
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
	text, size, err := s.Peek()
	if err != nil {
		return nil, err
	}
	s.Take(size)
	if len(text) > 0 {
		return text, nil
	}
	blank := s.Line()
	for len(text) == 0 {
		if text, size, err = s.Peek(); err != nil {
			return nil, err
		}
		s.Take(size)
	}
	return nil, s.ErrorAt(blank, "the line is blank, and others follow")
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
	if cell = bytes.TrimSpace(cell); len(cell) > 0 && cell[0] == '"' {
		cell = bytes.TrimSpace(lines.Unquoted(cell))
	}
	return cell, after, nil
}
