package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/store"
)

const (
	maxFooter  = 64 << 20
	maxColumns = 1 << 16 // as many as the cells of a line of text
)

// Kind is the type of a column's cells.
type Kind uint8

const (
	Null Kind = iota
	Int
	Float
	Text
	List // of numbers
)

func (k Kind) String() string {
	return [...]string{"null", "integers", "floating-point numbers", "text", "lists of numbers"}[k]
}

// Column is one column of a file.
type Column struct {
	Name string
	Kind Kind   // of its cells that are not null; Null where it cannot be read; Text of dates
	Why  string // it cannot be read
}

// File is an open Parquet file.
type File struct {
	f       io.ReaderAt
	close   func() error
	name    string
	size    int64
	meta    format.FileMetaData
	rows    int64
	columns []Column
	leaves  []leaf
}

// leaf is the form of a column's values.
type leaf struct {
	physical format.Type
	length   int        // of FIXED_LEN_BYTE_ARRAY
	unsigned bool       // INT32 that counts to 2³²
	half     bool       // float16 in two bytes
	unit     lines.Unit // of integers that are times since 1970; else 0
	maxDef   int        // of a value
	maxRep   int        // 1 in a list, else 0
	listDef  int        // from which on the list has an element
}

// Open reads the footer of a file.
func Open(path string) (*File, error) {
	f, size, err := store.OpenSized(path)
	if err != nil {
		return nil, err
	}
	file, err := New(path, f, size)
	if err != nil {
		f.Close()
		return nil, err
	}
	file.close = f.Close
	return file, nil
}

