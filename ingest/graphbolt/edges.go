package graphbolt

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/csvgz"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/store"
)

// relation is where the edges of one type are.
type relation struct {
	path    string
	pairs   *array   // nil for a csv, and when it is
	csc     *csc     // what GraphBolt made of the edges
	columns []column // kept beside the neighbours
}

// column is a value of each edge, in the order of the edges.
type column struct {
	*array
	elem store.Elem
}

// openEdges looks at the form of an edge file.
func (s *Source) openEdges(path, format string) (r relation, edges int64, err error) {
	r.path = path
	switch format {
	case "csv":
		in, err := lines.Open(path)
		if err != nil {
			return r, 0, err
		}
		return r, -1, in.Close()
	case "numpy", "torch": // upstream has no torch here, and no reason against it
		if r.pairs, err = s.openArray(path, format); err != nil {
			return r, 0, err
		}
		shape := r.pairs.header.Shape
		if len(shape) != 2 || shape[0] != 2 || !r.pairs.header.Type.Number() {
			return r, 0, fmt.Errorf("%s: it is %s, and edges are integers of shape (2, E), sources and then destinations; transpose it",
				path, r.pairs.header.String())
		}
		return r, shape[1], nil
	}
	return r, 0, fmt.Errorf("%s: format %q; edges are csv or numpy", path, format)
}

// columnOf returns an array as a column: integers of 64 bits, small numbers or float32. ok is false
// for a matrix, which becomes a table instead.
func columnOf(a *array) (c column, ok bool) {
	if !a.vector() {
		return c, false
	}
	switch t := a.header.Type; {
	case a.isFloat():
		return column{a, store.F32}, true
	case t.Kind == npy.Bool, t.Kind == npy.Uint && t.Size == 1:
		return column{a, store.U8}, true
	}
	return column{a, store.I64}, true
}

// each streams the edges of a relation.
func (r *relation) each(ctx context.Context, emit func(ingest.EdgeChunk) error) error {
	values, err := openColumns(r.columns)
	if err != nil {
		return err
	}
	defer values.close()
	c := ingest.EdgeChunk{Place: ingest.Place{File: r.path}}
	flush := func(src, dst []int64) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.Src, c.Dst = src, dst
		if c.Values, err = values.next(len(src)); err != nil {
			return err
		}
		err := emit(c)
		c.First += int64(len(src))
		return err
	}
	switch {
	case r.csc != nil:
		err = r.csc.each(ctx, flush)
	case r.pairs != nil:
		err = r.eachPair(flush)
	default:
		err = r.eachLine(flush)
	}
	if err != nil {
		return err
	}
	return values.end(r.path, c.First)
}

func (r *relation) eachPair(flush func(src, dst []int64) error) error {
	both, err := r.pairs.open()
	if err != nil {
		return err
	}
	defer both.close()
	edges := r.pairs.header.Shape[1]
	sources, destinations := both.part(0), both.part(1)
	src, dst := make([]int64, min(edges, ingest.ChunkRows)), make([]int64, min(edges, ingest.ChunkRows))
	for at := int64(0); at < edges; at += ingest.ChunkRows {
		n := min(edges-at, ingest.ChunkRows)
		if err := sources.int64s(src[:n]); err != nil {
			return err
		}
		if err := destinations.int64s(dst[:n]); err != nil {
			return err
		}
		if err := flush(src[:n], dst[:n]); err != nil {
			return err
		}
	}
	return nil
}

// eachLine reads GraphBolt's csv: two integers a line and no header.
func (r *relation) eachLine(flush func(src, dst []int64) error) error {
	in, err := lines.Open(r.path)
	if err != nil {
		return err
	}
	defer in.Close()
	t := csvgz.Scanner{Scanner: in}
	src, dst := make([]int64, 0, ingest.ChunkRows), make([]int64, 0, ingest.ChunkRows)
	var row [2]int64
	for {
		err := t.Ints(row[:])
		if err == io.EOF {
			break
		}
		if err != nil {
			if in.Line() == 1 {
				err = fmt.Errorf("%w; GraphBolt's csv has two integers a line and no header", err)
			}
			return err
		}
		if src, dst = append(src, row[0]), append(dst, row[1]); len(src) == ingest.ChunkRows {
			if err := flush(src, dst); err != nil {
				return err
			}
			src, dst = src[:0], dst[:0]
		}
	}
	if len(src) == 0 {
		return nil
	}
	return flush(src, dst)
}

// columnStreams are the columns of a relation being read beside its edges.
type columnStreams struct {
	columns []column
	streams []*stream
	left    []int64 // rows not read yet
	values  [][]uint64
	int64s  []int64
	floats  []float32
}

func openColumns(columns []column) (*columnStreams, error) {
	s := &columnStreams{columns: columns}
	for _, c := range columns {
		in, err := c.open()
		if err != nil {
			s.close()
			return nil, err
		}
		s.streams, s.left, s.values = append(s.streams, in), append(s.left, c.rows()), append(s.values, nil)
	}
	return s, nil
}

func (s *columnStreams) close() {
	for _, in := range s.streams {
		in.close()
	}
}

// next returns the bits of the next n values of each column, nil where there are no columns.
func (s *columnStreams) next(n int) ([][]uint64, error) {
	for k, c := range s.columns {
		if s.left[k] -= int64(n); s.left[k] < 0 {
			return nil, fmt.Errorf("%s: %d rows, and there are more edges; are they of one dataset?", c.path, c.rows())
		}
		if cap(s.values[k]) < n {
			s.values[k] = make([]uint64, n)
		}
		s.values[k] = s.values[k][:n]
		if c.elem == store.F32 {
			if len(s.floats) < n {
				s.floats = make([]float32, n)
			}
			if err := s.streams[k].float32s(s.floats[:n]); err != nil {
				return nil, err
			}
			for i, x := range s.floats[:n] {
				s.values[k][i] = uint64(math.Float32bits(x))
			}
			continue
		}
		if len(s.int64s) < n {
			s.int64s = make([]int64, n)
		}
		if err := s.streams[k].int64s(s.int64s[:n]); err != nil {
			return nil, err
		}
		for i, x := range s.int64s[:n] {
			s.values[k][i] = uint64(x)
		}
	}
	return s.values, nil
}

// end refuses columns that go on where the edges have ended.
func (s *columnStreams) end(edges string, n int64) error {
	for k, c := range s.columns {
		if s.left[k] != 0 {
			return fmt.Errorf("%s: %d rows, and %s has %d edges; are they of one dataset?", c.path, c.rows(), edges, n)
		}
	}
	return nil
}
