package ogb

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/csvgz"
	"github.com/gnnstore/gnnstore/store"
)

// table is a .csv.gz file as a section.
type table struct {
	*folder
	file     string
	rows     int64  // expected, -1 when nobody said
	declared string // the file that said it
}

func (t *table) place() string { return t.at(t.file) }

// columns counts the cells of the first line: 0 in a table without lines.
func (t *table) columns() (int, error) {
	in, err := t.csv(t.file)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	n, err := in.Columns()
	if err == nil && n > ingest.MaxColumns {
		return 0, fmt.Errorf("%s: line 1: %d columns; rows have at most %d", t.place(), n, ingest.MaxColumns)
	}
	return n, err
}

func (t *table) counted(found int64) error {
	if t.rows < 0 || found == t.rows {
		return nil
	}
	return fmt.Errorf("%s: found %d rows, %s declares %d; fetch both again", t.place(), found, t.declared, t.rows)
}

// stream calls read for each row and emit after each chunk of rows and after the last. The file is
// read to its end in any case: only there is it known to be whole.
func (t *table) stream(ctx context.Context, chunk int64, read func(*csvgz.Scanner) error, emit func(first int64) error) error {
	in, err := t.csv(t.file)
	if err != nil {
		return err
	}
	defer in.Close()
	row, first := int64(0), int64(0)
	for row != t.rows {
		if err := read(in.Scanner); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		if row++; row-first < chunk {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := emit(first); err != nil {
			return err
		}
		first = row
	}
	more, err := in.Rest()
	if err != nil {
		return err
	}
	if err := t.counted(row + more); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if row > first {
		return emit(first)
	}
	return nil
}

func (t *table) floats(ctx context.Context, dim int, emit func(int64, []float32) error) error {
	var values []float32
	row := make([]float32, dim)
	return t.stream(ctx, max(ingest.ChunkBytes/4/int64(dim), 1),
		func(in *csvgz.Scanner) error {
			err := in.Floats(row)
			if err == nil {
				values = append(values, row...)
			}
			return err
		},
		func(first int64) error {
			err := emit(first, values)
			values = values[:0]
			return err
		})
}

func (t *table) classes(ctx context.Context, tasks int, emit func(int64, []int32) error) error {
	var values []int32
	row := make([]int32, tasks)
	return t.stream(ctx, max(ingest.ChunkBytes/4/int64(tasks), 1),
		func(in *csvgz.Scanner) error {
			if err := in.Labels(row); err != nil {
				return err
			}
			for i, v := range row {
				if tasks > 1 && v > 1 {
					return in.Errorf("%d in column %d of %d; several columns of labels are zeros and ones", v, i+1, tasks)
				}
			}
			values = append(values, row...)
			return nil
		},
		func(first int64) error {
			err := emit(first, values)
			values = values[:0]
			return err
		})
}

// ids streams a column of node ids.
func (t *table) ids(ctx context.Context, emit func(ingest.IDChunk) error) error {
	var ids []int64
	var row [1]int64
	return t.stream(ctx, ingest.ChunkRows,
		func(in *csvgz.Scanner) error {
			err := in.Ints(row[:])
			if err == nil {
				ids = append(ids, row[0])
			}
			return err
		},
		func(first int64) error {
			err := emit(ingest.IDChunk{Place: ingest.Place{File: t.place(), First: first}, IDs: ids})
			ids = ids[:0]
			return err
		})
}

// cursor is a table being read row by row.
type cursor struct {
	*scanner
	table *table
	row   int64
	elem  store.Elem
}

func (t *table) cursor(elem store.Elem) (*cursor, error) {
	in, err := t.csv(t.file)
	if err != nil {
		return nil, err
	}
	return &cursor{scanner: in, table: t, elem: elem}, nil
}

// took is called after each row, with how its reading went.
func (c *cursor) took(err error) error {
	if err == nil {
		c.row++
	} else if err == io.EOF {
		return c.table.counted(c.row)
	}
	return err
}

func (c *cursor) end() error {
	more, err := c.Rest()
	if err != nil {
		return err
	}
	return c.table.counted(c.row + more)
}

func (t *table) column(_ context.Context, elem store.Elem) (column, error) {
	c, err := t.cursor(elem)
	return csvColumn{c}, err
}

type csvColumn struct{ *cursor }

func (c csvColumn) read(dst []uint64) error {
	var whole [1]int64
	var value [1]float32
	for i := range dst {
		var err error
		if c.elem == store.F32 {
			err = c.Floats(value[:])
			dst[i] = uint64(math.Float32bits(value[0]))
		} else {
			err = c.Ints(whole[:])
			dst[i] = uint64(whole[0])
		}
		if err := c.took(err); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) pairs(context.Context) (pairs, error) {
	c, err := t.cursor(0)
	return csvPairs{c}, err
}

type csvPairs struct{ *cursor }

func (c csvPairs) read(src, dst []int64) error {
	var row [2]int64
	for i := range src {
		if err := c.took(c.Ints(row[:])); err != nil {
			return err
		}
		src[i], dst[i] = row[0], row[1]
	}
	return nil
}
