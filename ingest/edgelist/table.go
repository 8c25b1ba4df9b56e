package edgelist

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/parquet"
)

// table is one text file of rows and columns.
type table struct {
	*lines.Scanner
	edges     bool     // it is an edge list
	delim     byte     // '\t', ',', ';', '|', ':', which stands for "::", or ' ', which stands for any blanks
	sep       []byte   // between cells; nil for blanks
	header    []string // nil without one
	columns   int      // of the first row, and so of all
	numerals  lines.Numerals
	comments  bool     // lines that start with # or % are passed over anywhere, not only at the start
	cells     [][]byte // of the row read last
	joined    []byte   // text of a row that goes on for several lines
	ahead     []byte   // the first row, when it is no header: a copy
	counts    []int64  // the first row of an edge list, when it is integers that may count what follows; else nil
	rows      int64    // read
	first     int64    // line of the first row
	at        int64    // line of the row read last, its first
	nodes     int64    // that a comment before the table declares, as SNAP's do; 0 without
	bipartite bool     // a comment before the table says so
	anyText   bool     // the user said that ids are text, so 1.24E+11 may be one

	source io.Closer // what the text is made from; else nil
	made   string    // messages call a row, or each rows, of a made table so: "node"; else ""
	each   int64

	numbered bool // ids are numbers of the file's, and never texts
}

