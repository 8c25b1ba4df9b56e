package mag240m

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/store"
)

// usualColumns is the width of the challenge's features, for a dump whose width nothing else tells.
const usualColumns = 768

// findFeatures finds the features of papers, or of all nodes if an option names their file.
func (s *Source) findFeatures(o Options) error {
	const own = "processed/paper/node_feat.npy"
	if o.FullFeatures != "" {
		return s.findFull(o, own)
	}
	a, err := mustArray(s.at(own))
	if errors.Is(err, fs.ErrNotExist) {
		s.schema.NoFeatures = fmt.Sprintf("%s: no such file; fetch it, or name a matrix of all nodes by {full_features}", s.at(own))
		return nil
	}
	if err != nil {
		return err
	}
	s.uses(own)
	n := s.schema.NodeTypes[paper].Count
	if err := a.rows(n, 0, s.at("meta.pt")); err != nil {
		return err
	}
	return s.addTable(paper, a, 0)
}

// addTable takes the rows from number first on for a node type.
func (s *Source) addTable(nodeType int, a *array, first int64) error {
	dim := a.header.Shape[1]
	if dim < 1 || dim > ingest.MaxColumns {
		return fmt.Errorf("%s: array is %s; rows have 1 to %d columns", a.path, a.header.String(), ingest.MaxColumns)
	}
	s.schema.Tables = append(s.schema.Tables, ingest.Table{Name: "feat", NodeType: typeNames[nodeType], Dim: int(dim)})
	s.tables = append(s.tables, rows{a, first, s.schema.NodeTypes[nodeType].Count})
	return nil
}

// findFull takes a matrix of all nodes.
func (s *Source) findFull(o Options, own string) error {
	order, err := o.order()
	if err != nil {
		return err
	}
	total := int64(0)
	for _, t := range s.schema.NodeTypes {
		total += t.Count
	}
	a, err := findArray(o.FullFeatures)
	if _, ok := err.(headless); ok {
		if o.RowOrder == "" {
			return fmt.Errorf("%s: a dump without a header does not say whose rows come first; give {row_order}: %s", o.FullFeatures, orders)
		}
		err = s.guess(a, total, own)
	}
	if err != nil {
		return err
	}
	if err := a.rows(total, 0, s.at("meta.pt")); err != nil {
		return err
	}
	s.files = append(s.files, o.FullFeatures)
	var starts [len(typeNames)]int64
	first := int64(0)
	for _, t := range order {
		starts[t] = first
		first += s.schema.NodeTypes[t].Count
	}
	for t := range typeNames {
		if err := s.addTable(t, a, starts[t]); err != nil {
			return err
		}
	}
	return nil
}

// guess gives a dump the header it lacks: as many columns as the papers' own features have, in half
// or single precision as the size says.
func (s *Source) guess(a *array, total int64, own string) error {
	dim := int64(usualColumns)
	if p, err := mustArray(s.at(own)); err == nil && len(p.header.Shape) == 2 {
		dim = p.header.Shape[1]
	}
	for _, descr := range []string{"<f2", "<f4"} {
		h, err := npy.NewHeader(descr, false, []int64{total, dim})
		if err != nil {
			return fmt.Errorf("%s: %w", a.path, err)
		}
		if h.Bytes() == a.size {
			a.header, a.offset = h, 0
			return nil
		}
	}
	return fmt.Errorf("%s: %d bytes, and %d nodes of %d columns take %d in float16, %d in float32; is it of this dataset, and whole?",
		a.path, a.size, total, dim, 2*total*dim, 4*total*dim)
}

// rows are a table's: count of them in a matrix, from number first on.
type rows struct {
	*array
	first, count int64
}

// stream gives them in chunks, whichever way round the matrix is stored.
func (r *rows) stream(ctx context.Context, emit func(ingest.RowChunk) error) error {
	f, err := store.OpenFile(r.path)
	if err != nil {
		return err
	}
	defer f.Close()
	h, dim := r.header, r.header.Shape[1]
	strides, offset := []int64{dim, 1}, r.first*dim
	if h.Fortran {
		strides, offset = []int64{1, h.Shape[0]}, r.first
	}
	h.Shape = []int64{r.count, dim}
	data := io.NewSectionReader(f, r.offset, r.size-r.offset)
	view, err := npy.NewView(h, strides, offset, npy.FileStorage(data), data.Size())
	if err != nil {
		return fmt.Errorf("%s: %w; fetch it again", r.path, err)
	}
	in := view.Reader()
	chunk := max(ingest.ChunkBytes/4/dim, 1)
	values := make([]float32, min(chunk, r.count)*dim)
	for first := int64(0); first < r.count; first += chunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := in.ReadFloat32s(values)
		if err != nil {
			return fmt.Errorf("%s: row %d: %w", r.path, r.first+first, err)
		}
		if err := emit(ingest.RowChunk{Place: ingest.Place{File: r.path, First: first}, Values: values[:n]}); err != nil {
			return err
		}
	}
	return nil
}
