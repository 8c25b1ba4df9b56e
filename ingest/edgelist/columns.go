package edgelist

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/store"
)

// keptColumn is a column of the edge list whose values edges keep.
type keptColumn struct {
	name string // in the dataset
	from string // header or number
	elem store.Elem
	unit lines.Unit // of dates, 0 without one
	flag string     // that asked for it
	at   int        // in the table
}

// timeForms remembers how the first row of an edge list writes dates, so that all rows of all its
// files must write them so.
type timeForms struct {
	clock *lines.Clock   // of the times of events
	dates []*lines.Dates // of each kept column; nil: it holds no integers of 64 bits
}

// newForms returns the forms for one reading of the list, from its first row on.
func (s *Source) newForms() *timeForms {
	f := &timeForms{clock: lines.NewClock(lines.Units[s.o.TimeUnit]), dates: make([]*lines.Dates, len(s.kept))}
	for i, c := range s.kept {
		if c.elem == store.I64 {
			f.dates[i] = &lines.Dates{Unit: cmp.Or(c.unit, lines.Second), Alone: c.unit != 0}
		}
	}
	return f
}

// parseKept reads an element of Options.EdgeColumns. Its type is 0 where the first rows tell.
func parseKept(s string) (c keptColumn, err error) {
	c = keptColumn{flag: "{edge_columns}"}
	name, from, named := strings.Cut(s, "=")
	if !named {
		name, from = "", s
	}
	if i := strings.LastIndexByte(from, ':'); i >= 0 {
		if elem, unit, ok := lines.EdgeType(from[i+1:]); ok {
			c.elem, c.unit, from = elem, unit, from[:i]
		}
	}
	if c.name, c.from = name, from; !named {
		c.name = from
	}
	_, number := strconv.Atoi(c.name)
	switch {
	case c.name == "" || c.from == "":
		return c, fmt.Errorf("{edge_columns} %q: write NAME=COLUMN, the column by its name or by its number from 1, as in rating=3", s)
	case !named && number == nil:
		return c, fmt.Errorf("{edge_columns} %s: a column by its number needs a name in the dataset: write NAME=%s", s, s)
	case c.name == store.EdgeID:
		return c, fmt.Errorf("{edge_columns} %s: id is an edge's number; choose another name, as in edge-id=%s", s, c.from)
	}
	if clean := store.CleanWord(c.name); clean != c.name {
		return c, fmt.Errorf("{edge_columns} %s: %q cannot be the name of a column; write %s=%s", s, lines.ClipText(c.name), clean, lines.ClipText(c.from))
	}
	return c, nil
}

// keptColumns are the columns that o asks for: weights first.
func (o *Options) keptColumns() (all []keptColumn, err error) {
	if o.Events {
		return o.eventColumns(), nil
	}
	if o.Weight != "" {
		all = append(all, keptColumn{name: "weight", from: o.Weight, elem: store.F32, flag: "{weight}"})
	}
	for _, s := range o.EdgeColumns {
		c, err := parseKept(s)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(k keptColumn) bool { return k.name == c.name }) {
			return nil, fmt.Errorf("{edge_columns}: there are two columns %s; give one of them another name", c.name)
		}
		all = append(all, c)
	}
	return all, nil
}

// marked returns a set of the columns in some. A table may have tens of thousands of columns, so
// that searching a list for each would be slow.
func marked(columns int, some []int) []bool {
	are := make([]bool, columns)
	for _, i := range some {
		are[i] = true
	}
	return are
}

// place finds the columns in a table.
func (r *edgeReader) place(kept []keptColumn) (err error) {
	r.kept = slices.Clone(kept)
	for i := range r.kept {
		c := &r.kept[i]
		if c.at, err = r.column(c.flag, c.from); err != nil {
			return err
		}
		if what := map[string]string{"{weight}": "weights", timeFlag: "times", labelFlag: "labels"}[c.flag]; c.at == r.src || c.at == r.dst {
			return fmt.Errorf("%s: %s holds both ids and %s; choose another %s", r.Name(), r.title(c.at), cmp.Or(what, "values"), c.flag)
		}
	}
	return nil
}