// New reads the footer of size bytes of r; the name is for messages.
func New(name string, r io.ReaderAt, size int64) (*File, error) {
	f := &File{f: r, name: name, size: size, close: func() error { return nil }}
	if err := f.footer(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := f.schema(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

func (f *File) footer() error {
	var ends [12]byte // the magic in front, the footer's length and the magic behind
	if f.size < int64(len(ends)) {
		return fmt.Errorf("not a Parquet file: it has %d bytes", f.size)
	}
	if err := f.readAt(ends[:4], 0); err != nil {
		return err
	}
	if err := f.readAt(ends[4:], f.size-8); err != nil {
		return err
	}
	head, length, tail := string(ends[:4]), int64(binary.LittleEndian.Uint32(ends[4:])), string(ends[8:])
	switch {
	case head == "PARE" || tail == "PARE":
		return errors.New("an encrypted Parquet file; write it without encryption")
	case head != "PAR1":
		return fmt.Errorf("not a Parquet file: it starts with %q", head)
	case tail != "PAR1" || length > f.size-int64(len(ends)):
		return errors.New("a Parquet file without its end: truncated or damaged; fetch it again")
	case length > maxFooter:
		return fmt.Errorf("a footer of %d bytes, and %d are the most; write larger row groups, or several files",
			length, maxFooter)
	}
	b := make([]byte, length)
	if err := f.readAt(b, f.size-8-length); err != nil {
		return err
	}
	size, err := decodeThrift(b, &f.meta)
	if err != nil {
		return fmt.Errorf("its footer cannot be read (%w); fetch it again", err)
	}
	if size != len(b) {
		return errors.New("a signed footer, as encrypted files have, or a damaged one; write it without encryption")
	}
	return nil
}

func (f *File) readAt(b []byte, at int64) error {
	_, err := f.f.ReadAt(b, at)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// schema finds the leaves of the tree of columns, which is listed depth first.
func (f *File) schema() error {
	next := 1
	var visit func(path []string, at leaf) error
	visit = func(path []string, at leaf) error {
		if next >= len(f.meta.Schema) {
			return errors.New("its schema lists fewer columns than it declares; fetch it again")
		}
		e := &f.meta.Schema[next]
		next++
		path = append(path, e.Name)
		if len(path) > maxDepth {
			return fmt.Errorf("its schema nests deeper than %d", maxDepth)
		}
		if e.RepetitionType.Valid {
			switch e.RepetitionType.V {
			case format.Optional:
				at.maxDef++
			case format.Repeated:
				at.maxDef++
				at.maxRep++
				at.listDef = at.maxDef
			}
		}
		if e.Type.Valid { // a leaf
			f.leaf(path, at, e)
			return nil
		}
		if mark, ok := annotated(e); ok && (mark == deprecated.Map || mark == deprecated.MapKeyValue) {
			at.maxRep = 2 // as deep as what cannot be read
		}
		if !e.NumChildren.Valid || e.NumChildren.V < 0 {
			return fmt.Errorf("column %s of its schema has neither type nor parts; fetch it again", strings.Join(path, "."))
		}
		for range e.NumChildren.V {
			if err := visit(path, at); err != nil {
				return err
			}
		}
		return nil
	}
	if len(f.meta.Schema) == 0 {
		return errors.New("there is no schema in it; fetch it again")
	}
	for next < len(f.meta.Schema) {
		if err := visit(nil, leaf{}); err != nil {
			return err
		}
	}
	if len(f.columns) > maxColumns {
		return fmt.Errorf("%d columns, and %d are the most; write many numbers as a list in one column", len(f.columns), maxColumns)
	}
	named := map[string]int{}
	for _, c := range f.columns {
		named[c.Name]++
	}
	for i := range f.columns {
		if c := &f.columns[i]; named[c.Name] > 1 && c.Why == "" {
			c.Kind, c.Why = Null, "one of several columns of that name, or a list of structs"
		}
	}
	return nil
}

// leaf adds a column.
func (f *File) leaf(path []string, at leaf, e *format.SchemaElement) {
	at.physical = e.Type.V
	at.length = int(e.TypeLength.V)
	if at.maxRep > 0 && len(path) > 1 { // name.list.element is name
		path = path[:1]
	}
	c := Column{Name: strings.Join(path, ".")}
	mark, marked := annotated(e)
	_, at.half = e.LogicalType.Value.(*format.Float16Type)
	at.half = at.half && at.physical == format.FixedLenByteArray && at.length == 2
	at.unsigned = marked && at.physical == format.Int32 && mark >= deprecated.Uint8 && mark <= deprecated.Uint32
	if at.maxRep == 0 {
		at.unit = timeUnit(e)
	}
	switch {
	case at.maxRep > 1:
		c.Why = "a list of lists, or a map"
	case marked && mark == deprecated.Decimal:
		c.Why = "decimals; cast them to double"
	case at.physical == format.Int96:
		c.Why = "INT96; cast it to a 64-bit integer"
	case at.physical == format.FixedLenByteArray && !at.half:
		c.Why = "bytes of fixed length; cast them to text"
	case at.physical == format.ByteArray && at.maxRep > 0:
		c.Why = "a list of text"
	case at.physical == format.ByteArray:
		c.Kind = Text
	case at.maxRep > 0:
		c.Kind = List
	case at.physical == format.Float || at.physical == format.Double || at.half:
		c.Kind = Float
	case at.unit != 0:
		c.Kind = Text
	case at.physical == format.Boolean || at.physical == format.Int32 || at.physical == format.Int64:
		c.Kind = Int
	default:
		c.Why = "an unknown type"
	}
	f.columns, f.leaves = append(f.columns, c), append(f.leaves, at)
}

// timeUnit returns the unit of a column of dates, or of dates with times, else 0.
func timeUnit(e *format.SchemaElement) lines.Unit {
	unit := lines.Unit(0)
	switch t := e.LogicalType.Value.(type) {
	case *format.DateType:
		unit = lines.Day
	case *format.TimestampType:
		if t.Unit.Value != nil {
			unit = lines.Unit(t.Unit.Value.Duration().Nanoseconds())
		}
	case nil:
		if !e.ConvertedType.Valid {
			return 0
		}
		unit = map[deprecated.ConvertedType]lines.Unit{
			deprecated.Date: lines.Day, deprecated.TimestampMillis: lines.Millisecond,
			deprecated.TimestampMicros: lines.Microsecond,
		}[e.ConvertedType.V]
	}
	if unit == lines.Day && e.Type.V == format.Int32 || unit != lines.Day && e.Type.V == format.Int64 {
		return unit
	}
	return 0
}

// annotated returns the meaning of a column's numbers or parts, in the older of its two notations.
func annotated(e *format.SchemaElement) (deprecated.ConvertedType, bool) {
	switch t := e.LogicalType.Value.(type) {
	case *format.DecimalType:
		return deprecated.Decimal, true
	case *format.MapType:
		return deprecated.Map, true
	case *format.IntType:
		if !t.IsSigned && t.BitWidth <= 32 {
			return deprecated.Uint32, true
		}
		return 0, false
	}
	return e.ConvertedType.V, e.ConvertedType.Valid
}

// check refuses row groups that do not fit the schema or the file.
func (f *File) check() error {
	for i := range f.meta.RowGroups {
		g := &f.meta.RowGroups[i]
		if len(g.Columns) != len(f.columns) {
			return fmt.Errorf("row group %d has %d columns, and its schema %d; fetch it again",
				i, len(g.Columns), len(f.columns))
		}
		if g.NumRows < 0 || f.rows+g.NumRows < f.rows {
			return fmt.Errorf("row group %d has %d rows; fetch it again", i, g.NumRows)
		}
		f.rows += g.NumRows // the footer's own sum is 0 in files of some writers
	}
	return nil
}

// Name is the file's, for messages.
func (f *File) Name() string { return f.name }

// Columns returns the columns of the file, in its order.
func (f *File) Columns() []Column { return f.columns }

// Names returns the names of the columns.
func (f *File) Names() (names []string) {
	for _, c := range f.columns {
		names = append(names, c.Name)
	}
	return names
}

// NumRows returns the number of rows that the row groups declare, which Rows holds the pages
// against.
func (f *File) NumRows() int64 { return f.rows }

// Close closes what Open opened.
func (f *File) Close() error { return f.close() }
