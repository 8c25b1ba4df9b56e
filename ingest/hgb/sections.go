package hgb

import (
	"bytes"
	"context"
	"math"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/store"
)

var weightColumn = ingest.EdgeColumn{Name: "weight", Elem: store.F32}

// link is a line of link.dat.
type link struct {
	src, dst end
	number   int // of its type
	weight   float32
}

type end struct {
	typ int // index of types
	row int64
}

// link reads a line of link.dat.
func (s *Source) link(in *lines.Scanner, cells [][]byte) (l link, err error) {
	if len(cells) != 3 && len(cells) != 4 {
		return l, in.Errorf("found %d columns; a link has a source, a destination, a type and perhaps a weight, between tabs", len(cells))
	}
	for i, e := range []*end{&l.src, &l.dst} {
		id, ok := integer(cells[i])
		if ok {
			e.typ, e.row, ok = s.at(id)
		}
		if !ok {
			return l, in.ErrorIn(i+1, "%q is not one of the %d nodes of node.dat, which count from 0",
				lines.Clip(cells[i]), s.nodes)
		}
	}
	var ok bool
	if l.number, ok = small(cells[2]); !ok {
		return l, in.ErrorIn(3, "%q is not the number of a link type", lines.Clip(cells[2]))
	}
	l.weight = 1
	if len(cells) == 4 {
		if l.weight, ok = number(cells[3]); !ok || l.weight-l.weight != 0 {
			return l, in.ErrorIn(4, "%q is not a weight", lines.Clip(cells[3]))
		}
	}
	return l, nil
}

// Edges streams the links of one type, with their weights where there is a column for them.
func (s *Source) Edges(ctx context.Context, relation int, emit func(ingest.EdgeChunk) error) error {
	t := s.links[relation]
	out := ingest.Chunks(ctx, emit)
	c := &out.Chunk
	c.File = s.label("link.dat")
	size := min(t.count, ingest.ChunkRows)
	c.Src, c.Dst = make([]int64, 0, size), make([]int64, 0, size)
	if t.weighted {
		c.Values = [][]uint64{make([]uint64, 0, size)}
	}
	return out.End(s.eachIn(ctx, "link.dat", func(in *lines.Scanner, cells [][]byte) error {
		l, err := s.link(in, cells)
		if err != nil || l.number != t.number {
			return err
		}
		c.Src, c.Dst = append(c.Src, l.src.row), append(c.Dst, l.dst.row)
		if t.weighted {
			c.Values[0] = append(c.Values[0], uint64(math.Float32bits(l.weight)))
		}
		return out.Added()
	}))
}

// Rows streams the features of one node type.
func (s *Source) Rows(ctx context.Context, table int, emit func(ingest.RowChunk) error) error {
	t := s.tableType(table)
	typ := s.types[t]
	out := ingest.Chunks(ctx, emit)
	c := &out.Chunk
	c.File = s.label("node.dat")
	rows := max(ingest.ChunkBytes/4/typ.dim, 1)
	c.Values = make([]float32, 0, min(int64(rows), typ.count)*int64(typ.dim))
	id, left, wanted := int64(0), typ.count, -1
	next := 0 // of runs
	return out.End(s.eachIn(ctx, "node.dat", func(in *lines.Scanner, cells [][]byte) error {
		if next < len(s.runs) && s.runs[next].first == id {
			wanted = s.runs[next].typ
			next++
		}
		_, features, err := s.node(in, cells, id)
		if err != nil {
			return err
		}
		if id++; wanted != t {
			return nil
		}
		if c.Values, err = appendFeatures(c.Values, in, features, typ.dim); err != nil {
			return err
		}
		if err := out.Added(); err != nil {
			return err
		}
		if left--; left == 0 {
			return errStop // Schema has read the rest, up to the checksum
		}
		return nil
	}))
}

// tableType finds the index of the node type that a table of the schema is of.
func (s *Source) tableType(table int) int {
	for t, typ := range s.types {
		if typ.dim > 0 {
			if table == 0 {
				return t
			}
			table--
		}
	}
	panic("hgb: no such table")
}

// columns counts the features in a cell.
func columns(features []byte) int {
	if len(features) == 0 {
		return 0
	}
	return bytes.Count(features, []byte{','}) + 1
}

func appendFeatures(values []float32, in *lines.Scanner, features []byte, dim int) ([]float32, error) {
	for c := range dim {
		cell := features
		if c < dim-1 {
			comma := bytes.IndexByte(features, ',')
			if comma < 0 {
				return values, in.Errorf("found %d features, and %d when it was read first; the file changed meanwhile",
					c+1, dim)
			}
			cell, features = features[:comma], features[comma+1:]
		}
		x, ok := number(cell)
		if !ok {
			return values, in.ErrorIn(4, "feature %d of %d: %q is not a number", c+1, dim, lines.Clip(cell))
		}
		values = append(values, x)
	}
	return values, nil
}

// integer reads up to 18 digits, which cannot overflow. Longer numbers are no ids.
func integer(cell []byte) (v int64, ok bool) {
	if len(cell) == 0 || len(cell) > 18 {
		return 0, false
	}
	for _, c := range cell {
		if c-'0' > 9 {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	return v, true
}

// small reads the number of a type or class.
func small(cell []byte) (int, bool) {
	v, ok := integer(bytes.TrimSpace(cell))
	return int(v), ok && v <= math.MaxInt32
}

var pow10 = [...]float32{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10}

// number reads a float. Up to seven digits around a point are exact over an exact power of ten, so
// one division rounds right; most features of the benchmark are 0, 1.0 and the like.
func number(cell []byte) (float32, bool) {
	if 0 < len(cell) && len(cell) <= 8 {
		v, digits, after, point := uint32(0), 0, 0, false
		for _, c := range cell {
			if c == '.' && !point {
				point = true
				continue
			}
			if c-'0' > 9 {
				digits = 8 // too many for this way
				break
			}
			v = v*10 + uint32(c-'0')
			if digits++; point {
				after++
			}
		}
		if 0 < digits && digits <= 7 {
			return float32(v) / pow10[after], true
		}
	}
	x, err := lines.Float(bytes.TrimSpace(cell), 32)
	return float32(x), err == nil
}
