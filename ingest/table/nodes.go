package table

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/parquet"
)

// nodes is one node type and its table.
type nodes struct {
	entry
	name       string
	gathered   bool
	id         column
	declared   ids
	ids        ids // once settled
	tables     []matrix
	label      column
	value      column // instead: a number to learn
	split      column
	hasSplit   bool
	splitFiles [3]*entry

	classes *ingest.Category // of the label
	// knownClasses are the classes of the dataset that the source follows; nil: it follows none.
	knownClasses *ingest.Category
	count        int64 // of rows, 0 when not counted
}

// nodeReader reads rows of nodes whole, in every pass, so that a row that is bad for one section is
// bad for all.
type nodeReader struct {
	*nodes
	columns  []column
	features *featureReader
	learning bool
	row      int64 // the next

	// Of the row that was read:
	number int64 // its id, where ids are integers
	text   []byte
	class  int32 // or the bits of a number to learn, NaN where it is missing
	part   int   // -1: none
	buf    []byte
	token  []byte
}

func (n *nodes) reader(learning bool) *nodeReader {
	r := &nodeReader{
		nodes: n, features: newFeatureReader(n.tables), learning: learning,
		buf: make([]byte, 0, 24), token: make([]byte, 0, 32),
	}
	r.columns = r.features.columns()
	for _, c := range []column{n.id, n.label, n.value, n.split} {
		if c.set() {
			r.columns = append(r.columns, c)
		}
	}
	return r
}

// each reads all rows.
func (r *nodeReader) each(ctx context.Context, forgive forgiver, visit func(path string) error) error {
	r.row = 0
	return r.nodes.each(ctx, forgive, r.columns, func(path string, cells []value) error {
		if err := r.read(cells); err != nil {
			return err
		}
		r.row++
		return visit(path)
	})
}

func (r *nodeReader) read(cells []value) error {
	if err := r.features.read(cells, r.learning); err != nil {
		return err
	}
	i := len(r.features.columns())
	r.number, r.text = r.row, nil
	if r.id.set() {
		number, text, err := r.ids.id(&cells[i], r.buf)
		if err != nil {
			return &rowError{r.id.text, err}
		}
		if r.number, r.text = number, text; r.ids == rowIDs && number != r.row {
			return fmt.Errorf("%s: row %d: id %d; the file changed while it was read", r.files[0], r.row, number)
		}
		i++
	}
	var class ingest.Token
	labelled := false
	r.class = -1
	if r.label.set() {
		var err error
		if class, labelled, err = tokenOf(&cells[i], r.token); err == nil && labelled && !r.learning {
			r.class, err = r.classes.Of(class)
		}
		if err != nil {
			return &rowError{r.label.text, err}
		}
		i++
	}
	if r.value.set() {
		var err error
		if r.class, err = valueBits(&cells[i]); err != nil {
			return &rowError{r.value.text, err}
		}
		i++
	}
	r.part = -1
	if r.split.set() {
		var err error
		if r.part, err = partOf(&cells[i]); err != nil {
			return &rowError{r.split.text, err}
		}
	}
	if r.learning {
		r.features.learn(cells)
		if labelled {
			r.classes.Learn(class)
		}
	}
	return nil
}

// valueBits is the bits of a number to learn, NaN where it is missing.
func valueBits(v *value) (int32, error) {
	f := math.NaN()
	if !isMissing(v) {
		var err error
		if f, err = number(v); err != nil && v.Kind == parquet.Text {
			return 0, fmt.Errorf("%q is not a finite number of 32 bits; a column that names classes is a label", clip(string(v.Text)))
		} else if err != nil {
			return 0, err
		}
	}
	return int32(math.Float32bits(float32(f))), nil
}

var parts = map[string]int{"train": 0, "training": 0, "valid": 1, "val": 1, "validation": 1, "dev": 1, "test": 2}

// partOf reads the part of a split that a node is in, -1 when it is in none.
func partOf(v *value) (int, error) {
	switch v.Kind {
	case parquet.Null:
		return -1, nil
	case parquet.Text:
		text := bytes.ToLower(bytes.TrimSpace(ingest.LabelText(v.Text)))
		if part, ok := parts[string(text)]; ok {
			return part, nil
		}
		if len(text) == 0 || string(text) == "none" {
			return -1, nil
		}
		return 0, fmt.Errorf("%q is no part of a split; there are train, valid and test, and nothing for none",
			clip(string(v.Text)))
	}
	return 0, fmt.Errorf("%v are no parts of a split; there are train, valid and test, as text", v.Kind)
}

// settle learns what the schema needs to know: what ids are, how long vectors are, the classes. It
// reads the table through only where it must.
func (n *nodes) settle(ctx context.Context, forgive forgiver) error {
	n.ids, n.count = n.declared, 0
	forget(n.tables)
	if n.id.set() && n.ids == autoIDs {
		n.ids = intIDs
		err := n.sample(ctx, []column{n.id}, func(cells []value) {
			if cells[0].Kind != parquet.Null && !looksInt(&cells[0]) {
				n.ids = autoTextIDs
			}
		})
		if err != nil {
			return err
		}
	}
	if err := n.measure(ctx, n.tables); err != nil {
		return err
	}
	if n.label.set() {
		n.classes = ingest.NewCategory(ingest.MaxClasses)
		if n.knownClasses != nil {
			n.classes = n.knownClasses
		}
	}
	if n.ids != rowIDs && !n.label.set() && !learns(n.tables) {
		return nil
	}
	dense := n.ids == intIDs
	r := n.reader(true)
	err := r.each(ctx, forgive, func(string) error {
		dense = dense && r.number == r.row-1
		return nil
	})
	if err != nil {
		return err
	}
	if n.count = r.row; n.count == 0 {
		return fmt.Errorf("%s: there are no rows in it for node type %s", n.files[0], n.name)
	}
	if dense {
		n.ids = rowIDs
	}
	if n.label.set() && n.knownClasses == nil {
		if err := n.classes.SettleLabel(); err != nil {
			return fmt.Errorf("%s: line %d: label: column %s: %w", n.schema, n.label.line, clip(n.label.text), err)
		}
	}
	return n.entry.settle(n.tables)
}

// nodeType is the schema's form of it.
func (n *nodes) nodeType() ingest.NodeType {
	return ingest.NodeType{Name: n.name, Count: n.count, IDs: n.ids.kind(), Gathered: n.gathered}
}

// listColumn returns the one column of a file that lists ids: the column with the ids' name, or the
// only one.
func (e *entry) listColumn(path string, titles []string, id column) (column, error) {
	if id.set() {
		if _, err := e.find(path, titles, []column{id}); err == nil {
			return id, nil
		}
	}
	if len(titles) != 1 {
		return column{}, fmt.Errorf("%s: line %d: split: %s has the columns %s; a list of ids has one, or one that is called "+
			"as the ids are", e.schema, e.line, path, list(titles))
	}
	return column{word{titles[0], e.line}, "split"}, nil
}

// checkAll refuses columns that are not there, in the table and in the lists of a split.
func (n *nodes) checkAll() error {
	if n.gathered {
		return nil
	}
	if err := n.check(n.reader(true).columns); err != nil {
		return err
	}
	for _, part := range n.splitFiles {
		if part == nil {
			continue
		}
		for _, path := range part.files {
			if _, err := part.columnOf(path, n.id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *entry) columnOf(path string, id column) (column, error) {
	r, err := e.form.open(path)
	if err != nil {
		return column{}, err
	}
	defer r.Close()
	return e.listColumn(path, r.titles(), id)
}
