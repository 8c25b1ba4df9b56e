package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/parquet"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/run"
)

// rowFile reads rows of numbers by original ids, as predict writes vectors: a table of Parquet with
// a column id and one with lists or several with numbers; the same in csv, whose first line names
// the columns; or an array of npy, with the ids beside it in FILE.ids.npy or FILE.ids.txt, or else
// in the order of ids that count from 0.
type rowFile struct {
	path string
	ids  store.IDs
	cols int
	read func(ctx context.Context) error

	nodes []store.NodeID
	rows  []float32
	use   func(nodes []store.NodeID, rows []float32) error
}

// rowsAtOnce is the count of numbers that use gets together: 4 MiB.
const rowsAtOnce = 1 << 20

// openRowFile opens a file of rows in any of the three formats. It reads the header alone.
func openRowFile(path string, ids store.IDs) (run.RowFile, error) {
	f := &rowFile{path: path, ids: ids}
	isParquet, err := startsWith(path, "PAR1")
	isArray := false
	if err == nil {
		isArray, err = startsWith(path, "\x93NUMPY")
	}
	switch {
	case err != nil:
	case isParquet:
		err = f.openParquet()
	case isArray:
		err = f.openArray()
	default:
		err = f.openText()
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (f *rowFile) Cols() int { return f.cols }

// Close does nothing: whoever reads closes.
func (f *rowFile) Close() error { return nil }

// Each implements run.RowFile. An error names the row.
func (f *rowFile) Each(ctx context.Context, use func(nodes []store.NodeID, rows []float32) error) error {
	f.use = use
	if err := f.read(ctx); err != nil {
		return err
	}
	return f.flush()
}

func (f *rowFile) flush() error {
	err := f.use(f.nodes, f.rows)
	f.nodes, f.rows = f.nodes[:0], f.rows[:0]
	return err
}

func (f *rowFile) fail(format string, args ...any) error {
	return fmt.Errorf("%s: %w", f.path, fmt.Errorf(format, args...))
}

// begin takes the id of the next row, whose numbers the caller appends to rows.
func (f *rowFile) begin(place, id string) error {
	if len(f.rows) >= rowsAtOnce {
		if err := f.flush(); err != nil {
			return err
		}
	}
	v, ok, err := storedID(f.ids, id)
	if err != nil {
		return f.fail("%s: %w", place, err)
	}
	if !ok {
		return f.fail("%s: no node has the id %s; remove the %s", place, id, strings.Fields(place)[0])
	}
	f.nodes = append(f.nodes, v)
	return nil
}

// columnsOf returns the columns to read from a table: the column of ids, and the columns of
// numbers.
func (f *rowFile) columnsOf(names []string) (id int, numbers []int, err error) {
	if id = slices.Index(names, "id"); id < 0 {
		return 0, nil, f.fail("it has the columns %s; want id, and the numbers", strings.Join(names, ", "))
	}
	for c := range names {
		if c != id {
			numbers = append(numbers, c)
		}
	}
	if len(numbers) == 0 {
		return 0, nil, f.fail("it has no columns beside id; want the numbers")
	}
	return id, numbers, nil
}

func (f *rowFile) openParquet() error {
	file, err := parquet.Open(f.path)
	if err != nil {
		return err
	}
	defer file.Close()
	names := file.Names()
	id, numbers, err := f.columnsOf(names)
	if err != nil {
		return err
	}
	if k := file.Columns()[id].Kind; k != parquet.Int && k != parquet.Text {
		return f.fail("column id has %v; want integers or text", k)
	}
	list := file.Columns()[numbers[0]].Kind == parquet.List
	for _, c := range numbers {
		switch k := file.Columns()[c].Kind; {
		case list && len(numbers) > 1:
			return f.fail("it has the columns %s; want id and one with lists, or several with numbers", strings.Join(names, ", "))
		case !list && k != parquet.Float && k != parquet.Int:
			return f.fail("column %s has %v; want numbers", names[c], k)
		}
	}
	f.cols = len(numbers)
	columns := append([]int{id}, numbers...)
	if list {
		cells := make([]parquet.Value, 2)
		switch err := file.Rows(columns).Next(cells); {
		case errors.Is(err, io.EOF):
			return f.fail("no row is in it")
		case err != nil:
			return err
		}
		f.cols = len(cells[1].List)
	}
	f.read = func(ctx context.Context) error { return f.eachRow(ctx, columns, names) }
	return nil
}

func (f *rowFile) eachRow(ctx context.Context, columns []int, names []string) error {
	file, err := parquet.Open(f.path)
	if err != nil {
		return err
	}
	defer file.Close()
	rows, cells := file.Rows(columns), make([]parquet.Value, len(columns))
	for ctx.Err() == nil {
		switch err := rows.Next(cells); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		place, id := fmt.Sprintf("row %d", rows.Row()+1), ""
		switch c := cells[0]; c.Kind {
		case parquet.Int:
			id = strconv.FormatInt(c.Int, 10)
		case parquet.Text:
			id = string(c.Text)
		default:
			return f.fail("%s: column id has no value", place)
		}
		if err := f.begin(place, id); err != nil {
			return err
		}
		for i, c := range cells[1:] {
			switch c.Kind {
			case parquet.Int:
				f.rows = append(f.rows, float32(c.Int))
			case parquet.Float:
				f.rows = append(f.rows, float32(c.Float))
			case parquet.List:
				if len(c.List) != f.cols {
					return f.fail("%s: a list of %d numbers, and the first has %d", place, len(c.List), f.cols)
				}
				for _, x := range c.List {
					f.rows = append(f.rows, float32(x))
				}
			default:
				return f.fail("%s: column %s has no value", place, names[columns[1+i]])
			}
		}
	}
	return ctx.Err()
}

// text returns a csv.Reader that is past the header, the places of the columns to read, and the
// function that closes it.
func (f *rowFile) text() (r *csv.Reader, id int, numbers []int, close func() error, err error) {
	file, err := lines.OpenBytes(f.path)
	if err != nil {
		return nil, 0, nil, nil, err
	}
	r = csv.NewReader(file)
	r.ReuseRecord = true
	names, err := r.Read()
	if errors.Is(err, io.EOF) {
		err = errors.New("it is empty")
	}
	if err == nil {
		names[0] = strings.TrimPrefix(names[0], "\ufeff")
		id, numbers, err = f.columnsOf(names)
	} else {
		err = f.fail("%w", err)
	}
	if err != nil {
		file.Close()
		return nil, 0, nil, nil, err
	}
	return r, id, numbers, file.Close, nil
}

func (f *rowFile) openText() error {
	_, _, numbers, done, err := f.text()
	if err != nil {
		return err
	}
	f.cols, f.read = len(numbers), f.eachLine
	return done()
}

func (f *rowFile) eachLine(ctx context.Context) error {
	r, id, numbers, done, err := f.text()
	if err != nil {
		return err
	}
	defer done()
	for ctx.Err() == nil {
		cells, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return f.fail("%w", err)
		}
		line, _ := r.FieldPos(0)
		place := fmt.Sprintf("line %d", line)
		if err := f.begin(place, cells[id]); err != nil {
			return err
		}
		for _, c := range numbers {
			x, err := strconv.ParseFloat(strings.TrimSpace(cells[c]), 32)
			if err != nil && !errors.Is(err, strconv.ErrRange) { // out of range: infinite, and refused as such
				return f.fail("%s: %q is no number", place, cells[c])
			}
			f.rows = append(f.rows, float32(x))
		}
	}
	return ctx.Err()
}

func (f *rowFile) openArray() error {
	file, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer file.Close()
	h, err := npy.ReadHeader(file)
	if err != nil {
		return f.fail("%w", err)
	}
	if len(h.Shape) != 2 || h.Shape[1] < 1 {
		return f.fail("an array of shape %v; want a row a node", h.Shape)
	}
	f.cols = int(h.Shape[1])
	f.read = func(ctx context.Context) error { return f.eachOfArray(ctx, h.Shape[0]) }
	return nil
}

// eachOfArray reads an array of so many rows, and the ids beside it.
func (f *rowFile) eachOfArray(ctx context.Context, rows int64) error {
	next, done, err := f.idsBeside(rows)
	if err != nil {
		return err
	}
	open := func() (io.ReadCloser, error) { return os.Open(f.path) }
	err = npy.Rows(ctx, open, 4*rowsAtOnce, 64<<20, func(first int64, values []float32) error {
		for i := range len(values) / f.cols {
			place := fmt.Sprintf("row %d", first+int64(i)+1)
			id, err := next()
			if err != nil {
				return fmt.Errorf("%s: %w", place, err)
			}
			if err := f.begin(place, id); err != nil {
				return err
			}
			f.rows = append(f.rows, values[i*f.cols:(i+1)*f.cols]...)
		}
		return nil
	})
	return cmp.Or(err, done())
}

// idsBeside gives the ids of an array's rows one by one.
func (f *rowFile) idsBeside(rows int64) (next func() (string, error), done func() error, err error) {
	base := strings.TrimSuffix(f.path, ".npy")
	switch path := base + ".ids.npy"; {
	case exists(path):
		file, err := os.Open(path)
		if err != nil {
			return nil, nil, err
		}
		r, err := npy.NewReader(file)
		if err == nil && !slices.Equal(r.Header().Shape, []int64{rows}) {
			err = fmt.Errorf("%d rows have ids of shape %v", rows, r.Header().Shape)
		}
		if err != nil {
			file.Close()
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		id := make([]int64, 1)
		return func() (string, error) {
			_, err := r.ReadInt64s(id)
			return strconv.FormatInt(id[0], 10), err
		}, file.Close, nil
	case exists(base + ".ids.txt"):
		r, err := lines.Open(base + ".ids.txt")
		if err != nil {
			return nil, nil, err
		}
		return func() (string, error) {
			line, err := r.Next()
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("%s.ids.txt ends before the rows do", base)
			}
			return string(line), err
		}, r.Close, nil
	}
	at := int64(-1)
	return func() (string, error) {
		at++
		return strconv.FormatInt(at, 10), nil
	}, func() error { return nil }, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
