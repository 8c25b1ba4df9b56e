package ogb

import (
	"context"
	"io"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// section is a file, or an array in one, with a row for each of so many nodes or edges. It is
// opened anew for each reading. The errors of all methods are whole: they name the file, and count
// its rows against what was declared.
type section interface {
	// place is the name for messages and chunks.
	place() string
	// columns is the number of values in a row, 0 where there are no rows.
	columns() (int, error)
	// floats streams rows of dim values in chunks of about ingest.ChunkBytes, at least a row. It
	// returns an error of emit as it is.
	floats(ctx context.Context, dim int, emit func(first int64, values []float32) error) error
	// classes streams rows of so many tasks: one class, or, of several tasks, zeros and ones.
	classes(ctx context.Context, tasks int, emit func(first int64, values []int32) error) error
	// column opens a section of one column, to be read in step with others.
	column(ctx context.Context, elem store.Elem) (column, error)
	// pairs opens a section of edges.
	pairs(ctx context.Context) (pairs, error)
}

// column gives the bits of one value a row, as [ingest.EdgeChunk] has them.
type column interface {
	// read fills dst.
	read(dst []uint64) error
	// end is called after the last row, and finds what only the end of a file shows.
	end() error
	io.Closer
}

// pairs gives the ends of edges.
type pairs interface {
	read(src, dst []int64) error
	end() error
	io.Closer
}

// edges are the edges of one relation, in files of one order.
type edges struct {
	ends    section
	count   int64 // in the files
	columns []edgeColumn
	reverse bool // each is followed by its reverse
}

type edgeColumn struct {
	section
	elem store.Elem
}

// stream emits the edges with their columns. Edge i of the files becomes 2i and, the other way
// round, 2i+1 when reverses are added, as upstream numbers them.
func (e *edges) stream(ctx context.Context, emit func(ingest.EdgeChunk) error) (err error) {
	ends, err := e.ends.pairs(ctx)
	if err != nil {
		return err
	}
	defer ends.Close()
	columns := make([]column, len(e.columns))
	for i, c := range e.columns {
		if columns[i], err = c.column(ctx, c.elem); err != nil {
			return err
		}
		defer columns[i].Close()
	}
	copies := int64(1)
	if e.reverse {
		copies = 2
	}
	step := min(ingest.ChunkRows/copies, e.count)
	src, dst := make([]int64, step*copies), make([]int64, step*copies)
	values := make([][]uint64, len(columns))
	for i := range values {
		values[i] = make([]uint64, step*copies)
	}
	c := ingest.EdgeChunk{Values: make([][]uint64, len(columns))}
	for first := int64(0); ; first += step {
		n := min(step, e.count-first)
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := ends.read(src[:n], dst[:n]); err != nil {
			return err
		}
		for i := range columns {
			if err := columns[i].read(values[i][:n]); err != nil {
				return err
			}
		}
		last := first+n == e.count
		if last {
			// Only at its end is a file known to be whole; the last chunk waits for that.
			if err := ends.end(); err != nil {
				return err
			}
			for i := range columns {
				if err := columns[i].end(); err != nil {
					return err
				}
			}
		}
		if n == 0 {
			return nil
		}
		if e.reverse {
			interleave(src, dst, n)
			for i := range values {
				twice(values[i], n, 1)
			}
		}
		c.Place = ingest.Place{File: e.ends.place(), First: first * copies}
		c.Src, c.Dst = src[:n*copies], dst[:n*copies]
		for i := range values {
			c.Values[i] = values[i][:n*copies]
		}
		if err := emit(c); err != nil {
			return err
		}
		if last {
			return nil
		}
	}
}

// interleave puts the reverse of each of n edges after it, in slices of twice their length.
func interleave(src, dst []int64, n int64) {
	for i := n - 1; i >= 0; i-- {
		u, v := src[i], dst[i]
		src[2*i], dst[2*i] = u, v
		src[2*i+1], dst[2*i+1] = v, u
	}
}

// twice repeats each of the first n rows of so many values.
func twice[T any](values []T, n int64, width int) {
	for i := int(n) - 1; i >= 0; i-- {
		row := values[i*width : (i+1)*width]
		copy(values[(2*i+1)*width:], row)
		copy(values[2*i*width:], row)
	}
}
