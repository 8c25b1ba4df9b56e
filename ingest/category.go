package ingest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// MaxCategory is the length of the longest text that is a class or category.
const MaxCategory = 256

// manyClasses bounds the different texts of a label where more than half of the values differ.
const manyClasses = 100

// Category numbers the different values of a column, which are learnt in one reading and known in
// the others: by value where all are integers, else by their bytes.
type Category struct {
	most    int
	ids     map[string]int32
	Names   []string // nil until known
	values  int64    // that were there
	texts   bool     // some are no integers
	least   int64    // of the integers that are not negative
	largest int64    // the largest
	many    bool     // more than most: ids is dropped
	rare    int32    // values met less often are left out
	keep    int      // the number of values to keep, the most frequent; 0: all
	pruned  bool     // some of the values that were met are no longer counted
	direct  bool     // a label's integers are classes by number
	of      string   // what the values are known from; empty: they are learnt
}

// KnownCategory has values that are known beforehand, in the order of their numbers. of names them
// in errors, as in "the categories of shop.gnn".
func KnownCategory(names []string, of string) *Category {
	c := &Category{ids: map[string]int32{}, Names: names, of: of}
	for i, name := range names {
		c.ids[name] = int32(i)
	}
	return c
}

// KnownClasses has so many classes by number. of names them in errors.
func KnownClasses(classes int64, of string) *Category {
	return &Category{direct: true, largest: classes - 1, of: of}
}

// NewCategory has room for most different values.
func NewCategory(most int) *Category {
	return &Category{most: most, ids: map[string]int32{}, least: math.MaxInt64}
}

// LeaveRare makes Settle leave out values that were met fewer than least times.
func (c *Category) LeaveRare(least int) { c.rare = int32(least) }

// countedValues bounds the values that a Category counts to keep the most frequent: some tens of
// MiB.
const countedValues = 1 << 18

// KeepMost makes Settle keep only the keep most frequent values. Of equally frequent values it
// keeps the first by text. Any number of values may be learnt. Counts are exact up to countedValues
// different values. Beyond, a count may be too low by 2/countedValues of all values, as in Misra
// and Gries, "Finding Repeated Elements".
func (c *Category) KeepMost(keep int) { c.keep, c.most = keep, countedValues }

// Pruned reports whether KeepMost had more values to count than it can.
func (c *Category) Pruned() bool { return c.pruned }

// Len is the number of different values, once known; 0 of nil, and of classes by number that are
// learnt.
func (c *Category) Len() int {
	if c == nil {
		return 0
	}
	if c.direct && c.of != "" {
		return int(c.largest) + 1
	}
	return len(c.Names)
}

// Token is a cell as a Category reads it: 3, 3.0 and "3" are the same.
type Token struct {
	Text    []byte
	Number  int64
	Integer bool
}

// LabelToken reads a label in text; false when it is missing: when it is empty, or what tables have
// for nothing. However they are capitalised, true and false are one each. The text is lent as the
// cell is, or in buf.
func LabelToken(cell, buf []byte) (t Token, ok bool, err error) {
	switch cell = LabelText(cell); {
	case len(cell) == 0:
		return t, false, nil
	case len(cell) > MaxCategory:
		return t, false, fmt.Errorf("%d bytes are no class or category", len(cell))
	}
	if t.Number, t.Integer = WholeText(cell); !t.Integer {
		return Token{Text: cell}, true, nil
	}
	return IntToken(t.Number, buf), true, nil
}

// IntToken is an integer, whose text is in buf.
func IntToken(n int64, buf []byte) Token {
	return Token{Text: strconv.AppendInt(buf[:0], n, 10), Number: n, Integer: true}
}

// LabelText returns the text of a cell as a label or a category: nil for NA, nan, null, None and
// blanks, and true or false for these words, however they are capitalised.
func LabelText(cell []byte) []byte {
	text := bytes.TrimSpace(cell)
	if len(text) > 0 && text[0]-'0' <= 9 {
		return cell // a number, as most cells are, is none of the words
	}
	switch string(text) {
	case "", "NA", "<NA>", "#N/A", "None":
		return nil
	}
	for _, word := range []string{"nan", "null", "n/a"} {
		if strings.EqualFold(string(text), word) {
			return nil
		}
	}
	for _, word := range booleans {
		if bytes.EqualFold(text, word) {
			return word
		}
	}
	return cell
}

var booleans = [][]byte{[]byte("true"), []byte("false")}

// WholeText reads 3, and 3.0 as Python writes integers that came from floats.
func WholeText(cell []byte) (int64, bool) {
	if c := cell[0]; c != '-' && c-'0' > 9 {
		return 0, false
	}
	left, fraction, _ := bytes.Cut(cell, []byte("."))
	if len(bytes.Trim(fraction, "0")) > 0 {
		return 0, false
	}
	v, err := strconv.ParseInt(string(left), 10, 64)
	return v, err == nil && (len(left) == 1 || left[0] != '0') // 007 is a name
}

