package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/parquet"
)

const sampleRows = 1000 // by which ids and the lengths of vectors are told

// ids is the type of the ids of a node type.
type ids uint8

const (
	autoIDs ids = iota
	rowIDs
	intIDs
	textIDs
	autoTextIDs // text by the first rows
)

func (k ids) kind() ingest.IDs {
	return map[ids]ingest.IDs{
		rowIDs: ingest.RowIDs, intIDs: ingest.IntIDs, textIDs: ingest.TextIDs, autoTextIDs: ingest.TextIDs,
	}[k]
}

// each reads the entry's files, row by row: visit gets the cells of columns, and returns a
// *rowError about what may be forgiven. Rows that were forgiven count nowhere.
func (e *entry) each(
	ctx context.Context, forgive forgiver, columns []column, visit func(path string, cells []value) error,
) error {
	for _, path := range e.files {
		if err := e.eachOf(ctx, path, forgive, columns, visit); err != nil {
			return err
		}
	}
	return nil
}

func (e *entry) eachOf(
	ctx context.Context, path string, forgive forgiver, columns []column, visit func(path string, cells []value) error,
) error {
	r, err := e.form.open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	all := e.whole(columns)
	at, err := e.find(path, r.titles(), all)
	if err == nil {
		err = r.choose(at)
	}
	if err != nil {
		return err
	}
	cells := make([]value, len(all))
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		err := r.next(cells)
		if err == io.EOF {
			return nil
		}
		if err == nil && !e.wanted(cells) {
			continue
		}
		if err == nil {
			e.blank(columns, cells)
			e.at = r.lineNumber()
			err = visit(path, cells[:len(columns)])
		}
		if bad, ok := err.(*rowError); ok {
			err = forgive(path, r, bad)
		}
		if err != nil {
			return err
		}
	}
}

// forgiver decides about a bad row. If it returns nil, the row is skipped.
type forgiver func(path string, r rows, bad *rowError) error

// forgiving skips the rows that a Tolerance forgives, and words the errors of others. If the packed
// file turns out to be damaged, it reports the damage instead, which is the likelier cause.
func forgiving(t *lines.Tolerance) forgiver {
	return func(path string, r rows, bad *rowError) error { return judge(t, path, r, bad) }
}

func judge(t *lines.Tolerance, path string, r rows, bad *rowError) error {
	err := bad.err
	if bad.column != "" {
		err = fmt.Errorf("column %s: %w", lines.ClipText(bad.column), err)
	}
	place, row := r.where()
	said := fmt.Errorf("%s: %s: %w", path, place, err)
	refused := t.Forgive(path, row, said)
	if refused == nil {
		return nil
	}
	if placed := r.fail(err); placed.Error() != said.Error() {
		return placed
	}
	return refused
}

// sample reads the first rows, and passes over those that are bad: they are told when all are read.
func (e *entry) sample(ctx context.Context, columns []column, visit func(cells []value)) error {
	n := 0
	enough := func() error {
		if n++; n > sampleRows {
			return errEnough
		}
		return nil
	}
	forgive := func(string, rows, *rowError) error { return enough() }
	err := e.each(ctx, forgive, columns, func(_ string, cells []value) error {
		if err := enough(); err != nil {
			return err
		}
		visit(cells)
		return nil
	})
	if err == errEnough {
		return nil
	}
	return err
}

var errEnough = errors.New("enough rows")

