package edgelist

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/store"
)

const (
	sampleRows    = 100 // by which columns of numbers are told
	maxClassNames = 1 << 16
	maxClassName  = 256 // bytes
)

// valueLabel is behind the name of a column of labels that are numbers, and no classes.
const valueLabel = ":value"

// nodeTable is the form of a table of nodes.
type nodeTable struct {
	path string
	made *Made // what the table is made by; nil: path is the table
	form form
	// numerals are the form's, or the zero value where cells are made from numbers.
	numerals lines.Numerals
	anyText  bool // as in table
	id       int  // column
	label    int  // column, -1 without
	values   bool // labels are numbers, not classes
	multi    multiLabel
	apart    bool // a list of labels is a class of its own
	split    nodeSplit

	unlabelled bool     // no column is to be the label
	words      []string // that stand for no value
	features   []int    // columns
	widths     []int    // numbers in a cell of each of these
	titles     []string // of these
	labelled   string   // title of the column of labels
	names      []string
	skipped    []string
	unread     []string // notes on columns of numbers that are not read

	text     bool // ids are
	forgive  *lines.Tolerance
	zeros    bool  // what rows without features have
	bare     int64 // rows without features, once they were streamed
	rows     int64
	dense    bool             // the id of every row is its number
	learning bool             // classes are not known yet
	classes  map[string]int32 // by text; nil: labels are the numbers of classes
}

// nodeRow is a row of it, lent until the next.
type nodeRow struct {
	place    func() string // of its label, for messages
	number   int64         // among those that are good
	id       int64
	text     []byte  // the id that is text
	class    int32   // -1: missing; of labels that are numbers their bits
	label    []byte  // its cell
	classes  []int32 // instead of class and label, if the table has several classes a node
	features []float32
	bare     bool // they are missing, and zeros
	part     int  // of the split, or ingest.NoPart
}

// openNodes reads the start of a table and settles what its columns are.
func openNodes(o *Options, f form, made *Made) (*nodeTable, error) {
	n := &nodeTable{path: o.Nodes, form: f, anyText: o.IDType == "text", label: -1, zeros: o.Missing == "zeros"}
	n.apart = o.OneLabel
	n.multi.wanted = o.MultiLabel
	if !slices.Equal(o.MissingWords, []string{none}) {
		n.words = o.MissingWords
	}
	if made != nil && made.Nodes != nil {
		n.made = made
	}
	t, err := n.open()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	n.numerals = t.numerals
	if t.columns == 0 {
		return nil, fmt.Errorf("%s: there are no rows in it", n.path)
	}
	if err := n.chooseKeys(t, o); err != nil {
		return nil, err
	}
	if err := n.sampleIDs(o); err != nil {
		return nil, err
	}
	if err := n.findRoles(t, o); err != nil {
		return nil, err
	}
	if err := n.chooseFeatures(t, o); err != nil {
		return nil, err
	}
	if err := n.measure(o); err != nil {
		return nil, err
	}
	for _, i := range n.features {
		n.titles = append(n.titles, t.name(i))
	}
	n.labelled = n.labelledBy(t)
	return n, n.chooseLists(o)
}

func (n *nodeTable) open() (*table, error) {
	if n.made != nil {
		return openMade(n.path, n.made.Nodes, "node", 1, false, false)
	}
	return openTable(n.path, n.form, false, true)
}

// measure finds how many numbers the cells of features hold.
func (n *nodeTable) measure(o *Options) error {
	t, err := n.open()
	if err != nil {
		return err
	}
	defer t.Close()
	if n.widths, _, err = t.widths(n.features, n.missing); err != nil {
		return err
	}
	if dim := sum(n.widths); dim > ingest.MaxColumns {
		return fmt.Errorf("%s: %d columns of features, and %d are the most", n.path, dim, ingest.MaxColumns)
	}
	if o.Like == nil || o.Like.Silent || o.Features != "" {
		return nil
	}
	if of := o.Like.Encodings.Of(&store.Table{Name: "feat", NodeType: "node"}); of != nil && named(of) {
		return followWidths(o.Like, n.path, of, n.widths)
	}
	return nil
}

// sampleIDs settles the type of the ids by the first rows.
func (n *nodeTable) sampleIDs(o *Options) error {
	t, err := n.open()
	if err != nil {
		return err
	}
	defer t.Close()
	sample, err := sampleIDs(t, n.id)
	if err != nil || sample.rows == 0 || o.IDType == "int" {
		return err
	}
	n.text = o.IDType == "text" || sample.text()
	return sample.sure(t, o.Header, t.named(append([]string{o.ID, strings.TrimSuffix(o.Label, valueLabel), "id", "node_id", "node", "label"}, o.Columns...)...))
}

