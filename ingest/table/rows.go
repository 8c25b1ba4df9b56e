package table

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/parquet"
)

// value is a cell. Those of text files are Text, or Null when empty.
type value = parquet.Value

// rows gives some columns of one file.
type rows interface {
	// choose selects columns, by number; it is called once, before next.
	choose(columns []int) error
	// next fills a cell for each column. io.EOF is after the last row; a *rowError is about this
	// one only. Cells are lent until the next call.
	next(cells []value) error
	// where names the row that next read: "line 12", and its number for a Tolerance.
	where() (string, int64)
	// lineNumber is the line of that row, from 1; 0 in a file without lines.
	lineNumber() int64
	// fail words an error about the row that next read.
	fail(err error) error
	titles() []string // the names of the columns
	io.Closer
}

// Format is a file format for tables.
type Format string

const (
	CSV     Format = "csv"
	TSV     Format = "tsv"
	Parquet Format = "parquet"
	JSONL   Format = "jsonl"
)

var extensions = map[string]Format{
	".csv": CSV, ".tsv": TSV, ".tab": TSV, ".parquet": Parquet, ".pq": Parquet, ".jsonl": JSONL, ".ndjson": JSONL,
}

// formatOf returns the format of a file by its name.
func formatOf(path string) (Format, bool) {
	name := strings.ToLower(path)
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
	f, ok := extensions[filepath.Ext(name)]
	return f, ok
}

// form describes how to read the files of an entry.
type form struct {
	format Format // "": by the name
	delim  byte   // of text; 0: the format's
	header bool

	numerals lines.Numerals // of text
	encoding lines.Encoding
}

// open begins to read a file.
func (f form) open(path string) (rows, error) {
	format := f.format
	if format == "" {
		var ok bool
		if format, ok = formatOf(path); !ok {
			return nil, fmt.Errorf("%s: its name does not tell what it is; say format: csv, tsv, parquet or jsonl", path)
		}
	}
	switch format {
	case Parquet:
		return openParquet(path)
	case JSONL:
		return openJSONL(path, f.encoding)
	}
	delim := f.delim
	if delim == 0 {
		delim = ','
		if format == TSV {
			delim = '\t'
		}
	}
	return openText(path, delim, f.header, f.encoding)
}

// textRows reads csv and tsv.
type textRows struct {
	records
	names    []string
	width    int      // cells of a row
	ahead    [][]byte // the first row, which was read to know how wide rows are; nil once it was given
	aheadErr error
	aheadAt  int64
	columns  []int
	at       int64 // line of the row
}

func openText(path string, delim byte, header bool, encoding lines.Encoding) (*textRows, error) {
	in, err := lines.OpenText(path, encoding)
	if err != nil {
		return nil, err
	}
	t := &textRows{records: records{in: in, delim: delim}}
	if err := t.start(header); err != nil {
		in.Close()
		return nil, err
	}
	return t, nil
}

// start reads the header and the first row. A header may be short of names (JODIE's is): columns
// without go by number.
func (t *textRows) start(header bool) error {
	if header {
		cells, err := t.records.next()
		if err == io.EOF {
			return fmt.Errorf("%s: there is no header in it; say header: no if it begins with a row", t.in.Name())
		}
		if err != nil {
			return t.withPlace(err)
		}
		for _, c := range cells {
			t.names = append(t.names, strings.ToValidUTF8(string(c), "\uFFFD"))
		}
	}
	cells, err := t.records.next()
	if err == io.EOF {
		return nil
	}
	if _, bad := err.(*rowError); err != nil && (!bad || !header) {
		return t.withPlace(err)
	}
	t.ahead, t.aheadErr, t.aheadAt = [][]byte{}, err, t.line
	for _, c := range cells {
		t.ahead = append(t.ahead, bytes.Clone(c))
	}
	t.width = max(len(t.names), len(t.ahead))
	for i := len(t.names); i < t.width; i++ {
		t.names = append(t.names, strconv.Itoa(i+1))
	}
	return nil
}

// withPlace is an error with its place, which those about rows have not yet.
func (t *textRows) withPlace(err error) error {
	if bad, ok := err.(*rowError); ok {
		return t.in.ErrorAt(t.line, "%w", bad)
	}
	return err
}

