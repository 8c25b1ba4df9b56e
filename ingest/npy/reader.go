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
	"unicode/utf8"

	"github.com/x448/float16"

	"github.com/gnnstore/gnnstore/kernels"
)

// ErrTruncated marks a file that ends before its header says it does.
var ErrTruncated = errors.New("truncated")

const rawBytes = 64 << 10 // read and converted at a time: stays in the first two cache levels

// Reader reads the elements of one array, front to back, in file order: when Header().Fortran is
// set and there are two dimensions or more, that is column by column. It reads not a byte past the
// array's end.
type Reader struct {
	r      io.Reader
	header Header
	len    int64
	next   int64 // number of the element to be read next
	raw    []byte
	wide   []float64 // for floats on their way to integers
	whole  []int64   // for integers on their way to classes
	halves []uint16  // on their way to floats, by the loop that kernels has for them
}

// NewReader reads the header from r. It buffers by itself, so r need not.
func NewReader(r io.Reader) (*Reader, error) {
	h, err := ReadHeader(r)
	if err != nil {
		return nil, err
	}
	return NewDataReader(h, r), nil
}

// NewDataReader reads the elements of an array whose header is known: r starts with the first of
// them. The header comes from [ReadHeader] or [NewHeader].
func NewDataReader(h Header, r io.Reader) *Reader {
	size := max(rawBytes/h.Type.Size, 1) * h.Type.Size
	return &Reader{r: r, header: h, len: h.Len(), raw: make([]byte, min(int64(size), h.Bytes()))}
}

// Header is the form of the array.
func (r *Reader) Header() Header { return r.header }

// ReadInt64s fills dst from any numeric type and returns how many it filled: fewer than len(dst)
// only at the end of the array, where a further call gives io.EOF. A number that is not an integer
// or does not fit is an error that names it.
func (r *Reader) ReadInt64s(dst []int64) (int, error) {
	switch t := r.header.Type; t.Kind {
	case Unicode, Bytes, Opaque:
		return 0, r.notNumbers()
	case Float, BFloat, E4M3, E5M2, E4M3Z, E5M2Z, E8M0:
		return readAll(r, dst, r.integers)
	case Uint:
		return readAll(r, dst, func(dst []int64, raw []byte) error {
			decode(dst, raw, t)
			for i, v := range dst {
				if v < 0 {
					return fmt.Errorf("element %d is %d, which does not fit in 64 bits with a sign", r.next+int64(i), uint64(v))
				}
			}
			return nil
		})
	default:
		return readAll(r, dst, func(dst []int64, raw []byte) error { decode(dst, raw, t); return nil })
	}
}

// ReadFloat32s is like ReadInt64s. Values are rounded to the nearest float32; those beyond its
// range become infinite.
func (r *Reader) ReadFloat32s(dst []float32) (int, error) {
	if t := r.header.Type; t.Kind == Float && t.Size == 2 {
		return readAll(r, dst, func(dst []float32, raw []byte) error {
			halves := grow(&r.halves, len(dst))
			at := 0
			for ; len(raw) >= 8; raw = raw[8:] { // four at a time doubles the speed of all of it
				v, h := binary.LittleEndian.Uint64(raw), halves[at:at+4]
				h[0], h[1], h[2], h[3] = uint16(v), uint16(v>>16), uint16(v>>32), uint16(v>>48)
				at += 4
			}
			for ; len(raw) >= 2; raw = raw[2:] {
				halves[at] = binary.LittleEndian.Uint16(raw)
				at++
			}
			kernels.HalfToFloat32(dst, halves)
			return nil
		})
	}
	return readFloats(r, dst)
}

// ReadFloat64s is like ReadFloat32s.
func (r *Reader) ReadFloat64s(dst []float64) (int, error) { return readFloats(r, dst) }

// ReadStrings is like ReadInt64s for text, less the padding. What is not a character becomes
// U+FFFD.
func (r *Reader) ReadStrings(dst []string) (int, error) {
	t := r.header.Type
	if t.Kind != Unicode && t.Kind != Bytes {
		return 0, fmt.Errorf("%w %s where text is expected", ErrUnsupported, r.header.Descr)
	}
	return readAll(r, dst, func(dst []string, raw []byte) error {
		for i := range dst {
			cell := raw[i*t.Size : (i+1)*t.Size]
			if t.Kind == Bytes {
				dst[i] = strings.ToValidUTF8(strings.TrimRight(string(cell), "\x00"), "\uFFFD")
				continue
			}
			var text []byte
			for c := cell; len(c) > 0; c = c[4:] {
				text = utf8.AppendRune(text, rune(binary.LittleEndian.Uint32(c)))
			}
			dst[i] = strings.TrimRight(string(text), "\x00")
		}
		return nil
	})
}

// Skip passes over n elements, fewer at the end.
func (r *Reader) Skip(n int64) error {
	for n = min(n, r.len-r.next); n > 0; {
		raw, err := r.fill(n)
		if err != nil {
			return err
		}
		k := int64(len(raw) / r.header.Type.Size)
		r.next += k
		n -= k
	}
	return nil
}

func (r *Reader) notNumbers() error {
	return fmt.Errorf("%w %s where numbers are expected", ErrUnsupported, r.header.Descr)
}

