package table

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
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
	aggregates []aggregate
	label      column
	value      column     // a number to learn, in place of label
	multi      multiLabel // any number of classes, in place of label
	split      column
	hasSplit   bool
	splitFiles [3]*entry
	masks      [3]column
	joins      []*joined
	labelFrom  *joined // the label is there; nil: in files
	splitFrom  *joined

	classes *ingest.Category // of the label
	// knownClasses are the classes of the dataset that the source follows; nil: it follows none.
	knownClasses *ingest.Category
	count        int64 // of rows, 0 when not counted
	trainOnly    bool  // numbers are learnt from training rows alone
}

// nodeReader reads rows of nodes. If bad rows may be passed over, it reads rows whole in every
// pass, so that a row that is bad for one section is bad for all.
type nodeReader struct {
	*nodes
	columns  []column
	features *featureReader
	learning bool
	row      int64 // the next

	// Of the row that was read:
	number       int64 // its id, where ids are integers
	text         []byte
	class        int32   // or the bits of a number to learn, NaN where it is missing
	multiClasses []int32 // zeros and ones, -1 where they are missing
	part         int     // -1: none
	buf          []byte
	token        []byte
}

// reader returns a reader of rows with the features of tables.
func (n *nodes) reader(learning bool, tables []matrix) *nodeReader {
	r := &nodeReader{
		nodes: n, features: newFeatureReader(tables, n.form.numerals), learning: learning,
		buf: make([]byte, 0, 24), token: make([]byte, 0, 32),
	}
	r.columns = r.features.columns()
	label, value := n.ownLabel()
	for _, c := range append([]column{n.id, label, value, n.split}, n.masks[:]...) {
		if c.set() {
			r.columns = append(r.columns, c)
		}
	}
	r.columns = append(r.columns, n.multi.all()...)
	return r
}

// ownLabel returns the columns of the label and of the value that are in the type's own files.
func (n *nodes) ownLabel() (label, value column) {
	if n.labelFrom != nil {
		return column{}, column{}
	}
	return n.label, n.value
}

// newClasses has no classes yet, unless they are known beforehand.
func (n *nodes) newClasses() *ingest.Category {
	if n.knownClasses != nil {
		return n.knownClasses
	}
	return ingest.NewCategory(ingest.MaxClasses)
}

// settleClasses makes classes of the labels that were learnt.
func (n *nodes) settleClasses() error {
	if err := n.classes.SettleLabel(); err != nil {
		return fmt.Errorf("%s: line %d: label: column %s: %w", n.schema, n.label.line, lines.ClipText(n.label.text), err)
	}
	return nil
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
		number, text, err := r.ids.id(&cells[i], r.buf, r.form.numerals)
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
	label, number := r.ownLabel()
	if label.set() {
		var err error
		if class, labelled, err = tokenOf(&cells[i], r.token); err == nil && labelled && !r.learning {
			r.class, err = r.classes.Of(class)
		}
		if err != nil {
			return &rowError{r.label.text, err}
		}
		i++
	}
	if number.set() {
		var err error
		if r.class, err = valueBits(&cells[i], r.form.numerals); err != nil {
			return &rowError{r.value.text, err}
		}
		i++
	}
	r.part = ingest.NoPart
	if r.split.set() {
		var err error
		if r.part, err = partOf(&cells[i]); err != nil {
			return &rowError{r.split.text, err}
		}
		i++
	}
	if r.masks[0].set() {
		if err := r.readMasks(cells[i:]); err != nil {
			return err
		}
	}
	if r.multi.set() {
		var err error
		of := cells[len(r.columns)-len(r.multi.all()):]
		if r.multiClasses, err = r.multi.read(r.multiClasses[:0], of, r.learning); err != nil {
			return err
		}
	}
	if !r.learning {
		r.join()
	}
	if r.learning {
		r.features.learn(cells, !r.trainOnly || r.part == int(ingest.Train))
		if labelled {
			r.classes.Learn(class)
		}
	}
	return nil
}

// valueBits is the bits of a number to learn, NaN where it is missing.
func valueBits(v *value, numerals lines.Numerals) (int32, error) {
	f := math.NaN()
	if !isMissing(v) {
		var err error
		if f, err = number(v, numerals); err != nil && v.Kind == parquet.Text {
			return 0, fmt.Errorf("%q is not a finite number of 32 bits; a column that names classes is a label", lines.ClipText(string(v.Text)))
		} else if err != nil {
			return 0, err
		}
	}
	return int32(math.Float32bits(float32(f))), nil
}

