package mag240m

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/ogb"
)

// years are the years of papers, as columns behind their features.
type years struct {
	*array
	table   int // of the features
	columns *ogb.Years
	seen    bool // the largest year is known
}

// findYears takes the years, where they are asked for.
func (s *Source) findYears(o Options) error {
	if o.YearColumns == 0 {
		return nil
	}
	const name = "processed/paper/node_year.npy"
	a, err := mustArray(s.at(name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: no such file; fetch it, or leave {year_columns} out", s.at(name))
	}
	if err != nil {
		return err
	}
	s.uses(name)
	if err := a.rows(s.schema.NodeTypes[paper].Count, 1, s.at("meta.pt")); err != nil {
		return err
	}
	if len(s.schema.Tables) == 0 {
		return fmt.Errorf("%s, which years stand behind, or leave {year_columns} out", s.schema.NoFeatures)
	}
	of := slices.IndexFunc(s.schema.Tables, func(t ingest.Table) bool { return t.NodeType == typeNames[paper] })
	s.schema.Tables[of].Dim += o.YearColumns
	s.years = &years{array: a, table: of, columns: ogb.NewYears(o.YearColumns)}
	return nil
}

// stream gives the rows of the features with the columns of the years.
func (y *years) stream(ctx context.Context, features *rows, emit func(ingest.RowChunk) error) error {
	if !y.seen {
		if err := y.read(func(in *npy.Reader) error { return y.see(ctx, in) }); err != nil {
			return err
		}
		y.seen = true
	}
	return y.read(func(in *npy.Reader) error {
		var buf []float32
		next := func(years []float32) error {
			if _, err := in.ReadFloat32s(years); err != nil {
				return fmt.Errorf("%s: %w", y.path, err)
			}
			return nil
		}
		return features.stream(ctx, func(c ingest.RowChunk) error {
			return y.columns.Rows(ctx, c, int(features.header.Shape[1]), &buf, next, emit)
		})
	})
}

// read opens the file.
func (y *years) read(use func(in *npy.Reader) error) error {
	body, err := y.open()
	if err != nil {
		return err
	}
	defer body.Close()
	in, err := npy.NewReader(body)
	if err != nil {
		return fmt.Errorf("%s: %w", y.path, err)
	}
	return use(in)
}

// see finds the largest year.
func (y *years) see(ctx context.Context, in *npy.Reader) error {
	values := make([]float32, min(ingest.ChunkRows, y.header.Len()))
	for left := y.header.Len(); left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := in.ReadFloat32s(values[:min(int64(len(values)), left)])
		if err != nil && err != io.EOF {
			return fmt.Errorf("%s: %w", y.path, err)
		}
		y.columns.See(values[:n])
		left -= int64(n)
	}
	return nil
}