// check opens every file. So a missing column, or one that is both a feature and the label, is
// refused before anything large is read.
func (e *entry) check(columns []column) error {
	e.titles = nil
	columns = e.whole(columns)
	for _, path := range e.files {
		r, err := e.form.open(path)
		if err != nil {
			return err
		}
		at, err := e.find(path, r.titles(), columns)
		if err == nil {
			if e.titles == nil {
				e.titles = map[string]string{}
				for i, c := range columns {
					e.titles[c.text] = r.titles()[at[i]]
				}
			}
			if err = e.checkLeak(path, columns, at); err == nil {
				err = r.choose(at)
			}
		}
		r.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// checkLeak refuses a feature that is the column to learn.
func (e *entry) checkLeak(path string, columns []column, at []int) error {
	for i, c := range columns {
		if c.key != "label" && c.key != "value" && c.key != "labels" {
			continue
		}
		for j, f := range columns {
			if f.key == "features" && at[i] == at[j] {
				return fmt.Errorf("%s: line %d: features: column %s of %s is the %s as well, and a network would read what it is to learn; leave it out of features",
					e.schema, f.line, lines.ClipText(f.text), path, strings.TrimSuffix(c.key, "s"))
			}
		}
	}
	return nil
}

// looksInt reports whether an id may be an integer: from 0, and without leading zeros, which would
// be lost.
func looksInt(v *value, numerals lines.Numerals) bool {
	switch v.Kind {
	case parquet.Int:
		return v.Int >= 0
	case parquet.Float:
		n, ok := lines.Whole(v.Float)
		return ok && n >= 0
	case parquet.Text:
		_, ok := numerals.ID(v.Text)
		return ok
	}
	return false
}

// id reads an id: an integer, or text, which is lent as the cell is or in buf.
func (k ids) id(v *value, buf []byte, numerals lines.Numerals) (n int64, text []byte, err error) {
	if v.Kind == parquet.Null || v.Kind == parquet.Text && lines.IsBlank(v.Text) {
		return 0, nil, fmt.Errorf("an id is missing")
	}
	if k != textIDs && k != autoTextIDs {
		ok := false
		switch v.Kind {
		case parquet.Int:
			n, ok = v.Int, true
		case parquet.Float:
			n, ok = lines.Whole(v.Float)
		case parquet.Text:
			if n, ok = numerals.ID(v.Text); !ok && lines.Rounded(v.Text) {
				return 0, nil, lines.RefuseRounded(v.Text)
			} else if !ok {
				return 0, nil, fmt.Errorf("%q is not an integer from 0 to 2⁶³-1 without leading zeros, as the ids of this node "+
					"type are; for other ids say id_type: text", lines.ClipText(string(v.Text)))
			}
		}
		switch {
		case !ok:
			return 0, nil, fmt.Errorf("%v are no ids", kindOf(v))
		case n < 0:
			return 0, nil, fmt.Errorf("id %d is negative, and the ids of this node type count from 0; for others say "+
				"id_type: text", n)
		}
		return n, nil, nil
	}
	switch v.Kind {
	case parquet.Text:
		if text = v.Text; k == autoTextIDs && lines.Spreadsheet(text) {
			return 0, nil, fmt.Errorf("%w; if it is text as it stands, say id_type: text", lines.RefuseRounded(text))
		}
	case parquet.Int:
		text = strconv.AppendInt(buf[:0], v.Int, 10)
	default:
		return 0, nil, fmt.Errorf("%v are no ids that are text; cast the column to text", kindOf(v))
	}
	if len(text) > ingest.MaxIDBytes {
		return 0, nil, fmt.Errorf("an id of %d bytes, and %d are the most", len(text), ingest.MaxIDBytes)
	}
	return 0, text, nil
}

// kindOf names the kind of a cell in messages.
func kindOf(v *value) string {
	if v.Kind == parquet.List && v.Text != nil {
		return "lists of texts"
	}
	return v.Kind.String()
}

const (
	maxOneHot  = 1 << 10 // columns of features for one of a table
	maxIndexed = 1 << 16
)

// tokenOf reads the cell of a label or category; false when it is missing. The text is lent as the
// cell is, or in buf.
func tokenOf(v *value, buf []byte) (t ingest.Token, ok bool, err error) {
	switch v.Kind {
	case parquet.Null:
		return t, false, nil
	case parquet.Int:
		return ingest.IntToken(v.Int, buf), true, nil
	case parquet.Float:
		if v.Float != v.Float {
			return t, false, nil
		}
		if n, ok := lines.Whole(v.Float); ok {
			return ingest.IntToken(n, buf), true, nil
		}
		return ingest.Token{Text: strconv.AppendFloat(buf[:0], v.Float, 'g', -1, 64)}, true, nil
	case parquet.Text:
		return ingest.LabelToken(v.Text, buf)
	}
	return t, false, fmt.Errorf("a list is no class or category")
}

// number reads a finite number, as numerals write it in text.
func number(v *value, numerals lines.Numerals) (float64, error) {
	f := v.Float
	switch v.Kind {
	case parquet.Null:
		return 0, fmt.Errorf("a number is missing; fill it in, or leave the column out")
	case parquet.Int:
		f = float64(v.Int)
	case parquet.Text:
		var err error
		f, err = numerals.Float(v.Text, 64)
		if _, _, dated := lines.ParseInstant(v.Text); dated && err != nil {
			return 0, fmt.Errorf("%q is a date, which 32 bits do not hold; write a number of it, such as its year", lines.ClipText(string(v.Text)))
		}
		if err != nil && !errors.Is(err, strconv.ErrRange) { // what is too large is infinite, and told below
			return 0, fmt.Errorf("%q is not a number; %s", lines.ClipText(string(v.Text)),
				cmp.Or(numerals.Spelled(v.Text), "if they are categories, list the column under categorical"))
		}
	case parquet.List:
		return 0, fmt.Errorf("a list, and one number is expected")
	}
	if math.Abs(f) <= math.MaxFloat32 {
		return f, nil
	}
	return 0, fmt.Errorf("%v is not a finite number of 32 bits", f)
}

// appendNumbers appends a cell that is a number or a vector: a list, or text as
// [lines.Numerals.AppendVector] reads it.
func appendNumbers(dst []float32, v *value, numerals lines.Numerals) ([]float32, error) {
	return appendCell(dst, v, numerals, numerals.AppendVector)
}

// appendFloats is appendNumbers for numbers that are scaled before they become float32.
func appendFloats(dst []float64, v *value, numerals lines.Numerals) ([]float64, error) {
	return appendCell(dst, v, numerals, numerals.AppendFloats)
}

func appendCell[F float32 | float64](
	dst []F, v *value, numerals lines.Numerals, vector func(dst []F, cell []byte) ([]F, error),
) ([]F, error) {
	switch {
	case v.Kind == parquet.List && v.Text != nil:
		return dst, errors.New("a list of texts, and numbers are expected; nodes may have it as labels")
	case v.Kind == parquet.List:
		for _, f := range v.List {
			if math.IsNaN(f) || math.Abs(f) > math.MaxFloat32 {
				return dst, fmt.Errorf("%v in a list is not a finite number of 32 bits", f)
			}
			dst = append(dst, F(f))
		}
		return dst, nil
	case v.Kind == parquet.Text && numerals.IsVector(v.Text):
		return vector(dst, v.Text)
	}
	f, err := number(v, numerals)
	return append(dst, F(f)), err
}

// measure finds how many numbers the cells of features hold: most cells of the first rows.
func (e *entry) measure(ctx context.Context, tables []matrix) error {
	var columns []column
	var wanted []*feature
	for _, t := range tables {
		for _, f := range t.features {
			if f.numeric() {
				columns, wanted = append(columns, f.column), append(wanted, f)
			}
		}
	}
	if len(wanted) == 0 {
		return e.checkWidth(tables)
	}
	votes := make([]map[int]int, len(wanted))
	for i := range votes {
		votes[i] = map[int]int{}
	}
	var scratch []float32
	problem := make([]error, len(wanted))
	err := e.sample(ctx, columns, func(cells []value) {
		for i := range cells {
			if m := wanted[i].missing; m != "" && m != refuse && isMissing(&cells[i]) {
				continue
			}
			var err error
			if scratch, err = appendNumbers(scratch[:0], &cells[i], e.form.numerals); err == nil {
				votes[i][len(scratch)]++
			} else if problem[i] == nil {
				problem[i] = err
			}
		}
	})
	if err != nil {
		return err
	}
	for i, f := range wanted {
		if f.known {
			if len(votes[i]) > 0 && votes[i][f.dim] == 0 {
				return fmt.Errorf("%s: line %d: features: column %s of %s has no cells of %d numbers, as the dataset to follow has; name another column, or leave {like} out",
					e.schema, f.line, lines.ClipText(f.text), e.files[0], f.dim)
			}
			continue
		}
		for dim, n := range votes[i] {
			if best := votes[i][f.dim]; dim > 0 && (n > best || n == best && dim < f.dim) {
				f.dim = dim
			}
		}
		switch {
		case f.dim > 0:
		case problem[i] != nil:
			return fmt.Errorf("%s: line %d: features: column %s of %s: %w",
				e.schema, f.line, lines.ClipText(f.text), e.files[0], problem[i])
		default:
			return fmt.Errorf("%s: line %d: features: column %s of %s has no numbers in its first rows",
				e.schema, f.line, lines.ClipText(f.text), e.files[0])
		}
	}
	return e.checkWidth(tables)
}

// checkWidth refuses more columns, and more ranks, than a dataset may have.
func (e *entry) checkWidth(tables []matrix) error {
	for _, t := range tables {
		if dim := t.width(); dim > ingest.MaxColumns {
			return fmt.Errorf("%s: line %d: table %s has %d columns, and %d are the most",
				e.schema, e.line, t.name, dim, ingest.MaxColumns)
		}
	}
	return e.checkRanked(tables)
}

// featureReader reads the cells of one table after the other, in the order of its columns: rows
// gets a row of each.
type featureReader struct {
	tables  []matrix
	rows    [][]float32
	buf     []byte
	numbers []float32
	floats  []float64 // of a feature that is scaled
	dates   map[*feature]*lines.Dates

	numerals lines.Numerals
	unfilled bool // missing numbers are NaN, whatever the schema fills in
}

func newFeatureReader(tables []matrix, numerals lines.Numerals) *featureReader {
	rows := make([][]float32, len(tables))
	r := &featureReader{
		tables: tables, numerals: numerals, rows: rows, buf: make([]byte, 0, 32), dates: map[*feature]*lines.Dates{},
	}
	for _, t := range tables {
		for _, f := range t.features {
			if f.dates != nil {
				r.dates[f] = &lines.Dates{}
			}
		}
	}
	return r
}

func (r *featureReader) columns() (list []column) {
	for _, t := range r.tables {
		for _, f := range t.features {
			list = append(list, f.column)
		}
	}
	return list
}

func (r *featureReader) read(cells []value, learn bool) error {
	i := 0
	for k, t := range r.tables {
		row := r.rows[k][:0]
		for _, f := range t.features {
			var err error
			if row, err = r.append(row, f, &cells[i], learn); err != nil {
				r.rows[k] = row
				return &rowError{f.text, err}
			}
			i++
		}
		r.rows[k] = row
	}
	return nil
}

func (r *featureReader) append(row []float32, f *feature, v *value, learn bool) ([]float32, error) {
	if f.category == nil && f.hashed == 0 {
		if isMissing(v) {
			if learn && f.missing != "" && f.missing != refuse {
				return row, nil // nobody looks at the row
			}
			before := len(row)
			row, err := f.stand(row)
			for i := before; r.unfilled && err == nil && i < min(before+f.dim, len(row)); i++ {
				row[i] = float32(math.NaN())
			}
			return row, err
		}
		row, err := r.appendNumbers(row, f, v, learn)
		if f.missing == indicate {
			row = append(row, 0)
		}
		return row, err
	}
	t, there, err := tokenOf(v, r.buf)
	if f.hashed > 0 && v.Kind == parquet.Text && len(v.Text) > ingest.MaxCategory {
		t, there, err = ingest.Token{Text: v.Text}, true, nil // a text of any length has a hash
	}
	if err != nil || learn {
		return row, err
	}
	if f.hashed > 0 {
		return f.appendHashed(row, t, there), nil
	}
	id := int32(-1)
	if there {
		taken := false
		if f.category.Unknown(t) {
			id, taken = f.takes()
		}
		if !taken {
			if id, err = f.category.Of(t); err != nil {
				return row, err
			}
		}
	}
	if f.index {
		return append(row, float32(id)), nil
	}
	for i := range f.width() {
		one := float32(0)
		if int32(i) == id {
			one = 1
		}
		row = append(row, one)
	}
	return row, nil
}

// appendNumbers appends the numbers of a cell that is not missing. While the table is learnt, the
// numbers that scales will change are left out.
func (r *featureReader) appendNumbers(row []float32, f *feature, v *value, learn bool) ([]float32, error) {
	if f.dates != nil {
		t, err := f.dates.read(v, r.dates[f])
		if err != nil || learn {
			return row, err
		}
		return f.dates.append(row, t, f.scaler), nil
	}
	before, n := len(row), 0
	var err error
	if f.scaler == nil {
		row, err = appendNumbers(row, v, r.numerals)
		n = len(row) - before
	} else {
		r.floats, err = appendFloats(r.floats[:0], v, r.numerals)
		n = len(r.floats)
	}
	switch {
	case err != nil:
		return row, err
	case n != f.dim:
		return row, fmt.Errorf("%d numbers, and %d in most rows; vectors are of one length", n, f.dim)
	case f.scaler != nil && !learn:
		for i, x := range r.floats {
			row = append(row, float32(f.scaler.scale(i, x)))
		}
	}
	return row, nil
}

// learnNumbers adds the numbers, or the date, of a cell of a row that is good.
func (r *featureReader) learnNumbers(f *feature, v *value) {
	missing := isMissing(v)
	if f.missing == mean {
		if r.numbers = r.numbers[:0]; !missing {
			r.numbers, _ = appendNumbers(r.numbers, v, r.numerals)
		}
		f.average.learn(r.numbers)
	}
	r.floats = r.floats[:0]
	switch {
	case f.dates != nil && !missing:
		t, err := f.dates.read(v, r.dates[f])
		if err != nil {
			return
		}
		f.dates.learn(t)
		r.floats = f.dates.scalable(r.floats, t)
	case f.dates != nil:
	case !missing:
		r.floats, _ = appendFloats(r.floats, v, r.numerals)
	case f.missing == zero: // the cell stands for the number 0
		r.floats = append(r.floats, make([]float64, f.dim)...)
	}
	if len(r.floats) > 0 && f.scaler.learns() {
		f.scaler.learn(r.floats)
	}
}

// learn adds the categories of a row that is good, and its numbers where numbers is set.
func (r *featureReader) learn(cells []value, numbers bool) {
	i := 0
	for _, t := range r.tables {
		for _, f := range t.features {
			if f.category != nil {
				if t, there, err := tokenOf(&cells[i], r.buf); there && err == nil {
					if f.category.Learn(t); f.known && f.category.Unknown(t) {
						f.unknown.add(t.Text)
					}
				}
			} else if numbers && f.learns() {
				r.learnNumbers(f, &cells[i])
			}
			i++
		}
	}
}

func (e *entry) settle(tables []matrix) error {
	for _, t := range tables {
		for _, f := range t.features {
			if f.known {
				continue
			}
			if f.missing == mean && !f.average.settle() {
				return fmt.Errorf("%s: line %d: missing: column %s has no number to take the mean of", e.schema, f.line, lines.ClipText(f.text))
			}
			if f.dates != nil && !f.dates.given && f.dates.hasAge() && !f.dates.any {
				return fmt.Errorf("%s: line %d: dates: column %s has no date, and ages are counted to the newest; name another day, as in reference: {%s: 2024-12-31}, or leave the column out",
					e.schema, f.line, lines.ClipText(f.text), lines.ClipText(f.text))
			}
			if f.scaler != nil && !f.scaler.settle() {
				return fmt.Errorf("%s: line %d: scale: column %s has no number to learn %s from; leave the column out",
					e.schema, f.scaler.line, lines.ClipText(f.text), f.scaler.text)
			}
			if f.dates != nil {
				f.dates.settle(f.scaler)
			}
			if f.category == nil {
				continue
			}
			if !f.category.Settle() {
				return fmt.Errorf("%s: line %d: categorical: column %s: more than %d different values; index takes %d, onehot %d",
					e.schema, f.line, lines.ClipText(f.text), f.most(), maxIndexed, maxOneHot)
			}
		}
	}
	return nil
}

// forget makes the features as they were before they were settled.
func forget(tables []matrix) {
	for _, t := range tables {
		for _, f := range t.features {
			switch {
			case f.known:
				f.average, f.unknown = average{means: f.means}, unknown{}
			case f.category != nil:
				f.newCategory()
			case f.dates != nil:
				f.dates.begin()
			case f.numeric():
				f.dim, f.average = 0, average{}
			}
			if f.scaler != nil {
				f.scaler.begin()
			}
		}
	}
}

// learns reports whether all rows must be read before features are known.
func learns(tables []matrix) bool {
	for _, t := range tables {
		for _, f := range t.features {
			counts := false
			if f.category != nil {
				_, counts = f.takes()
			}
			if counts || f.category != nil && !f.known || f.learns() {
				return true
			}
		}
	}
	return false
}

// learns reports whether numbers must be learnt from all rows.
func (f *feature) learns() bool {
	return f.missing == mean || f.scaler.learns() || f.dates != nil && f.dates.hasAge() && !f.dates.given
}
