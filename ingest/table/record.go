package table

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/gnnstore/gnnstore/ingest/lines"
)

// records reads delimited text as encoding/csv does: cells in quotes may hold delimiters, doubled
// quotes and ends of lines, blanks are kept, and empty lines are none. It makes no strings, which
// is three times as fast.
type records struct {
	in    *lines.Scanner
	delim byte
	line  int64 // on which the record begins
	cells [][]byte
	text  []byte // of cells with quotes
	ends  []int
}

// rowError is about one row, which may be passed over.
type rowError struct {
	column string // "" when it is about the row
	err    error
}

func (e *rowError) Error() string { return e.err.Error() }

var (
	errBare   = errors.New("a quote within a cell that does not begin with one; put the cell in quotes, and double those inside")
	errAfter  = errors.New("text follows the closing quote of a cell; double the quotes inside cells")
	errCells  = &rowError{err: fmt.Errorf("found more than %d cells, which is the most; write many numbers as a list in one column, parted by semicolons", lines.MaxCells)}
	errUnshut = errors.New("a cell's quote does not close; double the quotes inside cells")
)

// next returns the cells of the next record, lent until the next call; io.EOF after the last.
func (r *records) next() ([][]byte, error) {
	for {
		line, err := r.in.Next()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			continue
		}
		r.line = r.in.Line()
		if err := r.in.CheckEnds(line); err != nil {
			return nil, err
		}
		r.cells = r.cells[:0]
		if bytes.IndexByte(line, '"') >= 0 {
			return r.quoted(line)
		}
		var ok bool
		if r.cells, ok = lines.Cells(r.cells, line, r.delim); !ok {
			return nil, errCells
		}
		return r.cells, nil
	}
}

// quoted reads a record that has quotes, and the lines that it goes on for.
func (r *records) quoted(line []byte) ([][]byte, error) {
	r.text, r.ends = r.text[:0], r.ends[:0]
	for more := true; more; r.ends = append(r.ends, len(r.text)) {
		if len(r.ends) == lines.MaxCells {
			return nil, errCells
		}
		if len(line) == 0 || line[0] != '"' {
			end := bytes.IndexByte(line, r.delim)
			if more = end >= 0; !more {
				end = len(line)
			}
			if bytes.IndexByte(line[:end], '"') >= 0 {
				return nil, &rowError{err: errBare}
			}
			r.text = append(r.text, line[:end]...)
			line = line[min(end+1, len(line)):]
			continue
		}
		for line = line[1:]; ; {
			quote := bytes.IndexByte(line, '"')
			if quote < 0 {
				r.text = append(append(r.text, line...), '\n')
				var err error
				if line, err = r.in.Next(); err == io.EOF || len(r.text) > lines.MaxLine {
					return nil, r.in.ErrorAt(r.line, "%w", errUnshut)
				} else if err != nil {
					return nil, err
				}
				continue
			}
			r.text = append(r.text, line[:quote]...)
			line = line[quote+1:]
			if len(line) == 0 || line[0] != '"' {
				break
			}
			r.text = append(r.text, '"')
			line = line[1:]
		}
		if more = len(line) > 0; more {
			if line[0] != r.delim {
				return nil, &rowError{err: errAfter}
			}
			line = line[1:]
		}
	}
	start := 0
	for _, end := range r.ends {
		r.cells = append(r.cells, r.text[start:end])
		start = end
	}
	return r.cells, nil
}
