package parquet

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
	"github.com/x448/float16"
)

const (
	maxPage   = 64 << 20 // bytes, packed as well as not
	maxHeader = 64 << 10 // of a page, its statistics included
	maxList   = 1 << 22  // numbers of a cell
)

// cursor gives the values of one column, page by page.
type cursor struct {
	file  *File
	leaf  *leaf
	in    *bufio.Reader // of the column chunk
	codec format.CompressionCodec
	page  int // number within the chunk, for messages

	packed, plain []byte // the page as it is and inflated; plain is packed where it is not compressed
	left          int64  // values of the page, nulls included
	reps, defs    runs
	peeked        bool   // whether rep is of the value that follows
	rep           uint32 // how far its list goes on
	encoding      format.Encoding
	dated         []byte // the text of a date
	values        []byte // PLAIN and BYTE_STREAM_SPLIT
	truth         uint   // of PLAIN truths, the next
	split         int    // values of a BYTE_STREAM_SPLIT
	at            int    // of them, the next
	index         runs
	deltas        deltas
	lengths       lengthTexts
	prefixes      prefixTexts
	dict          dictionary
	list          []float64
}

// dictionary has the values that indexes stand for, in one of the three ways.
type dictionary struct {
	ints   []int64
	floats []float64
	texts  []byte
	ends   []uint32 // of each text
}

func (d *dictionary) len() int { return max(len(d.ints), len(d.floats), len(d.ends)) }

// start goes to the column's chunk in a row group.
func (c *cursor) start(chunk *format.ColumnMetaData) error {
	if c.left > 0 || c.peeked {
		return errors.New("a column chunk has more values than its row group has rows; fetch it again")
	}
	if chunk.Type != c.leaf.physical {
		return fmt.Errorf("a column chunk of %v in a column of %v; fetch it again", chunk.Type, c.leaf.physical)
	}
	from, size := chunk.DataPageOffset, chunk.TotalCompressedSize
	if d := chunk.DictionaryPageOffset; d > 0 && d < from {
		from = d
	}
	if from < 4 || size < 0 || from > c.file.size || size > c.file.size-from {
		return fmt.Errorf("a column chunk of %d bytes at %d, and the file has %d; fetch it again", size, from, c.file.size)
	}
	section := io.NewSectionReader(c.file.f, from, size)
	if c.in == nil {
		c.in = bufio.NewReaderSize(section, maxHeader)
	} else {
		c.in.Reset(section)
	}
	c.codec, c.page = chunk.Codec, 0
	c.dict = dictionary{}
	return nil
}

// more reads pages until one has values; io.EOF after the chunk's last.
func (c *cursor) more() error {
	for c.left == 0 {
		head, err := c.in.Peek(maxHeader)
		if len(head) == 0 {
			return err
		}
		if err != nil && err != io.EOF {
			return err
		}
		var h format.PageHeader
		size, err := decodeThrift(head, &h)
		if err == nil {
			c.in.Discard(size)
			err = c.read(&h)
		}
		if err != nil {
			return fmt.Errorf("page %d: %w; fetch it again, or write it by another program", c.page, err)
		}
		c.page++
	}
	return nil
}

