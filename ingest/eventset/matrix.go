package eventset

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/torch"
	"github.com/gnnstore/gnnstore/store"
)

const (
	maxColumns = 1 << 14
)

// matrix is features in a file of their own.
type matrix struct {
	path   string
	skip   int64 // rows at its start that are of nothing, and zeros
	rows   int64 // those behind them
	dim    int
	memory int64
	event  []uint32 // by row: its event; nil if rows are in the order of events
}

// openMatrix reads the form of a matrix.
func openMatrix(path string, skip, memory int64) (*matrix, error) {
	m := &matrix{path: path, skip: skip, memory: memory}
	var shape []int64
	err := m.with(func(h npy.Header, _ *npy.Reader) error {
		if !h.Type.Number() {
			return fmt.Errorf("%s: array is %s, and features are numbers", path, h.String())
		}
		if shape = h.Shape; len(shape) == 1 {
			shape = []int64{shape[0], 1}
		}
		if len(shape) != 2 || shape[1] < 1 || shape[1] > maxColumns {
			return fmt.Errorf("%s: array is %s; features are rows of 1 to %d columns", path, h.String(), maxColumns)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if m.rows, m.dim = shape[0]-skip, int(shape[1]); m.rows < 0 {
		return nil, fmt.Errorf("%s: no row; the first is of zeros and belongs to no event, since idx counts from 1", path)
	}
	return m, nil
}

// with opens the file and passes its form to visit, and the elements of a tensor. For an array
// tensor is nil, and npy.Rows reads the elements.
func (m *matrix) with(visit func(h npy.Header, tensor *npy.Reader) error) error {
	if filepath.Ext(m.path) == ".npy" {
		f, err := store.OpenFile(m.path)
		if err != nil {
			return err
		}
		defer f.Close()
		h, err := npy.ReadHeader(f)
		if err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
		return visit(h, nil)
	}
	f, err := torch.Open(m.path, m.memory)
	if err != nil {
		return err
	}
	defer f.Close()
	t, ok := f.Value().(*torch.Tensor)
	if !ok {
		return fmt.Errorf("%s: it holds something else than a tensor of features", m.path)
	}
	r := t.Reader()
	return visit(r.Header(), r)
}

// each streams the rows in the order of events, without the skipped ones.
func (m *matrix) each(ctx context.Context, emit func(ingest.RowChunk) error) error {
	if m.event != nil {
		return m.eachByEvent(ctx, emit)
	}
	return m.eachRow(ctx, emit)
}

// eachRow streams the rows in the order of the file.
func (m *matrix) eachRow(ctx context.Context, emit func(ingest.RowChunk) error) error {
	var failed error // of what is said or emitted here, which has its name
	given := func(first int64, values []float32) error {
		failed = m.give(ctx, first, values, emit)
		return failed
	}
	err := m.with(func(_ npy.Header, tensor *npy.Reader) error {
		if tensor == nil {
			open := func() (io.ReadCloser, error) { return store.OpenFile(m.path) }
			return npy.Rows(ctx, open, ingest.ChunkBytes, ingest.BlockBytes, given)
		}
		values := make([]float32, max(ingest.ChunkBytes/4/m.dim, 1)*m.dim)
		for first := int64(0); first < m.skip+m.rows; {
			n, err := tensor.ReadFloat32s(values[:min(int64(len(values)), (m.skip+m.rows-first)*int64(m.dim))])
			if err == nil {
				err = given(first, values[:n])
			}
			if err != nil {
				return err
			}
			first += int64(n / m.dim)
		}
		return nil
	})
	if failed != nil || err == nil {
		return failed
	}
	return fmt.Errorf("%s: %w", m.path, err)
}

// give emits rows from number first on, and looks at those to be skipped.
func (m *matrix) give(ctx context.Context, first int64, values []float32, emit func(ingest.RowChunk) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if over := m.skip - first; over > 0 {
		n := min(int(over)*m.dim, len(values))
		if i := slices.IndexFunc(values[:n], func(x float32) bool { return x != 0 }); i >= 0 {
			return fmt.Errorf("%s: row %d is not of zeros, as the one before the first event's is, since idx counts from 1; is it another data set's?",
				m.path, first+int64(i/m.dim))
		}
		first, values = first+int64(n/m.dim), values[n:]
	}
	if len(values) == 0 {
		return nil
	}
	return emit(ingest.RowChunk{Place: ingest.Place{File: m.path, First: first - m.skip}, Values: values})
}
