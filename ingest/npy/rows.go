package npy

import (
	"context"
	"fmt"
	"io"
)

const maxCols = 1 << 22 // 16 MiB a row: the only buffer whose size the header of a file decides

// Rows streams a matrix of shape (n, f) as float32 rows, first to last, whichever way round the
// file holds it; an array of shape (n,) is n rows of one. open gives the file from its first byte.
// A chunk has at most chunkBytes, but never less than one row, and is lent for the call of emit.
//
// A row-major file is read once. A column-major one (NumPy's Fortran order, what saving a transpose
// leaves behind) is read once for every blockBytes of the matrix, so that memory stays bounded
// without a file of our own.
func Rows(ctx context.Context, open func() (io.ReadCloser, error), chunkBytes, blockBytes int64, emit func(first int64, values []float32) error) error {
	m := matrix{ctx: ctx, open: open, emit: emit}
	if err := m.start(); err != nil {
		return err
	}
	defer func() { m.body.Close() }()
	m.chunkRows = min(m.rows, max(chunkBytes/4/max(m.cols, 1), 1))
	if h := m.r.Header(); h.Fortran && m.rows > 1 && m.cols > 1 {
		return m.columnMajor(min(m.rows, max(blockBytes/4/m.cols, 1)))
	}
	return m.rowMajor()
}

type matrix struct {
	ctx        context.Context
	open       func() (io.ReadCloser, error)
	emit       func(first int64, values []float32) error
	body       io.ReadCloser
	r          *Reader
	rows, cols int64
	chunkRows  int64
}

func (m *matrix) start() error {
	body, err := m.open()
	if err != nil {
		return err
	}
	if m.r, err = NewReader(body); err != nil {
		body.Close()
		return err
	}
	h := m.r.Header()
	switch len(h.Shape) {
	case 1:
		m.rows, m.cols = h.Shape[0], 1
	case 2:
		m.rows, m.cols = h.Shape[0], h.Shape[1]
	default:
		body.Close()
		return fmt.Errorf("array is %s, where rows and columns are expected", h.String())
	}
	if m.cols > maxCols {
		body.Close()
		return fmt.Errorf("array is %s, and rows have at most %d columns", h.String(), int64(maxCols))
	}
	m.body = body
	return nil
}

func (m *matrix) rowMajor() error {
	chunk := make([]float32, m.chunkRows*m.cols)
	for first := int64(0); first < m.rows; first += m.chunkRows {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		values := chunk[:min(m.chunkRows, m.rows-first)*m.cols]
		if _, err := m.r.ReadFloat32s(values); err != nil {
			return err
		}
		if err := m.emit(first, values); err != nil {
			return err
		}
	}
	return m.finish()
}

func (m *matrix) columnMajor(blockRows int64) error {
	block := make([]float32, blockRows*m.cols)
	column := make([]float32, blockRows)
	for lo := int64(0); lo < m.rows; lo += blockRows {
		n := min(blockRows, m.rows-lo)
		if lo > 0 {
			m.body.Close()
			if err := m.start(); err != nil {
				return err
			}
		}
		for c := range m.cols {
			if err := m.ctx.Err(); err != nil {
				return err
			}
			if err := m.r.Skip(lo); err != nil {
				return err
			}
			if _, err := m.r.ReadFloat32s(column[:n]); err != nil {
				return err
			}
			for i, v := range column[:n] {
				block[int64(i)*m.cols+c] = v
			}
			if err := m.r.Skip(m.rows - lo - n); err != nil {
				return err
			}
		}
		if err := m.finish(); err != nil {
			return err
		}
		for i := int64(0); i < n; i += m.chunkRows {
			if err := m.ctx.Err(); err != nil {
				return err
			}
			if err := m.emit(lo+i, block[i*m.cols:min(i+m.chunkRows, n)*m.cols]); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish asks for the byte after the last, so that a body with a checksum compares it.
func (m *matrix) finish() error {
	var b [1]byte
	if _, err := io.ReadFull(m.body, b[:]); err != nil && err != io.EOF {
		return err
	}
	return nil
}