func (t *textRows) choose(columns []int) error { t.columns = columns; return nil }

func (t *textRows) next(cells []value) error {
	row, err := t.ahead, t.aheadErr
	if t.at = t.aheadAt; row != nil {
		t.ahead, t.aheadErr = nil, nil
	} else {
		row, err = t.records.next()
		t.at = t.line
	}
	if err != nil {
		return err
	}
	if len(row) != t.width {
		return &rowError{err: fmt.Errorf("found %d columns, and %d are expected; is a cell with a delimiter not in quotes?",
			len(row), t.width)}
	}
	for i, c := range t.columns {
		if cells[i] = (value{Kind: parquet.Text, Text: row[c]}); len(row[c]) == 0 {
			cells[i].Kind = parquet.Null
		}
	}
	return nil
}

func (t *textRows) where() (string, int64) { return fmt.Sprintf("line %d", t.at), t.at }
func (t *textRows) lineNumber() int64      { return t.at }
func (t *textRows) fail(err error) error   { return t.in.ErrorAt(t.at, "%w", err) }
func (t *textRows) titles() []string       { return t.names }
func (t *textRows) Close() error           { return t.in.Close() }

// parquetRows reads Parquet.
type parquetRows struct {
	file *parquet.File
	in   *parquet.Rows
}

func openParquet(path string) (rows, error) {
	f, err := parquet.Open(path)
	if err != nil {
		return nil, err
	}
	return &parquetRows{file: f}, nil
}

func (p *parquetRows) choose(columns []int) error {
	for _, c := range columns {
		if column := p.file.Columns()[c]; column.Kind == parquet.Null {
			return fmt.Errorf("%s: column %s cannot be read: %s", p.file.Name(), lines.ClipText(column.Name), column.Why)
		}
	}
	p.in = p.file.Rows(columns)
	return nil
}

func (p *parquetRows) next(cells []value) error { return p.in.Next(cells) }
func (p *parquetRows) where() (string, int64) {
	return fmt.Sprintf("row %d (counting from 0)", p.in.Row()), p.in.Row()
}

func (p *parquetRows) lineNumber() int64 { return 0 }

func (p *parquetRows) fail(err error) error {
	row, _ := p.where()
	return fmt.Errorf("%s: %s: %w", p.file.Name(), row, err)
}

func (p *parquetRows) titles() []string { return p.file.Names() }

func (p *parquetRows) Close() error { return p.file.Close() }

// jsonRows reads an object a line.
type jsonRows struct {
	in      *lines.Scanner
	names   []string // of the first rows' keys
	ahead   [][]byte // the first rows
	aheadAt []int64
	columns []int
	at      int64
	lists   [][]float64 // a buffer for each column
}

const aheadRows = 100 // whose keys are the columns

func openJSONL(path string, encoding lines.Encoding) (rows, error) {
	in, err := lines.OpenText(path, encoding)
	if err != nil {
		return nil, err
	}
	j := &jsonRows{in: in}
	named := map[string]bool{}
	for size := 0; len(j.ahead) < aheadRows && size < 1<<20; {
		line, err := j.line()
		if err == io.EOF {
			break
		}
		if err != nil {
			in.Close()
			return nil, err
		}
		size += len(line)
		j.ahead, j.aheadAt = append(j.ahead, bytes.Clone(line)), append(j.aheadAt, in.Line())
		var keys map[string]json.RawMessage
		if checkCommas(line) != nil || json.Unmarshal(line, &keys) != nil {
			continue // told when its turn comes
		}
		for key := range keys {
			if !named[key] {
				named[key] = true
				j.names = append(j.names, key)
			}
		}
	}
	slices.Sort(j.names)
	return j, nil
}

func (j *jsonRows) line() ([]byte, error) {
	for {
		if line, err := j.in.Next(); err != nil || !lines.IsBlank(line) {
			return line, err
		}
	}
}

func (j *jsonRows) choose(columns []int) error {
	j.columns, j.lists = columns, make([][]float64, len(columns))
	return nil
}

