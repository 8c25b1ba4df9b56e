package edgelist

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// none is the value of {label} and {part} that takes no column.
const none = "none"

// rest is an element of {part}: the nodes that are in no other part.
const rest = "rest"

// nodeSplit is the columns of a table of nodes that hold a split: one of words or numbers, or up to
// three masks.
type nodeSplit struct {
	column  int    // of words, or of numbers from 0 to 2; -1 without one
	masks   [3]int // columns, -1 without one
	rest    int    // the part of nodes that are in no other; -1 without one
	numbers bool   // the column may have numbers
}

var noSplit = nodeSplit{column: -1, masks: [3]int{-1, -1, -1}, rest: ingest.NoPart}

func (s *nodeSplit) set() bool { return s.column >= 0 || s.masks != noSplit.masks }

func (s *nodeSplit) columns() (columns []int) {
	for _, i := range append(s.masks[:], s.column) {
		if i >= 0 {
			columns = append(columns, i)
		}
	}
	return columns
}

// of reads the part of a row.
func (s *nodeSplit) of(t *table, cells [][]byte) (part int, err error) {
	if s.column >= 0 {
		cell, err := t.cell(cells, s.column)
		if err != nil {
			return ingest.NoPart, err
		}
		part, ok := ingest.PartOf(cell)
		if !ok && s.numbers {
			part, ok = ingest.PartNumber(cell)
		}
		if !ok {
			return ingest.NoPart, bad(s.column+1, "%q is no part of a split: there are train, valid and test, or with {part} 0, 1 and 2, "+
				"and nothing for none; {part} none takes no split", lines.Clip(cell))
		}
		return part, nil
	}
	part, found := s.rest, -1
	for k, i := range s.masks {
		if i < 0 {
			continue
		}
		cell, err := t.cell(cells, i)
		if err != nil {
			return part, err
		}
		in, ok := ingest.MaskOf(cell)
		switch {
		case !ok:
			return part, bad(i+1, "%q in a mask, which is zeros and ones; {part} none takes no split", lines.Clip(cell))
		case in && found >= 0:
			return part, bad(i+1, "the node is in %s and in %s, and a node is in one part of a split; {part} none takes no split",
				t.name(found), t.name(i))
		case in:
			part, found = k, i
		}
	}
	return part, nil
}

// sampleColumns reads the first rows of a table of nodes, each column apart.
func (n *nodeTable) sampleColumns() (columns []ingest.ColumnSample, err error) {
	t, err := n.open()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	columns = make([]ingest.ColumnSample, t.columns)
	_, err = t.sample(idRows, func(cells [][]byte) {
		for i := range min(len(cells), len(columns)) {
			v, whole := t.numerals.Integer(cells[i])
			_, err := t.numerals.Float(cells[i], 64)
			columns[i].Add(cells[i], v, whole, err == nil)
		}
	})
	return columns, err
}

// contradiction returns the first error that the masks of a split have in the first rows, as a node
// in two of them.
func (n *nodeTable) contradiction(split nodeSplit) (found, err error) {
	t, err := n.open()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	_, err = t.sample(idRows, func(cells [][]byte) {
		if _, err := split.of(t, cells); err != nil && found == nil {
			found = err
		}
	})
	return found, err
}

// findRoles chooses the columns of the label and of the split. It takes the columns that the user
// named, or else columns with a usual name and fitting values. If the values do not fit, it asks.
func (n *nodeTable) findRoles(t *table, o *Options) error {
	columns, err := n.sampleColumns()
	if err != nil {
		return err
	}
	if err := n.findSplit(t, o, columns); err != nil {
		return err
	}
	if n.label >= 0 || n.unlabelled {
		return nil
	}
	return n.findLabel(t, o, columns)
}

func (n *nodeTable) ask(format string, args ...any) error {
	return ingest.Ask("%s: "+format, append([]any{n.path}, args...)...)
}

