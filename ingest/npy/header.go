package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrUnsupported marks an array whose elements this package does not decode: Python objects,
// records, complex numbers, dates, raw bytes. The error that wraps it names the descr, so that a
// reader of many arrays can pass over this one.
var ErrUnsupported = errors.New("unsupported element type")

const (
	maxHeader = 64 << 10 // NumPy's own reader stops at 10,000 bytes; its writers stay under 1 KiB for plain types
	maxDims   = 64       // NumPy's limit since 2.0
	maxText   = 1 << 20  // bytes of one text element; one must fit in the read buffer
)

// Kind is a family of element types.
type Kind uint8

const (
	Bool Kind = iota + 1
	Int
	Uint
	Float
	Unicode // fixed-width UTF-32, NumPy's U
	Bytes   // fixed-width bytes, NumPy's S
	BFloat  // the upper half of a float32: PyTorch's bfloat16, which NumPy has no descr for
	Opaque  // of a size, and nothing else is known: what other libraries have beyond these
	// PyTorch's float8: bits of exponent and of fraction; Z has no negative zero and no infinities.
	E4M3
	E5M2
	E4M3Z
	E5M2Z
	E8M0
)

// Type is the decoded descr.
type Type struct {
	Kind      Kind
	Size      int // bytes an element
	BigEndian bool
}

// Number reports whether ReadInt64s and ReadFloat64s decode it.
func (t Type) Number() bool { return t.Kind >= Bool && t.Kind <= Uint || t.Floating() }

// Floating reports whether the elements are floats of some kind.
func (t Type) Floating() bool { return t.Kind == Float || t.Kind == BFloat || t.Kind >= E4M3 }

// Header is the form of an array.
type Header struct {
	Descr   string // as written: "<f4"
	Type    Type
	Fortran bool    // column-major: the first index runs fastest
	Shape   []int64 // empty for a scalar
}

// Len is the number of elements.
func (h *Header) Len() int64 {
	n := int64(1)
	for _, d := range h.Shape {
		n *= d
	}
	return n
}

// Bytes is the size of the data after the header.
func (h *Header) Bytes() int64 { return h.Len() * int64(h.Type.Size) }

// String is the form as NumPy users know it: "(2, 7) of <f4".
func (h *Header) String() string {
	var b strings.Builder
	b.WriteByte('(')
	for i, d := range h.Shape {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.FormatInt(d, 10))
	}
	if len(h.Shape) == 1 {
		b.WriteByte(',')
	}
	return b.String() + ") of " + h.Descr
}

// ReadHeader reads up to the first byte of data. Sizes are checked here: Len and Bytes of what it
// returns do not overflow.
func ReadHeader(r io.Reader) (Header, error) {
	h, _, err := ReadHeaderSize(r)
	return h, err
}

// ReadHeaderSize is ReadHeader. It also returns the number of bytes that it has read. With an error
// that is ErrUnsupported it returns the header's descr and shape, which is not checked.
func ReadHeaderSize(r io.Reader) (h Header, size int64, err error) {
	var fixed [12]byte
	if err := readHeaderBytes(r, fixed[:10]); err != nil {
		return h, 0, err
	}
	size = 10
	if string(fixed[:6]) != "\x93NUMPY" {
		return h, 0, fmt.Errorf("not an npy array: it starts with %q instead of \"\\x93NUMPY\"", fixed[:6])
	}
	var length uint32
	switch major, minor := fixed[6], fixed[7]; major {
	case 1:
		length = uint32(binary.LittleEndian.Uint16(fixed[8:]))
	case 2, 3:
		if err := readHeaderBytes(r, fixed[10:]); err != nil {
			return h, 0, err
		}
		size = 12
		length = binary.LittleEndian.Uint32(fixed[8:])
	default:
		return h, 0, fmt.Errorf("npy version %d.%d is not known (1.0, 2.0 and 3.0 are)", major, minor)
	}
	if length > maxHeader {
		return h, 0, fmt.Errorf("npy header of %d bytes is longer than the %d that are read", length, maxHeader)
	}
	text := make([]byte, length)
	if err := readHeaderBytes(r, text); err != nil {
		return h, 0, err
	}
	h, err = parseHeader(string(text))
	if errors.Is(err, ErrUnsupported) {
		return h, size + int64(length), err // a sound header of a type that is not read
	}
	if err != nil {
		return Header{}, 0, fmt.Errorf("npy header: %w", err)
	}
	return h, size + int64(length), nil
}

