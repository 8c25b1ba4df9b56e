package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/lines"
)

// separators part the labels of a cell. A column uses the first of them that any of its cells has.
const separators = "|;,"

// LabelLists reads a column of multi-label classification. A cell lists the labels of one node:
// a|b, a;b, "a, b", [a, b], ['a', 'b'] or [1 2]. A Category learns the classes in one reading.
type LabelLists struct {
	classes    *Category                 // nil until settled
	bySeparate [len(separators)]Category // the classes that each separator would give
	separate   int                       // the first separator that was met; len(separators): none
	listed     bool                      // some cell was a list
}

// NewLabelLists returns a reader of lists of known classes. If known is nil, it learns the classes.
func NewLabelLists(known *Category) *LabelLists {
	l := &LabelLists{classes: known, separate: len(separators)}
	for i := range l.bySeparate {
		l.bySeparate[i] = *NewCategory(MaxClasses)
	}
	return l
}

// Names are the classes, once they are settled.
func (l *LabelLists) Names() []string { return l.classes.Names }

// Learn notes the labels of a cell.
func (l *LabelLists) Learn(cell []byte) error {
	l.listed = l.listed || bracketed(cell)
	for i := range min(l.separate+1, len(separators)) {
		if l.known(i) {
			continue
		}
		if bytes.IndexByte(cell, separators[i]) >= 0 && !bracketed(cell) {
			l.separate = i
		}
		err := l.each(i, cell, func(t Token) error { l.bySeparate[i].Learn(t); return nil })
		if err != nil {
			return err
		}
		if l.separate == i {
			break
		}
	}
	return nil
}

// known reports whether the name of a known class has a separator in it. The separator then parts
// no labels.
func (l *LabelLists) known(separator int) bool {
	return l.classes != nil && slices.ContainsFunc(l.classes.Names, func(name string) bool {
		return strings.IndexByte(name, separators[separator]) >= 0
	})
}

// Settle puts the classes that were learnt in the order of numbers or of bytes. It refuses a column
// without labels, and one of zeros and ones, which is a class of its own.
func (l *LabelLists) Settle() error {
	if l.classes != nil {
		return nil
	}
	l.classes = &l.bySeparate[min(l.separate, len(separators)-1)]
	switch {
	case !l.classes.Settle():
		return fmt.Errorf("more than %d different labels are not classes", MaxClasses)
	case l.classes.Len() == 0:
		return errors.New("no node has a label")
	case !l.listed && l.separate == len(separators) && !slices.ContainsFunc(l.classes.Names, isNoBit):
		return errors.New("it has zeros and ones and no lists; name such a column for each label, A,B,C")
	}
	return nil
}

func isNoBit(name string) bool { return name != "0" && name != "1" }

// LabelBit reads a cell of zeros and ones: 1 for a node of the class, else 0.
func LabelBit(cell []byte) (int32, error) {
	switch in, ok := MaskOf(cell); {
	case !ok:
		return 0, fmt.Errorf("%q is neither 0 nor 1; mend it, or choose other columns", lines.Clip(cell))
	case in:
		return 1, nil
	}
	return 0, nil
}

// Append appends a 1 for each class of a cell and a 0 for each other class.
func (l *LabelLists) Append(dst []int32, cell []byte) ([]int32, error) {
	begin := len(dst)
	dst = append(dst, make([]int32, l.classes.Len())...)
	err := l.each(l.separate, cell, func(t Token) error {
		class, err := l.classes.Of(t)
		if err == nil {
			dst[begin+int(class)] = 1
		}
		return err
	})
	return dst, err
}

