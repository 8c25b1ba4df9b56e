package edgelist

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

const edgeFeatures = "{edge_features}"

// featureColumns finds the columns of Options.EdgeFeatures in a table.
func (r *edgeReader) featureColumns(o *Options) (columns []int, err error) {
	taken := make([]bool, r.columns)
	for _, name := range o.EdgeFeatures {
		first, last, ok := columnRange(name, r.columns)
		if !ok || slices.Contains(r.header, name) {
			at, err := r.column(edgeFeatures, name)
			if err != nil {
				return nil, err
			}
			first, last = at+1, at+1
		}
		if o.Header == shortHeader && strings.HasSuffix(name, "-") && first == r.columns+1 {
			continue // all columns after the last: a list in JODIE's layout may have no features
		}
		if first < 1 || last > r.columns || first > last {
			return nil, fmt.Errorf("%s: %s %s: columns go by number from 1 to %d", r.Name(), edgeFeatures, name, r.columns)
		}
		for at := first - 1; at < last; at++ {
			switch {
			case at == r.src || at == r.dst:
				return nil, fmt.Errorf("%s: %s holds both ids and features; choose another %s", r.Name(), r.title(at), edgeFeatures)
			case slices.ContainsFunc(r.kept, func(c keptColumn) bool { return c.flag == labelFlag && c.at == at }):
				return nil, fmt.Errorf("%s: %s is the label of events, and a network would read what it is to learn; leave it out of %s", r.Name(), r.title(at), edgeFeatures)
			case taken[at]:
				return nil, fmt.Errorf("%s: %s: %s is there twice", r.Name(), edgeFeatures, r.title(at))
			}
			columns, taken[at] = append(columns, at), true
		}
	}
	if len(columns) > ingest.MaxColumns {
		return nil, fmt.Errorf("%s: %s: %d columns of features, and %d are the most", r.Name(), edgeFeatures, len(columns), ingest.MaxColumns)
	}
	return columns, nil
}

// columnRange reads two numbers with a dash between; "5-" goes on to the last of so many columns.
func columnRange(s string, columns int) (first, last int, ok bool) {
	from, to, ok := strings.Cut(s, "-")
	first, err := strconv.Atoi(from)
	if ok && to == "" {
		return first, columns, err == nil
	}
	last, more := strconv.Atoi(to)
	return first, last, ok && err == nil && more == nil
}

// readFeatures reads the features of a row into floats. Every reading of the list does, so that a
// row that is bad for them is bad for its edge.
func (r *edgeReader) readFeatures(cells [][]byte) error {
	r.floats = r.floats[:0]
	for k, at := range r.features {
		cell, err := r.cell(cells, at)
		if err != nil {
			return err
		}
		if missing(cell) {
			return bad(at+1, "a feature of the edge is missing; fill it in, or leave the column out of %s", edgeFeatures)
		}
		width := 1
		if k < len(r.wide) {
			width = r.wide[k]
		}
		if width == 1 && cell[0] != '[' && cell[0] != '(' {
			x, err := r.number(cells, at, edgeFeatures)
			if err != nil {
				return err
			}
			r.floats = append(r.floats, x)
			continue
		}
		if r.floats, err = r.appendCell(r.floats, cells, at, width, "choose another "+edgeFeatures); err != nil {
			return err
		}
	}
	return r.readType(cells)
}

// readType appends the type of an event to its features, or learns it.
func (r *edgeReader) readType(cells [][]byte) error {
	if r.types == nil {
		return nil
	}
	cell, err := r.cell(cells, r.typeAt)
	if err != nil {
		return err
	}
	token, there, err := ingest.LabelToken(cell, r.token[:0])
	switch {
	case err != nil:
		return bad(r.typeAt+1, "%w", err)
	case !there:
		return bad(r.typeAt+1, "an event's type is missing; mend the row, or pass over it with {skip_bad}")
	case r.types.learning:
		r.types.Learn(token)
		return nil
	}
	number, err := r.types.Of(token)
	if err != nil {
		return fmt.Errorf("%s: line %d: %w", r.Name(), r.at, err)
	}
	for i := range r.types.Names {
		x := float32(0)
		if i == int(number) {
			x = 1
		}
		r.floats = append(r.floats, x)
	}
	return nil
}

// maxTypes bounds the types of events. Each is a column of features.
const maxTypes = 1024

// learnTypes reads the list through for the types of its events.
func (s *Source) learnTypes(ctx context.Context) error {
	s.types = &classes{ingest.NewCategory(maxTypes), true}
	if err := s.eachEdge(ctx, func(ingest.EdgeChunk) error { return nil }); err != nil {
		return err
	}
	s.types.learning = false
	if !s.types.Settle() {
		return fmt.Errorf("%s: column %s: more than %d different types, each a column of features; {edge_features} names columns of numbers instead",
			s.files[0], lines.ClipText(s.o.Types), maxTypes)
	}
	return nil
}

// edgeRows streams the features of edges.
func (s *Source) edgeRows(ctx context.Context, emit func(ingest.RowChunk) error) error {
	out, forms := ingest.Chunks(ctx, emit), s.newForms()
	for _, path := range s.files {
		if err := out.In(path); err != nil {
			return err
		}
		err := s.edgeRowsOf(path, forms, func(row []float32) error {
			out.Chunk.Values = append(out.Chunk.Values, row...)
			return out.Added()
		})
		if err != nil {
			return err
		}
	}
	return out.Flush()
}

func (s *Source) edgeRowsOf(path string, forms *timeForms, visit func(row []float32) error) error {
	r, err := s.openEdges(path, forms)
	if err != nil {
		return err
	}
	defer r.Close()
	ends := ingest.EdgeChunk{Values: make([][]uint64, len(s.kept))}
	for {
		ends.Src, ends.Dst = ends.Src[:0], ends.Dst[:0]
		ends.SrcTexts.Reset()
		ends.DstTexts.Reset()
		for i := range ends.Values {
			ends.Values[i] = ends.Values[i][:0]
		}
		switch err := r.next(&ends); {
		case err == io.EOF:
			return nil
		case err != nil:
			if err = r.judge(s.forgive, err); err != nil {
				return err
			}
		default:
			if err := visit(r.floats); err != nil {
				return err
			}
		}
	}
}
