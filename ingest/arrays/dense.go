package arrays

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
)

// entries walks the numbers of a dense adjacency matrix that are not 0, row by row.
type entries struct {
	a      *array
	ctx    context.Context
	r      *npy.Reader
	buf    []float64
	ahead  []float64
	at     int64 // number of the element at the start of ahead
	values []float64
}

func (a *array) entries(ctx context.Context) *entries {
	return &entries{a: a, ctx: ctx, r: a.Reader(), buf: make([]float64, min(ingest.ChunkRows, a.Len()))}
}

// read fills rows and columns with the next entries, and returns their number: 0 at the end.
func (d *entries) read(rows, cols []int64) (int, error) {
	n, width := 0, d.a.Shape[1]
	d.values = d.values[:0]
	for n < len(rows) {
		if len(d.ahead) == 0 {
			if err := d.ctx.Err(); err != nil {
				return 0, err
			}
			k, err := d.r.ReadFloat64s(d.buf)
			if err == io.EOF || k == 0 && err == nil {
				break
			}
			if err != nil {
				return 0, err
			}
			d.ahead = d.buf[:k]
		}
		used := len(d.ahead)
		for i, v := range d.ahead {
			if v == 0 {
				continue
			}
			if n == len(rows) {
				used = i
				break
			}
			row, col := (d.at+int64(i))/width, (d.at+int64(i))%width
			if math.IsNaN(v) {
				return 0, fmt.Errorf("row %d: column %d is NaN, and an adjacency matrix has 0 where there is no edge; save numpy.nan_to_num(%s)", row, col, last(d.a.key))
			}
			rows[n], cols[n] = row, col
			d.values = append(d.values, v)
			n++
		}
		d.ahead = d.ahead[used:]
		d.at += int64(used)
	}
	return n, nil
}

// countEntries finds the number of edges in a dense matrix, and whether every value is 1.
func (e *edges) countEntries(ctx context.Context) error {
	in := e.dense.entries(ctx)
	rows, cols := make([]int64, len(in.buf)), make([]int64, len(in.buf))
	e.count, e.ones = 0, true
	for {
		n, err := in.read(rows, cols)
		if err != nil {
			return e.dense.fail(ctx, err)
		}
		if n == 0 {
			return nil
		}
		for _, v := range in.values {
			e.ones = e.ones && v == 1
		}
		e.count += int64(n)
	}
}

// onesAlone reports whether every value of a sparse matrix is 1.
func (e *edges) onesAlone(ctx context.Context) (bool, error) {
	r, buf := e.data.Reader(), make([]float64, min(ingest.ChunkRows, e.data.Len()))
	for len(buf) > 0 {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n, err := r.ReadFloat64s(buf)
		if err == io.EOF {
			break
		}
		if err != nil {
			return false, e.data.fail(ctx, err)
		}
		for _, v := range buf[:n] {
			if v != 1 {
				return false, nil
			}
		}
	}
	return true, nil
}
