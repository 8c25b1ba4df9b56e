package data

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// EdgeLabel is the label that is learnt of the edges of Links.Relation: classes, or numbers. A
// column of these edges holds it.
type EdgeLabel struct {
	Name   string            // of the column
	Column *store.EdgeColumn // nil on another dataset than it was learnt on, which need not have it
	// Classes are the names of the classes, in the order of their numbers; nil where numbers are
	// learnt.
	Classes []string
	// Train is the number of training edges of each class.
	Train []int64
	// Most is the largest magnitude of the values that are trained on.
	Most float64
	// Mean is the mean of the values that are trained on.
	Mean float64

	sign   bool
	values []float64 // the column's different values, ascending, where each is a class
}

// What follows the column in Options.EdgeLabel. Without any each different value is a class.
const (
	signLabel  = "sign"  // two classes: negative values, and all others
	valueLabel = "value" // the values are numbers to learn
)

// maxEdgeClasses is the most different values of a column that are taken for classes.
const maxEdgeClasses = 1000

// openEdgeLabel finds the column that text names, and its classes in all parts of the split.
func (d *Data) openEdgeLabel(text string, gather func(own []byte) ([][]byte, error)) error {
	r := &d.Relations[d.Links.Relation]
	name, kind, named := strings.Cut(text, ":")
	column := r.Column(name)
	switch there := r.columnNames(); {
	case name == "" || named && kind != signLabel && kind != valueLabel:
		return d.fail("{edge_label} %s: write COLUMN, whose different values are classes; COLUMN:sign, negative values and the others; or COLUMN:value, numbers",
			text)
	case column == nil || name == store.EdgeID:
		return d.fail("{edge_label} %s: the edges of relation %s have no column %s to learn; there are %s", text, r.Relation.Key(), name, some(there))
	}
	l := &EdgeLabel{Name: name, Column: column, sign: kind == signLabel}
	if d.Links.Valid.Len()+d.Links.Test.Len() == 0 {
		return d.fail("the edge split of relation %s holds no edges out, so there is nothing to measure by; ingest it again with larger shares",
			r.Relation.Key())
	}
	if d.OwnPart() != nil && gather == nil {
		return d.fail("{edge_label} %s: a part has the values of only some edges; "+
			"give the directory of all parts, or the whole dataset", text)
	}
	d.EdgeLabel = l
	return store.Guard(func() error { return d.findEdgeClasses(text, kind, gather) })
}

// findEdgeClasses reads the column in all parts of the split.
func (d *Data) findEdgeClasses(text, kind string, gather func(own []byte) ([][]byte, error)) error {
	l, r := d.EdgeLabel, &d.Relations[d.Links.Relation]
	seen := map[float64]int64{} // edges that are trained on, by class
	class := func(x float64) float64 {
		if kind == signLabel {
			return float64(l.Class(x))
		}
		return x
	}
	add := func(x float64, edges int64) error { // x is a class
		if seen[x] += edges; kind != valueLabel && len(seen) > maxEdgeClasses {
			return d.fail("{edge_label} %s: column %s of relation %s has more than %d different values, which are no classes; take %s:value to learn them as "+
				"numbers, or %s:sign", text, l.Column.Column.Name, r.Relation.Key(), maxEdgeClasses, l.Column.Column.Name, l.Column.Column.Name)
		} else if kind == valueLabel && len(seen) > 1 {
			clear(seen) // they need only be finite
		}
		return nil
	}
	for v := range uint32(r.Nodes()) {
		b := l.Column.Bytes(v)
		for i := range len(b) / l.Column.Column.Elem.Size() {
			x := l.Column.Number(b, i)
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return l.Column.CorruptValue(v, i, float32(x))
			}
			if err := add(class(x), 1); err != nil {
				return err
			}
			l.Most = max(l.Most, math.Abs(x))
			l.Mean += x
		}
	}
	if d.OwnPart() != nil {
		if err := l.combine(seen, add, gather); err != nil {
			return err
		}
	}
	edges := d.AllEdges(d.Links.Relation)
	l.Mean /= float64(max(edges, 1))
	for p, h := range []store.HeldEdges{d.Links.Valid, d.Links.Test} {
		values, err := d.HeldValues(h, store.HeldPart(p), l.Column)
		if err != nil {
			return err
		}
		for i := range h.Len() {
			x := l.Column.Number(values, i)
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return d.corrupt("%v edge %d of relation %s has %v for column %s", store.HeldPart(p), i, r.Relation.Key(), x, l.Column.Column.Name)
			}
			if err := add(class(x), 0); err != nil {
				return err
			}
		}
	}
	if kind == valueLabel {
		return nil
	}
	for x := range seen {
		l.values = append(l.values, x)
	}
	slices.Sort(l.values)
	trained := 0
	for _, x := range l.values {
		l.Classes, l.Train = append(l.Classes, strconv.FormatFloat(x, 'g', -1, 64)), append(l.Train, seen[x])
		if seen[x] > 0 {
			trained++
		}
	}
	if trained < 2 {
		only := l.values[slices.IndexFunc(l.Train, func(n int64) bool { return n > 0 })]
		what := fmt.Sprintf("the value %g", only)
		if l.sign {
			what = signClasses[int(only)] + " values"
		}
		return d.fail("{edge_label} %s: all %d edges of relation %s that are trained on have %s, so there is nothing to tell apart; name another column, "+
			"or one of its forms", text, edges, r.Relation.Key(), what)
	}
	if l.sign {
		l.Classes = signClasses[:]
	}
	return nil
}