func (j *jsonRows) next(cells []value) (err error) {
	var line []byte
	if len(j.ahead) > 0 {
		line, j.at = j.ahead[0], j.aheadAt[0]
		j.ahead, j.aheadAt = j.ahead[1:], j.aheadAt[1:]
	} else {
		line, err = j.line()
		if err != nil {
			return err
		}
		j.at = j.in.Line()
	}
	if err := cmp.Or(checkCommas(line), checkText(line)); err != nil {
		return &rowError{err: err}
	}
	in := json.NewDecoder(bytes.NewReader(line))
	in.UseNumber()
	var row map[string]any
	if err := in.Decode(&row); err != nil {
		return &rowError{err: fmt.Errorf("not an object of JSON: %s", lines.ClipText(err.Error()))}
	}
	if in.InputOffset() < int64(len(bytes.TrimRight(line, " \t\r"))) {
		return &rowError{err: fmt.Errorf("text follows the object of JSON; write one a line")}
	}
	for i, c := range j.columns {
		if err := j.cell(&cells[i], i, row[j.names[c]]); err != nil {
			return &rowError{column: j.names[c], err: err}
		}
	}
	return nil
}

// checkCommas bounds the memory of a line, some 100 bytes a value.
func checkCommas(line []byte) error {
	if n := bytes.Count(line, []byte{','}); n > lines.MaxCells {
		return fmt.Errorf("found %d commas in the object, and %d are the most; write long lists as Parquet", n, lines.MaxCells)
	}
	return nil
}

// checkText refuses what encoding/json replaces by U+FFFD, since different texts would become
// equal: halves of surrogate pairs. The scanner has refused bytes that are not UTF-8.
func checkText(line []byte) error {
	for at := 0; ; {
		i := bytes.IndexByte(line[at:], '\\')
		if i < 0 || at+i+1 >= len(line) {
			return nil
		}
		if at += i; line[at+1] != 'u' {
			at += 2
			continue
		}
		first, width := unit(line[at:]), 6
		if utf16.IsSurrogate(first) {
			if width = 12; utf16.DecodeRune(first, unit(line[min(at+6, len(line)):])) == utf8.RuneError {
				return fmt.Errorf("%q is half of a surrogate pair, and no character", line[at:min(at+6, len(line))])
			}
		}
		at = min(at+width, len(line))
	}
}

// unit reads \uXXXX. It returns 0 for anything else, which the decoder refuses.
func unit(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	v, _ := strconv.ParseUint(string(text[2:6]), 16, 32)
	return rune(v)
}

func (j *jsonRows) cell(v *value, column int, x any) error {
	*v = value{}
	switch x := x.(type) {
	case nil:
	case string:
		v.Kind, v.Text = parquet.Text, []byte(x)
	case bool:
		if v.Kind = parquet.Int; x {
			v.Int = 1
		}
	case json.Number:
		if n, err := x.Int64(); err == nil {
			v.Kind, v.Int = parquet.Int, n
			return nil
		}
		f, err := x.Float64()
		v.Kind, v.Float = parquet.Float, f
		return err
	case []any:
		if len(x) > 0 {
			if _, isText := x[0].(string); isText {
				text, err := ingest.QuoteLabels(x)
				v.Kind, v.Text = parquet.List, text
				return err
			}
		}
		list := j.lists[column][:0]
		for _, e := range x {
			n, ok := e.(json.Number)
			if !ok {
				return fmt.Errorf("a list of something else than numbers")
			}
			f, err := n.Float64()
			if err != nil {
				return err
			}
			list = append(list, f)
		}
		v.Kind, v.List, j.lists[column] = parquet.List, list, list
	default:
		return fmt.Errorf("an object within the row")
	}
	return nil
}

func (j *jsonRows) where() (string, int64) { return fmt.Sprintf("line %d", j.at), j.at }
func (j *jsonRows) lineNumber() int64      { return j.at }
func (j *jsonRows) fail(err error) error   { return j.in.ErrorAt(j.at, "%w", err) }
func (j *jsonRows) titles() []string       { return j.names }
func (j *jsonRows) Close() error           { return j.in.Close() }
