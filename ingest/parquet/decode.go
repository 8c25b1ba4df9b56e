package parquet

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// The decoders give one value after another from where the encoded ones lie
// (https://parquet.apache.org/docs/file-format/data-pages/encodings/), so that no run or count
// takes memory.

var errEncoding = errors.New("its values end early or do not follow their encoding")

// runs decodes the hybrid of runs and bit-packed groups of 8: levels, indexes of dictionaries,
// truths.
type runs struct {
	b      []byte
	width  uint // bits of a value, 32 at most
	left   uint64
	packed bool
	value  uint32 // of the run
	bits   uint64 // that follow, the next lowest
	have   uint
	bytes  int // of the packed groups, not yet in bits
}

func (r *runs) next() (uint32, error) {
	for r.left == 0 {
		if err := r.start(); err != nil {
			return 0, err
		}
	}
	r.left--
	if !r.packed {
		return r.value, nil
	}
	for r.have < r.width {
		if r.bytes == 0 || len(r.b) == 0 {
			return 0, errEncoding
		}
		r.bits |= uint64(r.b[0]) << r.have
		r.have += 8
		r.b = r.b[1:]
		r.bytes--
	}
	v := uint32(r.bits & (1<<r.width - 1))
	r.bits >>= r.width
	r.have -= r.width
	return v, nil
}

func (r *runs) start() error {
	r.b = r.b[min(r.bytes, len(r.b)):]
	head, n := binary.Uvarint(r.b)
	if n <= 0 {
		return errEncoding
	}
	r.b = r.b[n:]
	r.left, r.packed, r.bits, r.have, r.bytes = head>>1, head&1 != 0, 0, 0, 0
	if r.packed {
		if r.left > 1<<32 { // more than any page has, and left*width must not wrap
			return errEncoding
		}
		r.bytes = int(r.left * uint64(r.width))
		r.left *= 8
		return nil
	}
	r.value = 0
	for i := range (r.width + 7) / 8 {
		if len(r.b) == 0 {
			return errEncoding
		}
		r.value |= uint32(r.b[0]) << (8 * i)
		r.b = r.b[1:]
	}
	return nil
}

// deltas decodes DELTA_BINARY_PACKED.
type deltas struct {
	b        []byte
	total    uint64 // values not yet given
	value    int64  // the next
	least    int64  // delta of the block
	widths   []byte // of the block's miniblocks that follow
	perMini  int
	minis    int
	inMini   int // values of the miniblock not yet given
	mini     []byte
	bit      uint // of mini, the next
	miniBits uint
}

const (
	maxBlock = 1 << 16
	maxMinis = 1 << 9
)

func newDeltas(b []byte) (deltas, error) {
	d := deltas{b: b}
	block, ok1 := d.uvarint()
	minis, ok2 := d.uvarint()
	total, ok3 := d.uvarint()
	first, ok4 := d.uvarint()
	if !ok1 || !ok2 || !ok3 || !ok4 || minis == 0 || minis > maxMinis || block == 0 || block > maxBlock ||
		block%minis != 0 || block/minis%8 != 0 {
		return d, errEncoding
	}
	d.minis, d.perMini, d.total, d.value = int(minis), int(block/minis), total, unzigzag(first)
	return d, nil
}

func (d *deltas) uvarint() (uint64, bool) {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		return 0, false
	}
	d.b = d.b[n:]
	return v, true
}

func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// block begins the next miniblock, and the next block where there is none.
func (d *deltas) block() error {
	if len(d.widths) == 0 {
		least, ok := d.uvarint()
		if !ok || len(d.b) < d.minis {
			return errEncoding
		}
		d.least = unzigzag(least)
		d.widths, d.b = d.b[:d.minis], d.b[d.minis:]
	}
	d.miniBits = uint(d.widths[0])
	d.widths = d.widths[1:]
	size := int(d.miniBits) * d.perMini / 8
	if d.miniBits > 64 || size > len(d.b) {
		return errEncoding
	}
	d.mini, d.b = d.b[:size], d.b[size:]
	d.bit, d.inMini = 0, d.perMini
	return nil
}

func (d *deltas) next() (int64, error) {
	if d.total == 0 {
		return 0, errEncoding
	}
	v := d.value
	if d.total--; d.total == 0 {
		return v, nil
	}
	if d.inMini == 0 {
		if err := d.block(); err != nil {
			return 0, err
		}
	}
	d.inMini--
	d.value += d.least + int64(bitsAt(d.mini, d.bit, d.miniBits))
	d.bit += d.miniBits
	return v, nil
}

// bitsAt reads width bits, 64 at most, from bit at on.
func bitsAt(b []byte, at, width uint) uint64 {
	if width == 0 {
		return 0
	}
	first, shift := at/8, at%8
	if int(first)+9 <= len(b) {
		v := binary.LittleEndian.Uint64(b[first:]) >> shift
		if shift > 0 {
			v |= uint64(b[first+8]) << (64 - shift)
		}
		return v & (1<<width - 1) // Go shifts by 64 to 0, and 0-1 is all bits
	}
	v := uint64(0)
	for i := range (shift + width + 7) / 8 {
		x := uint64(b[first+i])
		if i == 0 {
			v = x >> shift
		} else {
			v |= x << (8*i - shift)
		}
	}
	return v & (1<<width - 1)
}

// rest returns the bytes after all values, whole miniblocks of them.
func (d deltas) rest() ([]byte, error) {
	if d.total <= 1 {
		return d.b, nil
	}
	for left := d.total - 1; ; {
		if err := d.block(); err != nil {
			return nil, err
		}
		if left <= uint64(d.perMini) {
			return d.b, nil
		}
		left -= uint64(d.perMini)
	}
}

// lengthTexts decodes DELTA_LENGTH_BYTE_ARRAY.
type lengthTexts struct {
	lengths deltas
	b       []byte
}

func newLengthTexts(b []byte) (t lengthTexts, err error) {
	if t.lengths, err = newDeltas(b); err == nil {
		t.b, err = t.lengths.rest()
	}
	return t, err
}

func (t *lengthTexts) next() ([]byte, error) {
	n, err := t.lengths.next()
	if err != nil || n < 0 || n > int64(len(t.b)) {
		return nil, errEncoding
	}
	text := t.b[:n:n]
	t.b = t.b[n:]
	return text, nil
}

// prefixTexts decodes DELTA_BYTE_ARRAY.
type prefixTexts struct {
	prefixes deltas
	suffixes lengthTexts
	last     []byte
}

// maxText bounds a text that shares a prefix with the one before, since such may grow by each
// other.
const maxText = 16 << 20

func newPrefixTexts(b []byte) (t prefixTexts, err error) {
	if t.prefixes, err = newDeltas(b); err != nil {
		return t, err
	}
	if b, err = t.prefixes.rest(); err != nil {
		return t, err
	}
	t.suffixes, err = newLengthTexts(b)
	return t, err
}

func (t *prefixTexts) next() ([]byte, error) {
	n, err := t.prefixes.next()
	if err != nil || n < 0 || n > int64(len(t.last)) {
		return nil, errEncoding
	}
	suffix, err := t.suffixes.next()
	if err != nil || int(n)+len(suffix) > maxText {
		return nil, errEncoding
	}
	t.last = append(t.last[:n], suffix...)
	return t.last, nil
}

// levelWidth is the number of bits of levels up to max.
func levelWidth(max int) uint { return uint(bits.Len(uint(max))) }
