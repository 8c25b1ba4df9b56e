package ogb

import (
	"context"
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// maxYearColumns bounds the columns that a year becomes: more say nothing new.
const maxYearColumns = 1024

// Years makes columns of the years in which nodes appeared, which stand behind their features:
// columns 2i and 2i+1 of D are the sine and the cosine of (year - largest) / 10000^(2i/D), as
// transformers encode positions (Vaswani et al., Attention Is All You Need, 2017). A year that is
// not known, NaN or not above 0, has zeros.
type Years struct {
	steps   []float64 // 10000^(2i/D)
	largest float64
}

// CheckYears refuses a number of columns that cannot be, where 0 is none.
func CheckYears(columns int) error {
	if columns < 0 || columns > maxYearColumns || columns%2 != 0 {
		return fmt.Errorf("{year_columns} %d: a sine and a cosine each, so an even number up to %d, or 0 for none", columns, maxYearColumns)
	}
	return nil
}

// NewYears makes so many columns.
func NewYears(columns int) *Years {
	y := &Years{steps: make([]float64, columns/2)}
	for i := range y.steps {
		y.steps[i] = math.Pow(10000, float64(2*i)/float64(columns))
	}
	return y
}

// See takes years into the largest, which Append needs of all of them.
func (y *Years) See(years []float32) {
	for _, x := range years {
		if isYear(x) {
			y.largest = max(y.largest, float64(x))
		}
	}
}

func isYear(x float32) bool { return x > 0 && x <= math.MaxFloat32 }

// Append adds the columns of a year to a row.
func (y *Years) Append(row []float32, year float32) []float32 {
	for _, step := range y.steps {
		sin, cos := 0.0, 0.0
		if isYear(year) {
			sin, cos = math.Sincos((float64(year) - y.largest) / step)
		}
		row = append(row, float32(sin), float32(cos))
	}
	return row
}

// Rows gives the rows of values, of dim columns each, with the columns of years behind them, in
// chunks that are not too large. next fills its argument with the years of the rows that follow.
// buf is used again in the next call.
func (y *Years) Rows(ctx context.Context, c ingest.RowChunk, dim int, buf *[]float32, next func(years []float32) error, emit func(ingest.RowChunk) error) error {
	width := dim + 2*len(y.steps)
	years := make([]float32, max(1, ingest.ChunkBytes/4/width))
	for values := c.Values; len(values) > 0; {
		n := min(len(years), len(values)/dim)
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := next(years[:n]); err != nil {
			return err
		}
		out := (*buf)[:0]
		for i, year := range years[:n] {
			out = y.Append(append(out, values[i*dim:(i+1)*dim]...), year)
		}
		*buf, values = out, values[n*dim:]
		if err := emit(ingest.RowChunk{Place: c.Place, Values: out}); err != nil {
			return err
		}
		c.First += int64(n)
	}
	return nil
}

// yearSection is the years of a node type, and what messages call them.
type yearSection struct {
	section
	what string
	rows int64
}

// yearColumn is years behind features.
type yearColumn struct {
	yearSection
	columns *Years
	seen    bool // the largest is known
}

// addYears puts the years that were found behind the features of their node types.
func (s *Source) addYears() error {
	if s.yearColumns > 0 && len(s.yearsOf) == 0 {
		return fmt.Errorf("%s: no node_year in raw/, so there is nothing to make columns of; leave {year_columns} out", s.path)
	}
	for i := range s.schema.Tables {
		t := &s.schema.Tables[i]
		if years, ok := s.yearsOf[t.NodeType]; ok && t.Relation == "" {
			s.rows[i].years = &yearColumn{yearSection: years, columns: NewYears(s.yearColumns)}
			t.Dim += s.yearColumns
			delete(s.yearsOf, t.NodeType)
		}
	}
	for _, t := range s.schema.NodeTypes {
		if years, ok := s.yearsOf[t.Name]; ok {
			s.note(years.what, "its node type has no features, which years stand behind")
		}
	}
	return nil
}

// stream gives the rows of features, of dim columns, with the columns of the years.
func (y *yearColumn) stream(ctx context.Context, features section, dim int, emit func(ingest.RowChunk) error) error {
	if !y.seen {
		years := make([]float32, min(ingest.ChunkRows, y.rows))
		err := y.each(ctx, func(next func([]float32) error) error {
			for left := y.rows; left > 0; left -= int64(len(years)) {
				years = years[:min(int64(len(years)), left)]
				if err := next(years); err != nil {
					return err
				}
				y.columns.See(years)
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		y.seen = true
	}
	return y.each(ctx, func(next func([]float32) error) error {
		var buf []float32
		return features.floats(ctx, dim, func(first int64, values []float32) error {
			c := ingest.RowChunk{Place: ingest.Place{File: features.place(), First: first}, Values: values}
			return y.columns.Rows(ctx, c, dim, &buf, next, emit)
		})
	})
}

// each opens the years, and gives use a function that reads those that follow.
func (y *yearColumn) each(ctx context.Context, use func(next func(years []float32) error) error) error {
	in, err := y.column(ctx, store.F32)
	if err != nil {
		return err
	}
	defer in.Close()
	var bits []uint64
	err = use(func(years []float32) error {
		if len(bits) < len(years) {
			bits = make([]uint64, len(years))
		}
		if err := in.read(bits[:len(years)]); err != nil {
			return err
		}
		for i := range years {
			years[i] = math.Float32frombits(uint32(bits[i]))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return in.end()
}
