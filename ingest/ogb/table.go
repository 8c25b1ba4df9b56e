package ogb

import (
	"context"
	"fmt"
	"io"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/csvgz"
)

// table is a file with a row for each of something.
type table struct {
	path     string
	rows     int64  // expected, -1 when nobody said
	declared string // the file that said it
	chunk    int64  // rows
}

// stream calls read for each row and emit after each chunk of rows and after the last. The file is read to its end in
// any case: only there is it known to be whole.
func (t *table) stream(ctx context.Context, read func(*csvgz.Scanner) error, emit func(ingest.Place) error) error {
	in, err := csvgz.Open(t.path)
	if err != nil {
		return err
	}
	defer in.Close()
	row, place := int64(0), ingest.Place{File: t.path}
	for row != t.rows {
		if err := read(in); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		if row++; row-place.First < t.chunk {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := emit(place); err != nil {
			return err
		}
		place.First = row
	}
	more, err := in.Rest()
	if err != nil {
		return err
	}
	if found := row + more; t.rows >= 0 && found != t.rows {
		return fmt.Errorf("%s: found %d rows, %s declares %d; fetch both again", t.path, found, t.declared, t.rows)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if row > place.First {
		return emit(place)
	}
	return nil
}