// findSplit takes the columns that {part} names, or that are called as a split and are one.
func (n *nodeTable) findSplit(
	t *table, o *Options, columns []ingest.ColumnSample,
) error {
	n.split = noSplit
	switch {
	case o.Part == none && !t.named(none):
		return nil
	case o.Part != "":
		return n.givenSplit(t, o.Part)
	case t.header == nil:
		return nil
	}
	isMask := func(i int) bool {
		return columns[i].All(func(cell []byte) bool { _, ok := ingest.MaskOf(cell); return ok })
	}
	named := noSplit
	named.masks = ingest.MaskColumns(t.header)
	sure := false // a name says that it is a mask, and not only train, valid or test
	for part, i := range named.masks {
		switch {
		case i == n.id || slices.Contains(n.labelColumns(), i):
			named.masks[part] = -1
		case i >= 0 && ingest.IsMaskName(t.header[i]):
			sure = true
		case i >= 0 && !isMask(i): // a count, perhaps
			named.masks[part] = -1
		}
	}
	found := named.columns()
	overlap, err := n.contradiction(named)
	if err != nil {
		return err
	}
	titles := strings.Join(t.names(func(i int) bool { return slices.Contains(found, i) }), ",")
	switch {
	case len(found) == 0 || !sure && (len(found) == 1 || named.masks[0] < 0):
	case overlap != nil:
		return n.ask("columns %s are called as the masks of a split, and are none: %w; {part} none makes them features", titles, overlap)
	case named.masks[0] < 0:
		return n.ask("%s is called as the mask of a split, and there is none of training nodes; {part} TRAIN,VALID,TEST names the columns, "+
			"and {part} none makes it a feature", titles)
	case len(found) == 1:
		return n.ask("%s is called as the mask of training nodes: in which part are the others? {part} %s,,rest says that they are to test, "+
			"{part} %s that they are in none, and {part} none makes the column a feature", titles, titles, titles+",,")
	default:
		n.split = named
		n.note("the split is columns %s, by their names; {part} none makes them features", titles)
		return nil
	}
	return n.splitColumn(t, columns)
}

// splitColumn takes a column that is called as a split and holds the words of one.
func (n *nodeTable) splitColumn(t *table, columns []ingest.ColumnSample) error {
	for _, name := range ingest.SplitNames {
		i := ingest.Called(t.header, name)
		if i < 0 || i == n.id || slices.Contains(n.labelColumns(), i) || columns[i].Missing == columns[i].Rows {
			continue
		}
		words := columns[i].All(func(cell []byte) bool { _, ok := ingest.PartOf(cell); return ok })
		numbers := columns[i].All(func(cell []byte) bool { _, ok := ingest.PartNumber(cell); return ok })
		sure := ingest.IsSplitName(name)
		switch {
		case words:
			n.split.column = i
			n.note("the split is column %s, by its name and words; {part} none passes over it", t.name(i))
			return nil
		case numbers && sure:
			return n.ask("is column %s a split? {part} %s takes 0 to train, 1 to validate and 2 to test, and {part} none makes it a feature",
				t.name(i), t.name(i))
		case sure && columns[i].Integers+columns[i].Fractions > 0:
			return n.ask("column %s is called as a split, and holds %s; {part} COLUMN names the column of train, valid and test, and "+
				"{part} none makes this one a feature", t.name(i), lines.ClipText(columns[i].First))
		}
	}
	return nil
}

// givenSplit takes the columns that {part} names: one of words or numbers, or masks.
func (n *nodeTable) givenSplit(t *table, part string) error {
	names := strings.Split(part, ",")
	if len(names) == 1 || t.named(part) {
		i, err := t.column(partFlag, part)
		n.split.column, n.split.numbers = i, true
		return n.checkSplit(t, err)
	}
	if len(names) != 3 {
		return fmt.Errorf("%s: {part} %s: name one column of parts, or three masks, TRAIN,VALID,TEST, whose names may be empty", n.path, part)
	}
	for k, name := range names {
		switch {
		case name == rest && !t.named(rest):
			if n.split.rest >= 0 {
				return fmt.Errorf("%s: {part} %s: the rest is one part", n.path, part)
			}
			n.split.rest = k
		case name != "":
			i, err := t.column(partFlag, name)
			if n.split.masks[k] = i; err != nil {
				return n.checkSplit(t, err)
			}
		}
	}
	if n.split.masks[0] < 0 && n.split.rest != 0 {
		return fmt.Errorf("%s: {part} %s: there are no training nodes; name the first mask", n.path, part)
	}
	return n.checkSplit(t, nil)
}

func (n *nodeTable) checkSplit(t *table, err error) error {
	if err != nil {
		return err
	}
	taken := append([]int{n.id}, n.labelColumns()...)
	for _, i := range n.split.columns() {
		if slices.Contains(taken, i) {
			return fmt.Errorf("%s: {part}: %s holds ids or labels, or is named twice; choose another", n.path, t.title(i))
		}
		taken = append(taken, i)
	}
	return nil
}

