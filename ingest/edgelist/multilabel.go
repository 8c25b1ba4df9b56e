package edgelist

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// multiLabel describes labels where a node has any number of classes: a column of lists, or a
// column of zeros and ones for each class.
type multiLabel struct {
	lists   *ingest.LabelLists // nil: the labels are not lists
	columns []int              // of zeros and ones; nil: the labels are no such columns
	names   []string           // of columns
	oneHot  bool               // each row of columns has exactly one 1, so a node has one class
	wanted  bool               // Options.MultiLabel, or Options.Like has such labels
	known   *ingest.Category   // classes of lists that are known beforehand; nil: they are learnt
}

// set reports whether the label is read by multiLabel.
func (m *multiLabel) set() bool { return m.lists != nil || m.columns != nil }

// severalColumns finds the columns that {label} lists, A,B,C. It returns false if label is the name
// of one column.
func (n *nodeTable) severalColumns(t *table, label string) (found bool, err error) {
	names := strings.Split(label, ",")
	if len(names) < 2 || t.named(label) {
		return false, nil
	}
	for _, name := range names {
		i, err := t.column("{label}", strings.TrimSpace(name))
		if err != nil {
			return true, err
		}
		if slices.Contains(n.multi.columns, i) {
			return true, fmt.Errorf("%s: {label} %s: %s is named twice", n.path, label, t.title(i))
		}
		if i == n.id {
			return true, fmt.Errorf("%s: %s holds both ids and labels; choose others with {id} and {label}", n.path, t.title(i))
		}
		n.multi.columns, n.multi.names = append(n.multi.columns, i), append(n.multi.names, t.name(i))
	}
	n.label = n.multi.columns[0]
	return true, nil
}

// chooseLists takes the column of labels for lists, if nodes are to have any number of classes.
func (n *nodeTable) chooseLists(o *Options) error {
	switch {
	case n.multi.columns != nil || !n.multi.wanted:
	case n.label < 0 && o.MultiLabel:
		return fmt.Errorf("%s: {multi_label}: there is no column of labels; name one with {label}", n.path)
	case n.values:
		return fmt.Errorf("%s: {label} %s: a node has several classes or a number; leave {multi_label} or %s out", n.path, o.Label, valueLabel)
	case n.label >= 0:
		n.multi.lists = ingest.NewLabelLists(n.multi.known)
	}
	return nil
}

// labelColumns returns the columns of the label.
func (n *nodeTable) labelColumns() []int {
	switch {
	case n.multi.columns != nil:
		return n.multi.columns
	case n.label >= 0:
		return []int{n.label}
	}
	return nil
}

// labelledBy returns the columns of the label as {label} names them.
func (n *nodeTable) labelledBy(t *table) string {
	switch {
	case n.multi.columns != nil:
		return strings.Join(n.multi.names, ",")
	case n.label >= 0:
		return t.name(n.label)
	}
	return ""
}

// readClasses reads the labels of a row into r.classes. While classes are learnt it learns them.
func (n *nodeTable) readClasses(t *table, cells [][]byte, r *nodeRow) (err error) {
	r.classes = r.classes[:0]
	if n.multi.lists == nil {
		return n.readColumns(t, cells, r)
	}
	cell, err := t.cell(cells, n.label)
	if err != nil {
		return err
	}
	switch missing := n.missing(cell) || len(ingest.LabelText(cell)) == 0; {
	case n.learning && missing:
	case n.learning:
		err = n.multi.lists.Learn(cell)
	case missing:
		for range n.multi.lists.Names() {
			r.classes = append(r.classes, -1)
		}
	default:
		r.classes, err = n.multi.lists.Append(r.classes, cell)
	}
	if err != nil {
		return bad(n.label+1, "%w; mend it, or choose another {label}", err)
	}
	return nil
}

// readColumns reads zeros and ones.
func (n *nodeTable) readColumns(t *table, cells [][]byte, r *nodeRow) error {
	for _, i := range n.multi.columns {
		cell, err := t.cell(cells, i)
		if err != nil {
			return err
		}
		class := int32(-1)
		if !n.missing(cell) {
			if class, err = ingest.LabelBit(cell); err != nil {
				return bad(i+1, "%w with {label}", err)
			}
		}
		r.classes = append(r.classes, class)
	}
	return nil
}

// single returns the number of the only 1 in a row, and -1 for a row that is missing. It returns
// false for any other row.
func single(classes []int32) (class int32, ok bool) {
	class = int32(slices.Index(classes, 1))
	for i, c := range classes {
		if class < 0 && c != -1 || class >= 0 && int32(i) != class && c != 0 {
			return -1, false
		}
	}
	return class, true
}

// settleClasses names the classes.
func (n *nodeTable) settleClasses() error {
	if n.multi.lists == nil {
		n.names = n.multi.names
		return nil
	}
	err := n.multi.lists.Settle()
	if n.names = n.multi.lists.Names(); err != nil {
		return fmt.Errorf("%s: {label}: column %s: %w", n.path, lines.ClipText(n.labelled), err)
	}
	return nil
}
