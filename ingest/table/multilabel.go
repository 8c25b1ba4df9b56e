package table

import (
	"fmt"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/parquet"
	"github.com/gnnstore/gnnstore/store"
)

// multiLabel is the columns of labels where a node has any number of classes: one whose cells list
// them, or several of zeros and ones, a class each.
type multiLabel struct {
	lists   column
	columns []column
	classes *ingest.LabelLists // of lists
	// known are the classes of the dataset that the source follows; nil: it follows none.
	known *ingest.Category
}

func (m *multiLabel) set() bool { return m.lists.set() || m.columns != nil }

// all returns the columns.
func (m *multiLabel) all() []column {
	if m.lists.set() {
		return []column{m.lists}
	}
	return m.columns
}

// names returns the names of the classes, once they are settled.
func (m *multiLabel) names() []string {
	if m.lists.set() {
		return m.classes.Names()
	}
	var names []string
	for _, c := range m.columns {
		names = append(names, c.text)
	}
	return names
}

// multiLabel reads the key labels.
func (d *document) multiLabel(o *object, e *nodes) (m multiLabel) {
	if !o.has("labels") {
		return m
	}
	if o.keys["labels"].Kind == yaml.ScalarNode {
		m.lists = o.column("labels")
	} else {
		met := map[string]bool{}
		for _, w := range o.words("labels") {
			if met[w.text] {
				d.errorf(w.line, "labels: %s is there twice", lines.ClipText(w.text))
			}
			met[w.text] = true
			m.columns = append(m.columns, column{w, "labels"})
		}
		if len(m.columns) < 2 {
			d.errorf(o.line, "labels: name a column whose cells list labels, or two columns of zeros and ones or more, [A, B]")
		}
	}
	if e.label.set() || e.value.set() {
		d.errorf(o.line, "labels beside label or value: nodes of type %s learn one of them", e.name)
	}
	return m
}

// begin forgets the classes of the last reading.
func (m *multiLabel) begin() {
	if m.lists.set() {
		m.classes = ingest.NewLabelLists(m.known)
	}
}

// settle names the classes.
func (m *multiLabel) settle(n *nodes) error {
	if !m.lists.set() {
		return nil
	}
	if err := m.classes.Settle(); err != nil {
		return fmt.Errorf("%s: line %d: labels: column %s: %w", n.schema, m.lists.line, lines.ClipText(m.lists.text), err)
	}
	return nil
}

// read appends the zeros and ones of a row to dst, -1 where they are missing. cells begins with the
// columns of labels. While classes are learnt it learns them, and appends nothing.
func (m *multiLabel) read(dst []int32, cells []value, learning bool) ([]int32, error) {
	if m.lists.set() {
		dst, err := m.readList(dst, &cells[0], learning)
		if err != nil {
			return dst, &rowError{m.lists.text, fmt.Errorf("%w; mend it", err)}
		}
		return dst, nil
	}
	var buf [24]byte
	for i, c := range m.columns {
		class := int32(-1)
		if v := &cells[i]; !isMissing(v) {
			var err error
			if class, err = ingest.LabelBit(textOf(v, buf[:0])); err != nil {
				return dst, &rowError{c.text, err}
			}
		}
		if !learning {
			dst = append(dst, class)
		}
	}
	return dst, nil
}

func (m *multiLabel) readList(dst []int32, v *value, learning bool) ([]int32, error) {
	var buf [24]byte
	var text []byte
	switch {
	case v.Kind == parquet.List && v.Text != nil:
		text = v.Text
	case v.Kind == parquet.List:
		text = append(text, '[')
		for _, x := range v.List {
			text = append(strconv.AppendFloat(text, x, 'f', -1, 64), ',')
		}
		text = append(text, ']')
	default:
		text = textOf(v, buf[:0])
	}
	switch missing := v.Kind != parquet.List && isMissing(v); {
	case learning && missing:
	case learning:
		return dst, m.classes.Learn(text)
	case missing:
		for range m.names() {
			dst = append(dst, -1)
		}
	default:
		return m.classes.Append(dst, text)
	}
	return dst, nil
}

// listedLabels returns a class whose name looks like a list of others, or "".
func (n *nodes) listedLabels() string {
	names := map[string]bool{}
	if n.knownClasses == nil {
		for _, name := range n.classes.Names {
			names[name] = true
		}
	}
	return ingest.ListsLabels(names)
}

// followColumns puts the columns of zeros and ones in the order that their classes have in l.
func (n *nodes) followColumns(of *store.LabelEncoding, l *ingest.Like) error {
	ordered := make([]column, 0, len(n.multi.columns))
	for _, name := range of.ClassNames {
		if i := slices.IndexFunc(n.multi.columns, func(c column) bool { return c.text == name }); i >= 0 {
			ordered = append(ordered, n.multi.columns[i])
		}
	}
	if len(ordered) != len(n.multi.columns) || len(ordered) != len(of.ClassNames) {
		return fmt.Errorf("%s: line %d: {like} %s: labels of node type %s are %s there; name the same columns", n.schema, n.line, l.Name,
			n.name, lines.List(of.ClassNames))
	}
	n.multi.columns = ordered
	return nil
}
