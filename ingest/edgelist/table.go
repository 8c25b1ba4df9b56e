package edgelist

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// table is one text file of rows and columns.
type table struct {
	*lines.Scanner
	delim    byte     // '\t', ',', ';' or ' ', which stands for any blanks
	header   []string // nil without one
	columns  int      // of the first row
	comments bool     // lines that start with # or % are passed over anywhere, not only at the start
	cells    [][]byte // of the row read last
	ahead    []byte   // the first row, when it is no header: a copy
	first    int64    // line of the first row
	at       int64    // line of the row read last
	nodes    int64    // that a comment before the table declares, as SNAP's do; 0 without
}

// rowError is about one row, which may be passed over.
type rowError struct {
	column int // from 1; 0 when it is about the row
	err    error
}

func (e *rowError) Error() string { return e.err.Error() }

func bad(column int, format string, args ...any) error {
	return &rowError{column, fmt.Errorf(format, args...)}
}

// judge passes over what is wrong with the row read last, or says where it is. Damage to a packed file is the likelier
// cause, and is told instead.
func (t *table) judge(forgive *lines.Tolerance, err error) error {
	wrong, ok := err.(*rowError)
	if !ok {
		return err
	}
	if err = wrong.err; wrong.column > 0 {
		err = fmt.Errorf("%s: line %d, column %d: %w", t.Name(), t.at, wrong.column, err)
	} else {
		err = fmt.Errorf("%s: line %d: %w", t.Name(), t.at, err)
	}
	refused := forgive.Forgive(t.Name(), t.at, err)
	if refused == nil {
		return nil
	}
	told := t.ErrorAt(t.at, "%w", wrong.err) // looks for damage
	if told.Error() != fmt.Sprintf("%s: line %d: %v", t.Name(), t.at, wrong.err) {
		return told
	}
	return refused
}

// openTable opens a file and reads its first row.
func openTable(path, header string, comments bool) (*table, error) {
	in, err := lines.Open(path)
	if err != nil {
		return nil, err
	}
	t := &table{Scanner: in, comments: comments}
	if err := t.start(header); err != nil {
		in.Close()
		return nil, err
	}
	return t, nil
}

func (t *table) start(header string) error {
	comments := t.comments
	t.comments = true // at the start they are
	line, err := t.line()
	t.comments = comments
	if err == io.EOF {
		return nil
	}
	if err != nil {
		return err
	}
	if bytes.IndexByte(line, 0) >= 0 {
		return t.Errorf("the file is not text: its first line holds a zero byte")
	}
	switch line[0] {
	case '{', '[', '<':
		return t.Errorf("it starts with %c: JSON or a web page, and a table is expected", line[0])
	}
	t.delim = delimiter(line)
	t.ahead = bytes.Clone(line)
	t.first, t.at = t.Line(), t.Line()
	cells, err := t.split(t.ahead)
	if err != nil {
		return t.judge(nil, err)
	}
	t.columns = len(cells)
	numbers := 0
	for _, c := range cells {
		if _, err := strconv.ParseFloat(string(c), 64); err == nil {
			numbers++
		}
	}
	if header == "yes" || header != "no" && numbers == 0 {
		t.header = make([]string, len(cells))
		for i, c := range cells {
			t.header[i] = strings.ToValidUTF8(string(c), "\uFFFD")
		}
		t.ahead = nil
		return nil
	}
	t.ahead = bytes.Clone(line) // splitting undid the quotes
	return nil
}

// line gives the next line that is neither blank nor a comment.
func (t *table) line() ([]byte, error) {
	for {
		text, err := t.Next()
		if err != nil {
			return nil, err
		}
		if t.Line() == 1 {
			text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
		}
		switch {
		case len(text) == 0 || blank(text):
		case t.comments && (text[0] == '#' || text[0] == '%'):
			if t.first == 0 {
				t.declares(text)
			}
		default:
			return text, nil
		}
	}
}

// declares keeps the number of nodes that a comment tells: "# Nodes: 82168 Edges: 948464".
func (t *table) declares(comment []byte) {
	_, after, found := strings.Cut(strings.ToLower(string(comment)), "nodes:")
	if words := strings.Fields(after); found && len(words) > 0 {
		if n, err := strconv.ParseUint(words[0], 10, 32); err == nil {
			t.nodes = int64(n)
		}
	}
}

func blank(text []byte) bool {
	return (text[0] == ' ' || text[0] == '\t' || text[0] == '\r') && len(bytes.TrimSpace(text)) == 0
}

// row gives the next line of the table; io.EOF after the last. It is lent until the next call.
func (t *table) row() ([]byte, error) {
	if t.ahead != nil {
		line := t.ahead
		t.ahead = nil
		return line, nil
	}
	line, err := t.line()
	t.at = t.Line()
	return line, err
}

// next gives the cells of the next row, lent until the next call.
func (t *table) next() ([][]byte, error) {
	line, err := t.row()
	if err != nil {
		return nil, err
	}
	return t.split(line)
}

// delimiter is the first of tab, comma and semicolon that a line has outside quotes, else blanks.
func delimiter(line []byte) byte {
	for _, d := range []byte("\t,;") {
		quoted := false
		for _, c := range line {
			if c == '"' {
				quoted = !quoted
			} else if c == d && !quoted {
				return d
			}
		}
	}
	return ' '
}