// Close closes the file.
func (t *table) Close() error {
	err := t.Scanner.Close()
	if t.source != nil {
		err = errors.Join(err, t.source.Close())
		t.source = nil
	}
	return err
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

// sample visits up to n rows, and passes over bad ones, since a full read reports them. It returns
// the number of both.
func (t *table) sample(n int, visit func(cells [][]byte)) (rows int, err error) {
	for ; rows < n; rows++ {
		cells, err := t.next()
		if err == io.EOF {
			break
		}
		if _, wrong := err.(*rowError); wrong {
			continue
		}
		if err != nil {
			return rows, err
		}
		visit(cells)
	}
	return rows, nil
}

// judge passes over a bad row, the one read last, or returns its error with the place. Damage to a
// packed file is the likelier cause, and is reported instead.
func (t *table) judge(forgive *lines.Tolerance, err error) error {
	wrong, ok := err.(*rowError)
	if !ok {
		return err
	}
	err = fmt.Errorf("%s: %s: %w", t.Name(), t.place(t.at, wrong.column), wrong.err)
	refused := err
	if t.made != "" {
		return forgive.Forgive(t.Name()+" "+t.made, t.at, err)
	}
	if t.Line() == t.at { // a bad row of several lines may have swallowed good ones
		refused = forgive.Forgive(t.Name(), t.at, err)
	}
	if refused == nil {
		return nil
	}
	placed := t.ErrorAt(t.at, "%w", wrong.err) // looks for damage
	if placed.Error() != fmt.Sprintf("%s: line %d: %v", t.Name(), t.at, wrong.err) {
		return placed
	}
	return refused
}

// place names a row and a column of it, from 1, for messages; column 0 leaves it out.
func (t *table) place(at int64, column int) string {
	row := fmt.Sprintf("line %d", at)
	if t.made != "" {
		row = fmt.Sprintf("%s %d", t.made, at)
	}
	switch {
	case column == 0:
		return row
	case t.made != "" && column <= len(t.header):
		return fmt.Sprintf("%s, attribute %s", row, lines.ClipText(t.header[column-1]))
	}
	return fmt.Sprintf("%s, column %d", row, column)
}

// openTable opens a file and reads its first row. Comments after that are passed over in an edge
// list whose ids are not text, since no row of it can start as they do.
func openTable(path string, f form, edges, text bool) (*table, error) {
	t := &table{edges: edges, numerals: f.numerals}
	var err error
	if isParquet(path) {
		f.header, t.numerals = "yes", lines.Numerals{}
		var packed *parquet.File
		if t.Scanner, packed, err = openParquet(path); err == nil {
			t.source = packed
		}
	} else {
		t.Scanner, err = lines.OpenText(path, f.encoding)
	}
	if err != nil {
		return nil, err
	}
	if err := t.start(f.header); err != nil {
		t.Close()
		return nil, err
	}
	t.comments = edges && !text
	return t, nil
}

func (t *table) start(header string) error {
	t.comments = true // at the start they are
	line, err := t.line()
	t.comments = false
	if err == io.EOF {
		return nil
	}
	if err != nil {
		return err
	}
	switch line[0] {
	case '{', '[', '<':
		say := ""
		if line[0] == '{' {
			say = "; a graph in node-link JSON is read by gnnstore ingest nodelink " + t.Name() + " OUT"
		}
		return t.Errorf("it starts with %c: JSON or a web page, and a table is expected%s", line[0], say)
	}
	cells, err := t.begin(line)
	if err != nil {
		return err
	}
	numbers := 0
	for _, c := range cells {
		if t.isNumber(c) {
			numbers++
		}
		if v, ok := t.numerals.Integer(c); ok && t.edges {
			t.counts = append(t.counts, v)
		}
	}
	if len(t.counts) < t.columns || t.columns > 3 {
		t.counts = nil
	}
	isRow := numbers > 0
	if header == shortHeader { // feature columns may have numbers for names
		isRow = t.isEvent(cells)
	}
	if header != "yes" && (header == "no" || isRow) {
		return nil
	}
	t.header = make([]string, len(cells))
	for i, c := range cells {
		t.header[i] = strings.ToValidUTF8(string(c), "\uFFFD")
	}
	t.ahead = nil
	if t.counts == nil && header != shortHeader {
		return nil
	}
	if line, err = t.line(); err == io.EOF {
		return nil
	} else if err != nil {
		return err
	}
	cells, err = t.begin(line)
	if err != nil {
		return err
	}
	if header == shortHeader {
		for len(t.header) < len(cells) {
			t.header = append(t.header, strconv.Itoa(len(t.header)+1))
		}
		t.header = t.header[:len(cells)] // no row has the columns of the last names
	} else if len(cells) != len(t.header) {
		t.header = nil // it names no columns
	}
	return nil
}

// isEvent reports whether the first row of a list in JODIE's layout is an event: its time is a
// number or a date.
func (t *table) isEvent(cells [][]byte) bool {
	if len(cells) < 3 {
		return false
	}
	_, err := t.numerals.Float(cells[2], 64)
	return err == nil || isDate(cells[2])
}

func isDate(cell []byte) bool {
	_, _, ok := lines.ParseInstant(cell)
	return ok
}

// begin reads a row as the first, by which the others are cut, and leaves it to be read again.
func (t *table) begin(line []byte) (cells [][]byte, err error) {
	if t.delim, t.sep = delimiter(line, t.numerals); t.made != "" {
		t.delim, t.sep = ',', []byte{','}
	}
	t.first, t.at = t.Line(), t.Line()
	if line, err = t.whole(line); err != nil {
		return nil, err
	}
	t.ahead = bytes.Clone(line)
	if cells, err = t.split(line); err != nil { // which undoes the quotes
		return nil, t.judge(nil, err)
	}
	t.columns = len(cells)
	return cells, nil
}

// line returns the next line that is neither blank nor a comment.
func (t *table) line() ([]byte, error) {
	for {
		text, err := t.Next()
		if err != nil {
			return nil, err
		}
		switch {
		case lines.IsBlank(text):
		case t.comments && (text[0] == '#' || text[0] == '%'):
			if t.first == 0 {
				t.declares(text)
			}
		default:
			return text, nil
		}
	}
}

// declares keeps two facts from comments: the number of nodes, "# Nodes: 82168 Edges: 948464", and
// two kinds of nodes, KONECT's "% bip unweighted".
func (t *table) declares(comment []byte) {
	low := bytes.ToLower(comment)
	words := firstWords(low, 2)
	t.bipartite = t.bipartite || bytes.Contains(low, []byte("bipartite")) || len(words) > 1 && string(words[1]) == "bip"
	_, after, found := bytes.Cut(low, []byte("nodes:"))
	if words = firstWords(after, 1); found && len(words) > 0 {
		if n, err := strconv.ParseUint(string(words[0]), 10, 32); err == nil {
			t.nodes = int64(n)
		}
	}
}

// row returns the next line of the table; io.EOF after the last. It is lent until the next call.
func (t *table) row() ([]byte, error) {
	t.rows++
	if t.ahead != nil {
		line := t.ahead
		t.ahead = nil
		return line, nil
	}
	line, err := t.line()
	if t.at = t.Line(); t.made != "" {
		t.at = (t.rows + t.each - 1) / t.each
	}
	if err != nil {
		return nil, err
	}
	return t.whole(line)
}

// whole returns the row that begins with a line, and goes on for others where a quoted cell does.
func (t *table) whole(line []byte) ([]byte, error) {
	if err := t.CheckEnds(line); err != nil {
		return nil, err
	}
	if bytes.IndexByte(line, '"') < 0 || t.sep == nil || !t.open(line, false) {
		return line, nil
	}
	t.joined = append(t.joined[:0], line...)
	for open := true; open; {
		more, err := t.Next()
		if err == io.EOF || len(t.joined) > lines.MaxLine {
			return nil, t.ErrorAt(t.at, "a quote opens a cell and does not close; close it, or double the quotes that are text")
		}
		if err != nil {
			return nil, err
		}
		open = t.open(more, true)
		t.joined = append(append(t.joined, '\n'), more...)
	}
	return t.joined, nil
}

// open reports whether a quoted cell goes on after a text. within: the text starts inside one.
func (t *table) open(text []byte, within bool) bool {
	for {
		if within {
			quote := bytes.IndexByte(text, '"')
			if quote < 0 {
				return true
			}
			if text = text[quote+1:]; len(text) > 0 && text[0] == '"' {
				text = text[1:]
				continue
			}
		} else if text = t.trimmed(text); len(text) > 0 && text[0] == '"' {
			text, within = text[1:], true
			continue
		}
		end := bytes.Index(text, t.sep)
		if end < 0 {
			return false
		}
		text, within = text[end+len(t.sep):], false
	}
}

// next returns the cells of the next row, lent until the next call.
func (t *table) next() ([][]byte, error) {
	line, err := t.row()
	if err != nil {
		return nil, err
	}
	return t.cut(line)
}

// cut returns the cells of a row, which are as many as the first has.
func (t *table) cut(line []byte) ([][]byte, error) {
	cells, err := t.split(line)
	if err == nil && len(cells) != t.columns {
		err = t.ragged(cells)
	}
	return cells, err
}

// ragged is about a row that is longer or shorter than the first.
func (t *table) ragged(cells [][]byte) error {
	remedy := t.mend()
	if slices.ContainsFunc(cells, func(c []byte) bool { return len(c) > 0 && c[0] == '[' && c[len(c)-1] != ']' }) {
		remedy = `put each vector in quotes, as in "[0.1, 0.2]"`
	}
	numbers := t.edges && t.header == nil
	for _, c := range cells {
		_, whole := t.numerals.Integer(c)
		numbers = numbers && whole
	}
	counts := t.counts != nil && t.rows == 2 && t.header == nil
	if counts && !numbers && len(cells) > t.columns {
		remedy = "if the first row counts nodes and edges, say {header} yes; else " + remedy
	}
	if numbers {
		if remedy = "an adjacency list, a node and its neighbours a row, is not read: write a row an edge"; t.delim == ' ' {
			remedy = lines.Adjacency(t.Name())
		}
		if counts {
			remedy = "if the first row counts nodes and edges, say {header} yes; " + remedy
		}
	}
	return bad(0, "found %d columns, and the first row has %d, parted by %s; %s", len(cells), t.columns, delimName[t.delim], remedy)
}

// mend is the remedy for a bad row. It may be passed over where others before it were good: else
// all may be bad.
func (t *table) mend() string {
	if t.rows > 2 || t.header != nil && t.rows > 1 {
		return "mend the row, or pass over it with {skip_bad}"
	}
	return "mend the row"
}

// Cells returns the cells of the first row of a text; nil when they cannot be told.
func Cells(text string) []string {
	t := table{}
	row, rest, more := strings.Cut(text, "\n")
	t.delim, t.sep = delimiter([]byte(row), lines.Numerals{})
	for t.sep != nil && t.open([]byte(row), false) {
		if !more {
			return nil
		}
		text, rest, more = strings.Cut(rest, "\n")
		row += "\n" + text
	}
	cells, err := t.split([]byte(row))
	if err != nil {
		return nil
	}
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = string(c)
	}
	return texts
}

