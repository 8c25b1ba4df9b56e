package parquet

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

	"github.com/gnnstore/gnnstore/ingest/lines"
)

// zstdReader inflates for all cursors, to no more than a page.
var zstdReader = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxPage), zstd.WithDecoderConcurrency(0))
})

// Value is a cell. Text and List are lent until the next row.
type Value struct {
	Kind  Kind
	Int   int64
	Float float64
	Text  []byte
	List  []float64 // NaN where an element is null
}

// Rows gives some columns of a file row by row.
type Rows struct {
	file    *File
	columns []int
	cursors []cursor
	group   int   // the next
	left    int64 // rows of the group that is read
	row     int64 // the next
	err     error // the first stays
}

// Rows begins to read columns, by their numbers in Columns; each must have a Kind.
func (f *File) Rows(columns []int) *Rows {
	r := &Rows{file: f, columns: columns, cursors: make([]cursor, len(columns))}
	for i, c := range columns {
		if f.columns[c].Kind == Null {
			panic("parquet: column " + f.columns[c].Name + " cannot be read")
		}
		r.cursors[i] = cursor{file: f, leaf: &f.leaves[c]}
	}
	return r
}

// Next fills cells, one for each column; io.EOF after the last row.
func (r *Rows) Next(cells []Value) error {
	if r.err != nil {
		return r.err
	}
	for r.left == 0 {
		if err := r.next(); err != nil {
			r.err = err
			return err
		}
	}
	for i := range r.cursors {
		c := &r.cursors[i]
		var err error
		if c.leaf.maxRep > 0 {
			err = c.nextList(&cells[i])
		} else if err = c.next(&cells[i]); c.leaf.unit != 0 && err == nil {
			err = c.date(&cells[i])
		}
		if err != nil {
			r.err = r.wrap(i, err)
			return r.err
		}
	}
	r.left--
	r.row++
	return nil
}

// Row is the number of the row that Next gave last, from 0.
func (r *Rows) Row() int64 { return r.row - 1 }

// next goes to the next row group.
func (r *Rows) next() error {
	groups := r.file.meta.RowGroups
	if r.group > 0 {
		for i := range r.cursors {
			if err := r.cursors[i].done(); err != nil {
				return r.wrap(i, err)
			}
		}
	}
	if r.group == len(groups) {
		return io.EOF
	}
	g := &groups[r.group]
	r.group++
	r.left = g.NumRows
	for i := range r.cursors {
		if err := r.cursors[i].start(&g.Columns[r.columns[i]].MetaData); err != nil {
			return r.wrap(i, err)
		}
	}
	return nil
}

func (r *Rows) wrap(i int, err error) error {
	if err == io.EOF {
		err = errors.New("fewer values than rows; fetch it again")
	}
	return fmt.Errorf("%s: row group %d, column %s: %w", r.file.name, r.group-1, r.file.columns[r.columns[i]].Name, err)
}

// done refuses values that no row has.
func (c *cursor) done() error {
	if c.peeked || c.left > 0 {
		return errors.New("more values than rows; fetch it again")
	}
	switch err := c.more(); {
	case err == io.EOF:
		return nil
	case err != nil:
		return err
	}
	return errors.New("more values than rows; fetch it again")
}

// next gives the value of a row.
func (c *cursor) next(v *Value) error {
	if c.left == 0 {
		if err := c.more(); err != nil {
			return err
		}
	}
	c.left--
	if c.leaf.maxDef > 0 {
		def, err := c.defs.next()
		if err != nil {
			return err
		}
		if int(def) < c.leaf.maxDef {
			v.Kind = Null
			return nil
		}
	}
	return c.value(v)
}

// date makes a count of time the text of its date.
func (c *cursor) date(v *Value) error {
	if v.Kind != Int {
		return nil
	}
	t, ok := lines.At(v.Int, c.leaf.unit)
	if ok {
		c.dated, ok = t.AppendTo(c.dated[:0])
	}
	if !ok {
		return fmt.Errorf("the time %d is beyond the years 1 to 9999", v.Int)
	}
	if v.Kind, v.Text = Text, c.dated; c.leaf.unit == lines.Day {
		v.Text = c.dated[:len("2006-01-02")]
	}
	return nil
}

