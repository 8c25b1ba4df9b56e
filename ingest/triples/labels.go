package triples

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/store"
)

// labels are the labels in the tables beside the triples.
type labels struct {
	name    string
	classes []string   // ascending
	of      []int32    // by row of an entity, -1 without
	rows    [3][]int64 // of the entities of each part, ascending
}

// findTables finds the tables of labels: all or none.
func (s *Source) findTables() {
	train, test := filepath.Join(s.path, "trainingSet.tsv"), filepath.Join(s.path, "testSet.tsv")
	for _, path := range []string{train, test} {
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return
		}
	}
	s.tables[ingest.Train], s.tables[ingest.Test] = train, test
}

// readLabels reads the tables.
func (s *Source) readLabels(ctx context.Context, known *entities) (*labels, error) {
	l := &labels{of: slices.Repeat([]int32{-1}, len(known.names))}
	texts := map[uint32]string{} // of the classes, by row
	for part, path := range s.tables {
		if path == "" {
			continue
		}
		if err := l.readTable(ctx, path, s.encoding, known, func(row uint32, class string) bool {
			if _, again := texts[row]; again {
				return false
			}
			texts[row] = class
			l.rows[part] = append(l.rows[part], int64(row))
			return true
		}); err != nil {
			return nil, err
		}
		slices.Sort(l.rows[part])
	}
	l.classes = slices.Compact(slices.Sorted(maps.Values(texts)))
	for row, class := range texts {
		at, _ := slices.BinarySearch(l.classes, class)
		l.of[row] = int32(at)
	}
	return l, nil
}

// readTable reads one table. put says false where a node has a label already.
func (l *labels) readTable(
	ctx context.Context, path string, encoding lines.Encoding, known *entities, put func(row uint32, class string) bool,
) error {
	in, err := lines.OpenText(path, encoding)
	if err != nil {
		return err
	}
	defer in.Close()
	header, err := in.Next()
	if err != nil {
		return err
	}
	node, label, name := -1, -1, ""
	header = bytes.Clone(header)
	columns, few := lines.Cells(nil, header, '\t')
	if !few {
		return in.Errorf("it has more than %d columns; a table of labels has one of nodes, and one whose name begins with label", lines.MaxCells)
	}
	for i, cell := range columns {
		c := string(cell)
		switch {
		case strings.HasPrefix(c, "label"):
			if label < 0 {
				label, name = i, c
			}
		case c != "id" && node < 0:
			node = i
		}
	}
	if node < 0 || label < 0 {
		return in.Errorf("the columns are %s; a table of labels has one of nodes, and one whose name begins with label, between tabs", lines.Clip(header))
	}
	if name = store.CleanWord(name); l.name != "" && l.name != name {
		return in.Errorf("labels are called %s, and %s in the table before", name, l.name)
	}
	l.name = name
	var cells [][]byte
	for {
		line, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		cells, _ = lines.Cells(cells[:0], line, '\t')
		if len(cells) != len(columns) {
			return in.Errorf("found %d columns, and the header has %d", len(cells), len(columns))
		}
		row, ok := known.rows[string(cells[node])]
		if !ok {
			return in.ErrorIn(node+1, "%q is no entity of the triples; are the labels of another graph?", lines.Clip(cells[node]))
		}
		if len(cells[label]) == 0 {
			return in.ErrorIn(label+1, "the label is empty")
		}
		if !put(row, string(cells[label])) {
			return in.ErrorIn(node+1, "%q has a label before; each node has one, in one of the tables", lines.Clip(cells[node]))
		}
	}
}

// Labels streams the classes of the entities.
func (s *Source) Labels(ctx context.Context, _ int, emit func(ingest.LabelChunk) error) error {
	c := ingest.LabelChunk{Place: ingest.Place{File: s.tables[ingest.Train]}}
	for of := s.labels.of; len(of) > 0; {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
		n := min(len(of), ingest.ChunkBytes/4)
		c.Values = append(c.Values[:0], of[:n]...)
		if err := emit(c); err != nil {
			return err
		}
		c.First += int64(n)
		of = of[n:]
	}
	return nil
}

// Split streams the entities of a part.
func (s *Source) Split(ctx context.Context, _ int, part ingest.Part, emit func(ingest.IDChunk) error) error {
	out := ingest.Chunks(ctx, emit)
	out.Chunk.File = s.tables[part]
	for _, row := range s.labels.rows[part] {
		out.Chunk.Texts.Append([]byte(s.names[row]))
		if err := out.Added(); err != nil {
			return err
		}
	}
	return out.Flush()
}