func (c *cursor) read(h *format.PageHeader) error {
	if h.CompressedPageSize < 0 || h.UncompressedPageSize < 0 {
		return errors.New("its size is negative")
	}
	if big := max(h.CompressedPageSize, h.UncompressedPageSize); big > maxPage {
		return fmt.Errorf("it has %d bytes, and %d are the most; write smaller pages", big, maxPage)
	}
	if int64(h.CompressedPageSize) > c.file.size {
		return io.ErrUnexpectedEOF
	}
	c.packed = sized(c.packed, int(h.CompressedPageSize))
	if _, err := io.ReadFull(c.in, c.packed); err != nil {
		return io.ErrUnexpectedEOF
	}
	if h.CRC != 0 && crc32.ChecksumIEEE(c.packed) != uint32(h.CRC) {
		return errors.New("its checksum is wrong")
	}
	size := int(h.UncompressedPageSize)
	switch {
	case h.Type == format.DictionaryPage && h.DictionaryPageHeader.Valid:
		plain, err := inflate(nil, c.packed, size, c.codec)
		if err != nil {
			return err
		}
		if c.codec == format.Uncompressed {
			plain = bytes.Clone(plain) // the next page takes the place of packed
		}
		return c.dictionary(plain, h.DictionaryPageHeader.V.NumValues)
	case h.Type == format.DataPage && h.DataPageHeader.Valid:
		v := &h.DataPageHeader.V
		plain, err := c.inflated(c.packed, size, c.codec)
		if err != nil {
			return err
		}
		if plain, err = c.levels(plain, v); err != nil {
			return err
		}
		return c.begin(plain, v.Encoding, v.NumValues)
	case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
		v := &h.DataPageHeaderV2.V
		reps, defs := int(v.RepetitionLevelsByteLength), int(v.DefinitionLevelsByteLength)
		if reps < 0 || defs < 0 || reps > len(c.packed) || defs > len(c.packed)-reps || size < reps+defs {
			return errEncoding
		}
		c.reps = runs{b: c.packed[:reps], width: levelWidth(c.leaf.maxRep)}
		c.defs = runs{b: c.packed[reps : reps+defs], width: levelWidth(c.leaf.maxDef)}
		codec := c.codec
		if v.IsCompressed.Valid && !v.IsCompressed.V {
			codec = format.Uncompressed
		}
		plain, err := c.inflated(c.packed[reps+defs:], size-reps-defs, codec)
		if err != nil {
			return err
		}
		return c.begin(plain, v.Encoding, v.NumValues)
	}
	return nil // an index, or something newer: the format says to pass over it
}