// delimiter is the first of tab, comma, semicolon, "::" and | that a line has outside quotes, else
// blanks. A comma comes last where the commas of the line are decimal marks.
func delimiter(line []byte, numerals lines.Numerals) (delim byte, sep []byte) {
	seps := []string{"\t", ",", ";", "::", "|"}
	if numerals.Comma || lines.SemicolonsPart(line) {
		seps = []string{"\t", ";", "::", "|", ","}
	}
	for _, sep := range seps {
		if sep == "," && blanksPart(line) {
			break
		}
		if sep == "::" && areAddresses(line) || sep == "|" && haveBars(line) {
			continue
		}
		quoted := false
		for i, c := range line {
			if c == '"' {
				quoted = !quoted
			} else if !quoted && bytes.HasPrefix(line[i:], []byte(sep)) {
				return c, []byte(sep)
			}
		}
	}
	return ' ', nil
}

// blanksPart reports whether blanks part the cells of a line that has commas as well: the commas
// are decimal marks, as in 7 8 0,5. The first two cells, ids, have none.
func blanksPart(line []byte) bool {
	words := firstWords(line, lines.MaxCells)
	isComma := func(word []byte) bool { return bytes.IndexByte(word, ',') >= 0 }
	return len(words) > 2 && !isComma(words[0]) && !isComma(words[1]) && lines.DecimalCommas(slices.Values(words[2:]))
}

