package edgelist

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
)

const chunkBytes = 1 << 20

// Source is a graph in tables.
type Source struct {
	o        Options
	files    []string // of the edge list
	skipped  []string
	table    *nodeTable
	features *featureMap
	ids      []int64 // of the nodes that edges name, ascending; nil when they are 0…n-1, or a table has them
	nodes    int64
	schema   *ingest.Schema // nil until the first call of Schema
}

var _ ingest.Source = (*Source)(nil)

// Open reads the first rows of an edge list, a file or a folder of them, and of what the Options name.
func Open(path string, o Options) (*Source, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Source{o: o}
	var err error
	if s.files, err = findFiles(path); err != nil {
		return nil, err
	}
	for _, file := range s.files {
		if err := s.openEdges(file); err != nil {
			return nil, err
		}
	}
	if o.Nodes != "" {
		if s.table, err = openNodes(&s.o); err != nil {
			return nil, err
		}
	}
	if o.Features != "" {
		s.features = &featureMap{path: o.Features}
	}
	return s, nil
}

// openEdges refuses a file whose columns are not there before anything large is read, and says which are passed over.
func (s *Source) openEdges(path string) error {
	t, err := openTable(path, s.o.Header, true)
	if err != nil {
		return err
	}
	defer t.Close()
	src, dst, err := s.o.edgeColumns(t)
	if err == nil && path == s.files[0] && t.columns > 2 {
		others := t.titles(func(i int) bool { return i != src && i != dst })
		s.skipped = append(s.skipped, fmt.Sprintf("%s: columns %s: further columns of edges are not kept", path, others))
	}
	return err
}

// Schema reads the edges through on its first call to know the nodes, or the table of nodes where there is one, and the map
// of features.
func (s *Source) Schema(ctx context.Context) (*ingest.Schema, error) {
	if s.schema == nil {
		schema, err := s.scan(ctx)
		if err != nil {
			return nil, err
		}
		s.schema = schema
	}
	schema := *s.schema
	return &schema, nil
}

func (s *Source) scan(ctx context.Context) (*ingest.Schema, error) {
	node := ingest.NodeType{Name: "node"}
	schema := &ingest.Schema{
		Name:      name(s.files[0]),
		Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: -1}},
		Skipped:   slices.Clone(s.skipped),
	}
	if len(s.files) > 1 {
		schema.Name = name(filepath.Dir(s.files[0]))
	}
	if s.table == nil {
		var seen idSet
		edges := int64(0)
		err := s.eachEdge(ctx, func(c ingest.EdgeChunk) error {
			for i, u := range c.Src {
				seen.add(u)
				seen.add(c.Dst[i])
			}
			edges += int64(len(c.Src))
			return nil
		})
		if err != nil {
			return nil, err
		}
		if edges == 0 {
			return nil, errors.New(s.files[0] + ": there are no edges in it, and no --nodes to know the nodes from")
		}
		dense := false
		if s.nodes, dense = seen.count(); !dense {
			s.ids = seen.ascending()
		}
		node.IDs, schema.Relations[0].Edges = idKind(dense), edges
	} else {
		if err := s.table.scan(ctx); err != nil {
			return nil, err
		}
		s.nodes, node.IDs = s.table.rows, idKind(s.table.dense)
		schema.Skipped = append(schema.Skipped, s.table.skipped...)
		if s.table.label >= 0 {
			schema.Labels = []ingest.Label{{Name: "label", NodeType: "node", ClassNames: s.table.names, Classes: len(s.table.names)}}
		}
		if len(s.table.features) > 0 {
			schema.Tables = []ingest.Table{{Name: "feat", NodeType: "node", Dim: len(s.table.features)}}
		}
	}
	if s.features != nil {
		if err := s.features.scan(ctx); err != nil {
			return nil, err
		}
		if s.features.dim > 0 {
			schema.Tables = []ingest.Table{{Name: "feat", NodeType: "node", Dim: s.features.dim}}
		}
	}
	node.Count = s.nodes
	schema.NodeTypes = []ingest.NodeType{node}
	return schema, nil
}

// name is a file's without what its format adds.
func name(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs // "." has no name
	}
	base := filepath.Base(path)
	for _, ext := range []string{".gz", ".zst", ".csv", ".tsv", ".txt", ".edges", ".el"} {
		if cut := strings.TrimSuffix(base, ext); cut != "" {
			base = cut
		}
	}
	return base
}

// idKind is what the ids are: rows when they are 0…n-1 in this order.
func idKind(dense bool) ingest.IDs {
	if dense {
		return ingest.RowIDs
	}
	return ingest.IntIDs
}

