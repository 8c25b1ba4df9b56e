// Package jsonmap streams a JSON object whose values are integers or lists of integers, as the maps
// from node ids to classes and features are that GraphSAINT and MUSAE keep: [Open] a [Scanner],
// then Key and Values by turns; or [Each].
//
// Memory is fixed, however long the object or a list in it. Files may be packed by gzip or zstd.
// Integers may be written 1.0 or 1e3, as Python writes those that came from floats. Errors name the
// file and the byte.
//
// A Scanner is used by one goroutine.
//
// # Why not encoding/json
//
// A Decoder holds a value until its end, a class map of a hundred classes a node has hundreds of
// megabytes, and it takes an allocation for each number (BenchmarkScanner).
package jsonmap

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/gnnstore/gnnstore/ingest/lines"
)

const (
	maxKey    = 1 << 10
	maxNumber = 64 // bytes
)

// Scanner reads one object.
type Scanner struct {
	name   string
	in     *bufio.Reader
	close  io.Closer
	offset int64 // of the byte to be read next
	state  state
	key    []byte
	digits []byte
	err    error // the first stays
}

type state int

const (
	atStart state = iota
	atFirstKey
	atValue
	atNextKey
	atEnd
)

// Open opens a file.
func Open(path string) (*Scanner, error) {
	f, err := lines.OpenBytes(path)
	if err != nil {
		return nil, err
	}
	s := NewScanner(path, f)
	s.close = f
	return s, nil
}

// NewScanner scans r; the name is for messages.
func NewScanner(name string, r io.Reader) *Scanner {
	return &Scanner{name: name, in: bufio.NewReaderSize(r, 64<<10)}
}

// Close closes the file that Open opened.
func (s *Scanner) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close.Close()
}

// Each visits every key of a file's object; visit reads its values, or leaves them. A key is lent
// for the call.
func Each(ctx context.Context, path string, visit func(s *Scanner, key []byte) error) error {
	s, err := Open(path)
	if err != nil {
		return err
	}
	defer s.Close()
	for count := 0; ; count++ {
		if count%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		key, err := s.Key()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = visit(s, key)
		}
		if err != nil {
			return err
		}
	}
}

// Errorf is an error about what was read last.
func (s *Scanner) Errorf(format string, args ...any) error {
	if s.err == nil {
		s.err = fmt.Errorf("%s: byte %d: %w", s.name, max(s.offset-1, 0), fmt.Errorf(format, args...))
	}
	return s.err
}

// Key returns the next key, lent until the next call; io.EOF after the last. A value that was not
// read is passed over.
func (s *Scanner) Key() ([]byte, error) {
	if s.state == atValue {
		if _, err := s.Values(func(int64) error { return nil }); err != nil {
			return nil, err
		}
	}
	if s.err != nil {
		return nil, s.err
	}
	if s.state == atEnd {
		return nil, io.EOF
	}
	if s.state == atStart {
		if head, _ := s.in.Peek(3); bytes.Equal(head, []byte("\xef\xbb\xbf")) { // a byte order mark
			_, _ = s.in.Discard(3)
			s.offset += 3
		}
		if c, err := s.next(); err != nil {
			return nil, err
		} else if c != '{' {
			return nil, s.Errorf("%q where an object begins with {", c)
		}
		s.state = atFirstKey
	}
	c, err := s.next()
	if err != nil {
		return nil, err
	}
	if c == '}' {
		return nil, s.end()
	}
	if s.state == atNextKey {
		if c != ',' {
			return nil, s.Errorf("%q where a comma or the end of the object belongs", c)
		}
		if c, err = s.next(); err != nil {
			return nil, err
		}
	}
	if c != '"' {
		return nil, s.Errorf("%q where a key in quotes belongs", c)
	}
	if err := s.readKey(); err != nil {
		return nil, err
	}
	if c, err := s.next(); err != nil {
		return nil, err
	} else if c != ':' {
		return nil, s.Errorf("%q where a colon follows the key", c)
	}
	s.state = atValue
	return s.key, nil
}