// firstWords returns up to n words of a line, which may have millions.
func firstWords(line []byte, n int) (words [][]byte) {
	for w := range bytes.FieldsSeq(line) {
		if len(words) == n {
			break
		}
		words = append(words, w)
	}
	return words
}

// areAddresses reports whether a line starts with two addresses of IPv6 between blanks.
func areAddresses(line []byte) bool {
	words := firstWords(line, 2)
	for _, w := range words {
		if _, err := netip.ParseAddr(string(w)); err != nil {
			return false
		}
	}
	return len(words) >= 2
}

// haveBars reports whether a line is two or three words with as many bars inside each of the first
// two: ids of protein databases.
func haveBars(line []byte) bool {
	words := firstWords(line, 4)
	if len(words) < 2 || len(words) > 3 {
		return false
	}
	bars := func(w []byte) int { return bytes.Count(bytes.Trim(w, "|"), []byte{'|'}) }
	return bars(words[0]) > 0 && bars(words[0]) == bars(words[1])
}

// split cuts a line into cells, without the blanks around them and their quotes, which it undoes in
// place.
func (t *table) split(line []byte) ([][]byte, error) {
	t.cells = t.cells[:0]
	if t.sep == nil {
		for field := range bytes.FieldsSeq(line) {
			if len(t.cells) == lines.MaxCells {
				return nil, errCells
			}
			if n := len(field); field[0] == '"' && (n == 1 || field[n-1] != '"') {
				return nil, bad(len(t.cells)+1, "%q opens a quote, and blanks part cells, in quotes too; use another delimiter", lines.Clip(field))
			}
			t.cells = append(t.cells, lines.Unquoted(field))
		}
		return t.cells, nil
	}
	for rest := line; ; {
		if len(t.cells) == lines.MaxCells {
			return nil, errCells
		}
		trimmed := t.trimmed(rest)
		if len(trimmed) > 0 && trimmed[0] == '"' {
			cell, after, ok := quoted(trimmed[1:])
			if !ok {
				panic("edgelist: a row ends within quotes") // whole has closed them
			}
			t.cells = append(t.cells, cell)
			if after = t.trimmed(after); len(after) == 0 {
				return t.cells, nil
			}
			if !bytes.HasPrefix(after, t.sep) {
				return nil, bad(len(t.cells), "%q follows the closing quote; double the quotes inside the cell",
					lines.Clip(after))
			}
			rest = after[len(t.sep):]
			continue
		}
		end := bytes.Index(rest, t.sep)
		if end < 0 {
			t.cells = append(t.cells, bytes.TrimSpace(rest))
			return t.cells, nil
		}
		t.cells = append(t.cells, bytes.TrimSpace(rest[:end]))
		rest = rest[end+len(t.sep):]
	}
}

// trimmed returns text without leading blanks; a tab stays if tabs separate the cells.
func (t *table) trimmed(text []byte) []byte {
	if len(text) == 0 || text[0] > ' ' && text[0] < 0x80 {
		return text
	}
	return bytes.TrimLeftFunc(text, func(r rune) bool { return unicode.IsSpace(r) && (r != '\t' || t.delim != '\t') })
}

var errCells = bad(0, "found more than %d cells, which is the most; write many numbers of a node as an array (.npy), or as a list in one column of a table", lines.MaxCells)

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
	return 0, fmt.Errorf("%s: %s %s: there is no such column; there are %s", t.Name(), flag, name, lines.List(t.header))
}

// title names a column in messages.
func (t *table) title(i int) string {
	if t.header == nil {
		return fmt.Sprintf("column %d", i+1)
	}
	return "column " + lines.ClipText(t.header[i])
}