// NodeIDs streams the ids that have gaps: of the table's rows, or of the edges, ascending.
func (s *Source) NodeIDs(ctx context.Context, nodeType int, emit func(ingest.IDChunk) error) error {
	if nodeType != 0 {
		panic("edgelist: no such node type")
	}
	if s.table == nil {
		place := ingest.Place{File: s.files[0]}
		for ; place.First < int64(len(s.ids)); place.First += edgeChunk {
			if err := ctx.Err(); err != nil {
				return err
			}
			ids := s.ids[place.First:min(place.First+edgeChunk, int64(len(s.ids)))]
			if err := emit(ingest.IDChunk{Place: place, IDs: append([]int64(nil), ids...)}); err != nil {
				return err
			}
		}
		return nil
	}
	c := ingest.IDChunk{Place: ingest.Place{File: s.table.path}}
	flush := func() error {
		err := emit(c)
		c.First += int64(len(c.IDs))
		c.IDs = c.IDs[:0]
		return err
	}
	err := s.table.each(ctx, func(t *table, _ int64, cells [][]byte) error {
		id, err := t.id(cells, s.table.id)
		if c.IDs = append(c.IDs, id); err == nil && len(c.IDs) == edgeChunk {
			err = flush()
		}
		return err
	})
	if err != nil || len(c.IDs) == 0 {
		return err
	}
	return flush()
}

// Edges streams the edge list, file by file.
func (s *Source) Edges(ctx context.Context, relation int, emit func(ingest.EdgeChunk) error) error {
	if relation != 0 {
		panic("edgelist: no such relation")
	}
	return s.eachEdge(ctx, emit)
}

// Rows streams the features of the table, or of the map.
func (s *Source) Rows(ctx context.Context, i int, emit func(ingest.RowChunk) error) error {
	if i != 0 || s.schema == nil || len(s.schema.Tables) == 0 {
		panic("edgelist: no such table")
	}
	dim := int64(s.schema.Tables[0].Dim)
	rows := max(chunkBytes/4/dim, 1)
	if s.features != nil {
		return s.mappedRows(ctx, rows, dim, emit)
	}
	c := ingest.RowChunk{Place: ingest.Place{File: s.table.path}}
	flush := func() error {
		err := emit(c)
		c.First += int64(len(c.Values)) / dim
		c.Values = c.Values[:0]
		return err
	}
	err := s.table.each(ctx, func(t *table, _ int64, cells [][]byte) (err error) {
		if c.Values, err = s.table.appendRow(c.Values, t, cells); err == nil && int64(len(c.Values)) == rows*dim {
			err = flush()
		}
		return err
	})
	if err != nil || len(c.Values) == 0 {
		return err
	}
	return flush()
}

func (s *Source) mappedRows(ctx context.Context, chunkRows, dim int64, emit func(ingest.RowChunk) error) error {
	ids := s.ids
	if s.table != nil && !s.table.dense {
		ids = make([]int64, 0, s.nodes)
		err := s.NodeIDs(ctx, 0, func(c ingest.IDChunk) error { ids = append(ids, c.IDs...); return nil })
		if err != nil {
			return err
		}
	}
	start, columns, err := s.features.load(ctx, s.nodes, newRowIndex(ids, s.nodes).row)
	if err != nil {
		return err
	}
	chunk := make([]float32, min(chunkRows, s.nodes)*dim)
	place := ingest.Place{File: s.features.path}
	for ; place.First < s.nodes; place.First += chunkRows {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(chunkRows, s.nodes-place.First)
		values := chunk[:n*dim]
		clear(values)
		for i := range n {
			row := place.First + i
			for _, c := range columns[start[row]:start[row+1]] {
				values[i*dim+int64(c)] = 1
			}
		}
		if err := emit(ingest.RowChunk{Place: place, Values: values}); err != nil {
			return err
		}
	}
	return nil
}

// Labels streams the column of labels.
func (s *Source) Labels(ctx context.Context, label int, emit func(ingest.LabelChunk) error) error {
	if label != 0 || s.schema == nil || len(s.schema.Labels) == 0 {
		panic("edgelist: no such label")
	}
	c := ingest.LabelChunk{Place: ingest.Place{File: s.table.path}}
	flush := func() error {
		err := emit(c)
		c.First += int64(len(c.Values))
		c.Values = c.Values[:0]
		return err
	}
	err := s.table.each(ctx, func(t *table, _ int64, cells [][]byte) error {
		class, err := s.table.class(t, cells)
		if c.Values = append(c.Values, class); err == nil && len(c.Values) == edgeChunk {
			err = flush()
		}
		return err
	})
	if err != nil || len(c.Values) == 0 {
		return err
	}
	return flush()
}

// Split has nothing to give: tables have no splits.
func (s *Source) Split(context.Context, int, ingest.Part, func(ingest.IDChunk) error) error {
	panic("edgelist: no such split")
}

// Close has nothing to close: files are open while their section is read.
func (s *Source) Close() error { return nil }

// isRange tells a number that is too large from text that is none.
func isRange(err error) bool { return errors.Is(err, strconv.ErrRange) }
