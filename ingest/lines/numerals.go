package lines

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Numerals is a way to write numbers. The zero value is the way of programs: a decimal point, and
// nothing between thousands.
type Numerals struct {
	Comma bool // the decimal mark is a comma, not a point
	Group rune // the mark between groups of three digits; ' ' is any blank, and 0 none
}

// groupNames are the marks between thousands by their names in options.
var groupNames = map[string]rune{
	"none": 0, "comma": ',', ",": ',', "point": '.', ".": '.', "blank": ' ', " ": ' ', "apostrophe": '\'', "'": '\'',
}

// ParseNumerals reads the options {decimal} and {thousands}. Numbers with a decimal comma have
// points between thousands by default, and others have nothing there.
func ParseNumerals(decimal, thousands string) (n Numerals, err error) {
	switch decimal {
	case "", "point":
	case "comma":
		n = Numerals{Comma: true, Group: '.'}
	default:
		return n, fmt.Errorf("{decimal} %q: choose point or comma", ClipText(decimal))
	}
	if thousands == "" {
		return n, nil
	}
	group, ok := groupNames[thousands]
	if n.Group = group; !ok {
		return n, fmt.Errorf("{thousands} %q: choose comma, point, blank, apostrophe or none", ClipText(thousands))
	}
	if group == n.mark() {
		return n, fmt.Errorf("{thousands} %s: that is the decimal mark; choose the other with {decimal}, or another mark between thousands", thousands)
	}
	return n, nil
}

// Words returns the values of {decimal} and {thousands} that make these numerals. A value is empty
// where it is the default.
func (n Numerals) Words() (decimal, thousands string) {
	usual := rune(0)
	if n.Comma {
		decimal, usual = "comma", '.'
	}
	if n.Group != usual {
		thousands = map[rune]string{0: "none", ',': "comma", '.': "point", ' ': "blank", '\'': "apostrophe"}[n.Group]
	}
	return decimal, thousands
}

// options names the options that make these numerals.
func (n Numerals) options() string {
	decimal, thousands := n.Words()
	var said []string
	if decimal != "" {
		said = append(said, "{decimal} "+decimal)
	}
	if thousands != "" && n.Group != 0 {
		said = append(said, "{thousands} "+thousands)
	}
	return strings.Join(said, " and ")
}

func (n Numerals) mark() rune {
	if n.Comma {
		return ','
	}
	return '.'
}

// Plain appends a number to dst in the way of programs. It returns false if the cell is no such
// number: marks between thousands stand before groups of three digits only, and not behind a zero.
// A cell without digits is returned as it is, since it may be nan or inf.
func (n Numerals) Plain(dst, cell []byte) ([]byte, bool) {
	if n == (Numerals{}) {
		return append(dst, cell...), true
	}
	rest := cell
	if len(rest) > 0 && (rest[0] == '-' || rest[0] == '+') {
		dst, rest = append(dst, rest[0]), rest[1:]
	}
	first, digits, groups := len(dst), 0, 0 // digits of the group so far
	for len(rest) > 0 {
		if c := rest[0]; c-'0' <= 9 {
			dst, rest, digits = append(dst, c), rest[1:], digits+1
			continue
		}
		width := n.groupAt(rest)
		if width == 0 {
			break
		}
		if digits == 0 || digits > 3 || groups > 0 && digits != 3 || dst[first] == '0' {
			return dst, false
		}
		rest, digits, groups = rest[width:], 0, groups+1
	}
	if groups > 0 && digits != 3 {
		return dst, false
	}
	if len(rest) > 0 && rune(rest[0]) == n.mark() {
		dst, rest = append(dst, '.'), rest[1:]
	} else if digits == 0 && !bytes.ContainsAny(rest, ".,") {
		return append(dst, rest...), true // nan and the like
	}
	if bytes.ContainsAny(rest, ".,") {
		return dst, false
	}
	return append(dst, rest...), true
}

// groupAt returns the size of the mark between thousands that text begins with, or 0.
func (n Numerals) groupAt(text []byte) int {
	if n.Group == 0 {
		return 0
	}
	r, width := utf8.DecodeRune(text)
	switch {
	case r == n.Group, n.Group == ' ' && unicode.Is(unicode.Zs, r), n.Group == '\'' && r == '’':
		return width
	}
	return 0
}

// Float reads a number as the function [Float] does.
func (n Numerals) Float(cell []byte, bits int) (float64, error) {
	if n == (Numerals{}) {
		return Float(cell, bits)
	}
	var buf [48]byte
	plain, ok := n.Plain(buf[:0], cell)
	if !ok {
		return 0, &strconv.NumError{Func: "ParseFloat", Num: string(cell), Err: strconv.ErrSyntax}
	}
	return Float(plain, bits)
}