// Learn notes a value, unless the values are known beforehand.
func (c *Category) Learn(t Token) {
	if c.of != "" {
		return
	}
	c.values++
	switch {
	case !t.Integer:
		c.texts = true
	case t.Number >= 0:
		c.least, c.largest = min(c.least, t.Number), max(c.largest, t.Number)
	}
	met, known := c.ids[string(t.Text)]
	switch {
	case c.many || known && met >= c.rare && (c.keep == 0 || met == math.MaxInt32):
		return
	case known:
		c.ids[string(t.Text)] = met + 1
		return
	}
	c.ids[string(t.Text)] = 1
	switch {
	case len(c.ids) <= c.most:
	case c.keep > 0:
		c.prune()
	default:
		c.ids, c.many = map[string]int32{}, true
	}
}

// prune makes room for other values. It lowers all counts by the median, and drops values whose
// count is then 0.
func (c *Category) prune() {
	counts := slices.Sorted(maps.Values(c.ids))
	less := counts[len(counts)/2]
	for text, met := range c.ids {
		if met <= less {
			delete(c.ids, text)
		} else {
			c.ids[text] = met - less
		}
	}
	c.pruned = true
}

// keepMost drops all but the most frequent values.
func (c *Category) keepMost() {
	if c.keep == 0 || len(c.ids) <= c.keep {
		return
	}
	texts := slices.SortedFunc(maps.Keys(c.ids), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.ids[b], c.ids[a]), cmp.Compare(a, b))
	})
	for _, text := range texts[c.keep:] {
		delete(c.ids, text)
	}
}

// SettleLabel makes classes of the labels learnt: by number when integers count from 0, else by
// name. Negative integers are missing.
func (c *Category) SettleLabel() error {
	switch {
	case c.texts && c.many:
		return fmt.Errorf("more than %d different labels are not classes", c.most)
	case c.texts && len(c.ids) > manyClasses && 2*int64(len(c.ids)) > c.values:
		return fmt.Errorf("%d different labels on %d nodes are not classes", len(c.ids), c.values)
	case !c.texts && (c.least == 0 || c.many || c.values == 0 || c.least == math.MaxInt64):
		if c.largest > math.MaxInt32 {
			return fmt.Errorf("%d is not the number of a class", c.largest)
		}
		c.direct, c.ids = true, nil
		return nil
	}
	c.number(!c.texts)
	return nil
}

// Settle numbers the values learnt, integers by value and texts by their bytes, and reports whether
// there was room.
func (c *Category) Settle() (fits bool) {
	if !c.many {
		c.number(false)
	}
	return !c.many
}

// SettleTexts is Settle with integers in the order of their digits as well.
func (c *Category) SettleTexts() (fits bool) {
	c.texts = true
	return c.Settle()
}

// number gives each text its place; positive leaves out negative integers.
func (c *Category) number(positive bool) {
	c.keepMost()
	texts := make([]string, 0, len(c.ids))
	for text, met := range c.ids {
		switch {
		case met < c.rare:
			delete(c.ids, text)
		case positive && text[0] == '-':
			c.ids[text] = -1
		default:
			texts = append(texts, text)
		}
	}
	if c.texts {
		slices.Sort(texts)
	} else {
		slices.SortFunc(texts, func(a, b string) int {
			x, _ := strconv.ParseInt(a, 10, 64)
			y, _ := strconv.ParseInt(b, 10, 64)
			return cmp.Compare(x, y)
		})
	}
	for i, text := range texts {
		c.ids[text] = int32(i)
		texts[i] = strings.ToValidUTF8(text, "\uFFFD")
	}
	c.Names = texts
}

// Of is the number of what was learnt.
func (c *Category) Of(t Token) (int32, error) {
	if c.direct {
		if t.Number > c.largest || !t.Integer {
			return 0, c.unknown(t)
		}
		return int32(max(t.Number, -1)), nil
	}
	id, ok := c.ids[string(t.Text)]
	if !ok {
		return 0, c.unknown(t)
	}
	return id, nil
}

// Unknown reports whether t is none of the names. The names must be settled, or known beforehand.
func (c *Category) Unknown(t Token) bool {
	_, ok := c.ids[string(t.Text)]
	return !c.direct && !ok
}

// unknown returns the error for a value that was not learnt.
func (c *Category) unknown(t Token) error {
	if c.of != "" {
		return fmt.Errorf("%.40q is none of %s", t.Text, c.of)
	}
	return fmt.Errorf("%.40q is new; the file changed while it was read", t.Text)
}

// LearnText is Learn for a cell of text, which may be missing.
func (c *Category) LearnText(cell string) error {
	t, ok, err := LabelToken([]byte(cell), nil)
	if ok {
		c.Learn(t)
	}
	return err
}

// OfText is Of for a cell of text, -1 where it is missing.
func (c *Category) OfText(cell string) (int32, error) {
	t, ok, err := LabelToken([]byte(cell), nil)
	if err != nil || !ok {
		return -1, err
	}
	return c.Of(t)
}

// MaxClasses bounds the classes of text labels, of event labels, and of node labels at times.
// Memory such as weights is made for each class, so without a bound one stray number would ask for
// too much.
const MaxClasses = 1 << 16