// settleTypes gives the columns that have no type the one that the first rows tell: integers,
// dates, which become integers of seconds, or numbers of 32 bits.
func (s *Source) settleTypes() error {
	whole, dated := make([]bool, len(s.kept)), make([]bool, len(s.kept)) // as far as was read
	for i, c := range s.kept {
		whole[i], dated[i] = c.elem == 0, c.elem == 0
	}
	rows := 0
	for _, path := range s.files {
		if !slices.Contains(whole, true) && !slices.Contains(dated, true) {
			break
		}
		r, err := s.openEdges(path, s.newForms())
		if err != nil {
			return err
		}
		n, err := r.wholeColumns(whole, dated)
		r.Close()
		if err != nil {
			return err
		}
		rows += n
	}
	for i := range s.kept {
		switch c := &s.kept[i]; {
		case c.elem != 0:
		case whole[i] || dated[i] && rows > 0:
			c.elem = store.I64
		default:
			c.elem = store.F32
		}
	}
	return nil
}

// wholeColumns clears the elements of whole whose columns have a value in the first rows that is no
// integer, and the elements of dated whose columns have one that is no date.
func (r *edgeReader) wholeColumns(whole, dated []bool) (rows int, err error) {
	return r.table.sample(idRows, func(cells [][]byte) {
		for i, c := range r.kept {
			if c.at >= len(cells) {
				continue
			}
			if whole[i] {
				_, whole[i] = r.numerals.Integer(cells[c.at])
			}
			if dated[i] {
				_, _, dated[i] = lines.ParseInstant(cells[c.at])
			}
		}
	})
}

// values appends the bits of what an edge keeps to r.bits.
func (r *edgeReader) values(cells [][]byte) error {
	r.bits = r.bits[:0]
	for i := range r.kept {
		bits, err := r.value(cells, &r.kept[i], r.forms.dates[i])
		if err != nil {
			return err
		}
		r.bits = append(r.bits, bits)
	}
	return nil
}

// value reads a value of a column. dates reads its dates; it is nil where there can be none.
func (r *edgeReader) value(cells [][]byte, c *keptColumn, dates *lines.Dates) (uint64, error) {
	switch c.flag {
	case timeFlag:
		return r.time(cells, c)
	case labelFlag:
		return r.readLabel(cells, c)
	}
	cell, err := r.cell(cells, c.at)
	if err != nil {
		return 0, err
	}
	if c.flag == partFlag {
		if part, ok := r.numerals.Integer(cell); ok && part >= 0 && part <= int64(ingest.Test) {
			return uint64(part), nil
		}
		return 0, bad(c.at+1, "%q is no part of a split: 0 is to train, 1 to validate, 2 to test", lines.Clip(cell))
	}
	if c.flag == "{edge_columns}" && missing(cell) {
		return 0, bad(c.at+1, "a value of %s is missing; fill it in, or leave the column out of {edge_columns}", c.name)
	}
	if r.made != "" && c.flag == "{weight}" && missing(cell) {
		return 0, bad(c.at+1, "a weight is missing; fill it in, or leave weights out with {weight} none")
	}
	if c.elem == store.F32 {
		v, err := r.number(cells, c.at, c.flag)
		return uint64(math.Float32bits(v)), err
	}
	if dates != nil {
		if err := r.undivided(cells, c.at); err != nil {
			return 0, err
		}
		n, dated, err := dates.Count(cell)
		if err != nil {
			return 0, bad(c.at+1, "%w", err)
		}
		if dated {
			return uint64(n), nil
		}
	}
	n, ok := r.numerals.Integer(cell)
	switch {
	case !ok && isDate(cell):
		return 0, bad(c.at+1, "%q is a date, which %v does not hold; to keep seconds since 1970, say {edge_columns} %s=%s:i64",
			lines.Clip(cell), c.elem, c.name, lines.ClipText(c.from))
	case !ok:
		return 0, bad(c.at+1, "%q is not an integer, as the values of %s are; %s", lines.Clip(cell), c.name,
			r.spelled(cell, fmt.Sprintf("to keep numbers with fractions, say {edge_columns} %s=%s:f32", c.name, lines.ClipText(c.from))))
	}
	if err := lines.Fit(n, c.elem); err != nil {
		return 0, bad(c.at+1, "%w in {edge_columns}", err)
	}
	return uint64(n), nil
}

// edgeColumns are the columns as a schema has them.
func (s *Source) edgeColumns() (columns []ingest.EdgeColumn) {
	for _, c := range s.kept {
		columns = append(columns, ingest.EdgeColumn{Name: c.name, Elem: c.elem})
	}
	return columns
}