func (n *nodeTable) kind() ingest.IDs {
	switch {
	case n.text:
		return ingest.TextIDs
	case n.dense:
		return ingest.RowIDs
	}
	return ingest.IntIDs
}

// chooseKeys finds the columns of ids and labels.
func (n *nodeTable) chooseKeys(t *table, o *Options) (err error) {
	if o.ID != "" {
		if n.id, err = t.column("{id}", o.ID); err != nil {
			return err
		}
	} else {
		for _, name := range []string{"id", "node_id", "node"} {
			if i, err := t.column("", name); err == nil {
				n.id = i
				break
			}
		}
	}
	label, unlabelled := o.Label, false
	if o.Like != nil {
		label, unlabelled = n.followLabel(t, o)
	}
	if n.unlabelled = unlabelled || label == none && !t.named(none); !n.unlabelled && label != "" {
		if name, ok := strings.CutSuffix(label, valueLabel); ok && !t.named(label) {
			label, n.values = name, true
		}
		if found, err := n.severalColumns(t, label); found || err != nil {
			return err
		}
		if n.label, err = t.column("{label}", label); err != nil {
			return err
		}
	}
	if n.label == n.id {
		return fmt.Errorf("%s: %s holds both ids and labels; choose two with {id} and {label}", n.path, t.title(n.id))
	}
	return nil
}

