package edgelist

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/lines"
)

const (
	maxColumns    = 1 << 22 // 16 MiB a row
	sampleRows    = 100     // by which columns of numbers are told
	maxClassNames = 1 << 16
	maxClassName  = 256 // bytes
)

// nodeTable is the form of a table of nodes.
type nodeTable struct {
	path     string
	header   string // as in Options
	id       int    // column
	label    int    // column, -1 without
	features []int  // columns
	names    []string
	skipped  []string

	rows    int64
	dense   bool             // the id of every row is its number
	classes map[string]int32 // by text; nil: labels are the numbers of classes
}

// openNodes reads the start of a table and settles what its columns are.
func openNodes(o *Options) (*nodeTable, error) {
	n := &nodeTable{path: o.Nodes, header: o.Header, label: -1}
	t, err := openTable(n.path, n.header, false)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if t.columns == 0 {
		return nil, fmt.Errorf("%s: there are no rows in it", n.path)
	}
	if err := n.chooseKeys(t, o); err != nil {
		return nil, err
	}
	if err := n.chooseFeatures(t, o); err != nil {
		return nil, err
	}
	return n, nil
}

// chooseKeys finds the columns of ids and labels.
func (n *nodeTable) chooseKeys(t *table, o *Options) (err error) {
	if o.ID != "" {
		if n.id, err = t.column("--id", o.ID); err != nil {
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
	if o.Label != "" {
		if n.label, err = t.column("--label", o.Label); err != nil {
			return err
		}
	} else if i, err := t.column("", "label"); err == nil {
		n.label = i
	}
	if n.label == n.id {
		return fmt.Errorf("%s: %s holds both ids and labels; choose two with --id and --label", n.path, t.title(n.id))
	}
	return nil
}

// chooseFeatures takes the columns that were asked for, or those whose first cells are numbers.
func (n *nodeTable) chooseFeatures(t *table, o *Options) error {
	taken := map[int]bool{n.id: true, n.label: true}
	for _, name := range o.Columns {
		i, err := t.column("--feature-columns", name)
		if err != nil {
			return err
		}
		if taken[i] {
			return fmt.Errorf("%s: --feature-columns %s: it holds ids or labels, or is named twice", n.path, name)
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
		return n.tooMany()
	}
	why := "--feature-columns chooses others"
	if o.Features != "" {
		why = "the features come from --node-features"
	}
	if len(o.Columns) == 0 && o.Features == "" {
		numbers, ids, err := n.numbers(t, rest)
		if err != nil {
			return err
		}
		n.features, why = numbers, "they do not hold numbers"
		rest = slices.DeleteFunc(rest, func(i int) bool { return slices.Contains(numbers, i) || slices.Contains(ids, i) })
		n.skip(t, ids, "their numbers look like ids; name those that are features with --feature-columns")
	}
	n.skip(t, rest, why)
	return n.tooMany()
}

func (n *nodeTable) skip(t *table, columns []int, why string) {
	if len(columns) > 0 {
		titles := t.titles(func(i int) bool { return slices.Contains(columns, i) })
		n.skipped = append(n.skipped, fmt.Sprintf("%s: columns %s: %s", n.path, titles, why))
	}
}

func (n *nodeTable) tooMany() error {
	if len(n.features) > maxColumns {
		return fmt.Errorf("%s: %d columns of features, and %d are the most", n.path, len(n.features), maxColumns)
	}
	return nil
}

// numbers are the columns that hold a number in some of the first rows, and nothing else in any. Those among them with
// integers that float32 cannot tell from their neighbours are ids.
func (n *nodeTable) numbers(t *table, columns []int) (numbers, ids []int, err error) {
	some, large := map[int]bool{}, map[int]bool{}
	for range sampleRows {
		cells, err := t.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		columns = slices.DeleteFunc(slices.Clone(columns), func(i int) bool {
			if i >= len(cells) || missing(cells[i]) {
				return false
			}
			_, err := strconv.ParseFloat(string(cells[i]), 32)
			some[i] = some[i] || err == nil
			v, whole := integer(cells[i])
			large[i] = large[i] || whole && (v > 1<<24 || v < -1<<24)
			return err != nil && !isRange(err)
		})
	}
	for _, i := range columns {
		if large[i] {
			ids = append(ids, i)
		} else if some[i] {
			numbers = append(numbers, i)
		}
	}
	return numbers, ids, nil
}

// each reads the table: visit gets the cells of each row, lent for the call.
func (n *nodeTable) each(ctx context.Context, visit func(t *table, row int64, cells [][]byte) error) error {
	t, err := openTable(n.path, n.header, false)
	if err != nil {
		return err
	}
	defer t.Close()
	for row := int64(0); ; row++ {
		if row%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		cells, err := t.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(t, row, cells); err != nil {
			return err
		}
	}
}

// scan counts the rows and finds the classes.
func (n *nodeTable) scan(ctx context.Context) error {
	n.rows, n.dense, n.classes, n.names = 0, true, nil, nil
	names, numbers, many := map[string]int32{}, true, false
	least, labelled := int64(math.MaxInt64), 0 // of the labels that are numbers
	err := n.each(ctx, func(t *table, row int64, cells [][]byte) error {
		id, err := t.id(cells, n.id)
		if err != nil {
			return err
		}
		n.dense = n.dense && id == row
		n.rows++
		if n.label < 0 {
			return nil
		}
		cell, err := t.cell(cells, n.label)
		if err != nil || missing(cell) {
			return err
		}
		if len(cell) > maxClassName {
			return t.ErrorIn(n.label+1, "a label of %d bytes is not a class; choose another --label", len(cell))
		}
		labelled++
		if v, ok := integer(cell); !ok {
			numbers = false
		} else if v >= 0 {
			least = min(least, v)
		}
		if _, known := names[string(cell)]; !known && !many {
			names[string(cell)] = 0
			if len(names) > maxClassNames {
				names, many = nil, true
			}
		}
		if many && !numbers {
			return t.ErrorIn(n.label+1, "more than %d different labels are not classes; choose another --label", maxClassNames)
		}
		return nil
	})
	if err == nil && n.rows == 0 {
		err = fmt.Errorf("%s: there are no rows in it", n.path)
	}
	if err == nil && !numbers && len(names) > 100 && 2*len(names) > labelled {
		err = fmt.Errorf("%s: column %d: %d different labels on %d nodes are not classes; choose another --label",
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
		if v, _ := integer([]byte(text)); v >= 0 {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	for _, v := range values {
		n.names = append(n.names, strconv.FormatInt(v, 10))
	}
	for text := range n.classes {
		v, _ := integer([]byte(text))
		i, ok := slices.BinarySearch(values, v)
		if n.classes[text] = int32(i); !ok {
			n.classes[text] = -1
		}
	}
}

// class reads the label of a row.
func (n *nodeTable) class(t *table, cells [][]byte) (int32, error) {
	cell, err := t.cell(cells, n.label)
	if err != nil || missing(cell) {
		return -1, err
	}
	if n.classes != nil {
		class, ok := n.classes[string(cell)]
		if !ok {
			return 0, t.ErrorIn(n.label+1, "label %q is new; the file changed while it was read", clipText(string(cell)))
		}
		return class, nil
	}
	v, ok := integer(cell)
	if !ok || v > math.MaxInt32 {
		return 0, t.ErrorIn(n.label+1, "%q is not the number of a class", lines.Clip(cell))
	}
	return int32(max(v, -1)), nil
}

// appendRow appends the features of a row, NaN where one is missing.
func (n *nodeTable) appendRow(dst []float32, t *table, cells [][]byte) ([]float32, error) {
	for _, i := range n.features {
		cell, err := t.cell(cells, i)
		if err != nil {
			return dst, err
		}
		if missing(cell) {
			return dst, t.ErrorIn(i+1, "a feature is missing; fill it in, or choose other columns with --feature-columns")
		}
		v, err := strconv.ParseFloat(string(cell), 32)
		if err != nil && !isRange(err) { // what is too large becomes infinite, and the builder refuses it
			return dst, t.ErrorIn(i+1, "%q is not a number; choose the columns of features with --feature-columns",
				clipText(string(cell)))
		}
		dst = append(dst, float32(v))
	}
	return dst, nil
}