// Integer reads an integer as the function [Integer] does.
func (n Numerals) Integer(cell []byte) (int64, bool) {
	if n == (Numerals{}) {
		return Integer(cell)
	}
	var buf [48]byte
	plain, ok := n.Plain(buf[:0], cell)
	if !ok {
		return 0, false
	}
	return Integer(plain)
}

// ID reads an id as the function [ID] does. An id has no marks between thousands.
func (n Numerals) ID(cell []byte) (int64, bool) {
	if !n.Comma {
		return ID(cell)
	}
	var buf [48]byte
	plain, ok := Numerals{Comma: true}.Plain(buf[:0], cell)
	if !ok {
		return 0, false
	}
	return ID(plain)
}

// otherNumerals are the ways in which people write numbers, the likelier first.
var otherNumerals = []Numerals{
	{Comma: true, Group: '.'}, {Group: ','},
	{Group: ' '}, {Comma: true, Group: ' '}, {Comma: true, Group: '\''}, {Group: '\''},
}

// Spelling collects how the cells of a column write numbers, for a reader that does not read them
// as numbers. It tells numbers in other [Numerals], or with a sign such as %, from text.
type Spelling struct {
	Numerals Numerals // of the reader
	first    string   // the first cell that Numerals do not read
	sign     string   // of the first cell that has one
	// not[i] is set if some cell is not written in otherNumerals[i]. The last element is for the
	// zero value of Numerals.
	not []bool
}

// Add looks at a cell that holds a value.
func (s *Spelling) Add(cell []byte) {
	if s.not == nil {
		s.not = make([]bool, len(otherNumerals)+1)
	}
	if _, err := s.Numerals.Float(cell, 64); err != nil && s.first == "" {
		s.first = ClipText(string(cell))
	}
	sign, cell := cutSign(cell)
	if s.sign == "" {
		s.sign = sign
	}
	for i := range s.not {
		s.not[i] = s.not[i] || !writes(s.way(i), cell)
	}
}

// way returns the i-th of otherNumerals, or the zero value behind them.
func (s *Spelling) way(i int) (n Numerals) {
	if i < len(otherNumerals) {
		n = otherNumerals[i]
	}
	return n
}

// likeliest returns a way in which all cells are numbers, one with the reader's decimal mark if
// possible.
func (s *Spelling) likeliest() Numerals {
	for i, not := range s.not {
		if way := s.way(i); !not && way.Comma == s.Numerals.Comma {
			return way
		}
	}
	return s.way(slices.Index(s.not, false))
}

// writes reports whether a cell is a number in a way, with digits.
func writes(n Numerals, cell []byte) bool {
	_, err := n.Float(cell, 64)
	return err == nil && bytes.ContainsAny(cell, "0123456789")
}

// finding describes a column and a remedy, as in "numbers with a decimal comma" and "say {decimal}
// comma". The kind is empty if the cells are text, or numbers that the reader reads.
type finding struct{ kind, todo string }

func (s *Spelling) finding() (f finding) {
	if s.first == "" || !slices.Contains(s.not, false) {
		return f
	}
	if s.sign != "" {
		by := ""
		if s.sign == "−" {
			by = "-"
		}
		todo := fmt.Sprintf("write them without it: sed 's/%s/%s/g' FILE > PLAIN", strings.ReplaceAll(s.sign, "$", `\$`), by)
		return finding{"numbers with the sign " + s.sign, todo}
	}
	if !s.not[len(otherNumerals)] { // only if the reader's numerals are others
		return finding{"numbers with a decimal point", s.Numerals.options() + " is for all columns, so write all numbers in one way"}
	}
	if !s.not[0] && !s.not[1] {
		return finding{"numbers with a comma", "say {decimal} comma if a fraction follows it, or {thousands} comma if not"}
	}
	way := s.likeliest()
	if way.Comma {
		return finding{"numbers with a decimal comma", "say " + way.options()}
	}
	f = finding{"numbers with " + map[rune]string{',': "commas", ' ': "blanks", '\'': "apostrophes"}[way.Group] + " between thousands", "say "}
	if s.Numerals.Comma {
		f.todo += "{decimal} point and "
	}
	f.todo += way.options()
	return f
}

