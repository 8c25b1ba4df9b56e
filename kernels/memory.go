package kernels

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// memory is the Buffer of the backends that compute in host memory: one of the three slices is set,
// in elements of type dtype, float being what the backend holds an F32 in.
type memory[F float] struct {
	dtype  DType
	floats []F
	halves []uint16
	uints  []uint32
	host   *HostBuf // what the slice is a view of, when it is not of the Go heap
}

func newMemory[F float](t DType, n int) *memory[F] {
	m := &memory[F]{dtype: t}
	switch t {
	case F32:
		m.floats = make([]F, n)
	case F16:
		m.halves = make([]uint16, n)
	case U32:
		m.uints = make([]uint32, n)
	default:
		panic("kernels: Alloc: no such type: " + t.String())
	}
	return m
}

// hostMemoryBytes is the size from which a CPU's buffers lie outside the Go heap; below it, a map
// costs more than it saves.
const hostMemoryBytes = 64 << 10

// newHostMemory is newMemory for a CPU, with large buffers outside the Go heap. It panics with a
// *MemoryError.
func newHostMemory(t DType, n int) *memory[float32] {
	size := t.Size()
	if n < hostMemoryBytes/size {
		return newMemory[float32](t, n)
	}
	bytes := math.MaxInt // NewHostBuf refuses it
	if n <= math.MaxInt/size {
		bytes = n * size
	}
	host, err := NewHostBuf(bytes)
	if err != nil {
		panic(err)
	}
	m := &memory[float32]{dtype: t, host: host}
	switch t {
	case F32:
		m.floats = host.Float32s()
	case F16:
		m.halves = host.Uint16s()
	case U32:
		m.uints = host.Uint32s()
	default:
		panic("kernels: Alloc: no such type: " + t.String())
	}
	return m
}

// OutsideHeap returns a buffer's share of [HostBytes], and 0 for buffers that are not in host
// memory.
func OutsideHeap(b Buffer) int64 {
	if m, ok := b.(interface{ outsideHeap() int64 }); ok {
		return m.outsideHeap()
	}
	return 0
}

func (m *memory[F]) outsideHeap() int64 {
	if m.host == nil {
		return 0
	}
	return int64(len(m.host.whole))
}

// Len implements [Buffer].
func (m *memory[F]) Len() int { return len(m.floats) + len(m.halves) + len(m.uints) }

// free forgets the memory, so that a window into it fails instead of reading what another buffer
// may own by then.
func (m *memory[F]) free() {
	m.floats, m.halves, m.uints = nil, nil, nil
	if m.host != nil {
		m.host.Close()
		m.host = nil
	}
}

// memoryOf is t's buffer, after checking that t is a window into it.
func memoryOf[F float](op, name string, t Tensor, want DType) *memory[F] {
	if t.Rows < 0 || t.Cols < 0 || t.Off < 0 {
		panic(fmt.Sprintf("kernels: %s: %s %d×%d at %d", op, name, t.Rows, t.Cols, t.Off))
	}
	if t.Len() == 0 && t.Buf == nil {
		return &memory[F]{dtype: want}
	}
	m, ok := t.Buf.(*memory[F])
	if !ok {
		panic(fmt.Sprintf("kernels: %s: the buffer of %s is %T, of another backend", op, name, t.Buf))
	}
	if t.Type != want || m.dtype != want {
		panic(fmt.Sprintf("kernels: %s: %s is %v in a buffer of %v, want %v", op, name, t.Type, m.dtype, want))
	}
	if t.Off > m.Len() || t.Len() > m.Len()-t.Off {
		panic(fmt.Sprintf("kernels: %s: %s %d×%d at %d ends outside its buffer of %d", op, name, t.Rows, t.Cols, t.Off, m.Len()))
	}
	return m
}

func window[T any](s []T, t Tensor) []T {
	if s == nil {
		return nil
	}
	return s[t.Off : t.Off+t.Len() : t.Off+t.Len()]
}

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// bytesOf lends s as bytes, where the host's byte order is the one that Host promises.
func bytesOf[T float32 | uint16 | uint32](s []T) (b []byte, ok bool) {
	if !littleEndian {
		return nil, false
	}
	var element T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(element))), true
}

// inHost has the methods that backends in host memory share. An F32 tensor holds its elements as F.
type inHost[F float] struct{}

// Bytes implements [Backend]. It returns [HostBytes], which leaves out buffers on the Go heap.
func (inHost[F]) Bytes() Use { return Use{Host: HostBytes()} }

// Free implements [Backend].
func (inHost[F]) Free(b Buffer) { b.(*memory[F]).free() }

// UploadU32 implements [Backend].
func (m inHost[F]) UploadU32(dst Tensor, src []uint32) {
	checkLen("UploadU32", dst, len(src))
	copy(m.uints("UploadU32", "dst", dst), src)
}

// UploadHalf implements [Backend].
func (m inHost[F]) UploadHalf(dst Tensor, src []uint16) {
	checkLen("UploadHalf", dst, len(src))
	copy(m.halves("UploadHalf", "dst", dst), src)
}

// DownloadU32 implements [Backend].
func (m inHost[F]) DownloadU32(dst []uint32, src Tensor) {
	checkLen("DownloadU32", src, len(dst))
	copy(dst, m.uints("DownloadU32", "src", src))
}

// FetchU32 implements [Backend].
func (m inHost[F]) FetchU32(dst []uint32, src Tensor) { m.DownloadU32(dst, src) }

// Mark implements [Backend]: all has run when an operation returns. CPU has its own.
func (inHost[F]) Mark() (wait func()) { return func() {} }

// Behind implements [Backend].
func (inHost[F]) Behind() bool { return false }

// TakesHalf implements [Backend].
func (inHost[F]) TakesHalf() bool { return false }

// Host implements [Backend]. It lends F16 and U32 only.
func (m inHost[F]) Host(t Tensor) (b []byte, ok bool) {
	switch t.Type {
	case F16:
		return bytesOf(m.halves("Host", "tensor", t))
	case U32:
		return bytesOf(m.uints("Host", "tensor", t))
	}
	return nil, false
}

// floats, halves and uints return the window of t. Its capacity ends where the window ends.
func (inHost[F]) floats(op, name string, t Tensor) []F {
	return window(memoryOf[F](op, name, t, F32).floats, t)
}

func (inHost[F]) halves(op, name string, t Tensor) []uint16 {
	return window(memoryOf[F](op, name, t, F16).halves, t)
}

func (inHost[F]) uints(op, name string, t Tensor) []uint32 {
	return window(memoryOf[F](op, name, t, U32).uints, t)
}

// adjacency lends the lists of g.
func (m inHost[F]) adjacency(op string, g Adjacency) (start, end, nbr []uint32) {
	return m.uints(op, "Start", g.Start), m.uints(op, "End", g.End), m.uints(op, "Nbr", g.Nbr)
}
