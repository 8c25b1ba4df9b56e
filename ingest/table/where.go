package table

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/parquet"
)

// condition selects rows by the text of a column: it is one of some patterns, in which a star
// stands for anything.
type condition struct {
	column
	patterns []string
}

// where reads conditions, which all must hold.
func (d *document) where(o *object) (list []condition) {
	n := o.keys["where"]
	if n == nil {
		return nil
	}
	named := d.object(n, "where")
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := d.word(n.Content[i], "a column")
		c := condition{column: column{key, "where"}}
		for _, w := range named.words(key.text) {
			c.patterns = append(c.patterns, w.text)
		}
		if len(c.patterns) == 0 && d.err == nil {
			d.errorf(key.line, "where %s: name at least one value", lines.ClipText(key.text))
		}
		list = append(list, c)
	}
	return list
}

// missingWords reads the words that stand for nothing.
func (d *document) missingWords(o *object) (list []string) {
	for _, w := range o.words("missing_words") {
		list = append(list, w.text)
	}
	return list
}

// holds reports whether a cell is one of the values. A missing cell is the empty text.
func (c *condition) holds(v *value) bool {
	var buf [24]byte
	text := string(textOf(v, buf[:0]))
	return slices.ContainsFunc(c.patterns, func(p string) bool { return wild(p, text) })
}

// wild reports whether a text has the form of a pattern, in which a star stands for anything.
func wild(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return text == pattern
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}

// whole appends the columns that conditions need.
func (e *entry) whole(columns []column) []column {
	columns = slices.Clone(columns)
	for _, c := range e.where {
		columns = append(columns, c.column)
	}
	return columns
}

// wanted reports whether the conditions hold for a row, whose last cells are theirs.
func (e *entry) wanted(cells []value) bool {
	first := len(cells) - len(e.where)
	for i := range e.where {
		if !e.where[i].holds(&cells[first+i]) {
			return false
		}
	}
	return true
}

// blank makes cells with a word for nothing empty. Ids stay as they are, but for ends of edges that
// may be missing.
func (e *entry) blank(columns []column, cells []value) {
	if len(e.words) == 0 {
		return
	}
	for i, c := range columns {
		id := c.key == "id" || c.key == "relation_column" || (c.key == "src" || c.key == "dst") && !e.skipEmpty
		if v := &cells[i]; !id && v.Kind == parquet.Text && slices.Contains(e.words, string(v.Text)) {
			*v = value{}
		}
	}
}

var errTwoTypes = errors.New("it is a node of two types")

// conditioned lists the entries of a schema that read one file.
type conditioned struct {
	entries []*entry
	names   []string // of the node type, "" of edges
}

// checkWhere reads each file whose rows are chosen by conditions once. It refuses a row that is a
// node of two types, and notes rows that no entry takes.
func (s *Source) checkWhere(ctx context.Context) (notes []string, err error) {
	files := map[string]*conditioned{}
	var order []string
	add := func(e *entry, name string) {
		for _, path := range e.files {
			if files[path] == nil {
				files[path] = &conditioned{}
				order = append(order, path)
			}
			files[path].entries = append(files[path].entries, e)
			files[path].names = append(files[path].names, name)
		}
	}
	for _, n := range s.schema.nodes {
		if !n.gathered {
			add(&n.entry, n.name)
		}
	}
	for _, e := range s.edges {
		add(&e.entry, "")
	}
	for _, path := range order {
		of := files[path]
		if !slices.ContainsFunc(of.entries, func(e *entry) bool { return len(e.where) > 0 }) {
			continue
		}
		note, err := s.checkWhereOf(ctx, path, of)
		if err != nil {
			return nil, err
		}
		if note != "" {
			notes = append(notes, note)
		}
	}
	return notes, nil
}

func (s *Source) checkWhereOf(ctx context.Context, path string, of *conditioned) (note string, err error) {
	all := of.entries[0].bare()
	var starts []int
	var columns []column
	for _, e := range of.entries {
		starts = append(starts, len(columns))
		columns = e.whole(columns)
	}
	read, left, first := int64(0), int64(0), ""
	forgive := func(path string, r rows, bad *rowError) error {
		if errors.Is(bad.err, errTwoTypes) {
			return judge(nil, path, r, bad)
		}
		return s.forgive(path, r, bad)
	}
	err = all.eachOf(ctx, path, forgive, columns, func(_ string, cells []value) error {
		read++
		taken, node := false, ""
		for i, e := range of.entries {
			if !e.wanted(cells[:starts[i]+len(e.where)]) {
				continue
			}
			taken = true
			if of.names[i] == "" {
				continue
			}
			if node != "" {
				return &rowError{err: fmt.Errorf("%w, %s and %s; narrow where in the schema", errTwoTypes, node, of.names[i])}
			}
			node = of.names[i]
		}
		if !taken {
			if left++; left == 1 {
				first = rowText(columns, cells)
			}
		}
		return nil
	})
	if left > 0 {
		note = fmt.Sprintf("%s: %d of %d rows are in no entry, by where; the first has %s", path, left, read, first)
	}
	return note, err
}

// bare is the entry without conditions and words.
func (e *entry) bare() *entry {
	b := *e
	b.where, b.words = nil, nil
	return &b
}

// rowText writes the cells of a row for a note, each column once.
func rowText(columns []column, cells []value) string {
	var said []string
	for i, c := range columns {
		text := fmt.Sprintf("%s %q", lines.ClipText(c.text), lines.ClipText(string(textOf(&cells[i], nil))))
		if !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	return lines.List(said)
}

// masks reads the columns of masks.
func (d *document) masks(o *object) (masks [3]column) {
	n := o.keys["masks"]
	if n == nil {
		return masks
	}
	if n.Kind != yaml.MappingNode {
		d.errorf(n.Line, "masks: name columns of zeros and ones, as in masks: {train: train_mask, valid: val_mask, test: test_mask}")
		return masks
	}
	named := d.object(n, "masks", "train", "valid", "test")
	for part, key := range [3]string{"train", "valid", "test"} {
		if masks[part] = named.column(key); masks[part].set() {
			masks[part].key = "masks"
		}
	}
	if !masks[0].set() && d.err == nil {
		d.errorf(n.Line, "masks: there are no training nodes; name the column of their mask with train")
	}
	return masks
}