// findLabel takes the column that is called so and holds classes.
func (n *nodeTable) findLabel(t *table, o *Options, columns []ingest.ColumnSample) error {
	if t.header == nil {
		return n.askAlone(t, o, columns)
	}
	x := ingest.Called(t.header, "x") >= 0 // then y may be its coordinate
	named := slices.Concat(ingest.LabelNames, ingest.ClassNames)
	named = slices.DeleteFunc(named, func(name string) bool { return name == "y" })
	for _, name := range append(named, "y") { // all other names are surer
		i := ingest.Called(t.header, name)
		if i < 0 || i == n.id || slices.Contains(n.split.columns(), i) || slices.Contains(o.Columns, t.header[i]) {
			continue
		}
		c, title := &columns[i], t.name(i)
		spelling, err := n.spellings([]int{i})
		if err != nil {
			return err
		}
		switch {
		case c.Missing == c.Rows:
			continue
		case spelling[0].Remedy() != "":
			continue // numbers that are not read yet are no classes; findUnread notes them
		case x && name == "y" && c.Integers+c.Fractions+c.Missing == c.Rows:
			return n.ask("is column %s a label, or a coordinate as column x is? {label} %s makes its values classes, {label} %s:value learns "+
				"them as numbers, and {label} none makes it a feature", title, title, title)
		case c.Classes():
			n.label = i
			n.note("the label is column %s, by its name; {label} none takes no label", title)
			return nil
		case c.Fractions > 0 && c.Integers+c.Fractions+c.Missing < c.Rows:
			continue // neither numbers nor classes
		case c.Fractions > 0:
			return n.ask("column %s is called as a label, and holds numbers such as %s: {label} %s:value learns them, and {label} none makes it a feature",
				title, lines.ClipText(c.First), title)
		case c.Integers+c.Missing == c.Rows:
			return n.ask("column %s is called as a label, and holds %d different integers: {label} %s makes them classes, {label} %s:value learns "+
				"them as numbers, and {label} none makes it a feature", title, len(c.Values), title, title)
		}
		return n.ask("column %s is called as a label, and holds %d different texts: {label} %s makes each a class, and {label} none passes over it",
			title, len(c.Values), title)
	}
	return nil
}

// askAlone asks whether the only column beside the ids is a label or a feature. It asks only if
// there is no header and the column holds small integers.
func (n *nodeTable) askAlone(t *table, o *Options, columns []ingest.ColumnSample) error {
	if t.columns != 2 || len(o.Columns) > 0 || o.Features != "" {
		return nil
	}
	i := 1 - n.id
	if c := &columns[i]; c.Integers == 0 || c.Integers+c.Missing < c.Rows || c.Large || !c.Classes() {
		return nil
	}
	return n.ask("is column %d a label or a feature? The table has no header, and the column has integers such as %s: {label} %d makes them "+
		"classes, and {feature_columns} %d a feature", i+1, lines.ClipText(columns[i].First), i+1, i+1)
}

// namedLabels returns the columns beside the label that are called as labels. They are no features
// unless the user says so: they may tell the label.
func (n *nodeTable) namedLabels(t *table, o *Options) (columns []int) {
	if t.header == nil || n.label < 0 {
		return nil
	}
	taken := n.labelColumns()
	for i, h := range t.header {
		name := ingest.SnakeName(h)
		if name == "y" && ingest.Called(t.header, "x") >= 0 {
			continue
		}
		isLabel := slices.Contains(ingest.LabelNames, name) || slices.Contains(ingest.ClassNames, name)
		if isLabel && !slices.Contains(taken, i) {
			columns = append(columns, i)
		}
	}
	return columns
}

// missing reports whether a cell holds no value, or a word that stands for none.
func (n *nodeTable) missing(cell []byte) bool {
	return missing(cell) || slices.ContainsFunc(n.words, func(word string) bool { return string(cell) == word })
}

// askWords asks about a class whose name may stand for no class.
func (n *nodeTable) askWords(o *Options) error {
	if len(o.MissingWords) > 0 {
		return nil
	}
	if i := slices.IndexFunc(n.names, ingest.MayBeMissing); i >= 0 {
		word := lines.ClipText(n.names[i])
		return n.ask("is %q in column %s a class, or no label? {missing_words} %s takes it for none, and {missing_words} none for a class",
			word, n.labelled, word)
	}
	return nil
}

// note keeps a remark on what was taken by its name.
func (n *nodeTable) note(format string, args ...any) {
	n.skipped = append(n.skipped, n.path+": "+fmt.Sprintf(format, args...))
}