// QuoteLabels writes a list of texts as a cell that LabelLists reads.
func QuoteLabels(list []any) ([]byte, error) {
	cell := []byte{'['}
	for _, e := range list {
		text, isText := e.(string)
		if !isText {
			return nil, errors.New("a list of texts and other values")
		}
		quote := byte('"')
		if strings.IndexByte(text, quote) >= 0 {
			quote = '\''
		}
		if strings.IndexByte(text, quote) >= 0 {
			return nil, fmt.Errorf("%.40q in a list of texts has both kinds of quotes; take one of them out", text)
		}
		cell = append(append(append(cell, quote), text...), quote, ',')
	}
	return append(cell, ']'), nil
}

func bracketed(cell []byte) bool {
	cell = bytes.TrimSpace(cell)
	return len(cell) >= 2 && cell[0] == '[' && cell[len(cell)-1] == ']'
}

// each visits the labels of a cell. Empty ones and words for nothing are passed over.
func (l *LabelLists) each(separator int, cell []byte, visit func(Token) error) error {
	var buf [24]byte
	visitOne := func(label []byte) error {
		t, ok, err := LabelToken(bytes.TrimSpace(label), buf[:0])
		if err != nil || !ok {
			return err
		}
		return visit(t)
	}
	if cell = bytes.TrimSpace(cell); bracketed(cell) {
		return eachInBrackets(cell[1:len(cell)-1], visitOne)
	}
	if len(cell) > 0 && cell[0] == '[' && bytes.IndexByte(cell, ']') < 0 {
		return errors.New("a list begins with [ and has no ]")
	}
	if separator == len(separators) {
		return visitOne(cell)
	}
	for label := range bytes.SplitSeq(cell, []byte{separators[separator]}) {
		if err := visitOne(label); err != nil {
			return err
		}
	}
	return nil
}

// eachInBrackets visits the elements of a list as Python prints it: quoted texts, or anything
// between commas. Numbers and quoted texts may be parted by blanks alone, as NumPy prints them.
func eachInBrackets(list []byte, visit func(label []byte) error) error {
	for {
		list = bytes.TrimLeft(list, ", \t")
		if len(list) == 0 {
			return nil
		}
		var label []byte
		switch quote := list[0]; quote {
		case '\'', '"':
			end := bytes.IndexByte(list[1:], quote)
			if end < 0 {
				return fmt.Errorf("a list has the quote %c without its end", quote)
			}
			label, list = list[1:1+end], list[2+end:]
		case '[', ']', '{', '}':
			return fmt.Errorf("a list of labels has %q in it, and holds texts or numbers", quote)
		default:
			label, list, _ = bytes.Cut(list, []byte(","))
			if words := bytes.Fields(label); len(words) > 1 && allWhole(words) {
				for _, word := range words {
					if err := visit(word); err != nil {
						return err
					}
				}
				continue
			}
		}
		if err := visit(label); err != nil {
			return err
		}
	}
}

func allWhole(words [][]byte) bool {
	return !slices.ContainsFunc(words, func(word []byte) bool { _, whole := WholeText(word); return !whole })
}

// ListsLabels returns a name that looks like a list of labels. Such is a name in brackets, and "a,
// b" if a and b are names as well. Between bars and semicolons, as in a|b, each part must be a name
// or a part of another name. It returns "" if there is none.
func ListsLabels[V any](names map[string]V) string {
	found := ""
	met := map[string]int{} // how many names have a part
	for name := range names {
		for _, separator := range "|;" {
			if strings.ContainsRune(name, separator) {
				for part := range strings.SplitSeq(name, string(separator)) {
					met[strings.TrimSpace(part)]++
				}
			}
		}
	}
	for name := range names {
		if found != "" && found < name {
			continue
		}
		if bracketed([]byte(name)) {
			found = name
			continue
		}
		for _, separator := range separators {
			parts := strings.Split(name, string(separator))
			apart := func(part string) bool {
				part = strings.TrimSpace(part)
				_, there := names[part]
				return !there && (separator == ',' || met[part] < 2)
			}
			if len(parts) > 1 && !slices.ContainsFunc(parts, apart) {
				found = name
				break
			}
		}
	}
	return found
}