func readHeaderBytes(r io.Reader, b []byte) error {
	n, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: npy header: %d bytes expected, found %d", ErrTruncated, len(b), n)
	}
	return err
}

// NewHeader is the header of an array whose form stands elsewhere, as in a Python pickle. It is
// checked as a header in a file is.
func NewHeader(descr string, fortran bool, shape []int64) (Header, error) {
	h := Header{Descr: descr, Fortran: fortran, Shape: shape}
	if len(shape) > maxDims {
		return h, fmt.Errorf("a shape of %d dimensions, and %d are the most", len(shape), maxDims)
	}
	for _, d := range shape {
		if d < 0 {
			return h, fmt.Errorf("shape %s: %d is not a dimension", h.String(), d)
		}
	}
	var err error
	if h.Type, err = parseDescr(descr); err != nil {
		return h, err
	}
	return h, checkSize(h)
}

// parseHeader reads the dict literal: the three keys, each once, in any order, and padding after
// it.
func parseHeader(text string) (Header, error) {
	p := literal{text: text}
	var h Header
	var seen [3]bool
	p.expect('{')
	for p.err == nil && !p.accept('}') {
		key := p.str()
		p.expect(':')
		if p.err != nil {
			break
		}
		var slot int
		switch key {
		case "descr":
			slot = 0
			h.Descr = p.descr()
		case "fortran_order":
			slot = 1
			h.Fortran = p.boolean()
		case "shape":
			slot = 2
			h.Shape = p.tuple()
		default:
			return h, fmt.Errorf("key %q is not one of descr, fortran_order and shape", clip(key))
		}
		if seen[slot] {
			return h, fmt.Errorf("key %q is there twice", key)
		}
		seen[slot] = true
		if !p.accept(',') {
			p.expect('}')
			break
		}
	}
	if p.err != nil {
		return h, p.err
	}
	for i, key := range [...]string{"descr", "fortran_order", "shape"} {
		if !seen[i] {
			return h, fmt.Errorf("key %q is missing", key)
		}
	}
	if rest := strings.Trim(text[p.pos:], " \t\n"); rest != "" {
		return h, fmt.Errorf("%q follows the dict", clip(rest))
	}
	var err error
	if h.Type, err = parseDescr(h.Descr); err != nil {
		return h, err
	}
	return h, checkSize(h)
}

// checkSize makes Len and Bytes safe. A zero dimension does not excuse the others: no array has 2⁶²
// columns.
func checkSize(h Header) error {
	size := uint64(h.Type.Size)
	for _, d := range h.Shape {
		hi, lo := bits.Mul64(size, uint64(max(d, 1)))
		if hi != 0 || lo > math.MaxInt64 {
			return fmt.Errorf("shape %s is larger than any file", h.String())
		}
		size = lo
	}
	return nil
}

// parseDescr decodes the type string: byte order, kind, size.
func parseDescr(descr string) (Type, error) {
	unsupported := func() (Type, error) {
		why := ""
		if descr == "|O" || descr == "O" {
			why = " (Python objects, stored as a pickle)"
		} else if strings.HasPrefix(descr, "[") {
			why = " (a record)"
		}
		return Type{}, fmt.Errorf("%w %s%s", ErrUnsupported, clip(descr), why)
	}
	var t Type
	s := descr
	switch {
	case strings.HasPrefix(s, ">"):
		t.BigEndian = true
		s = s[1:]
	case s != "" && strings.Contains("<|=", s[:1]): // = is the writer's own order, which NumPy never writes out
		s = s[1:]
	}
	if s == "?" {
		s = "b1"
	}
	if len(s) < 2 {
		return unsupported()
	}
	n, err := strconv.ParseUint(s[1:], 10, 31)
	if err != nil {
		return unsupported()
	}
	t.Size = int(n)
	allowed := false
	switch s[0] {
	case 'b':
		t.Kind, allowed = Bool, n == 1
	case 'i':
		t.Kind, allowed = Int, n == 1 || n == 2 || n == 4 || n == 8
	case 'u':
		t.Kind, allowed = Uint, n == 1 || n == 2 || n == 4 || n == 8
	case 'f':
		t.Kind, allowed = Float, n == 2 || n == 4 || n == 8
	case 'U':
		t.Kind, t.Size, allowed = Unicode, int(n)*4, n > 0 && n <= maxText/4
	case 'S', 'a':
		t.Kind, allowed = Bytes, n > 0 && n <= maxText
	}
	if !allowed {
		return unsupported()
	}
	return t, nil
}

