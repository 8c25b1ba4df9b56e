package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// Version is the format version this build writes; MinVersion is the oldest it reads. See FORMAT.md
// for the policy.
const (
	Version    = 3
	MinVersion = 2
)

// sectionVersion returns the layout version of sections in a dataset of the given version. Sections
// of version 1 have no page checksums.
func sectionVersion(dataset int) uint32 {
	if dataset < 3 {
		return 1
	}
	return 2
}

// PageSize is the unit of layout: a section's header fills one page, its payload starts on the
// next, and the file ends on a page boundary, so that direct reads need no special case at either
// end.
const PageSize = 4096

// Elem is the element type of a section, little-endian on disk.
type Elem uint32

const (
	U8  Elem = 1
	F16 Elem = 2
	F32 Elem = 3
	I32 Elem = 4
	U32 Elem = 5
	I64 Elem = 6
	U64 Elem = 7
	F64 Elem = 8
)

var elemNames = map[Elem]string{U8: "u8", F16: "f16", F32: "f32", I32: "i32", U32: "u32", I64: "i64", U64: "u64", F64: "f64"}

func (e Elem) String() string {
	if s, ok := elemNames[e]; ok {
		return s
	}
	return fmt.Sprintf("elem(%d)", uint32(e))
}

// Size returns the number of bytes of one element, or 0 for an unknown type.
func (e Elem) Size() int {
	switch e {
	case U8:
		return 1
	case F16:
		return 2
	case F32, I32, U32:
		return 4
	case I64, U64, F64:
		return 8
	}
	return 0
}

// MarshalText and UnmarshalText write and read the element's name in the manifest.
func (e Elem) MarshalText() ([]byte, error) {
	if e.Size() == 0 {
		return nil, fmt.Errorf("unknown element type %d", uint32(e))
	}
	return []byte(e.String()), nil
}

func (e *Elem) UnmarshalText(b []byte) error {
	for k, s := range elemNames {
		if s == string(b) {
			*e = k
			return nil
		}
	}
	return fmt.Errorf("unknown element type %q", b)
}

// File is a section as the manifest records it: Rows rows of Cols elements, with Stride bytes from
// one row to the next.
type File struct {
	Path   string `json:"path"` // slash-separated, inside the dataset
	Elem   Elem   `json:"elem"`
	Rows   int64  `json:"rows"`
	Cols   int64  `json:"cols"`
	Stride int64  `json:"stride"`
	First  int64  `json:"first"` // number of the first row, for a shard of a table; else 0
	Bytes  int64  `json:"bytes"` // of the whole file: header, payload, page checksums, padding
	XXH3   string `json:"xxh3"`  // of everything after the header, 16 hex digits
}

// payload returns the bytes of the rows, before padding.
func (f *File) payload() int64 { return f.Rows * f.Stride }

// fileBytes returns the size of the whole file in a dataset of this version.
func (f *File) fileBytes(version int) int64 {
	n := f.sumsAt()
	if version >= 3 {
		n += roundUp(f.pages()*sumBytes, PageSize)
	}
	return n
}

// check refuses sizes that are negative, overflow or contradict each other, before anything trusts
// them. version is the dataset's.
func (f *File) check(version int) error {
	if f.Rows < 0 || f.Cols < 0 || f.Stride < 0 || f.First < 0 || f.Bytes < 0 {
		return errors.New("a size is negative")
	}
	rowBits, rowBytes := bits.Mul64(uint64(f.Cols), uint64(f.Elem.Size()))
	if rowBits != 0 || rowBytes > uint64(f.Stride) {
		return fmt.Errorf("%d columns of %v do not fit in a stride of %d bytes", f.Cols, f.Elem, f.Stride)
	}
	hi, lo := bits.Mul64(uint64(f.Rows), uint64(f.Stride))
	if hi != 0 || lo > 1<<62 {
		return fmt.Errorf("%d rows of %d bytes overflow", f.Rows, f.Stride)
	}
	if want := f.fileBytes(version); f.Bytes != want {
		return fmt.Errorf("%d rows of %d bytes make a file of %d bytes, not %d", f.Rows, f.Stride, want, f.Bytes)
	}
	return nil
}

var magic = [8]byte{'G', 'N', 'N', 'S', 'T', 'O', 'R', 'E'}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maxName bounds the length of a section's path, which the header repeats.
const maxName = 512

// sumsField is the offset in the header of the hash of the page checksums.
const sumsField = 0x34 + maxName

// encodeHeader returns the header page of f, for page checksums that hash to sums. FORMAT.md has
// the byte table.
func encodeHeader(f *File, sums uint64) [PageSize]byte {
	var h [PageSize]byte
	le := binary.LittleEndian
	copy(h[0x00:], magic[:])
	le.PutUint32(h[0x08:], sectionVersion(Version))
	le.PutUint32(h[0x0c:], uint32(f.Elem))
	le.PutUint64(h[0x10:], uint64(f.Rows))
	le.PutUint64(h[0x18:], uint64(f.Cols))
	le.PutUint64(h[0x20:], uint64(f.Stride))
	le.PutUint64(h[0x28:], uint64(f.First))
	le.PutUint32(h[0x30:], uint32(len(f.Path)))
	copy(h[0x34:0x34+maxName], f.Path)
	le.PutUint64(h[sumsField:], sums)
	le.PutUint32(h[PageSize-4:], crc32.Checksum(h[:PageSize-4], castagnoli))
	return h
}

