package npz

import (
	"context"
	"fmt"
	"io"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/store"
)

// Matrix is one scipy CSR matrix in an archive of its own, as scipy.sparse.save_npz writes it: the
// keys data, indices, indptr, shape and format.
type Matrix struct {
	*archive
	file io.Closer
	csr  *csr
}

// OpenMatrix opens an archive and reads its headers.
func OpenMatrix(path string) (*Matrix, error) {
	f, size, err := store.OpenSized(path)
	if err != nil {
		return nil, err
	}
	m := &Matrix{file: f}
	if m.archive, err = openArchive(path, f, size); err == nil {
		if err = m.find(); err != nil {
			err = m.fail(context.Background(), err, m.keys...)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return m, nil
}

func (m *Matrix) find() error {
	const wanted = "a matrix as scipy.sparse.save_npz writes it has data, indices, indptr, shape and format"
	if err := m.checkFormat(); err != nil {
		return err
	}
	for _, key := range []string{"indptr", "shape"} {
		if m.files[key] == nil {
			return m.missingKey(key, wanted)
		}
	}
	var err error
	m.csr, err = m.csrUnder("")
	return err
}

// checkFormat refuses SciPy's matrices of other formats: their arrays have the same names and mean
// something else.
func (m *Matrix) checkFormat() error {
	const key = "format"
	if m.files[key] == nil {
		return nil
	}
	in, err := m.open(key)
	if err != nil {
		return err
	}
	defer in.body.Close()
	h := in.Header()
	if h.Len() != 1 || h.Type.Kind != npy.Bytes && h.Type.Kind != npy.Unicode {
		return fmt.Errorf("%s: it is %s, and a name such as csr is expected", key, h.String())
	}
	var name [1]string
	if _, err := in.ReadStrings(name[:]); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if name[0] != "csr" {
		return fmt.Errorf("%s: the matrix is %q, and csr is expected; save m.tocsr()", key, name[0])
	}
	return in.finish()
}

// Shape is the number of rows and of columns.
func (m *Matrix) Shape() (rows, cols int64) { return m.csr.rows, m.csr.cols }

// NonZeros counts the entries that are not explicit zeros, and reports whether some are neither 0
// nor 1. It reads the values through.
func (m *Matrix) NonZeros(ctx context.Context) (n int64, weighted bool, err error) {
	if m.csr.data == "" {
		return m.csr.entries, false, nil
	}
	zeros, weighted, err := m.scanWeights(ctx, m.csr)
	if err != nil {
		return 0, false, m.fail(ctx, err, m.csr.data)
	}
	return m.csr.entries - zeros, weighted, nil
}

// Edges streams the entries (i, j) that are not zero as edges i→j, row by row.
func (m *Matrix) Edges(ctx context.Context, emit func(ingest.EdgeChunk) error) error {
	return m.edges(ctx, m.csr, emit)
}

// Close closes the file. A second call does nothing.
func (m *Matrix) Close() error {
	if m.file == nil {
		return nil
	}
	file := m.file
	m.file = nil
	return file.Close()
}

// edges streams the entries of a matrix that are not zero.
func (a *archive) edges(ctx context.Context, c *csr, emit func(ingest.EdgeChunk) error) error {
	k, err := a.walk(c)
	if err != nil {
		return a.fail(ctx, err, c.keys()...)
	}
	defer k.close()
	place := ingest.Place{File: a.name + ": " + c.indices}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		src, dst, values, err := k.next()
		if err != nil {
			return a.fail(ctx, err, c.keys()...)
		}
		if len(src) == 0 {
			return nil
		}
		if values != nil {
			n := 0
			for i, v := range values {
				if v != 0 {
					src[n], dst[n] = src[i], dst[i]
					n++
				}
			}
			if src, dst = src[:n], dst[:n]; n == 0 {
				continue
			}
		}
		if err := emit(ingest.EdgeChunk{Place: place, Src: src, Dst: dst}); err != nil {
			return err
		}
		place.First += int64(len(src))
	}
}

// scanWeights counts the explicit zeros of a matrix, and reports whether there are other values
// than 0 and 1.
func (a *archive) scanWeights(ctx context.Context, c *csr) (zeros int64, weighted bool, err error) {
	m, err := a.open(c.data)
	if err != nil {
		return 0, false, err
	}
	defer m.body.Close()
	values := make([]float32, min(ingest.ChunkRows, c.entries))
	for left := c.entries; left > 0; {
		if err := ctx.Err(); err != nil {
			return 0, false, err
		}
		n, err := m.ReadFloat32s(values)
		if err != nil {
			return 0, false, fmt.Errorf("%s: %w", m.key, err)
		}
		for _, v := range values[:n] {
			if v == 0 {
				zeros++
			} else if v != 1 {
				weighted = true
			}
		}
		left -= int64(n)
	}
	return zeros, weighted, m.finish()
}