// split cuts a line into cells, without the blanks around them and their quotes, which it undoes in place.
func (t *table) split(line []byte) ([][]byte, error) {
	t.cells = t.cells[:0]
	if t.delim == ' ' {
		for field := range bytes.FieldsSeq(line) {
			t.cells = append(t.cells, unquoted(field))
		}
		return t.cells, nil
	}
	for rest := line; ; {
		trimmed := bytes.TrimLeft(rest, " ")
		if len(trimmed) > 0 && trimmed[0] == '"' {
			cell, after, ok := quoted(trimmed[1:])
			if !ok {
				return nil, bad(len(t.cells)+1,
					"a quote does not close on its line; join the lines of the cell, or double the quote")
			}
			t.cells = append(t.cells, cell)
			if after = bytes.TrimLeft(after, " "); len(after) == 0 {
				return t.cells, nil
			}
			if after[0] != t.delim {
				return nil, bad(len(t.cells), "%q follows the closing quote; double the quotes inside the cell",
					lines.Clip(after))
			}
			rest = after[1:]
			continue
		}
		end := bytes.IndexByte(rest, t.delim)
		if end < 0 {
			t.cells = append(t.cells, bytes.TrimSpace(rest))
			return t.cells, nil
		}
		t.cells = append(t.cells, bytes.TrimSpace(rest[:end]))
		rest = rest[end+1:]
	}
}

// quoted reads up to the closing quote; two quotes are one.
func quoted(text []byte) (cell, after []byte, ok bool) {
	n := 0
	for i := 0; i < len(text); i++ {
		if text[i] == '"' {
			if i+1 == len(text) || text[i+1] != '"' {
				return text[:n], text[i+1:], true
			}
			i++
		}
		text[n] = text[i]
		n++
	}
	return nil, nil, false
}

func unquoted(cell []byte) []byte {
	if n := len(cell); n >= 2 && cell[0] == '"' && cell[n-1] == '"' {
		return cell[1 : n-1]
	}
	return cell
}

// column finds what an option names: a header, or a number from 1.
func (t *table) column(flag, name string) (int, error) {
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for i, h := range t.header {
			if same(h, name) {
				return i, nil
			}
		}
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 1 && n <= t.columns {
		return n - 1, nil
	}
	if t.header == nil {
		return 0, fmt.Errorf("%s: %s %s: the table has no header, so columns go by number, from 1 to %d",
			t.Name(), flag, name, t.columns)
	}
	return 0, fmt.Errorf("%s: %s %s: there is no such column; there are %s", t.Name(), flag, name, list(t.header))
}

// title names a column in messages.
func (t *table) title(i int) string {
	if t.header == nil {
		return fmt.Sprintf("column %d", i+1)
	}
	return "column " + clipText(t.header[i])
}

// titles lists the columns that are wanted.
func (t *table) titles(wanted func(i int) bool) string {
	var names []string
	for i := range t.columns {
		if !wanted(i) {
			continue
		}
		if t.header != nil && t.header[i] != "" {
			names = append(names, t.header[i])
		} else {
			names = append(names, strconv.Itoa(i+1))
		}
	}
	return list(names)
}

// list joins names, the first few.
func list(names []string) string {
	const most = 12
	var short []string
	for _, n := range names[:min(len(names), most)] {
		short = append(short, clipText(n))
	}
	if len(names) > most {
		short = append(short, "…")
	}
	return strings.Join(short, ", ")
}

// clipText makes a name fit for a message of one line.
func clipText(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
	return lines.Clip([]byte(s))
}

// cell gives the cell of a column.
func (t *table) cell(cells [][]byte, column int) ([]byte, error) {
	if column >= len(cells) {
		return nil, bad(0, "found %d columns, and %d are needed; are all rows parted by %s?",
			len(cells), column+1, delimName[t.delim])
	}
	return cells[column], nil
}

var delimName = map[byte]string{'\t': "tabs", ',': "commas", ';': "semicolons", ' ': "blanks"}

// id reads a node's id that is an integer.
func (t *table) id(cells [][]byte, column int) (int64, error) {
	cell, err := t.cell(cells, column)
	if err != nil {
		return 0, err
	}
	v, ok := lines.Integer(cell)
	switch {
	case len(cell) == 0:
		return 0, bad(column+1, "an id is missing")
	case !ok && t.header == nil && t.at == t.first:
		return 0, bad(column+1, "%q is not an integer of 64 bits, as ids are; if this is the header, say --header yes", lines.Clip(cell))
	case !ok:
		return 0, bad(column+1, "%q is not an integer of 64 bits, as ids are; if they are text, say --id-type text", lines.Clip(cell))
	case v < 0:
		return 0, bad(column+1, "id %d is negative; ids are integers from 0, or say --id-type text", v)
	}
	return v, nil
}

// text reads a node's id that is text.
func (t *table) text(cells [][]byte, column int) ([]byte, error) {
	cell, err := t.cell(cells, column)
	switch {
	case err != nil:
		return nil, err
	case len(cell) == 0:
		return nil, bad(column+1, "an id is missing")
	case len(cell) > ingest.MaxIDBytes:
		return nil, bad(column+1, "an id of %d bytes, and %d are the most", len(cell), ingest.MaxIDBytes)
	}
	return cell, nil
}

// number reads a finite number of 32 bits.
func (t *table) number(cells [][]byte, column int) (float32, error) {
	cell, err := t.cell(cells, column)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(string(cell), 32)
	switch {
	case err != nil && !isRange(err):
		return 0, bad(column+1, "%q is not a number; choose another --weight", lines.Clip(cell))
	case err != nil || v-v != 0:
		return 0, bad(column+1, "%q is not a finite number of 32 bits", lines.Clip(cell))
	}
	return float32(v), nil
}

// missing says whether a cell holds no value.
func missing(cell []byte) bool { return len(cell) == 0 || bytes.EqualFold(cell, []byte("nan")) }