// checkHeader compares a section's header page with the manifest of a dataset of this version. It
// returns the first difference and its offset.
func checkHeader(h []byte, f *File, version int) (at int64, err error) {
	le := binary.LittleEndian
	if [8]byte(h[:8]) != magic {
		return 0, fmt.Errorf("magic is %q, not %q: not a gnnstore section", h[:8], magic[:])
	}
	if v, want := le.Uint32(h[0x08:]), sectionVersion(version); v != want {
		return 0x08, fmt.Errorf("%w %d of a section: a dataset of version %d has %d", ErrVersion, v, version, want)
	}
	if sum, want := crc32.Checksum(h[:PageSize-4], castagnoli), le.Uint32(h[PageSize-4:]); sum != want {
		return PageSize - 4, fmt.Errorf("header checksum is %08x, not %08x", sum, want)
	}
	if n := int(le.Uint32(h[0x30:])); n > maxName || string(h[0x34:0x34+n]) != f.Path {
		return 0x30, errors.New("the header names another section: the file was swapped or renamed")
	}
	for _, c := range []struct {
		at        int64
		what      string
		got, want uint64
	}{
		{0x0c, "element type", uint64(le.Uint32(h[0x0c:])), uint64(f.Elem)},
		{0x10, "rows", le.Uint64(h[0x10:]), uint64(f.Rows)},
		{0x18, "columns", le.Uint64(h[0x18:]), uint64(f.Cols)},
		{0x20, "stride", le.Uint64(h[0x20:]), uint64(f.Stride)},
		{0x28, "first row", le.Uint64(h[0x28:]), uint64(f.First)},
	} {
		if c.got != c.want {
			return c.at, fmt.Errorf("%s is %d, and the manifest says %d", c.what, c.got, c.want)
		}
	}
	return 0, nil
}

// RowStride returns the distance between rows of rowBytes bytes. It is a power of two, or whole
// pages for rows beyond a page, where that adds at most 5 %: then rows cross no more pages than
// they must. Else rows are packed to 16 bytes. Rows up to 16 bytes take the next power of two.
func RowStride(rowBytes int64) int64 {
	if rowBytes <= 0 {
		return 0
	}
	pow := int64(1) << bits.Len64(uint64(rowBytes-1))
	if rowBytes <= 16 || rowBytes <= PageSize && pow*20 <= rowBytes*21 {
		return pow
	}
	if page := roundUp(rowBytes, PageSize); rowBytes > PageSize && page*20 <= rowBytes*21 {
		return page
	}
	return roundUp(rowBytes, 16)
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// scalar lists the element types of sections, as Go types.
type scalar interface {
	~uint8 | ~uint16 | ~uint32 | ~int32 | ~uint64 | ~int64 | ~float32 | ~float64
}

// cast returns little-endian bytes as a slice of T. It is the one place where mapped bytes change
// their type. The build constraint in unsupported.go guarantees the byte order; cast panics if b is
// not aligned for T.
func cast[T scalar](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	size := int(unsafe.Sizeof(*new(T)))
	p := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(p)%uintptr(size) != 0 || len(b)%size != 0 {
		panic("store: cast of unaligned bytes")
	}
	return unsafe.Slice((*T)(p), len(b)/size)
}

// NodeIDs returns the bytes of a neighbours section as ids, for readers that do their own reading.
// The slice shares b's memory. ok is false if b's address is not a multiple of 4. A length that is
// not a multiple of 4 panics.
func NodeIDs(b []byte) (ids []NodeID, ok bool) { return lend[NodeID](b) }

// Float32s is NodeIDs for a column of float32s.
func Float32s(b []byte) (values []float32, ok bool) { return lend[float32](b) }

func lend[T scalar](b []byte) ([]T, bool) {
	if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%unsafe.Sizeof(*new(T)) != 0 {
		return nil, false
	}
	return cast[T](b), true
}

// atomics returns private memory as words that several goroutines may change.
func atomics(b []byte) []atomic.Uint32 {
	words := cast[uint32](b)
	return unsafe.Slice((*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(words))), len(words))
}

// bytesOf is the inverse of cast, for writing.
func bytesOf[T scalar](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(v[0])))
}

// halfEdges is cast for the near.u64 section of a stream.
func halfEdges(b []byte) []HalfEdge {
	words := cast[uint64](b)
	return unsafe.Slice((*HalfEdge)(unsafe.Pointer(unsafe.SliceData(words))), len(words)/2)
}

// CopyHalfEdges copies bytes of a stream's near.u64 section to dst, up to the end of either, and
// returns the number of bytes copied.
func CopyHalfEdges(dst []HalfEdge, b []byte) int { return copy(bytesOfHalfEdges(dst), b) }

// bytesOfHalfEdges is the inverse of halfEdges, for writing.
func bytesOfHalfEdges(h []HalfEdge) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(h))), len(h)*HalfEdgeBytes)
}
