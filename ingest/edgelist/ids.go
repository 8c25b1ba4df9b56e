package edgelist

import (
	"bytes"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// idSample counts what the first rows of a table have as ids.
type idSample struct {
	rows, ids, texts int
	zeros            bool // an integer has zeros in front, which only a text keeps
	numbers          bool // some cell of another column is a number, so that a first row without is a header
}

const idRows = 1000 // that tell what ids are

// sampleIDs reads the first rows.
func sampleIDs(t *table, columns ...int) (s idSample, err error) {
	s.rows, err = t.sample(idRows, func(cells [][]byte) {
		for i, cell := range cells {
			if !slices.Contains(columns, i) {
				_, whole := t.numerals.Integer(cell)
				s.numbers = s.numbers || whole
				continue
			}
			if len(cell) == 0 {
				continue
			}
			s.ids++
			if _, whole := t.numerals.ID(cell); !whole && !t.fraction(cell) {
				s.texts++
			}
			s.zeros = s.zeros || lines.Zeros(cell)
		}
	})
	return s, err
}

// fraction reports whether a cell is a number with a point or an exponent: no id, and no sign that
// ids are text.
func (t *table) fraction(cell []byte) bool {
	_, err := t.numerals.Float(cell, 64)
	return err == nil && bytes.ContainsAny(cell, ".,eE")
}

// text reports whether the ids are texts: most are no integers, so a stray word among numbers is an
// error.
func (s *idSample) text() bool { return s.zeros || 2*s.texts > s.ids }

// sure refuses a first row that may be a header or a row, as any may in a table of words.
func (s *idSample) sure(t *table, header string, named bool) error {
	if header != "" && header != "auto" || t.header == nil || named || s.numbers || s.ids > s.texts {
		return nil
	}
	return ingest.Ask("%s: is the first row (%s) a header? Nothing tells, so say {header} yes or no", t.Name(), lines.List(t.header))
}

// named reports whether the header has one of names, in any case of letters.
func (t *table) named(names ...string) bool {
	for _, n := range names {
		if n != "" && slices.ContainsFunc(t.header, func(h string) bool { return strings.EqualFold(h, n) }) {
			return true
		}
	}
	return false
}
