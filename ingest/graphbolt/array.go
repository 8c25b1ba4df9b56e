package graphbolt

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/torch"
	"github.com/gnnstore/gnnstore/store"
)

// array is a file of numbers, by its form.
type array struct {
	path   string
	format string
	memory int64 // of the ingest
	header npy.Header
}

// openArray reads the form of an array and holds it against the size of the file.
func (s *Source) openArray(path, format string) (*array, error) {
	a := &array{path: path, format: format, memory: s.memory}
	v, err := a.view()
	if err != nil {
		return nil, err
	}
	defer v.close()
	a.header = v.Header
	return a, nil
}

// view is an array in its open file.
type view struct {
	*npy.View
	file io.Closer
}

func (v *view) close() { v.file.Close() }

func (a *array) view() (*view, error) {
	if a.format == "torch" {
		f, err := torch.Open(a.path, a.memory)
		if err != nil {
			return nil, err
		}
		t, ok := f.Value().(*torch.Tensor)
		if !ok {
			f.Close()
			return nil, fmt.Errorf("%s: it does not hold one tensor; torch.save the tensor alone", a.path)
		}
		return &view{t.View, f}, nil
	}
	f, err := store.OpenFile(a.path)
	if err != nil {
		return nil, err
	}
	v, err := viewNumPy(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", a.path, err)
	}
	return &view{v, f}, nil
}

func viewNumPy(f *os.File) (*npy.View, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	h, at, err := npy.ReadHeaderSize(f)
	if err != nil {
		return nil, err
	}
	size := info.Size() - at
	return npy.NewView(h, nil, 0, npy.FileStorage(io.NewSectionReader(f, at, size)), size)
}

// rows and columns return the sides of a matrix; an array of one dimension has one column.
func (a *array) rows() int64 {
	if len(a.header.Shape) == 0 {
		return 0
	}
	return a.header.Shape[0]
}

func (a *array) columns() int64 {
	n := int64(1)
	for _, d := range a.header.Shape[min(1, len(a.header.Shape)):] {
		n *= d
	}
	return n
}

// vector reports whether an array is a column: (n,) or (n, 1).
func (a *array) vector() bool {
	return len(a.header.Shape) == 1 || len(a.header.Shape) == 2 && a.header.Shape[1] == 1
}

func (a *array) isFloat() bool {
	return a.header.Type.Floating()
}

// stream is an array being read in row-major order.
type stream struct {
	*npy.Reader
	path string
	*view
}

// open begins with the first row. The form is that which openArray saw.
func (a *array) open() (*stream, error) {
	v, err := a.view()
	if err != nil {
		return nil, err
	}
	if v.Header.Type != a.header.Type || !slices.Equal(v.Header.Shape, a.header.Shape) {
		v.close()
		return nil, fmt.Errorf("%s: it changed while it was read", a.path)
	}
	return &stream{v.Reader(), a.path, v}, nil
}

// part is one row of a matrix of two dimensions or more, which shares the open file.
func (s *stream) part(row int64) *stream {
	return &stream{s.Select(0, row).Reader(), s.path, s.view}
}

func (s *stream) int64s(dst []int64) error {
	n, err := s.ReadInt64s(dst)
	return s.check(n, len(dst), err)
}

func (s *stream) float32s(dst []float32) error {
	n, err := s.ReadFloat32s(dst)
	return s.check(n, len(dst), err)
}

func (s *stream) float64s(dst []float64) error {
	n, err := s.ReadFloat64s(dst)
	return s.check(n, len(dst), err)
}

// check puts the file's name before an error, also of elements that the form promised and the file
// lacks.
func (s *stream) check(n, want int, err error) error {
	if err == nil && n == want {
		return nil
	}
	if err == nil || err == io.EOF {
		err = npy.ErrTruncated
	}
	return fmt.Errorf("%s: %w", s.path, err)
}

// end reads up to the checksum, where there is one.
func (s *stream) end() error {
	var more [1]int64
	if _, err := s.ReadInt64s(more[:]); err != nil && err != io.EOF {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	return nil
}

// matrix streams the rows.
func (a *array) matrix(ctx context.Context, emit func(first int64, values []float32) error) error {
	in, err := a.open()
	if err != nil {
		return err
	}
	defer in.close()
	rows, columns := a.rows(), a.columns()
	chunkRows := min(rows, max(ingest.ChunkBytes/4/max(columns, 1), 1))
	chunk := make([]float32, chunkRows*columns)
	for first := int64(0); first < rows; first += chunkRows {
		if err := ctx.Err(); err != nil {
			return err
		}
		values := chunk[:min(chunkRows, rows-first)*columns]
		if err := in.float32s(values); err != nil {
			return err
		}
		if err := emit(first, values); err != nil {
			return err
		}
	}
	return in.end()
}
