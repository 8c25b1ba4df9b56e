package edgelist

import (
	"bytes"
	"cmp"
	"errors"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/store"
)

// A cell of features is a number or a vector, such as [0.1 0.2]. The vectors of one column have one
// width, which most of the first rows tell.

// featureSample describes the cells of a column in the first rows.
type featureSample struct {
	widths map[int]int // how many cells hold so many numbers
	text   bool        // some cell is no number, and was not meant as a vector
	large  bool        // float32 cannot tell some integer from its neighbours
	broken error       // the fault of the first cell that was meant as a vector and is none
}

var errRagged = errors.New("its lists have different lengths, so they are no features")

// ragged reports whether the cells are lists without a usual length.
func (s *featureSample) ragged() bool {
	all := 0
	for _, count := range s.widths {
		all += count
	}
	return len(s.widths) > 1 && 2*s.widths[s.width()] <= all
}

// width returns the width that most cells have, the least of several; 1 if there are no cells.
func (s *featureSample) width() int {
	best := 1
	for width, count := range s.widths {
		if count > s.widths[best] || count == s.widths[best] && width < best {
			best = width
		}
	}
	return best
}

// add looks at a cell that holds a value.
func (s *featureSample) add(numerals lines.Numerals, cell []byte) {
	if numerals.IsVector(cell) {
		vector, err := numerals.AppendVector(nil, cell)
		if err != nil {
			s.broken, s.text = cmp.Or(s.broken, err), s.text || !looksNumeric(cell)
			return
		}
		s.widths[len(vector)]++
		return
	}
	if _, err := numerals.Float(cell, 32); err != nil && !isRange(err) {
		s.text = true
		return
	}
	s.widths[1]++
	v, whole := numerals.Integer(cell)
	s.large = s.large || whole && (v > 1<<24 || v < -1<<24)
}

// sampleFeatures looks at columns in the first rows, and returns the number of these rows.
func (t *table) sampleFeatures(
	columns []int, missing func(cell []byte) bool,
) (samples []featureSample, rows int, err error) {
	samples = make([]featureSample, len(columns))
	for k := range samples {
		samples[k].widths = map[int]int{}
	}
	rows, err = t.sample(sampleRows, func(cells [][]byte) {
		for k, i := range columns {
			if i < len(cells) && !missing(cells[i]) {
				samples[k].add(t.numerals, cells[i])
			}
		}
	})
	return samples, rows, err
}

// widths returns how many numbers a cell of each column holds, by the first rows. It returns false
// if there are no rows.
func (t *table) widths(columns []int, missing func(cell []byte) bool) (widths []int, hasRows bool, err error) {
	samples, rows, err := t.sampleFeatures(columns, missing)
	for k := range samples {
		widths = append(widths, samples[k].width())
	}
	return widths, rows > 0, err
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
