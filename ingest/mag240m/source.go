package mag240m

import (
	"context"
	"fmt"
	"io"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
)

// Source is the graph in its folder.
type Source struct {
	ingest.Plain
	dir     string
	schema  ingest.Schema
	classes int64
	ends    []*array // by relation
	tables  []rows   // by table
	labels  *array
	years   *years   // of papers; nil: none
	splits  []split  // by split
	files   []string // what is read, for Schema.Identity
	memory  int64    // of the ingest
}

var _ ingest.Source = (*Source)(nil)

// Open reads the headers of a download: the folder mag240m_kddcup2021, or the one that holds it.
func (o Options) Open(path string) (*Source, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	dir, err := findFolder(path)
	if err != nil {
		return nil, err
	}
	s := &Source{dir: dir, memory: o.Memory, schema: ingest.Schema{Name: "mag240m"}}
	for _, step := range []func() error{
		s.readMeta, s.findRelations, func() error { return s.findFeatures(o) }, func() error { return s.findYears(o) }, s.findLabels, s.findSplits, s.noteOthers,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	files, err := ingest.Files(s.files...)
	if err != nil {
		return nil, err
	}
	s.schema.Identity = fmt.Sprintf("mag240m, rows by %q\n%s", o.RowOrder, files) // and columns of years, which are a file more
	return s, nil
}

// Schema returns the schema that Open made.
func (s *Source) Schema(context.Context) (*ingest.Schema, error) { return new(s.schema), nil }

// Edges streams a relation.
func (s *Source) Edges(ctx context.Context, relation int, emit func(ingest.EdgeChunk) error) error {
	a := s.ends[relation]
	pairs, err := npy.OpenPairs(ctx, a.open)
	if err != nil {
		return fmt.Errorf("%s: %w", a.path, err)
	}
	defer pairs.Close()
	n := min(ingest.ChunkRows, pairs.Len())
	src, dst := make([]int64, n), make([]int64, n)
	for first := int64(0); ; {
		n, err := pairs.Read(src, dst)
		if err == io.EOF || n == 0 && err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", a.path, err)
		}
		if err := emit(ingest.EdgeChunk{Place: ingest.Place{File: a.path, First: first}, Src: src[:n], Dst: dst[:n]}); err != nil {
			return err
		}
		first += int64(n)
	}
}

// Rows streams the features of a node type.
func (s *Source) Rows(ctx context.Context, table int, emit func(ingest.RowChunk) error) error {
	if s.years != nil && table == s.years.table {
		return s.years.stream(ctx, &s.tables[table], emit)
	}
	return s.tables[table].stream(ctx, emit)
}

// Labels streams the classes of papers.
func (s *Source) Labels(ctx context.Context, label int, emit func(ingest.LabelChunk) error) error {
	if label != 0 {
		panic("mag240m: no such label")
	}
	body, err := s.labels.open()
	if err != nil {
		return err
	}
	defer body.Close()
	in, err := npy.NewReader(body)
	if err != nil {
		return fmt.Errorf("%s: %w", s.labels.path, err)
	}
	count := s.labels.header.Len()
	values := make([]int32, min(ingest.ChunkRows, count))
	for first := int64(0); first < count; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := in.ReadClasses(values)
		if err != nil {
			return fmt.Errorf("%s: %w", s.labels.path, err)
		}
		if err := emit(ingest.LabelChunk{Place: ingest.Place{File: s.labels.path, First: first}, Values: values[:n]}); err != nil {
			return err
		}
		first += int64(n)
	}
	return nil
}

// Split streams the nodes of a part.
func (s *Source) Split(ctx context.Context, split int, part ingest.Part, emit func(ingest.IDChunk) error) error {
	return s.splits[split].stream(ctx, s.at("split_dict.pt"), s.memory, part, emit)
}
