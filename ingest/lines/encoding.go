package lines

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Encoding turns the bytes of a file into characters. The zero value is UTF-8.
type Encoding struct {
	name string // as in the option; "" for UTF-8
	of   encoding.Encoding
}

const utf16Name = "utf-16"

// ParseEncoding reads the option {encoding}: utf-8, latin1, cp1252, utf-16 or another encoding of
// one byte a character, such as iso-8859-15 or koi8-r.
func ParseEncoding(name string) (Encoding, error) {
	if name == "" {
		return Encoding{}, nil
	}
	plain := bareName(name)
	switch plain {
	case "utf8":
		return Encoding{}, nil
	case "utf16":
		// A file begins with the mark that tells the order of bytes.
		return Encoding{utf16Name, unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM)}, nil
	case "latin1":
		return Encoding{name, charmap.ISO8859_1}, nil
	case "latin9":
		return Encoding{name, charmap.ISO8859_15}, nil
	}
	if page, ok := strings.CutPrefix(plain, "cp125"); ok {
		plain = "windows125" + page
	}
	for _, e := range charmap.All {
		if m, ok := e.(*charmap.Charmap); ok && bareName(m.String()) == plain {
			return Encoding{name, m}, nil
		}
	}
	return Encoding{}, fmt.Errorf("{encoding} %q: choose utf-8, latin1, cp1252, utf-16, or another of one byte a character, such as iso-8859-15", ClipText(name))
}

// bareName writes the name of an encoding in small letters and digits alone.
func bareName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
}

// String returns the name as the option writes it; empty for UTF-8.
func (e Encoding) String() string { return e.name }

// ErrEncoding is the cause of errors about text in another encoding than the reader expects.
var ErrEncoding = errors.New("the text is not UTF-8")

// OpenText opens a file as Open does, and gives its text as UTF-8. Text that is not in the encoding
// is refused with its line.
func OpenText(path string, e Encoding) (*Scanner, error) {
	s, err := open(path, e.refuse)
	if err != nil {
		return nil, err
	}
	if e.of == nil {
		s.utf8 = true
		return s, nil
	}
	in := s.r.(*bufio.Reader) // nothing is read from it yet
	head, _ := in.Peek(len(byteOrderMark))
	switch marked := isUTF16(head); {
	case bytes.HasPrefix(head, byteOrderMark):
		err = fmt.Errorf("%s: it begins with the mark of UTF-8; leave {encoding} %s out", path, e.name)
	case marked && e.name != utf16Name:
		err = fmt.Errorf("%s: text in UTF-16; say {encoding} utf-16 in place of %s", path, e.name)
	case !marked && e.name == utf16Name:
		err = fmt.Errorf("%s: it does not begin with the byte order mark of UTF-16; convert it: iconv -f UTF-16LE -t UTF-8 %s > PLAIN", path, path)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	s.r, s.lossy = transform.NewReader(in, e.of.NewDecoder()), true
	return s, nil
}

// OpenDecoded opens a file as OpenText does, for text that does not come in lines. Errors of Read
// name the file, and the line if its bytes are not in the encoding.
func OpenDecoded(path string, e Encoding) (io.ReadCloser, error) {
	s, err := OpenText(path, e)
	if err != nil {
		return nil, err
	}
	check := encoding.UTF8Validator
	if s.lossy {
		check = lossless{}
	} else {
		s.skipMark()
	}
	return decoded{s, transform.NewReader(s.r, check)}, nil
}

// decoded reads checked text, and counts its lines in s.
type decoded struct {
	s *Scanner
	r io.Reader
}

func (d decoded) Close() error { return d.s.Close() }

func (d decoded) Read(b []byte) (int, error) {
	n, err := d.r.Read(b)
	d.s.line += int64(bytes.Count(b[:n], []byte("\n")))
	switch err {
	case nil, io.EOF:
	case errLossy:
		err = d.s.ErrorAt(d.s.line+1, "%w", err)
	case encoding.ErrInvalidUTF8:
		err = d.s.ErrorAt(d.s.line+1, "%w; %s", ErrEncoding, otherText)
	default:
		err = damaged(d.s.name, err)
	}
	return n, err
}

// lossless passes text on, and refuses U+FFFD with errLossy.
type lossless struct{ transform.NopResetter }

func (lossless) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	n := len(src)
	if at := bytes.Index(src, replacement); at >= 0 {
		n, err = at, errLossy
	} else if whole := n - cutOff(src); !atEOF && whole < n {
		n, err = whole, transform.ErrShortSrc
	}
	if n > len(dst) {
		n, err = len(dst), transform.ErrShortDst
	}
	copy(dst, src[:n])
	return n, n, err
}

// replacement stands in decoded text for bytes that are no character.
var replacement = []byte("\uFFFD")

func isUTF16(head []byte) bool {
	return bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff"))
}

// refuse refuses files that are no text. Text in UTF-16 is refused later, where an encoding is
// given, since a packed file hides it at first.
func (e Encoding) refuse(name string, head []byte) error {
	if !isUTF16(head) {
		return Foreign(name, head)
	}
	if e.of == nil {
		return fmt.Errorf("%s: %w but UTF-16; say {encoding} utf-16, or convert it: iconv -f UTF-16 -t UTF-8 FILE > PLAIN", name, ErrEncoding)
	}
	return nil
}

// checkText checks that the bytes of the last read are UTF-8. If the read cut off a character, its
// bytes are checked with the next read.
func (s *Scanner) checkText(read int) {
	text := s.buf[s.end-read-s.cut : s.end]
	s.cut = cutOff(text)
	s.odd = s.odd || !utf8.Valid(text[:len(text)-s.cut])
}

// cutOff returns the size of the unfinished character at the end of a text; 0 if there is none.
func cutOff(text []byte) int {
	for i := 1; i <= min(utf8.UTFMax-1, len(text)); i++ {
		if last := text[len(text)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return i
			}
			break
		}
	}
	return 0
}

var errLossy = errors.New(
	"it has bytes that are no characters in the encoding; choose another {encoding}, or fetch the file again")

const otherText = "if it is Latin-1, as Excel writes it, say {encoding} latin1 or cp1252, " +
	"or convert it: iconv -f CP1252 -t UTF-8 FILE > PLAIN"

// errText is the error about a line that is not text in the encoding; nil if it is.
func (s *Scanner) errText(line []byte) error {
	switch {
	case s.lossy && bytes.Contains(line, replacement):
		return errLossy
	case s.odd && !utf8.Valid(line):
		at := 0
		for at < len(line) {
			r, n := utf8.DecodeRune(line[at:])
			if r == utf8.RuneError && n < 2 {
				break
			}
			at += n
		}
		return fmt.Errorf("%w: it has the byte 0x%02X; %s", ErrEncoding, line[at], otherText)
	}
	return nil
}