// nextList gives the list of a row: the elements up to the next that begins one, which may be on a
// later page.
func (c *cursor) nextList(v *Value) error {
	c.list = c.list[:0]
	for first := true; ; first = false {
		if !c.peeked {
			switch err := c.more(); {
			case err == io.EOF && !first:
				v.Kind, v.List = List, c.list
				return nil
			case err != nil:
				return err
			}
			rep, err := c.reps.next()
			if err != nil {
				return err
			}
			c.rep, c.peeked = rep, true
		}
		if !first && c.rep == 0 {
			v.Kind, v.List = List, c.list
			return nil
		}
		if first != (c.rep == 0) {
			return errors.New("a list goes on that did not begin; fetch it again")
		}
		c.peeked = false
		c.left--
		def, err := c.defs.next()
		if err != nil {
			return err
		}
		if int(def) < c.leaf.listDef { // none, or empty
			if !first {
				return errEncoding
			}
			if v.Kind = Null; int(def) == c.leaf.listDef-1 {
				v.Kind, v.List = List, c.list
			}
			return nil
		}
		if err := c.element(int(def)); err != nil {
			return err
		}
	}
}

// element appends one to the list.
func (c *cursor) element(def int) error {
	if len(c.list) == maxList {
		return fmt.Errorf("a list of more than %d numbers; is this a vector?", maxList)
	}
	if def < c.leaf.maxDef {
		c.list = append(c.list, math.NaN())
		return nil
	}
	var v Value
	if err := c.value(&v); err != nil {
		return err
	}
	if v.Kind == Int {
		v.Float = float64(v.Int)
	}
	c.list = append(c.list, v.Float)
	return nil
}

// value gives the next that is not null.
func (c *cursor) value(v *Value) error {
	switch {
	case c.encoding == format.RLEDictionary:
		return c.known(v)
	case c.leaf.physical == format.ByteArray:
		return c.text(v)
	case c.leaf.physical == format.Boolean:
		return c.bool(v)
	case c.encoding == format.DeltaBinaryPacked:
		d, err := c.deltas.next()
		v.Kind, v.Int = Int, d
		if c.leaf.physical == format.Int32 {
			v.Int = c.narrow(d)
		}
		return err
	}
	width := c.width()
	var b []byte
	if c.encoding == format.ByteStreamSplit {
		if c.at == c.split {
			return errEncoding
		}
		var joined [8]byte
		for i := range width {
			joined[i] = c.values[i*c.split+c.at]
		}
		c.at++
		b = joined[:]
	} else {
		if len(c.values) < width {
			return errEncoding
		}
		b, c.values = c.values, c.values[width:]
	}
	if c.float() {
		v.Kind, v.Float = Float, c.number(b)
	} else {
		v.Kind, v.Int = Int, c.integer(b)
	}
	return nil
}

// known gives a value of the dictionary.
func (c *cursor) known(v *Value) error {
	index, err := c.index.next()
	if err != nil {
		return err
	}
	i := int(index)
	if i >= c.dict.len() {
		return fmt.Errorf("value %d of a dictionary of %d; fetch it again", i, c.dict.len())
	}
	switch {
	case c.dict.ends != nil:
		from := uint32(0)
		if i > 0 {
			from = c.dict.ends[i-1]
		}
		v.Kind, v.Text = Text, c.dict.texts[from:c.dict.ends[i]]
	case c.dict.floats != nil:
		v.Kind, v.Float = Float, c.dict.floats[i]
	default:
		v.Kind, v.Int = Int, c.dict.ints[i]
	}
	return nil
}

func (c *cursor) text(v *Value) (err error) {
	v.Kind = Text
	switch c.encoding {
	case format.DeltaLengthByteArray:
		v.Text, err = c.lengths.next()
	case format.DeltaByteArray:
		v.Text, err = c.prefixes.next()
	default:
		v.Text, err = prefixed(&c.values)
	}
	return err
}

func (c *cursor) bool(v *Value) error {
	v.Kind = Int
	if c.encoding == format.RLE {
		bit, err := c.index.next()
		v.Int = int64(bit)
		return err
	}
	if c.truth/8 >= uint(len(c.values)) {
		return errEncoding
	}
	v.Int = int64(c.values[c.truth/8] >> (c.truth % 8) & 1)
	c.truth++
	return nil
}