// chooseFeatures takes the columns that were asked for, or those whose first cells are numbers.
func (n *nodeTable) chooseFeatures(t *table, o *Options) error {
	taken := map[int]bool{n.id: true}
	for _, i := range slices.Concat(n.labelColumns(), n.split.columns()) {
		taken[i] = true
	}
	followed, follows, err := n.followFeatures(t, o)
	if err != nil {
		return err
	}
	names := o.Columns
	if follows {
		names, n.features = nil, followed
	}
	for _, i := range followed {
		taken[i] = true
	}
	for _, name := range names {
		i, err := t.column("{feature_columns}", name)
		if err != nil {
			return err
		}
		if taken[i] {
			return fmt.Errorf("%s: {feature_columns} %s: it holds ids, labels or a split, or is named twice", n.path, name)
		}
		taken[i] = true
		n.features = append(n.features, i)
	}
	var rest []int
	for i := range t.columns {
		if !taken[i] {
			rest = append(rest, i)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	why := "{feature_columns} chooses others"
	switch {
	case follows:
		why = "they are no features in " + o.Like.Name
	case o.Features != "":
		why = "the features come from {node_features}"
	}
	if len(o.Columns) == 0 && o.Features == "" && !follows {
		labels := n.namedLabels(t, o)
		rest = slices.DeleteFunc(rest, func(i int) bool { return slices.Contains(labels, i) })
		n.skip(t, labels, "they are called as labels, and may tell the one to learn; {feature_columns} makes them features")
		candidates := rest
		if n.made != nil {
			candidates = slices.DeleteFunc(slices.Clone(rest), func(i int) bool { return n.made.Texts[t.name(i)] })
		}
		numbers, ids, noted, err := n.numbers(t, candidates)
		if err != nil {
			return err
		}
		n.features, why = numbers, "they do not hold numbers"
		if n.made != nil && n.label < 0 {
			why += "; {label} names one with the classes of nodes"
		}
		known := marked(t.columns, slices.Concat(numbers, ids, noted))
		rest = slices.DeleteFunc(rest, func(i int) bool { return known[i] })
		if rest, err = n.findUnread(t, rest); err != nil {
			return err
		}
		n.skip(t, ids, "their numbers look like ids; name those that are features with {feature_columns}")
	}
	n.skip(t, rest, why)
	return nil
}

func (n *nodeTable) skip(t *table, columns []int, why string) {
	if len(columns) > 0 {
		are := marked(t.columns, columns)
		titles := t.titles(func(i int) bool { return are[i] })
		n.skipped = append(n.skipped, fmt.Sprintf("%s: columns %s: %s", n.path, titles, why))
	}
}

// numbers returns the columns that hold numbers or vectors in the first rows and nothing else.
// Those with integers that float32 cannot tell from their neighbours are ids. noted are columns of
// vectors that are no features; a note gives the reason.
func (n *nodeTable) numbers(t *table, columns []int) (numbers, ids, noted []int, err error) {
	samples, _, err := t.sampleFeatures(columns, n.missing)
	if err != nil {
		return nil, nil, nil, err
	}
	for k, i := range columns {
		s := &samples[k]
		fault := s.broken
		if s.ragged() {
			fault = cmp.Or(fault, errRagged)
		}
		switch {
		case s.text:
		case s.large:
			ids = append(ids, i)
		case len(s.widths) > 0 && !s.ragged():
			numbers = append(numbers, i)
		case fault != nil:
			noted = append(noted, i)
			n.unread = append(n.unread, fmt.Sprintf("%s: column %s: %v", n.path, lines.ClipText(t.name(i)), fault))
		}
	}
	return numbers, ids, noted, nil
}

// findUnread notes the columns that hold numbers written in another way, with the option that reads
// them. It returns the other columns.
func (n *nodeTable) findUnread(t *table, columns []int) (others []int, err error) {
	spellings, err := n.spellings(columns)
	if err != nil {
		return nil, err
	}
	var names []string
	for k, i := range columns {
		names = append(names, t.name(i))
		if spellings[k].Remedy() == "" {
			others = append(others, i)
		}
	}
	for _, remedy := range lines.Remedies(names, spellings) {
		n.unread = append(n.unread, n.path+": "+remedy)
	}
	n.skipped = append(n.skipped, n.unread...)
	return others, nil
}

// spellings looks at how the first rows write the cells of columns.
func (n *nodeTable) spellings(columns []int) ([]*lines.Spelling, error) {
	list := make([]*lines.Spelling, len(columns))
	for i := range list {
		list[i] = &lines.Spelling{Numerals: n.numerals}
	}
	if len(list) == 0 || n.made != nil || isParquet(n.path) {
		return list, nil
	}
	t, err := n.open()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	_, err = t.sample(sampleRows, func(cells [][]byte) {
		for k, i := range columns {
			if i < len(cells) && !n.missing(cells[i]) && !ingest.MayBeMissing(string(cells[i])) {
				list[k].Add(cells[i])
			}
		}
	})
	return list, err
}

// each reads the table row by row, with or without its features. If bad rows may be passed over, it
// reads the features all the same, so that a row that is bad for one section is bad for all.
func (n *nodeTable) each(ctx context.Context, features bool, visit func(r *nodeRow) error) error {
	t, err := n.open()
	if err != nil {
		return err
	}
	defer t.Close()
	t.anyText = n.anyText
	features = features || !n.forgive.None()
	r := nodeRow{place: func() string { return t.place(t.at, n.label+1) }}
	for read := 0; ; read++ {
		if read%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		cells, err := t.next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = n.read(t, cells, features, &r)
		}
		if err != nil {
			if err := t.judge(n.forgive, err); err != nil {
				return err
			}
			continue
		}
		if err := visit(&r); err != nil {
			return err
		}
		r.number++
	}
}

func (n *nodeTable) read(t *table, cells [][]byte, features bool, r *nodeRow) (err error) {
	if n.text {
		r.text, err = t.text(cells, n.id)
	} else {
		r.id, err = t.id(cells, n.id)
	}
	if r.bare = err == nil && n.zeros && n.isBare(cells); !features {
		r.features = r.features[:0]
	} else if r.bare {
		r.features = append(r.features[:0], make([]float32, sum(n.widths))...)
	} else if err == nil {
		r.features, err = n.appendRow(r.features[:0], t, cells)
	}
	if r.part = ingest.NoPart; err == nil && n.split.set() {
		r.part, err = n.split.of(t, cells)
	}
	switch { // the last, so that classes are of good rows only
	case err != nil || n.label < 0:
	case n.multi.set():
		err = n.readClasses(t, cells, r)
	default:
		r.class, r.label, err = n.class(t, cells)
	}
	return err
}

// scan counts the rows and finds the classes.
func (n *nodeTable) scan(ctx context.Context) error {
	n.rows, n.dense, n.classes, n.names, n.learning = 0, !n.text, nil, nil, true
	names, numbers, many := map[string]int32{}, true, false
	least, labelled := int64(math.MaxInt64), 0 // of the labels that are numbers
	n.multi.oneHot = n.multi.columns != nil && !n.multi.wanted
	err := n.each(ctx, true, func(r *nodeRow) error {
		n.dense = n.dense && r.id == r.number
		n.rows++
		if n.multi.set() {
			_, one := single(r.classes)
			n.multi.oneHot = n.multi.oneHot && one
			return nil
		}
		if n.label < 0 || n.values || n.missing(r.label) {
			return nil
		}
		labelled++
		if v, ok := n.numerals.Integer(r.label); !ok {
			numbers = false
		} else if v >= 0 {
			least = min(least, v)
		}
		if _, known := names[string(r.label)]; !known && !many {
			names[string(r.label)] = 0
			if len(names) > maxClassNames {
				names, many = nil, true
			}
		}
		if many && !numbers {
			return fmt.Errorf("%s: %s: more than %d different labels are not classes; choose another {label}",
				n.path, r.place(), maxClassNames)
		}
		return nil
	})
	n.learning = false
	if err == nil && n.rows == 0 {
		err = fmt.Errorf("%s: there are no rows in it", n.path)
	}
	if err == nil && n.multi.set() {
		return n.settleClasses()
	}
	if name := ingest.ListsLabels(names); err == nil && name != "" && !n.apart {
		return n.ask("column %s: is %q several labels of one node? {multi_label} reads each as a class, and {multi_label}=false "+
			"makes a class of each text", lines.ClipText(n.labelled), lines.ClipText(name))
	}
	if err == nil && !numbers && len(names) > 100 && 2*len(names) > labelled {
		err = fmt.Errorf("%s: column %d: %d different labels on %d nodes are not classes; choose another {label}",
			n.path, n.label+1, len(names), labelled)
	}
	if err != nil || numbers && (least == 0 || many || labelled == 0) {
		return err
	}
	n.classes = names
	if numbers {
		n.nameNumbers()
	} else {
		n.nameTexts()
	}
	return nil
}

// nameTexts makes each text a class of its name.
func (n *nodeTable) nameTexts() {
	n.names = slices.Sorted(maps.Keys(n.classes))
	for i, name := range n.names {
		n.classes[name] = int32(i)
		n.names[i] = strings.ToValidUTF8(name, "\uFFFD")
	}
}

// nameNumbers makes a class of each number, for numbers that do not count from 0: 1…6, or years.
func (n *nodeTable) nameNumbers() {
	var values []int64
	for text := range n.classes {
		if v, _ := n.numerals.Integer([]byte(text)); v >= 0 {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	for _, v := range values {
		n.names = append(n.names, strconv.FormatInt(v, 10))
	}
	for text := range n.classes {
		v, _ := n.numerals.Integer([]byte(text))
		i, ok := slices.BinarySearch(values, v)
		if n.classes[text] = int32(i); !ok {
			n.classes[text] = -1
		}
	}
}

// class reads the label of a row; while classes are learnt, only its cell.
func (n *nodeTable) class(t *table, cells [][]byte) (class int32, cell []byte, err error) {
	cell, err = t.cell(cells, n.label)
	cell = ingest.LabelText(cell)
	switch {
	case err == nil && n.values:
		class, err = n.value(cell)
		return class, cell, err
	case err != nil || n.missing(cell):
		return -1, cell, err
	case len(cell) > maxClassName:
		return 0, cell, bad(n.label+1, "a label of %d bytes is not a class; choose another {label}", len(cell))
	case n.learning:
		return 0, cell, nil
	case n.classes != nil:
		class, ok := n.classes[string(cell)]
		if !ok {
			return 0, cell, t.ErrorIn(n.label+1, "label %q is new; the file changed while it was read", lines.ClipText(string(cell)))
		}
		return class, cell, nil
	}
	v, ok := n.numerals.Integer(cell)
	if !ok || v > math.MaxInt32 {
		return 0, cell, t.ErrorIn(n.label+1, "%q is not the number of a class", lines.Clip(cell))
	}
	return int32(max(v, -1)), cell, nil
}

// value is the bits of a label that is a number, NaN where it is missing.
func (n *nodeTable) value(cell []byte) (bits int32, err error) {
	x := math.NaN()
	if !n.missing(cell) {
		if x, err = n.numerals.Float(cell, 32); err != nil || math.IsInf(x, 0) {
			remedy := cmp.Or(n.numerals.Spelled(cell), "choose another {label}, or leave out the "+valueLabel+" behind it")
			return 0, bad(n.label+1, "%q is not a finite number of 32 bits; %s", lines.Clip(cell), remedy)
		}
	}
	return int32(math.Float32bits(float32(x))), nil
}

// isBare reports whether all cells of features are empty.
func (n *nodeTable) isBare(cells [][]byte) bool {
	return !slices.ContainsFunc(n.features, func(i int) bool { return i >= len(cells) || !n.missing(cells[i]) })
}

// appendRow appends the features of a row, NaN where one is missing.
func (n *nodeTable) appendRow(dst []float32, t *table, cells [][]byte) ([]float32, error) {
	for k, i := range n.features {
		cell, err := t.cell(cells, i)
		if err != nil {
			return dst, err
		}
		if n.missing(cell) {
			remedy := ""
			if n.isBare(cells) {
				remedy = ", or say {missing_features} zeros"
			}
			return dst, bad(i+1, "a feature is missing; fill it in, or choose other columns with {feature_columns}%s", remedy)
		}
		if dst, err = t.appendCell(dst, cells, i, n.widths[k], "choose the columns of features with {feature_columns}"); err != nil {
			return dst, err
		}
	}
	return dst, nil
}
