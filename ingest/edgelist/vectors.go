package edgelist

import (
	"bytes"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/store"
)

// A cell of features is a number or a vector, such as [0.1 0.2]. The vectors of one column have one
// width, which most of the first rows tell.

// widths samples how many numbers each column holds in a cell; 1 where the first rows do not tell.
// It returns false if there are no rows.
func (t *table) widths(columns []int, missing func(cell []byte) bool) (widths []int, rows bool, err error) {
	votes := make([]map[int]int, len(columns))
	for k := range votes {
		votes[k] = map[int]int{}
	}
	var numbers []float32
	n, err := t.sample(sampleRows, func(cells [][]byte) {
		for k, i := range columns {
			if i >= len(cells) || missing(cells[i]) {
				continue
			}
			if !t.numerals.IsVector(cells[i]) {
				votes[k][1]++
			} else if numbers, err = t.numerals.AppendVector(numbers[:0], cells[i]); err == nil {
				votes[k][len(numbers)]++
			}
		}
	})
	for _, v := range votes {
		best := 1
		for width, count := range v {
			if count > v[best] || count == v[best] && width < best {
				best = width
			}
		}
		widths = append(widths, best)
	}
	return widths, n > 0, err
}

// appendCell appends the numbers of a cell of features, which must be width. remedy is said about a
// cell that is no number.
func (t *table) appendCell(dst []float32, cells [][]byte, column, width int, remedy string) ([]float32, error) {
	cell := cells[column]
	if cell[0] != '[' && cell[0] != '(' && (width == 1 || !t.numerals.IsVector(cell)) {
		v, err := t.numerals.Float(cell, 32)
		if err != nil && !isRange(err) { // what is too large becomes infinite, and the builder refuses it
			return dst, bad(column+1, "%q is not a number; %s", lines.ClipText(string(cell)), t.spelled(cell, remedy))
		}
		if dst = append(dst, float32(v)); width != 1 {
			return dst, bad(column+1, "one number, and most cells of %s have vectors of %d; vectors are of one length, so mend it, or %s", t.title(column), width, remedy)
		}
		return dst, nil
	}
	before := len(dst)
	dst, err := t.numerals.AppendVector(dst, cell)
	if err != nil {
		return dst, bad(column+1, "%w; mend it, or %s", err, remedy)
	}
	if n := len(dst) - before; n != width {
		return dst, bad(column+1, "a vector of %d, and most cells of %s have %d numbers; vectors are of one length, so mend it, or %s", n, t.title(column), width, remedy)
	}
	return dst, nil
}

// sum returns the sum of widths.
func sum(widths []int) (n int) {
	for _, w := range widths {
		n += w
	}
	return n
}

// encodings describes columns of numbers and vectors.
func encodings(names []string, widths []int) []store.Encoding {
	columns := store.NumberColumns(names) // one each, since a row has few enough cells
	for i, w := range widths {
		if w != 1 {
			columns[i].Kind, columns[i].Width = store.VectorColumn, int64(w)
		}
	}
	return columns
}

// followWidths refuses columns whose cells have another number of numbers than in the dataset to
// follow. widths begins with the columns of the encoding, in its order.
func followWidths(l *ingest.Like, path string, of *store.TableEncoding, widths []int) error {
	for i := range of.Columns[:min(len(of.Columns), len(widths))] {
		if c := &of.Columns[i]; c.Kind != store.CategoryColumn && c.Width != int64(widths[i]) {
			return l.Errorf("%s: column %s has %d numbers in a cell, and %d there", path, lines.ClipText(c.Name), widths[i], c.Width)
		}
	}
	return nil
}

// looksNumeric reports whether a cell that is no vector was meant as one: it has a bracket, digits
// or nothing in it, and no words.
func looksNumeric(cell []byte) bool {
	return (cell[0] == '[' || cell[0] == '(') && len(bytes.Trim(cell, "0123456789+-.,;eEnNaA[]() \t\n")) == 0
}

// isNumber reports whether a cell of the first row shows that the row is no header.
func (t *table) isNumber(cell []byte) bool {
	if _, err := t.numerals.Float(cell, 64); err == nil {
		return true
	}
	if !t.numerals.IsVector(cell) {
		return false
	}
	numbers, err := t.numerals.AppendVector(nil, cell)
	return err == nil && (len(numbers) > 1 || cell[0] == '[')
}
