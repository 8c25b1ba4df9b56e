package ogb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npz"
)

// Options configure the reading of a dataset. The zero value works.
type Options struct {
	AddReverse Reverse // default Auto
	// YearColumns is the number of columns made of node_year, behind the features of the nodes that
	// have it; see [Years]. Default: none.
	YearColumns int
	Memory      int64 // of the ingest, for pickles; default 1 GiB
}

// Reverse selects whether the reverse of each edge is added.
type Reverse string

const (
	Auto Reverse = "auto" // where upstream adds it to a dataset of this name: Info.AddReverse
	Yes  Reverse = "yes"
	No   Reverse = "no"
)

// Validate reports every problem.
func (o Options) Validate() error {
	if err := CheckYears(o.YearColumns); err != nil {
		return err
	}
	switch o.AddReverse {
	case "", Auto, Yes, No:
		return nil
	}
	return fmt.Errorf("{add_reverse} %q: choose auto, yes or no", o.AddReverse)
}

// Source is a graph in an OGB folder.
type Source struct {
	ingest.Plain
	*folder
	schema   ingest.Schema
	info     Info
	reverse  bool                            // each edge is followed by its reverse
	typed    bool                            // the layout has several types
	edges    []edges                         // by relation
	rows     []rows                          // by table
	labels   []labels                        // by label
	splits   []split                         // by split
	held     [2]heldFile                     // by store.HeldPart
	picks    [][2][]uint32                   // several relations, by relation and part: the relation's rows of the part
	reltypes map[int]func() (section, error) // by relation: numbers of its edges, by which a split of several knows it
	kept     map[string]*Dict                // dicts for held, by file, while relations are read in turn
	files    []string                        // what is read, for Schema.Identity
	archives []*npz.Archive                  // to be closed
	memory   int64                           // of the ingest

	yearColumns int
	yearsOf     map[string]yearSection // by node type, while the layout is found
	years       map[int]yearColumn     // by node type, where they are no features
}

// rows are the rows of a table.
type rows struct {
	section
	twice bool        // a row of an edge belongs to its reverse as well
	years *yearColumn // behind them; nil: none
}

// labels are the values of a label.
type labels struct {
	section
	tasks int // columns
}

var _ ingest.Source = (*Source)(nil)

// Open reads the counts and the first rows of a dataset: the folder "ogbn_arxiv" or "arxiv", the
// folder that holds it alone, or the zip archive that was downloaded.
func (o Options) Open(path string) (*Source, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	d, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	return o.open(d)
}

// open takes the folder, and closes it on an error.
func (o Options) open(d *folder) (_ *Source, err error) {
	s := &Source{folder: d, memory: o.Memory, schema: ingest.Schema{Name: d.name}, yearColumns: o.YearColumns, yearsOf: map[string]yearSection{}, years: map[int]yearColumn{},
		reltypes: map[int]func() (section, error){}}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	isKnown := false
	if s.info, isKnown = Lookup(d.name); isKnown {
		s.schema.Name = s.info.Name
	}
	s.reverse = o.AddReverse == Yes || o.AddReverse != No && s.info.AddReverse
	if err := s.findLayout(); err != nil {
		return nil, err
	}
	if err := s.addYears(); err != nil {
		return nil, err
	}
	if err := s.findSplit(); err != nil {
		return nil, err
	}
	if d.packed != "" {
		s.files = []string{d.packed}
	}
	files, err := ingest.Files(s.files...)
	if err != nil {
		return nil, err
	}
	s.schema.Identity = fmt.Sprintf("ogb, reverses %v\n%s", s.reverse, files) // columns of years are in the widths of tables
	return s, nil
}

// Extras implements [ingest.Source].
func (s *Source) Extras() ingest.Extras {
	return ingest.Extras{HeldEdges: s.HeldEdges, HeldPool: s.HeldPool, NodeColumn: s.NodeColumn}
}

// Schema returns the schema that Open made.
func (s *Source) Schema(context.Context) (*ingest.Schema, error) { return new(s.schema), nil }

// Edges streams a relation with its columns.
func (s *Source) Edges(ctx context.Context, relation int, emit func(ingest.EdgeChunk) error) error {
	return s.edges[relation].stream(ctx, emit)
}

// Rows streams features of nodes or edges.
func (s *Source) Rows(ctx context.Context, table int, emit func(ingest.RowChunk) error) error {
	r, dim := s.rows[table], s.schema.Tables[table].Dim
	if r.years != nil {
		return r.years.stream(ctx, r.section, dim-s.yearColumns, emit)
	}
	if !r.twice {
		return r.floats(ctx, dim, ingest.RowsOf(r.place(), emit))
	}
	var both []float32
	half := max(ingest.ChunkBytes/8/dim, 1) * dim // so that both fill a chunk
	return r.floats(ctx, dim, func(first int64, values []float32) error {
		place := ingest.Place{File: r.place(), First: 2 * first}
		for rows := range slices.Chunk(values, half) {
			if err := ctx.Err(); err != nil {
				return err
			}
			both = append(append(both[:0], rows...), rows...)
			twice(both, int64(len(rows)/dim), dim)
			if err := emit(ingest.RowChunk{Place: place, Values: both}); err != nil {
				return err
			}
			place.First += int64(len(both) / dim)
		}
		return nil
	})
}

// Labels streams the labels of a node type.
func (s *Source) Labels(ctx context.Context, label int, emit func(ingest.LabelChunk) error) error {
	l := s.labels[label]
	return l.classes(ctx, l.tasks, func(first int64, values []int32) error {
		return emit(ingest.LabelChunk{Place: ingest.Place{File: l.place(), First: first}, Values: values})
	})
}

// Split streams the nodes of a part.
func (s *Source) Split(ctx context.Context, split int, part ingest.Part, emit func(ingest.IDChunk) error) error {
	return s.splits[split].stream(ctx, s.memory, part, emit)
}

// NodeColumn streams the years of a node type.
func (s *Source) NodeColumn(ctx context.Context, nodeType int, _ string, emit func(values []float32) error) error {
	years := s.years[nodeType]
	return years.each(ctx, func(next func([]float32) error) error {
		buf := make([]float32, min(ingest.ChunkRows, years.rows))
		for left := years.rows; left > 0; left -= int64(len(buf)) {
			if err := ctx.Err(); err != nil {
				return err
			}
			buf = buf[:min(int64(len(buf)), left)]
			if err := next(buf); err != nil {
				return err
			}
			if err := emit(buf); err != nil {
				return err
			}
		}
		return nil
	})
}

// Close closes the archives; other files are open while their section is read.
func (s *Source) Close() error {
	errs := []error{s.close(), s.forgetHeld()}
	for _, a := range s.archives {
		errs = append(errs, a.Close())
	}
	s.archives = nil
	s.close = func() error { return nil }
	return errors.Join(errs...)
}