// Values reads the value of the key that Key gave, one integer or a list of them: visit gets each.
// list is true for a list. An error of visit ends it and comes back as it is; [Scanner.Errorf]
// makes good ones.
func (s *Scanner) Values(visit func(v int64) error) (list bool, err error) {
	if s.err != nil {
		return false, s.err
	}
	if s.state != atValue {
		panic("jsonmap: Values without Key")
	}
	c, err := s.next()
	if err != nil {
		return false, err
	}
	if c != '[' {
		v, err := s.number(c)
		if err == nil {
			err = visit(v)
		}
		s.state = atNextKey
		return false, s.stay(err)
	}
	for first := true; ; first = false {
		if c, err = s.next(); err != nil {
			return true, err
		}
		if c == ']' {
			break
		}
		if !first {
			if c != ',' {
				return true, s.Errorf("%q where a comma or the end of the list belongs", c)
			}
			if c, err = s.next(); err != nil {
				return true, err
			}
		} else if c == ',' {
			return true, s.Errorf("',' where a number belongs")
		}
		v, err := s.number(c)
		if err == nil {
			err = visit(v)
		}
		if err != nil {
			return true, s.stay(err)
		}
	}
	s.state = atNextKey
	return true, nil
}

// stay keeps the first error.
func (s *Scanner) stay(err error) error {
	if s.err == nil {
		s.err = err
	}
	return err
}

// end reads past the object, to the last check of what packed it.
func (s *Scanner) end() error {
	for {
		c, err := s.in.ReadByte()
		if err == io.EOF {
			s.state = atEnd
			return io.EOF
		}
		if err != nil {
			return s.stay(err)
		}
		s.offset++
		if !space(c) {
			return s.Errorf("%q follows the object", c)
		}
	}
}

func space(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// next returns the next byte that is no space.
func (s *Scanner) next() (byte, error) {
	for {
		c, err := s.byte()
		if err != nil || !space(c) {
			return c, err
		}
	}
}

func (s *Scanner) byte() (byte, error) {
	c, err := s.in.ReadByte()
	if errors.Is(err, io.EOF) {
		s.offset++
		return 0, s.Errorf("the file ends within the object; fetch it again")
	}
	if err != nil {
		return 0, s.stay(err)
	}
	s.offset++
	return c, nil
}

// readKey reads up to the closing quote.
func (s *Scanner) readKey() error {
	s.key = append(s.key[:0], '"')
	plain := true
	for {
		c, err := s.byte()
		if err != nil {
			return err
		}
		s.key = append(s.key, c)
		if c == '"' {
			break
		}
		if c == '\\' || c < ' ' || c >= 0x80 {
			plain = false
		}
		if c == '\\' {
			if c, err = s.byte(); err != nil {
				return err
			}
			s.key = append(s.key, c)
		}
		if len(s.key) > maxKey {
			return s.Errorf("a key is longer than %d bytes", maxKey)
		}
	}
	if plain {
		s.key = s.key[1 : len(s.key)-1]
		return nil
	}
	var text string
	if err := json.Unmarshal(s.key, &text); err != nil {
		return s.Errorf("a key is no JSON string: %q", lines.Clip(s.key))
	}
	s.key = append(s.key[:0], text...)
	return nil
}

// number reads the integer that begins with c.
func (s *Scanner) number(c byte) (int64, error) {
	s.digits = s.digits[:0]
	v, plain := int64(0), true
	for {
		if c < '0' || c > '9' {
			plain = false
		}
		v = v*10 + int64(c-'0')
		s.digits = append(s.digits, c)
		if len(s.digits) > maxNumber {
			return 0, s.Errorf("%q… is not an integer", s.digits[:maxNumber])
		}
		next, err := s.in.Peek(1)
		if err != nil && err != io.EOF {
			return 0, s.stay(err)
		}
		if len(next) == 0 || space(next[0]) || next[0] == ',' || next[0] == ']' || next[0] == '}' {
			break
		}
		if c, err = s.byte(); err != nil {
			return 0, err
		}
	}
	if n := len(s.digits); plain && n < 19 && (n == 1 || s.digits[0] != '0') {
		return v, nil
	}
	return s.oddNumber()
}

// oddNumber reads what is not a few digits: -7, 1.0, 1e3.
func (s *Scanner) oddNumber() (int64, error) {
	text := string(s.digits)
	if !json.Valid(s.digits) || s.digits[0] != '-' && (s.digits[0] < '0' || s.digits[0] > '9') {
		return 0, s.Errorf("%q where an integer belongs", lines.Clip(s.digits))
	}
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		return v, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if n, ok := lines.Whole(v); err == nil && ok {
		return n, nil
	}
	return 0, s.Errorf("%s is not an integer of 64 bits", text)
}
