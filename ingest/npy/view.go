package npy

import (
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
)

// Storage is where the elements of a [View] lie: bytes that can be read anywhere, and front to
// back.
type Storage interface {
	io.ReaderAt
	// Stream reads n bytes from off on. What it gives is read by one goroutine and needs no
	// closing.
	Stream(off, n int64) io.Reader
}

// FileStorage is the Storage of a file that holds nothing else, or of a section of one.
func FileStorage(r io.ReaderAt) Storage { return fileStorage{r} }

type fileStorage struct{ io.ReaderAt }

func (f fileStorage) Stream(off, n int64) io.Reader { return io.NewSectionReader(f, off, n) }

// maxRepeated bounds the data of an array that has more elements than its storage, as a row
// repeated by a stride of zero.
const maxRepeated = 64 << 20

// View is an array whose elements lie in its storage in any regular way: transposed, every other
// column, a part that shares the storage with others. Its Readers give row-major order. A View is
// not changed once made, and is safe for concurrent use where its storage is.
type View struct {
	Header          // Fortran is false: the strides have the order
	Strides []int64 // elements from one to the next, a dimension each, 0 or more
	offset  int64   // of the first, in elements
	at      Storage
}

// NewView returns the array of form h in a storage of size bytes. Its first element is number
// offset there. strides follow h.Shape; nil means the strides of h's order. All is checked, so that
// these may come from a file.
func NewView(h Header, strides []int64, offset int64, at Storage, size int64) (*View, error) {
	if strides == nil {
		strides = h.strides()
	}
	h.Fortran = false
	v := &View{Header: h, Strides: strides, offset: offset, at: at}
	if len(strides) != len(h.Shape) {
		return nil, fmt.Errorf("%s has %d strides", h.String(), len(strides))
	}
	if offset < 0 {
		return nil, fmt.Errorf("%s begins at element %d of its storage", h.String(), offset)
	}
	last, have := uint64(offset), size/int64(h.Type.Size)
	for i, n := range h.Shape {
		if n < 0 || strides[i] < 0 {
			return nil, fmt.Errorf("%s has a stride of %d in dimension %d", h.String(), strides[i], i)
		}
		hi, lo := bits.Mul64(uint64(max(n-1, 0)), uint64(strides[i]))
		if hi != 0 || lo > math.MaxInt64 || last > math.MaxInt64 {
			return nil, fmt.Errorf("%s with strides %v is larger than any file", h.String(), strides)
		}
		last += lo
	}
	if err := checkSize(h); err != nil {
		return nil, err
	}
	if v.Len() == 0 {
		return v, nil
	}
	if last >= uint64(have) {
		return nil, fmt.Errorf("%w: %s reaches to element %d of a storage that has %d", ErrTruncated, h.String(), last, have)
	}
	if v.Len() > have && v.Bytes() > maxRepeated {
		return nil, fmt.Errorf("%s repeats the %d elements that are stored; save its contiguous()", h.String(), have)
	}
	return v, nil
}

// strides returns the strides of an array that stands alone in a file.
func (h *Header) strides() []int64 {
	s, step := make([]int64, len(h.Shape)), int64(1)
	for i := range h.Shape {
		k := i
		if !h.Fortran {
			k = len(h.Shape) - 1 - i
		}
		s[k] = step
		step *= max(h.Shape[k], 1) // checkSize has multiplied them so
	}
	return s
}

// Reader reads the elements in row-major order. It may be called again, and each reading begins
// anew. Reading what is not contiguous takes 18 MiB at most.
func (v *View) Reader() *Reader {
	axes := v.axes()
	if size := int64(v.Type.Size); len(axes) == 0 || len(axes) == 1 && axes[0].stride == 1 {
		return NewDataReader(v.Header, v.at.Stream(v.offset*size, v.Bytes()))
	}
	return NewDataReader(v.Header, newGather(v, axes, standard))
}

// Select is the part with index i in dimension dim, which it lacks. An index outside is the
// caller's bug.
func (v *View) Select(dim int, i int64) *View {
	if i < 0 || i >= v.Shape[dim] {
		panic(fmt.Sprintf("npy: index %d in dimension %d of %s", i, dim, v.String()))
	}
	part := *v
	part.offset += i * v.Strides[dim]
	part.Shape = slices.Delete(slices.Clone(v.Shape), dim, dim+1)
	part.Strides = slices.Delete(slices.Clone(v.Strides), dim, dim+1)
	return &part
}

// Rows is the part from row lo to row hi. Rows outside are the caller's bug.
func (v *View) Rows(lo, hi int64) *View {
	if lo < 0 || lo > hi || hi > v.Shape[0] {
		panic(fmt.Sprintf("npy: rows %d to %d of %s", lo, hi, v.String()))
	}
	part := *v
	part.offset += lo * v.Strides[0]
	part.Shape = slices.Clone(v.Shape)
	part.Shape[0] = hi - lo
	return &part
}

// Transposed is the view with its dimensions in reverse.
func (v *View) Transposed() *View {
	t := *v
	t.Shape, t.Strides = slices.Clone(v.Shape), slices.Clone(v.Strides)
	slices.Reverse(t.Shape)
	slices.Reverse(t.Strides)
	return &t
}

// axis is a dimension, or several that follow each other as one.
type axis struct {
	n, stride int64 // elements, in the storage
	out       int64 // the stride in a tile
}

// axes are as few as say the same.
func (v *View) axes() []axis {
	var axes []axis
	for i, n := range v.Shape {
		a := axis{n: n, stride: v.Strides[i]}
		k := len(axes) - 1
		switch {
		case n == 0:
			return nil
		case n == 1:
		case k >= 0 && axes[k].stride == a.n*a.stride: // NewView bounds the product
			axes[k].n *= a.n
			axes[k].stride = a.stride
		default:
			axes = append(axes, a)
		}
	}
	return axes
}
