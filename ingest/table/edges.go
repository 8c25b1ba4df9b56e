package table

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/parquet"
	"github.com/gnnstore/gnnstore/store"
)

const (
	anyRelation  = "*"
	maxRelations = 1 << 12 // of one file: each is a reading of it
)

// edges is one entry: a relation, or as many as a column has values.
type edges struct {
	entry
	src, relation, dst string // of node types, and the relation's name, or anyRelation
	by                 column
	from, to           column
	columns            []edgeColumn
	tables             []matrix

	srcIDs, dstIDs ids
	relations      *ingest.Category // of by
	known          bool             // relations come from the dataset to follow
	names          []string         // of relations, clean
	counts         []int64          // of their edges
	empty          int64            // rows without an end that the last reading passed over
}

// edgeColumn is a value of every edge.
type edgeColumn struct {
	column
	name string
	elem store.Elem
	unit lines.Unit // of dates, where the type is a unit
}

// edgeReader reads rows of edges whole.
type edgeReader struct {
	*edges
	columns  []column
	features *featureReader
	learning bool

	src, dst         int64
	srcText, dstText []byte
	values           []uint64
	dates            []*lines.Dates // of columns of I64; nil of others
	kind             int32          // of the relations
	srcBuf, dstBuf   []byte
	token            []byte
}

// reader returns a reader of rows with the features of tables.
func (e *edges) reader(learning bool, tables []matrix) *edgeReader {
	r := &edgeReader{
		edges: e, features: newFeatureReader(tables, e.form.numerals), learning: learning,
		values: make([]uint64, len(e.columns)),
		srcBuf: make([]byte, 0, 24), dstBuf: make([]byte, 0, 24), token: make([]byte, 0, 32),
	}
	r.columns = r.features.columns()
	for _, c := range e.columns {
		r.columns = append(r.columns, c.column)
		dates := &lines.Dates{Unit: cmp.Or(c.unit, lines.Second), Alone: c.unit != 0}
		if c.elem != store.I64 {
			dates = nil
		}
		r.dates = append(r.dates, dates)
	}
	r.columns = append(r.columns, e.from, e.to)
	if e.by.set() {
		r.columns = append(r.columns, e.by)
	}
	return r
}

func (r *edgeReader) each(ctx context.Context, forgive forgiver, visit func(path string) error) error {
	r.empty = 0
	return r.edges.each(ctx, forgive, r.columns, func(path string, cells []value) error {
		if r.skipEmpty {
			if i := len(cells) - r.ends(); isMissing(&cells[i]) || isMissing(&cells[i+1]) {
				r.empty++
				return nil
			}
		}
		if err := r.read(cells); err != nil {
			return err
		}
		return visit(path)
	})
}

// ends is the number of cells from the source's on.
func (r *edgeReader) ends() int {
	if r.by.set() {
		return 3
	}
	return 2
}

func (r *edgeReader) read(cells []value) (err error) {
	if err := r.features.read(cells, r.learning); err != nil {
		return err
	}
	i := len(r.features.columns())
	for k, c := range r.edges.columns {
		if r.values[k], err = bitsOf(&cells[i], c.elem, r.dates[k], r.form.numerals); err != nil {
			return &rowError{c.text, err}
		}
		i++
	}
	if r.src, r.srcText, err = r.srcIDs.id(&cells[i], r.srcBuf, r.form.numerals); err != nil {
		return &rowError{r.from.text, err}
	}
	if r.dst, r.dstText, err = r.dstIDs.id(&cells[i+1], r.dstBuf, r.form.numerals); err != nil {
		return &rowError{r.to.text, err}
	}
	r.kind = 0
	if r.by.set() {
		t, there, err := relationOf(&cells[i+2], r.token)
		switch {
		case err != nil:
		case !there:
			err = fmt.Errorf("a relation is missing")
		case !r.learning:
			r.kind, err = r.relations.Of(t)
		default:
			r.relations.Learn(t)
		}
		if err != nil {
			return &rowError{r.by.text, err}
		}
	}
	if r.learning {
		r.features.learn(cells, true)
	}
	return nil
}

// relationOf reads the name of a relation as it stands: nan is one, and 007 is not 7.
func relationOf(v *value, buf []byte) (ingest.Token, bool, error) {
	if v.Kind != parquet.Text {
		return tokenOf(v, buf)
	}
	if len(v.Text) > ingest.MaxCategory {
		return ingest.Token{}, false, fmt.Errorf("%d bytes are no name of a relation", len(v.Text))
	}
	return ingest.Token{Text: v.Text}, len(v.Text) > 0, nil
}