// sized returns n bytes, b's where it has them.
func sized(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

func (c *cursor) inflated(packed []byte, size int, codec format.CompressionCodec) ([]byte, error) {
	plain, err := inflate(c.plain, packed, size, codec)
	if codec != format.Uncompressed && err == nil {
		c.plain = plain[:0]
	}
	return plain, err
}

// inflate makes size bytes of packed ones, in dst where it has the room.
func inflate(dst, packed []byte, size int, codec format.CompressionCodec) ([]byte, error) {
	if codec == format.Uncompressed {
		if len(packed) != size {
			return nil, errors.New("it is not compressed, and says that it is longer or shorter then")
		}
		return packed, nil
	}
	dst = sized(dst, size)
	if size == 0 {
		return dst, nil
	}
	var n int
	var err error
	switch codec {
	case format.Snappy:
		if n, err = snappy.DecodedLen(packed); err == nil && n == size {
			_, err = snappy.Decode(dst, packed)
		}
	case format.Gzip:
		var z *gzip.Reader
		if z, err = gzip.NewReader(bytes.NewReader(packed)); err == nil {
			if n, err = io.ReadFull(z, dst); err == nil {
				if extra, end := z.Read(make([]byte, 1)); end != io.EOF { // which has the checksum right
					n, err = n+extra, end
				}
			}
		}
	case format.Zstd:
		var z *zstd.Decoder
		if z, err = zstdReader(); err == nil {
			var b []byte
			b, err = z.DecodeAll(packed, dst[:0])
			n = len(b)
			if err == nil && n == size {
				dst = b
			}
		}
	case format.Lz4Raw:
		n, err = lz4.UncompressBlock(packed, dst)
	default:
		return nil, fmt.Errorf("packed by %v, and snappy, gzip, zstd and LZ4_RAW can be read", codec)
	}
	if err != nil {
		return nil, fmt.Errorf("it does not inflate (%w)", err)
	}
	if n != size {
		return nil, fmt.Errorf("it inflates to %d bytes, and says %d", n, size)
	}
	return dst, nil
}

// levels cuts the levels of a page of version 1 off its front.
func (c *cursor) levels(b []byte, h *format.DataPageHeader) ([]byte, error) {
	for _, l := range []struct {
		to       *runs
		max      int
		encoding format.Encoding
	}{{&c.reps, c.leaf.maxRep, h.RepetitionLevelEncoding}, {&c.defs, c.leaf.maxDef, h.DefinitionLevelEncoding}} {
		if l.max == 0 {
			continue
		}
		if l.encoding != format.RLE {
			return nil, fmt.Errorf("levels in %v, which is deprecated", l.encoding)
		}
		in, err := prefixed(&b)
		if err != nil {
			return nil, err
		}
		*l.to = runs{b: in, width: levelWidth(l.max)}
	}
	return b, nil
}

// prefixed cuts off bytes whose length, in four bytes, stands before them.
func prefixed(b *[]byte) ([]byte, error) {
	if len(*b) < 4 {
		return nil, errEncoding
	}
	n := uint64(binary.LittleEndian.Uint32(*b))
	if n > uint64(len(*b)-4) {
		return nil, errEncoding
	}
	in := (*b)[4 : 4+n]
	*b = (*b)[4+n:]
	return in, nil
}

// plainDictionary is the name of RLEDictionary in data pages of version 1 of the format.
const plainDictionary format.Encoding = 2

// begin readies the decoder of a page's values.
func (c *cursor) begin(b []byte, encoding format.Encoding, values int32) (err error) {
	if values < 0 {
		return errors.New("its number of values is negative")
	}
	if encoding == plainDictionary {
		encoding = format.RLEDictionary
	}
	c.encoding, c.values, c.truth, c.at, c.index = encoding, b, 0, 0, runs{}
	integers := c.leaf.physical == format.Int32 || c.leaf.physical == format.Int64
	text := c.leaf.physical == format.ByteArray
	ok := true
	switch encoding {
	case format.Plain:
	case format.RLEDictionary:
		if len(b) > 0 { // else there are only nulls
			c.index.b, c.index.width = b[1:], uint(b[0])
		}
		if c.index.width > 32 {
			err = errEncoding
		}
	case format.RLE:
		if ok = c.leaf.physical == format.Boolean; ok {
			c.index.width = 1
			c.index.b, err = prefixed(&b)
		}
	case format.DeltaBinaryPacked:
		if ok = integers; ok {
			c.deltas, err = newDeltas(b)
		}
	case format.DeltaLengthByteArray:
		if ok = text; ok {
			c.lengths, err = newLengthTexts(b)
		}
	case format.DeltaByteArray:
		if ok = text; ok {
			c.prefixes, err = newPrefixTexts(b)
		}
	case format.ByteStreamSplit:
		if ok = c.width() > 0; ok {
			c.split = len(b) / c.width()
		}
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("values of %v in %v", c.leaf.physical, encoding)
	}
	if errors.Is(err, errEncoding) && len(b) == 0 {
		err = nil // of nulls only: some write nothing then
	}
	if err == nil {
		c.left = int64(values)
	}
	return err
}

// width is the number of bytes of a value, 0 where they differ.
func (c *cursor) width() int {
	switch c.leaf.physical {
	case format.Int32, format.Float:
		return 4
	case format.Int64, format.Double:
		return 8
	case format.FixedLenByteArray:
		return c.leaf.length
	}
	return 0
}

// dictionary reads a dictionary's values, which are PLAIN.
func (c *cursor) dictionary(b []byte, n int32) error {
	c.dict = dictionary{}
	width := c.width()
	if n < 0 || width > 0 && int64(n)*int64(width) > int64(len(b)) || width == 0 && int64(n)*4 > int64(len(b)) {
		return errEncoding
	}
	d := &c.dict
	switch {
	case c.leaf.physical == format.ByteArray:
		d.texts, d.ends = b[:0], make([]uint32, n)
		for i := range d.ends { // closing the gaps of the lengths
			text, err := prefixed(&b)
			if err != nil {
				return err
			}
			d.texts = append(d.texts, text...)
			d.ends[i] = uint32(len(d.texts))
		}
	case c.float():
		d.floats = make([]float64, n)
		for i := range d.floats {
			d.floats[i] = c.number(b[i*width:])
		}
	case width > 0:
		d.ints = make([]int64, n)
		for i := range d.ints {
			d.ints[i] = c.integer(b[i*width:])
		}
	default:
		return fmt.Errorf("a dictionary of %v", c.leaf.physical)
	}
	return nil
}

func (c *cursor) float() bool {
	return c.leaf.physical == format.Float || c.leaf.physical == format.Double || c.leaf.half
}

func (c *cursor) number(b []byte) float64 {
	switch {
	case c.leaf.half:
		return float64(float16.Frombits(binary.LittleEndian.Uint16(b)).Float32())
	case c.leaf.physical == format.Float:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

func (c *cursor) integer(b []byte) int64 {
	if c.leaf.physical == format.Int64 {
		return int64(binary.LittleEndian.Uint64(b))
	}
	return c.narrow(int64(int32(binary.LittleEndian.Uint32(b))))
}

// narrow makes an INT32 of what a decoder of 64 bits gives.
func (c *cursor) narrow(v int64) int64 {
	if c.leaf.unsigned {
		return int64(uint32(v))
	}
	return int64(int32(v))
}
