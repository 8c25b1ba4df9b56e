package ingest

import (
	"context"
	"io"

	"github.com/gnnstore/gnnstore/ingest/npy"
)

// Plain has what most sources have in common, for them to embed: their nodes go by row, they have
// no extras, and their files are open only while a section is read. A source that has more brings
// its own methods.
type Plain struct{}

// NodeIDs emits nothing.
func (Plain) NodeIDs(context.Context, int, func(IDChunk) error) error { return nil }

// Extras returns none.
func (Plain) Extras() Extras { return Extras{} }

// Close has nothing to close.
func (Plain) Close() error { return nil }

// ScanOnce returns a copy of *known. If *known is nil, scan makes it first.
func ScanOnce(ctx context.Context, known **Schema, scan func(context.Context) (*Schema, error)) (*Schema, error) {
	if *known == nil {
		schema, err := scan(ctx)
		if err != nil {
			return nil, err
		}
		*known = schema
	}
	return new(**known), nil
}

// Matrix streams the rows of an NPY file by npy.Rows. fail names the file in an error of reading;
// the errors of emit stay as they are.
func Matrix(
	ctx context.Context, open func() (io.ReadCloser, error),
	emit func(first int64, values []float32) error, fail func(error) error,
) error {
	var stopped error
	err := npy.Rows(ctx, open, ChunkBytes, BlockBytes, func(first int64, values []float32) error {
		stopped = emit(first, values)
		return stopped
	})
	if err != nil && stopped == nil {
		return fail(err)
	}
	return err
}

// RowsOf emits the rows of a file as chunks.
func RowsOf(file string, emit func(RowChunk) error) func(first int64, values []float32) error {
	return func(first int64, values []float32) error {
		return emit(RowChunk{Place: Place{File: file, First: first}, Values: values})
	}
}