// combine adds what other workers have seen in their parts. seen counts this part's edges by class,
// and add counts another's.
func (l *EdgeLabel) combine(
	seen map[float64]int64, add func(x float64, edges int64) error, gather func(own []byte) ([][]byte, error),
) error {
	own := appendFloats(nil, l.Most, l.Mean)
	for x, n := range seen {
		own = appendFloats(own, x, float64(n))
	}
	all, err := gather(own)
	if err != nil {
		return err
	}
	clear(seen)
	l.Most, l.Mean = 0, 0
	for _, b := range all {
		if len(b)%16 != 0 || len(b) == 0 {
			return fmt.Errorf("another worker sends %d bytes for the values that it has seen", len(b))
		}
		l.Most, l.Mean = max(l.Most, floatAt(b, 0)), l.Mean+floatAt(b, 1)
		for i := 2; i < len(b)/8; i += 2 {
			if err := add(floatAt(b, i), int64(floatAt(b, i+1))); err != nil {
				return err
			}
		}
	}
	return nil
}

func appendFloats(dst []byte, values ...float64) []byte {
	for _, x := range values {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x))
	}
	return dst
}

func floatAt(b []byte, i int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
}

// signClasses are the names of the classes of signLabel.
var signClasses = [2]string{"negative", "not negative"}

// HeldValues returns the values of a column of the relation for a part of its edge split, for
// store.EdgeColumn.Number to read.
func (d *Data) HeldValues(h store.HeldEdges, p store.HeldPart, c *store.EdgeColumn) ([]byte, error) {
	if h.Len() == 0 {
		return nil, nil
	}
	b := h.Column(c.Column.Name)
	if b == nil {
		return nil, d.fail("the %v edges of relation %s have no column %s, though the others do; ingest them with it, or split the edges by {edge_split}",
			p, c.Graph().Relation.Key(), c.Column.Name)
	}
	return b, nil
}

// edgeLabelText is the JSON form of an EdgeLabel. It has the fields that Elsewhere keeps.
type edgeLabelText struct {
	Name    string    `json:"name"`
	Classes []string  `json:"classes"`
	Train   []int64   `json:"train"`
	Sign    bool      `json:"sign,omitempty"`
	Values  []float64 `json:"values"`
}