// Remedy returns what the column holds and what to do, as in: numbers with a decimal comma, such as
// "0,5"; say {decimal} comma. It is empty if the cells are text, or numbers that the reader reads.
func (s *Spelling) Remedy() string {
	f := s.finding()
	if f.kind == "" {
		return ""
	}
	return fmt.Sprintf("%s, such as %q; %s", f.kind, s.first, f.todo)
}

// Remedies returns what to do for columns, by their names: a sentence for all columns of one kind.
func Remedies(names []string, columns []*Spelling) (list []string) {
	var order []finding
	alike := map[finding][]int{}
	for i, s := range columns {
		if f := s.finding(); f.kind != "" {
			if alike[f] == nil {
				order = append(order, f)
			}
			alike[f] = append(alike[f], i)
		}
	}
	for _, f := range order {
		var some []string
		for _, i := range alike[f] {
			some = append(some, names[i])
		}
		what := "column"
		if len(some) > 1 {
			what = "columns"
		}
		list = append(list, fmt.Sprintf("%s %s: %s", what, List(some), columns[alike[f][0]].Remedy()))
	}
	return list
}

// First returns the first cell that the reader does not read as a number, shortened.
func (s *Spelling) First() string { return s.first }

// Reads reports whether all cells are numbers in a way that Way returns.
func (s *Spelling) Reads(way Numerals) bool {
	i := slices.Index(otherNumerals, way)
	return i >= 0 && s.not != nil && !s.not[i]
}

// Way returns the numerals that the column is written in. It returns false if the column is text,
// if there is a sign beside the numbers, if two ways are as likely, or if digits and blanks may be
// something else, such as telephone numbers.
func (s *Spelling) Way() (n Numerals, ok bool) {
	if s.first == "" || s.sign != "" || !slices.Contains(s.not, false) || !s.not[len(otherNumerals)] || !s.not[0] && !s.not[1] {
		return n, false
	}
	n = s.likeliest()
	return n, n.Comma || n.Group == ','
}

// Spelled returns the remedy for one cell that numerals do not read; empty if it is text.
func (n Numerals) Spelled(cell []byte) string {
	s := Spelling{Numerals: n}
	s.Add(cell)
	return s.finding().todo
}

// currencies are the codes of ISO 4217 that tables have most.
var currencies = []string{"USD", "EUR", "GBP", "JPY", "CHF", "CNY", "INR"}

// cutSign takes the sign of a currency or of per cent off a number, or a minus that is no hyphen.
func cutSign(cell []byte) (sign string, number []byte) {
	isSign := func(r rune) bool { return r == '%' || r == '‰' || unicode.Is(unicode.Sc, r) }
	blank := func(text []byte) []byte { return bytes.TrimFunc(text, unicode.IsSpace) }
	if rest, ok := bytes.CutPrefix(cell, []byte("−")); ok {
		return "−", rest
	}
	before := []byte(nil) // a minus before the sign, as in -$5
	rest := cell
	if len(rest) > 0 && (rest[0] == '-' || rest[0] == '+') {
		before, rest = rest[:1], rest[1:]
	}
	for _, code := range currencies {
		if text, ok := bytes.CutPrefix(rest, []byte(code)); ok {
			return code, append(bytes.Clone(before), blank(text)...)
		}
		if text, ok := bytes.CutSuffix(rest, []byte(code)); ok {
			return code, append(bytes.Clone(before), blank(text)...)
		}
	}
	if r, n := utf8.DecodeRune(rest); isSign(r) {
		return string(r), append(bytes.Clone(before), blank(rest[n:])...)
	}
	if r, n := utf8.DecodeLastRune(rest); isSign(r) {
		return string(r), append(bytes.Clone(before), blank(rest[:len(rest)-n])...)
	}
	return "", cell
}

// SemicolonsPart reports whether semicolons part the cells of a line that has commas as well: the
// commas are decimal marks, as in 7;0,5;1,25. The first cell, an id, has none.
func SemicolonsPart(line []byte) bool {
	first, rest, ok := bytes.Cut(line, []byte{';'})
	return ok && bytes.IndexByte(first, ',') < 0 && DecimalCommas(bytes.SplitSeq(rest, []byte{';'}))
}

// DecimalCommas reports whether some cells have commas, and all of these are numbers with a decimal
// comma.
func DecimalCommas(cells iter.Seq[[]byte]) (found bool) {
	for cell := range cells {
		if bytes.IndexByte(cell, ',') < 0 {
			continue
		}
		if !writes(Numerals{Comma: true, Group: '.'}, bytes.TrimSpace(cell)) {
			return false
		}
		found = true
	}
	return found
}