// bitsOf reads the value of an edge's column. dates reads dates where the column may have some.
func bitsOf(v *value, elem store.Elem, dates *lines.Dates, numerals lines.Numerals) (uint64, error) {
	if elem == store.F32 {
		f, err := number(v, numerals)
		return uint64(math.Float32bits(float32(f))), err
	}
	// Dates also look at numbers, since all cells of a column have one form.
	if dates != nil && v.Kind != parquet.Null && v.Kind != parquet.List {
		var buf [24]byte
		if n, dated, err := dates.Count(textOf(v, buf[:0])); dated || err != nil {
			return uint64(n), err
		}
	}
	n, ok := v.Int, v.Kind == parquet.Int
	switch v.Kind {
	case parquet.Null:
		return 0, fmt.Errorf("a value is missing; fill it in, or leave the column out")
	case parquet.Float:
		n, ok = lines.Whole(v.Float)
	case parquet.Text:
		n, ok = wholeText(v.Text, numerals)
	}
	switch {
	case !ok && v.Kind == parquet.Text:
		_, err := numerals.Float(v.Text, 64)
		_, _, dated := lines.ParseInstant(v.Text)
		switch {
		case dated:
			return 0, fmt.Errorf("%q is a date, which the type %v does not hold; say type: i64, for seconds since 1970", lines.ClipText(string(v.Text)), elem)
		case err != nil:
			remedy := cmp.Or(numerals.Spelled(v.Text), "choose another column")
			return 0, fmt.Errorf("%q is not a number; %s", lines.ClipText(string(v.Text)), remedy)
		}
		return 0, fmt.Errorf("%q is not an integer of 64 bits; round it, or keep it as f32", lines.ClipText(string(v.Text)))
	case !ok && v.Kind != parquet.Float:
		return 0, fmt.Errorf("%v are no integers; choose another column", kindOf(v))
	case !ok:
		return 0, fmt.Errorf("%v is not an integer of 64 bits; round it, or keep it as f32", v.Float)
	}
	return uint64(n), lines.Fit(n, elem)
}

// wholeText reads an integer of 64 bits.
func wholeText(text []byte, numerals lines.Numerals) (int64, bool) {
	if numerals != (lines.Numerals{}) {
		var buf [48]byte
		var ok bool
		if text, ok = numerals.Plain(buf[:0], text); !ok {
			return 0, false
		}
	}
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return n, true
	}
	return ingest.WholeText(text)
}

// settle learns what the schema needs to know; what ids are is known by now.
func (e *edges) settle(ctx context.Context, forgive forgiver) error {
	e.counts = nil
	forget(e.tables)
	if err := e.measure(ctx, e.tables); err != nil {
		return err
	}
	if !e.by.set() && !learns(e.tables) {
		e.names = []string{e.relation}
		return nil
	}
	if !e.known {
		e.relations = ingest.NewCategory(maxRelations)
	}
	r := e.reader(true, e.tables)
	rows := int64(0)
	if err := r.each(ctx, forgive, func(string) error { rows++; return nil }); err != nil {
		return err
	}
	if err := e.entry.settle(e.tables); err != nil {
		return err
	}
	if !e.by.set() {
		e.names, e.counts = []string{e.relation}, []int64{rows}
		return nil
	}
	switch {
	case e.known:
		return nil
	case rows == 0:
		return fmt.Errorf("%s: there are no rows in it to name the relations of %s:*:%s", e.files[0], e.src, e.dst)
	case !e.relations.SettleTexts():
		return fmt.Errorf("%s: line %d: relation_column: %s has more than %d different values; is it the column of relations?",
			e.schema, e.by.line, lines.ClipText(e.by.text), maxRelations)
	}
	e.names = cleanNames(e.relations.Names)
	return nil
}

// cleaned lists the names of relations that had to change, for a note; "" if none had.
func (e *edges) cleaned() string {
	if !e.by.set() {
		return ""
	}
	var changed []string
	for i, name := range e.names {
		if raw := e.relations.Names[i]; raw != name {
			changed = append(changed, fmt.Sprintf("%s is %s", raw, name))
		}
	}
	if changed == nil {
		return ""
	}
	return fmt.Sprintf("%s: names of relations that a dataset cannot have: %s", e.files[0], lines.List(changed))
}

// relation is the schema's form of the i-th.
func (e *edges) relationAt(i int) ingest.Relation {
	r := ingest.Relation{Src: e.src, Name: e.names[i], Dst: e.dst, Edges: -1}
	if e.counts != nil {
		r.Edges = e.counts[i]
	}
	for _, c := range e.columns {
		r.Columns = append(r.Columns, ingest.EdgeColumn{Name: c.name, Elem: c.elem})
	}
	return r
}

// sampleIDs reports whether the ends in a node type look like integers.
func (e *edges) sampleIDs(ctx context.Context, nodeType string) (integers bool, err error) {
	var ends []column
	if e.src == nodeType {
		ends = append(ends, e.from)
	}
	if e.dst == nodeType && !slices.Contains(ends, e.to) {
		ends = append(ends, e.to)
	}
	integers = true
	err = e.sample(ctx, ends, func(cells []value) {
		for i := range cells {
			missing := cells[i].Kind == parquet.Null || e.skipEmpty && isMissing(&cells[i])
			integers = integers && (missing || looksInt(&cells[i], e.form.numerals))
		}
	})
	return integers, err
}
