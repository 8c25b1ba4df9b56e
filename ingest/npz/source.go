package npz

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/store"
)

// Source is a graph in an npz archive.
type Source struct {
	ingest.Plain
	*archive
	file    io.Closer // nil when the caller owns the file, and after Close
	adj     *csr
	attr    *csr   // nil without sparse features
	dense   string // the key of dense features, "" without
	labels  bool
	named   bool             // labels are text
	texts   *ingest.Category // of labels that are text, nil until learnt
	schema  ingest.Schema
	counted bool // the schema has the number of edges
}

var _ ingest.Source = (*Source)(nil)

// Open opens an archive and reads its headers.
func Open(path string) (*Source, error) {
	f, size, err := store.OpenSized(path)
	if err != nil {
		return nil, err
	}
	s, err := OpenReader(path, f, size)
	if err != nil {
		f.Close()
		return nil, err
	}
	s.file = f
	return s, nil
}

// OpenReader is Open for an archive that is already there, in memory or in another file. The name
// is for messages and for Schema.Name; r stays the caller's, and must last as long as the Source.
func OpenReader(name string, r io.ReaderAt, size int64) (*Source, error) {
	a, err := openArchive(name, r, size)
	if err != nil {
		return nil, err
	}
	s := &Source{archive: a}
	if err := s.findAll(); err != nil {
		return nil, err
	}
	return s, nil
}

// Edges streams the entries of the adjacency, row by row.
func (s *Source) Edges(ctx context.Context, relation int, emit func(ingest.EdgeChunk) error) error {
	if relation != 0 {
		panic("npz: no such relation")
	}
	return s.edges(ctx, s.adj, emit)
}

// Rows streams the features as dense rows. Entries of one place in a sparse matrix are added up, as
// scipy does.
func (s *Source) Rows(ctx context.Context, table int, emit func(ingest.RowChunk) error) error {
	if table != 0 || len(s.schema.Tables) == 0 {
		panic("npz: no such table")
	}
	if s.dense != "" {
		return s.denseRows(ctx, emit)
	}
	k, err := s.walk(s.attr)
	if err != nil {
		return s.fail(ctx, err, s.attr.keys()...)
	}
	defer k.close()
	place := ingest.Place{File: s.name + ": " + s.attr.indices}
	chunkRows := min(s.attr.rows, max(ingest.ChunkBytes/4/s.attr.cols, 1))
	chunk := make([]float32, chunkRows*s.attr.cols)
	flush := func() error { // emits the rows from place.First on, and moves it past them
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(chunkRows, s.attr.rows-place.First)
		if err := emit(ingest.RowChunk{Place: place, Values: chunk[:n*s.attr.cols]}); err != nil {
			return err
		}
		clear(chunk)
		place.First += n
		return nil
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows, cols, values, err := k.next()
		if err != nil {
			return s.fail(ctx, err, s.attr.keys()...)
		}
		if len(rows) == 0 {
			break
		}
		for i, row := range rows {
			for row >= place.First+chunkRows {
				if err := flush(); err != nil {
					return err
				}
			}
			value := float32(1)
			if values != nil {
				value = values[i]
			}
			chunk[(row-place.First)*s.attr.cols+cols[i]] += value
		}
	}
	for place.First < s.attr.rows {
		if err := flush(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) denseRows(ctx context.Context, emit func(ingest.RowChunk) error) error {
	return ingest.Matrix(ctx, s.files[s.dense].Open, ingest.RowsOf(s.name+": "+s.dense, emit), func(err error) error {
		return s.fail(ctx, fmt.Errorf("%s: %w", s.dense, err), s.dense)
	})
}

// Labels streams the classes.
func (s *Source) Labels(ctx context.Context, label int, emit func(ingest.LabelChunk) error) error {
	if label != 0 || !s.labels {
		panic("npz: no such label")
	}
	m, err := s.open("labels")
	if err != nil {
		return s.fail(ctx, err, "labels")
	}
	defer m.body.Close()
	read := integerLabels
	switch {
	case s.texts != nil:
		read = s.textLabels
	case m.Header().Type.Kind == npy.Float:
		read = floatLabels
	}
	n := min(ingest.ChunkRows, s.adj.rows)
	classes, scratch := make([]int32, n), make([]int64, n)
	place := ingest.Place{File: s.name + ": labels"}
	for place.First < s.adj.rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := read(m, place.First, classes, scratch)
		if err != nil {
			return s.fail(ctx, fmt.Errorf("labels: %w", err), "labels")
		}
		if err := emit(ingest.LabelChunk{Place: place, Values: classes[:n]}); err != nil {
			return err
		}
		place.First += int64(n)
	}
	if err := m.finish(); err != nil {
		return s.fail(ctx, err, "labels")
	}
	return nil
}

func integerLabels(m *member, first int64, classes []int32, scratch []int64) (int, error) {
	n, err := m.ReadInt64s(scratch)
	if err != nil {
		return 0, err
	}
	for i, v := range scratch[:n] {
		if v > math.MaxInt32 {
			return 0, fmt.Errorf("row %d: %d is not the number of a class", first+int64(i), v)
		}
		classes[i] = int32(max(v, -1))
	}
	return n, nil
}

// floatLabels reads classes as floats, which Python makes of integers when some are missing. NaN is
// missing.
func floatLabels(m *member, first int64, classes []int32, scratch []int64) (int, error) {
	wide := make([]float64, len(scratch))
	n, err := m.ReadFloat64s(wide)
	if err != nil {
		return 0, err
	}
	for i, v := range wide[:n] {
		switch {
		case math.IsNaN(v):
			classes[i] = -1
		case v > math.MaxInt32 || v != math.Trunc(v):
			return 0, fmt.Errorf("row %d: %v is not the number of a class", first+int64(i), v)
		default:
			classes[i] = int32(max(v, -1))
		}
	}
	return n, nil
}

// textLabels reads the classes of texts that learnLabels has seen.
func (s *Source) textLabels(m *member, _ int64, classes []int32, scratch []int64) (int, error) {
	texts := make([]string, len(scratch))
	n, err := m.ReadStrings(texts)
	for i := 0; i < n && err == nil; i++ {
		classes[i], err = s.texts.OfText(texts[i])
	}
	return n, err
}

// learnLabels reads labels that are text through, to name the classes.
func (s *Source) learnLabels(ctx context.Context) error {
	m, err := s.open("labels")
	if err != nil {
		return err
	}
	defer m.body.Close()
	texts, names := ingest.NewCategory(ingest.MaxClasses), make([]string, ingest.ChunkRows)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := m.ReadStrings(names)
		for i := 0; i < n && err == nil; i++ {
			err = texts.LearnText(names[i])
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("labels: %w", err)
		}
	}
	if err := m.finish(); err != nil {
		return err
	}
	if err := texts.SettleLabel(); err != nil {
		return fmt.Errorf("labels: %w; {array_edges} adj_ {array_labels} NAME says another array", err)
	}
	s.texts = texts
	s.schema.Labels[0].Classes, s.schema.Labels[0].ClassNames = texts.Len(), texts.Names
	return nil
}

// Split has nothing to give: the layout has no splits.
func (s *Source) Split(context.Context, int, ingest.Part, func(ingest.IDChunk) error) error {
	panic("npz: no such split")
}

// Close closes the file that Open opened. A second call does nothing.
func (s *Source) Close() error {
	if s.file == nil {
		return nil
	}
	file := s.file
	s.file = nil
	return file.Close()
}