// readMasks finds the mask that a row is in. cells begins with the masks.
func (r *nodeReader) readMasks(cells []value) error {
	var buf [24]byte
	i, found := 0, ""
	for part, c := range r.masks {
		if !c.set() {
			continue
		}
		in, ok := ingest.MaskOf(textOf(&cells[i], buf[:0]))
		switch {
		case !ok:
			return &rowError{c.text, fmt.Errorf("%q in a mask, which is zeros and ones", lines.ClipText(string(textOf(&cells[i], buf[:0]))))}
		case in && found != "":
			return &rowError{c.text, fmt.Errorf("the node is in %s as well, and a node is in one part of a split", lines.ClipText(found))}
		case in:
			r.part, found = part, c.text
		}
		i++
	}
	return nil
}

// textOf is the text of a cell, which is lent as the cell is or in buf: nil of one that is missing.
func textOf(v *value, buf []byte) []byte {
	switch v.Kind {
	case parquet.Text:
		return v.Text
	case parquet.Int:
		return strconv.AppendInt(buf, v.Int, 10)
	case parquet.Float:
		return strconv.AppendFloat(buf, v.Float, 'g', -1, 64)
	case parquet.List:
		return append(buf, "a list"...)
	}
	return nil
}

// partOf reads the part of a split that a node is in: a word, or a number from 0 to 2.
func partOf(v *value) (int, error) {
	var buf [24]byte
	text := textOf(v, buf[:0])
	if part, ok := ingest.PartOf(text); ok {
		return part, nil
	}
	if part, ok := ingest.PartNumber(text); ok {
		return part, nil
	}
	return 0, fmt.Errorf("%q is no part of a split; there are train, valid and test, or 0, 1 and 2, and nothing for none", lines.ClipText(string(text)))
}

// settle learns what the schema needs to know: what ids are, how long vectors are, the classes. It
// reads the table through only where it must.
func (n *nodes) settle(ctx context.Context, forgive forgiver) error {
	n.ids, n.count = n.declared, 0
	forget(n.tables)
	if n.id.set() && n.ids == autoIDs {
		n.ids = intIDs
		err := n.sample(ctx, []column{n.id}, func(cells []value) {
			if cells[0].Kind != parquet.Null && !looksInt(&cells[0], n.form.numerals) {
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
	label, _ := n.ownLabel()
	if label.set() {
		n.classes = n.newClasses()
	}
	n.multi.begin()
	if n.ids != rowIDs && !label.set() && !n.multi.lists.set() && !learns(n.tables) {
		return n.settleJoins(ctx, forgive)
	}
	dense := n.ids == intIDs
	r := n.reader(true, n.tables)
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
	if label.set() && n.knownClasses == nil {
		if err := n.settleClasses(); err != nil {
			return err
		}
	}
	if err := n.multi.settle(n); err != nil {
		return err
	}
	if err := n.entry.settle(n.tables); err != nil {
		return err
	}
	return n.settleJoins(ctx, forgive)
}

// nodeType is the schema's form of it.
func (n *nodes) nodeType() ingest.NodeType {
	t := ingest.NodeType{Name: n.name, Count: n.count, IDs: n.ids.kind(), Gathered: n.gathered}
	for _, a := range n.aggregates {
		t.Aggregates = append(t.Aggregates, a.text())
	}
	return t
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
			"as the ids are", e.schema, e.line, path, lines.List(titles))
	}
	return column{word{titles[0], e.line}, "split"}, nil
}

// checkAll refuses columns that are not there, in the table and in the lists of a split.
func (n *nodes) checkAll() error {
	if n.gathered {
		return nil
	}
	if err := n.check(n.reader(true, n.tables).columns); err != nil {
		return err
	}
	for _, j := range n.joins {
		if err := j.check(j.reader(true, j.tables).columns); err != nil {
			return err
		}
	}
	for _, part := range n.splitFiles {
		if part == nil {
			continue
		}
		for _, path := range part.files {
			if _, _, err := part.list(path, n.id); err != nil {
				return err
			}
		}
	}
	return nil
}

// list returns the entry that reads a file of a split, and the column of its ids. A file whose only
// title is an integer has no header: the integer is an id.
func (e *entry) list(path string, id column) (*entry, column, error) {
	r, err := e.form.open(path)
	if err != nil {
		return nil, column{}, err
	}
	defer r.Close()
	titles := r.titles()
	_, text := r.(*textRows)
	if text && e.form.header && len(titles) == 1 && titles[0] != "" && titles[0] != id.text &&
		strings.Trim(titles[0], "0123456789") == "" {
		bare := *e
		bare.form.header = false
		return &bare, column{word{"1", e.line}, "split"}, nil
	}
	c, err := e.listColumn(path, titles, id)
	return e, c, err
}