// MarshalJSON implements [json.Marshaler], without the column.
func (l *EdgeLabel) MarshalJSON() ([]byte, error) {
	return json.Marshal(edgeLabelText{l.Name, l.Classes, l.Train, l.sign, l.values})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (l *EdgeLabel) UnmarshalJSON(text []byte) error {
	var t edgeLabelText
	if err := json.Unmarshal(text, &t); err != nil {
		return err
	}
	values := len(t.Values)
	if t.Sign {
		values = 2
	}
	if t.Classes != nil && (len(t.Classes) != values || len(t.Train) != values) || !slices.IsSorted(t.Values) {
		return fmt.Errorf("label %q of edges has %d classes, %d values and %d counts, which do not go together", t.Name, len(t.Classes), len(t.Values), len(t.Train))
	}
	*l = EdgeLabel{Name: t.Name, Classes: t.Classes, Train: t.Train, sign: t.Sign, values: t.Values}
	return nil
}

// Elsewhere returns the label for use on another dataset: without its column.
func (l *EdgeLabel) Elsewhere() *EdgeLabel {
	return &EdgeLabel{Name: l.Name, Classes: l.Classes, Train: l.Train, sign: l.sign, values: l.values}
}

// Numbers reports whether numbers are learnt, not classes.
func (l *EdgeLabel) Numbers() bool { return l.Classes == nil }

// Class returns the class of a value of the column. A value that has no class panics.
func (l *EdgeLabel) Class(x float64) uint32 {
	if l.sign {
		if x < 0 {
			return 0
		}
		return 1
	}
	i, ok := slices.BinarySearch(l.values, x)
	if !ok {
		panic(fmt.Sprintf("data: column %s has a value that it did not have: %v", l.Column.Column.Name, x))
	}
	return uint32(i)
}

// Given returns the columns of the edges that a network reads, without the one that is learnt. They
// hold numbers, or the row of each edge in a table.
func (d *Data) Given() (columns []*store.EdgeColumn) {
	for _, c := range d.Relations[d.Links.Relation].Brought() {
		if c.Column.Name != d.EdgeLabel.Name {
			columns = append(columns, c)
		}
	}
	return columns
}

// GivenTable returns the table that a network reads edges' rows from, nil where it reads columns.
func (d *Data) GivenTable() *Type {
	if r := &d.Relations[d.Links.Relation]; r.RowIDs != nil {
		return &d.EdgeTables[r.Table]
	}
	return nil
}

// GivenDim returns the number of values that a network reads of an edge.
func (d *Data) GivenDim() int {
	if t := d.GivenTable(); t != nil {
		return t.Dim()
	}
	return len(d.Given())
}

// givenBytes bounds the values of the edges that are computed together. A copy or two of them are
// in memory.
const givenBytes = 1 << 20

// GivenAtOnce returns the number of edges to compute together, at most most: fewer where their
// values take much memory.
func (d *Data) GivenAtOnce(most int) int {
	return min(most, max(1, givenBytes/(4*max(1, d.GivenDim()))))
}

// AppendGiven appends the values that a network reads of an edge. given are the columns from Given,
// and value returns the edge's value of a column. A table's row is read through its map; a row that
// the table does not have panics with a *store.SectionError, which store.Guard returns.
func (d *Data) AppendGiven(dst []float32, given []*store.EdgeColumn, value func(c *store.EdgeColumn) float64) []float32 {
	t := d.GivenTable()
	for _, c := range given {
		x := value(c)
		if t == nil {
			dst = append(dst, float32(x))
			continue
		}
		if x >= float64(t.Nodes) {
			panic(&store.SectionError{Dataset: d.Set.Path(), Section: c.Column.Values.Path, Offset: -1,
				Err: fmt.Errorf("an edge has row %.0f, and table %s has %d; run gnnstore verify", x, t.Name, t.Nodes)})
		}
		dst = t.appendRow(dst, uint64(x))
	}
	return dst
}

// appendRow appends a row of the type's table.
func (t *Type) appendRow(dst []float32, row uint64) []float32 {
	b, n := t.Features.RowAt(row), len(dst)
	dst = append(dst, make([]float32, t.Dim())...)
	var half [1]uint16
	for i := range dst[n:] {
		if t.Features.Elem() == store.F32 {
			dst[n+i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
			continue
		}
		half[0] = binary.LittleEndian.Uint16(b[2*i:])
		kernels.HalfToFloat32(dst[n+i:n+i+1], half[:])
	}
	return dst
}

// columnNames returns the names of the columns of the relation's edges, but for store.EdgeID.
func (r *Relation) columnNames() (names []string) {
	for _, c := range r.Relation.Columns {
		if c.Name != store.EdgeID {
			names = append(names, c.Name)
		}
	}
	return names
}