// literal is a cursor over the few Python literals a header is made of. The first error stays.
type literal struct {
	text string
	pos  int
	err  error
}

func (p *literal) fail(want string) {
	if p.err != nil {
		return
	}
	p.err = fmt.Errorf("%s expected at byte %d, found %q", want, p.pos, clip(p.text[p.pos:]))
}

func (p *literal) space() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *literal) accept(c byte) bool {
	p.space()
	if p.err != nil || p.pos >= len(p.text) || p.text[p.pos] != c {
		return false
	}
	p.pos++
	return true
}

func (p *literal) expect(c byte) {
	if !p.accept(c) {
		p.fail(strconv.QuoteRune(rune(c)))
	}
}

func (p *literal) str() string {
	p.space()
	if p.err != nil || p.pos >= len(p.text) || p.text[p.pos] != '\'' && p.text[p.pos] != '"' {
		p.fail("a string")
		return ""
	}
	body := p.text[p.pos+1:]
	end := strings.IndexByte(body, p.text[p.pos])
	if end < 0 || strings.IndexByte(body[:end], '\\') >= 0 {
		p.fail("a plain string")
		return ""
	}
	p.pos += end + 2
	return body[:end]
}

// descr is a string, or the list of a record type, which is taken as it stands for the message.
func (p *literal) descr() string {
	p.space()
	if p.err != nil || p.pos >= len(p.text) || p.text[p.pos] != '[' {
		return p.str()
	}
	start, depth := p.pos, 0
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case '\'', '"':
			if p.str(); p.err != nil {
				return ""
			}
			continue
		case '[', '(':
			depth++
		case ']', ')':
			depth--
		}
		p.pos++
		if depth == 0 {
			return p.text[start:p.pos]
		}
	}
	p.fail("the end of a list")
	return ""
}

func (p *literal) boolean() bool {
	p.space()
	for _, word := range [...]string{"True", "False"} {
		if p.err == nil && strings.HasPrefix(p.text[p.pos:], word) {
			p.pos += len(word)
			return word == "True"
		}
	}
	p.fail("True or False")
	return false
}

// tuple is a shape: (), (5,), (2, 7), each number perhaps with Python 2's L.
func (p *literal) tuple() []int64 {
	p.expect('(')
	shape := []int64{}
	for p.err == nil && !p.accept(')') {
		p.space()
		start := p.pos
		for p.pos < len(p.text) && '0' <= p.text[p.pos] && p.text[p.pos] <= '9' {
			p.pos++
		}
		d, err := strconv.ParseInt(p.text[start:p.pos], 10, 64)
		if err != nil {
			p.pos = start
			p.fail("a dimension from 0 to 2⁶³-1")
			break
		}
		if p.pos < len(p.text) && p.text[p.pos] == 'L' {
			p.pos++
		}
		if shape = append(shape, d); len(shape) > maxDims {
			p.fail(fmt.Sprintf("a shape of at most %d dimensions", maxDims))
			break
		}
		if !p.accept(',') {
			if len(shape) == 1 {
				p.fail("',' (a tuple of one)") // (5) is a number to Python
			}
			p.expect(')')
			break
		}
	}
	return shape
}

// clip makes what goes into a message short and printable.
func clip(s string) string {
	const most = 40
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n++; n > most {
			b.WriteRune('…')
			break
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			r = '?'
		}
		b.WriteRune(r)
	}
	return b.String()
}