func readFloats[D float32 | float64](r *Reader, dst []D) (int, error) {
	t := r.header.Type
	if !t.Number() {
		return 0, r.notNumbers()
	}
	return readAll(r, dst, func(dst []D, raw []byte) error { decode(dst, raw, t); return nil })
}

// readAll fills dst, a buffer of raw elements at a time.
func readAll[D any](r *Reader, dst []D, convert func(dst []D, raw []byte) error) (int, error) {
	if r.next == r.len && len(dst) > 0 {
		return 0, io.EOF
	}
	done := 0
	for done < len(dst) && r.next < r.len {
		raw, err := r.fill(int64(len(dst) - done))
		if err != nil {
			return done, err
		}
		n := len(raw) / r.header.Type.Size
		if err := convert(dst[done:done+n], raw); err != nil {
			return done, err
		}
		done += n
		r.next += int64(n)
	}
	return done, nil
}

// fill reads up to n elements into the buffer, in little-endian order.
func (r *Reader) fill(n int64) ([]byte, error) {
	size := int64(r.header.Type.Size)
	n = min(n, r.len-r.next, int64(len(r.raw))/size)
	raw := r.raw[:n*size]
	got, err := io.ReadFull(r.r, raw)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("%w: %d bytes of data expected for %s, found %d",
			ErrTruncated, r.header.Bytes(), r.header.String(), r.next*size+int64(got))
	}
	if err != nil {
		return nil, err
	}
	if r.header.Type.BigEndian {
		swap(raw, r.header.Type)
	}
	return raw, nil
}

func swap(raw []byte, t Type) {
	width := t.Size
	switch t.Kind {
	case Unicode:
		width = 4
	case Bytes:
		width = 1
	}
	switch width {
	case 2:
		for b := raw; len(b) >= 2; b = b[2:] {
			binary.LittleEndian.PutUint16(b, bits.ReverseBytes16(binary.LittleEndian.Uint16(b)))
		}
	case 4:
		for b := raw; len(b) >= 4; b = b[4:] {
			binary.LittleEndian.PutUint32(b, bits.ReverseBytes32(binary.LittleEndian.Uint32(b)))
		}
	case 8:
		for b := raw; len(b) >= 8; b = b[8:] {
			binary.LittleEndian.PutUint64(b, bits.ReverseBytes64(binary.LittleEndian.Uint64(b)))
		}
	}
}

// integers converts floats that are whole. 2⁶³ is the first float past int64, and -2⁶³ is in it.
func (r *Reader) integers(dst []int64, raw []byte) error {
	wide := grow(&r.wide, len(dst))
	decode(wide, raw, r.header.Type)
	for i, v := range wide {
		if v != math.Trunc(v) || !(v >= -0x1p63 && v < 0x1p63) {
			return fmt.Errorf("element %d is %s, not an integer of 64 bits", r.next+int64(i), strconv.FormatFloat(v, 'g', -1, 64))
		}
		dst[i] = int64(v)
	}
	return nil
}

// decode converts little-endian elements as Go converts numbers; integers gets the floats that go
// to integers.
func decode[D int64 | float32 | float64](dst []D, raw []byte, t Type) {
	le := binary.LittleEndian
	switch t.Kind {
	case Bool:
		for i := range dst {
			dst[i] = 0
			if raw[i] != 0 {
				dst[i] = 1
			}
		}
	case Int:
		switch t.Size {
		case 1:
			for i := range dst {
				dst[i] = D(int8(raw[i]))
			}
		case 2:
			for i := range dst {
				dst[i] = D(int16(le.Uint16(raw[2*i:])))
			}
		case 4:
			for i := range dst {
				dst[i] = D(int32(le.Uint32(raw[4*i:])))
			}
		case 8:
			for i := range dst {
				dst[i] = D(int64(le.Uint64(raw[8*i:])))
			}
		}
	case Uint:
		switch t.Size {
		case 1:
			for i := range dst {
				dst[i] = D(raw[i])
			}
		case 2:
			for i := range dst {
				dst[i] = D(le.Uint16(raw[2*i:]))
			}
		case 4:
			for i := range dst {
				dst[i] = D(le.Uint32(raw[4*i:]))
			}
		case 8:
			for i := range dst {
				dst[i] = D(le.Uint64(raw[8*i:]))
			}
		}
	case E4M3, E5M2, E4M3Z, E5M2Z, E8M0:
		values := float8[t.Kind]
		for i := range dst {
			dst[i] = D(values[raw[i]])
		}
	case BFloat:
		for i := range dst {
			dst[i] = D(math.Float32frombits(uint32(le.Uint16(raw[2*i:])) << 16))
		}
	case Float:
		switch t.Size {
		case 2:
			for i := range dst {
				dst[i] = D(float16.Frombits(le.Uint16(raw[2*i:])).Float32())
			}
		case 4:
			for i := range dst {
				dst[i] = D(math.Float32frombits(le.Uint32(raw[4*i:])))
			}
		case 8:
			for i := range dst {
				dst[i] = D(math.Float64frombits(le.Uint64(raw[8*i:])))
			}
		}
	}
}