// titles lists the columns that are wanted.
func (t *table) titles(wanted func(i int) bool) string { return lines.List(t.names(wanted)) }

// names are the headers of columns, or their numbers.
func (t *table) names(wanted func(i int) bool) (names []string) {
	for i := range t.columns {
		if wanted(i) {
			names = append(names, t.name(i))
		}
	}
	return names
}

// numbers returns the numbers of the wanted columns in the form of {edge_features}: 2,5-8.
func (t *table) numbers(wanted func(i int) bool) string {
	var ranges []string
	for i := 0; i < t.columns; i++ {
		if !wanted(i) {
			continue
		}
		first := i
		for i+1 < t.columns && wanted(i+1) {
			i++
		}
		if i == first {
			ranges = append(ranges, strconv.Itoa(i+1))
		} else {
			ranges = append(ranges, fmt.Sprintf("%d-%d", first+1, i+1))
		}
	}
	return strings.Join(ranges, ",")
}

// name returns the header of a column, or its number if there is none.
func (t *table) name(i int) string {
	if t.header != nil && i < len(t.header) && t.header[i] != "" {
		return t.header[i]
	}
	return strconv.Itoa(i + 1)
}

// cell returns the cell of a column.
func (t *table) cell(cells [][]byte, column int) ([]byte, error) {
	if column >= len(cells) {
		return nil, errChanged(t.Name())
	}
	return cells[column], nil
}

var delimName = map[byte]string{'\t': "tabs", ',': "commas", ';': "semicolons", ' ': "blanks",
	':': "double colons", '|': "bars"}

// id reads a node's id that is an integer.
func (t *table) id(cells [][]byte, column int) (int64, error) {
	cell, err := t.cell(cells, column)
	if err != nil {
		return 0, err
	}
	if v, ok := t.numerals.ID(cell); ok {
		return v, nil
	}
	negative, whole := t.numerals.Integer(cell)
	switch {
	case len(cell) == 0:
		return 0, bad(column+1, "an id is missing")
	case t.numbered:
		return 0, bad(column+1, "%q is no number of a node", lines.Clip(cell))
	case lines.Rounded(cell):
		return 0, bad(column+1, "%w", lines.RefuseRounded(cell))
	case lines.Zeros(cell):
		return 0, bad(column+1, "%q has zeros in front, which an integer would lose; say {id_type} text", lines.Clip(cell))
	case whole && negative < 0:
		return 0, bad(column+1, "id %d is negative; ids are integers from 0, or say {id_type} text", negative)
	case t.header == nil && t.at == t.first:
		return 0, bad(column+1, "%q is not an integer of 64 bits, as ids are; if this is the header, say {header} yes", lines.Clip(cell))
	}
	return 0, bad(column+1, "%q is not an integer of 64 bits, as ids are; if they are text, say {id_type} text", lines.Clip(cell))
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
	case !t.anyText && lines.Spreadsheet(cell):
		return nil, bad(column+1, "%w; if it is text as it stands, say {id_type} text", lines.RefuseRounded(cell))
	}
	return cell, nil
}

// number reads a finite number of 32 bits, of a column that a flag asked for.
func (t *table) number(cells [][]byte, column int, flag string) (float32, error) {
	cell, err := t.cell(cells, column)
	if err != nil {
		return 0, err
	}
	v, err := t.numerals.Float(cell, 32)
	switch {
	case err != nil && isDate(cell):
		return 0, bad(column+1, "%q is a date, which 32 bits do not hold; choose another %s, or keep it by "+
			"{edge_columns} as integers of seconds", lines.Clip(cell), flag)
	case err != nil && !isRange(err):
		return 0, bad(column+1, "%q is not a number; %s", lines.Clip(cell), t.spelled(cell, "choose another "+flag))
	case err != nil || v-v != 0:
		return 0, bad(column+1, "%q is not a finite number of 32 bits", lines.Clip(cell))
	}
	return float32(v), nil
}

// spelled returns the remedy for a cell that is no number: the option that reads it as one, or else
// another remedy.
func (t *table) spelled(cell []byte, other string) string {
	return cmp.Or(t.numerals.Spelled(cell), other)
}

// missing reports whether a cell holds no value.
func missing(cell []byte) bool {
	return len(cell) == 0 || len(cell) == 3 && bytes.EqualFold(cell, []byte("nan"))
}
