package triples

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

const (
	rdfNS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	xsdNS = "http://www.w3.org/2001/XMLSchema#"
	// mostOpen bounds the brackets in one another, each with a subject and a predicate in memory.
	mostOpen     = 1000
	mostPrefixes = 1 << 12
)

// turtle reads the triples of a Turtle file (W3C Recommendation of 2014) one by one. It holds the
// open brackets of a statement, and no more than three triples. Names are spelled as in N-Triples.
type turtle struct {
	characters
	base     string
	prefixes map[string]string
	blank    string // stands before the numbers of nodes without a label
	blanks   int64
	open     []bracket // of the statement, from the outside in
	at       state
	begun    bool
	ahead    []triple // found, and not returned yet
	out      triple
}

// bracket is a node whose triples are being read: of the statement itself, of [ … ], or of a list
// ( … ), whose subject is its last cell.
type bracket struct {
	kind               byte // 0, '[' or '('
	subject, predicate []byte
	items              int  // of a list
	first              bool // it is the subject of its statement
}

// state is the part of a statement that comes next.
type state int

const (
	inStatement state = iota // a statement or the end
	inVerb                   // a predicate, or the end of the predicates
	inObject                 // an object, or an item of a list
	afterObject              // , ; or what ends the bracket
)

// newTurtle reads a file. blank is another text for each file, so that nodes without a label differ
// between files.
func newTurtle(name string, r io.Reader, blank string) *turtle {
	text := characters{name: name, r: r, line: 1}
	return &turtle{characters: text, prefixes: map[string]string{}, blank: "_:." + blank}
}

// next returns the next triple, lent until the next call; nil at the end.
func (t *turtle) next() (*triple, error) {
	for len(t.ahead) == 0 {
		more, err := t.step()
		if err != nil {
			return nil, t.errorf("%w", err)
		}
		if !more {
			return nil, nil
		}
	}
	t.out = t.ahead[0]
	t.ahead = append(t.ahead[:0], t.ahead[1:]...)
	return &t.out, nil
}

// step reads on to the next term or sign. more is false at the end of the file.
func (t *turtle) step() (more bool, err error) {
	if mark := []byte("\ufeff"); !t.begun && bytes.Equal(t.peek(len(mark)), mark) {
		t.pos += len(mark)
	}
	t.begun = true
	c, err := t.sign()
	if err == io.EOF && t.at == inStatement && len(t.open) == 0 {
		return false, nil
	}
	if err != nil {
		return false, cutShort(err)
	}
	switch t.at {
	case inStatement:
		return true, t.statement(c)
	case inVerb:
		return true, t.verb(c)
	case inObject:
		return true, t.object(c)
	}
	return true, t.after(c)
}

func (t *turtle) top() *bracket { return &t.open[len(t.open)-1] }

func (t *turtle) emit(subject, predicate, object []byte, literal bool) {
	t.ahead = append(t.ahead, triple{subject, predicate, object, literal})
}

// fresh returns a new node without a label. Its name begins with a full stop, as no label does, so
// no other node has it.
func (t *turtle) fresh() []byte {
	t.blanks++
	return strconv.AppendInt([]byte(t.blank), t.blanks, 10)
}

// push opens a bracket.
func (t *turtle) push(b bracket) error {
	if len(t.open) > mostOpen {
		return fmt.Errorf("more than %d brackets in one another; is a ] or ) missing?", mostOpen)
	}
	t.open = append(t.open, b)
	return nil
}

// statement reads a directive, or the subject of a statement.
func (t *turtle) statement(c byte) error {
	switch {
	case c == '@':
		t.skip()
		return t.directive(t.word(), true)
	case c == '[':
		t.skip()
		node := t.fresh()
		c, err := t.sign()
		if err != nil {
			return cutShort(err)
		}
		if c == ']' {
			t.skip()
			t.at = inVerb
			return t.push(bracket{subject: node})
		}
		t.at = inVerb
		return t.push(bracket{kind: '[', subject: node, first: true})
	case c == '(':
		t.skip()
		t.at = inObject
		return t.push(bracket{kind: '(', subject: t.fresh(), first: true})
	case c == '<':
		if head := t.peek(2); len(head) == 2 && (head[1] == '!' || head[1] == '?') {
			return fmt.Errorf("a web page or XML, and not Turtle; fetch the file itself, or convert RDF/XML: %s", converters[".rdf"])
		}
	case c != '_' && c != ':':
		if word := strings.ToLower(t.keyword()); word == "prefix" || word == "base" {
			t.word()
			return t.directive(word, false)
		}
	}
	node, literal, err := t.term(c)
	if err == nil && literal {
		err = fmt.Errorf("the subject is the literal %s; only objects are literals", lines.Clip(node))
	}
	if err != nil {
		return err
	}
	t.at = inVerb
	return t.push(bracket{subject: node})
}

// directive reads a prefix or a base. stop: a full stop ends it.
func (t *turtle) directive(word string, stop bool) error {
	name := ""
	if word == "prefix" {
		if _, err := t.sign(); err != nil {
			return cutShort(err)
		}
		name = t.word()
		if c, err := t.byte(); err != nil || c != ':' {
			return errors.New("a prefix is a name, a colon and an IRI, as in @prefix ex: <http://example.org/>")
		}
		t.skip()
	} else if word != "base" {
		return fmt.Errorf("@%s is neither @prefix nor @base", lines.Clip([]byte(word)))
	}
	c, err := t.sign()
	if err != nil {
		return cutShort(err)
	}
	if c != '<' {
		return fmt.Errorf("an IRI in angle brackets follows %s", word)
	}
	iri, err := t.iri()
	if err != nil {
		return err
	}
	if word == "base" {
		t.base = string(iri)
	} else {
		if len(t.prefixes) >= mostPrefixes {
			return fmt.Errorf("more than %d prefixes", mostPrefixes)
		}
		t.prefixes[name] = string(iri)
	}
	if !stop {
		return nil
	}
	if c, err = t.sign(); err != nil {
		return cutShort(err)
	}
	if c != '.' {
		return fmt.Errorf("a full stop ends @%s", word)
	}
	t.skip()
	return nil
}

// verb reads a predicate, or what follows the last.
func (t *turtle) verb(c byte) error {
	b := t.top()
	done := b.predicate != nil || b.kind == 0 && b.first // all predicates may have been read
	switch {
	case c == ';' && b.predicate != nil:
		t.skip()
		return nil
	case (c == '.' || c == ']') && done:
		t.at = afterObject
		return nil
	}
	if t.keyword() == "a" {
		t.word()
		b.predicate, t.at = []byte(rdfNS+"type"), inObject
		return nil
	}
	node, literal, err := t.term(c)
	switch {
	case err != nil:
		return err
	case literal:
		return fmt.Errorf("the predicate is the literal %s; only objects are literals", lines.Clip(node))
	case bytes.HasPrefix(node, []byte("_:")):
		return fmt.Errorf("the predicate is the blank node %s; predicates are IRIs", lines.Clip(node))
	}
	b.predicate, t.at = node, inObject
	return nil
}

// object reads an object, or an item of a list or its end.
func (t *turtle) object(c byte) error {
	b := t.top()
	if b.kind == '(' && c == ')' {
		t.skip()
		return t.endList()
	}
	t.at = afterObject
	switch c {
	case '[':
		t.skip()
		node := t.fresh()
		t.found(node, false)
		c, err := t.sign()
		if err != nil {
			return cutShort(err)
		}
		if c == ']' {
			t.skip()
			return nil
		}
		t.at = inVerb
		return t.push(bracket{kind: '[', subject: node})
	case '(':
		t.skip()
		c, err := t.sign()
		if err != nil {
			return cutShort(err)
		}
		if c == ')' {
			t.skip()
			t.found([]byte(rdfNS+"nil"), false)
			return nil
		}
		node := t.fresh()
		t.found(node, false)
		t.at = inObject
		return t.push(bracket{kind: '(', subject: node})
	}
	node, literal, err := t.term(c)
	if err != nil {
		return err
	}
	t.found(node, literal)
	return nil
}

// found emits the triple of an object, or of an item of a list.
func (t *turtle) found(node []byte, literal bool) {
	b := t.top()
	if b.kind != '(' {
		t.emit(b.subject, b.predicate, node, literal)
		return
	}
	if b.items++; b.items > 1 {
		cell := t.fresh()
		t.emit(b.subject, []byte(rdfNS+"rest"), cell, false)
		b.subject = cell
	}
	if b.items == 1 && b.first {
		b.predicate = b.subject // the first cell, which is the subject of the statement
	}
	t.emit(b.subject, []byte(rdfNS+"first"), node, literal)
}

// endList ends a list. If it is a subject, its predicates follow.
func (t *turtle) endList() error {
	b := *t.top()
	t.open = t.open[:len(t.open)-1]
	last := []byte(rdfNS + "nil")
	if b.items > 0 {
		t.emit(b.subject, []byte(rdfNS+"rest"), last, false)
		last = b.predicate
	}
	t.at = afterObject
	if b.first {
		t.at = inVerb
		return t.push(bracket{subject: last})
	}
	return nil
}

// after reads what follows an object.
func (t *turtle) after(c byte) error {
	b := t.top()
	switch {
	case b.kind == '(': // its items follow each other without a sign
		t.at = inObject
		return nil
	case c == ',':
		t.at = inObject
	case c == ';':
		t.at = inVerb
	case c == '.' && b.kind == 0:
		t.open, t.at = t.open[:0], inStatement
	case c == ']' && b.kind == '[':
		node, first := b.subject, b.first
		t.open, t.at = t.open[:len(t.open)-1], afterObject
		if first {
			t.at = inVerb
			t.open = append(t.open, bracket{subject: node, first: true})
		}
	case b.kind == '[':
		return fmt.Errorf("%q follows an object; a comma, a semicolon or ] does", rune(c))
	case c == '<' || c == '_':
		return fmt.Errorf("%q follows an object; if it is the name of a graph, as N-Quads have it, rename the file to end in .nq", rune(c))
	default:
		return fmt.Errorf("%q follows an object; a comma, a semicolon or a full stop does", rune(c))
	}
	t.skip()
	return nil
}

// term reads an IRI, a prefixed name, a blank node with a label, or a literal.
func (t *turtle) term(c byte) (node []byte, literal bool, err error) {
	switch {
	case c == '{':
		err = fmt.Errorf("a { begins a graph of TriG, which is not read; convert it: %s", converters[".trig"])
	case c == '<':
		node, err = t.iri()
	case c == '"' || c == '\'':
		literal = true
		node, err = t.literal(c)
	case c == '+' || c == '-' || c >= '0' && c <= '9' || c == '.' && t.digitBehind():
		literal = true
		node, err = t.number()
	case c == '_':
		node, err = t.label()
	case c == ':':
		node, err = t.prefixed("")
	default:
		word := t.word()
		if c, end := t.byte(); end == nil && c == ':' {
			node, err = t.prefixed(word)
			break
		}
		if word != "true" && word != "false" {
			if c == 0 {
				return nil, false, errors.New("the file is not text: it holds a zero byte; make it again")
			}
			if word == "" {
				return nil, false, fmt.Errorf(`%q begins no term; a term is <IRI>, prefix:name, _:label, "text", a number, [ or (`, rune(c))
			}
			return nil, false, fmt.Errorf("%q is no term: prefixed names have a colon, and texts have quotes", lines.Clip([]byte(word)))
		}
		literal, node = true, []byte(`"`+word+`"^^<`+xsdNS+`boolean>`)
	}
	if err != nil {
		return nil, false, err
	}
	if len(node) == 0 {
		return nil, false, errors.New("the IRI is empty, and means the file itself; @base gives the file an IRI")
	}
	if len(node) > ingest.MaxIDBytes {
		if !literal {
			return nil, false, fmt.Errorf("a name of %d bytes; names have 1 to %d", len(node), ingest.MaxIDBytes)
		}
		node = shortened(node)
	}
	return node, literal, nil
}

// prefixed reads the name behind a prefix, from the colon on.
func (t *turtle) prefixed(prefix string) ([]byte, error) {
	iri, ok := t.prefixes[prefix]
	if !ok {
		name := lines.Clip([]byte(prefix))
		return nil, fmt.Errorf("prefix %q is not declared: add @prefix %s: <…> . before it", name, name)
	}
	t.skip()
	node := []byte(iri)
	if c, err := t.byte(); err == nil && c == '-' {
		return nil, errors.New("a prefixed name begins with a letter, a digit, _ or :, and not with -; write \\- for it")
	}
	for {
		c, err := t.byte()
		switch {
		case err != nil && err != io.EOF:
			return nil, err
		case err == nil && c == '\\':
			t.skip()
			c, err = t.byte()
			if err != nil || strings.IndexByte("_~.-!$&'()*+,;=/?#@%", c) < 0 {
				return nil, fmt.Errorf("a backslash in a prefixed name is followed by one of _~.-!$&'()*+,;=/?#@%%")
			}
		case err == nil && c == '%':
			if h := t.peek(3); len(h) < 3 || !isHex(h[1]) || !isHex(h[2]) {
				return nil, errors.New("a percent sign in a prefixed name is followed by two hexadecimal digits")
			}
		case err == nil && (isName(c) || c == ':'):
		case err == nil && c == '.' && t.stopInside(true):
		default:
			return node, nil
		}
		if node = append(node, c); len(node) > ingest.MaxIDBytes {
			return nil, tooLong("a name", ingest.MaxIDBytes)
		}
		t.skip()
	}
}

// label reads a blank node with a label.
func (t *turtle) label() ([]byte, error) {
	if h := t.peek(3); len(h) < 3 || h[1] != ':' || !isName(h[2]) || h[2] == '-' {
		return nil, errors.New("a blank node is _: and a label of letters and digits")
	}
	node := append([]byte(nil), "_:"...)
	t.skip()
	t.skip()
	for {
		c, err := t.byte()
		if err != nil && err != io.EOF {
			return nil, err
		}
		if err == io.EOF || !isName(c) && (c != '.' || !t.stopInside(false)) {
			return node, nil
		}
		if node = append(node, c); len(node) > ingest.MaxIDBytes {
			return nil, tooLong("a name", ingest.MaxIDBytes)
		}
		t.skip()
	}
}

// number reads an integer, a decimal or a double.
func (t *turtle) number() ([]byte, error) {
	text, kind, digits := []byte{'"'}, "integer", 0
	for i := 0; ; i++ {
		c, err := t.byte()
		if err != nil && err != io.EOF {
			return nil, err
		}
		switch {
		case err == nil && c >= '0' && c <= '9':
			digits++
		case err == nil && i == 0 && (c == '+' || c == '-'):
		case err == nil && c == '.' && kind == "integer" && (t.digitBehind() || digits > 0 && t.exponentBehind()):
			kind = "decimal"
		case err == nil && (c == 'e' || c == 'E') && kind != "double" && digits > 0:
			kind, digits = "double", 0
			if s := t.peek(2); len(s) == 2 && (s[1] == '+' || s[1] == '-') {
				text = append(text, c)
				t.skip()
				c = s[1]
			}
		default:
			if digits == 0 || err == nil && isName(c) {
				return nil, fmt.Errorf("%q begins no number", lines.Clip(append(text[1:], t.peek(1)...)))
			}
			return append(text, `"^^<`+xsdNS+kind+`>`...), nil
		}
		if text = append(text, c); len(text) > ingest.MaxIDBytes {
			return nil, tooLong("a number", ingest.MaxIDBytes)
		}
		t.skip()
	}
}

// iri reads an IRI in angle brackets, and resolves it.
func (t *turtle) iri() ([]byte, error) {
	t.skip()
	var text []byte
	for {
		c, err := t.byte()
		if err != nil {
			return nil, cutShort(err)
		}
		if len(text) > ingest.MaxIDBytes {
			return nil, tooLong("an IRI", ingest.MaxIDBytes)
		}
		switch {
		case c == '>':
			t.skip()
			return resolved(t.base, text), nil
		case c == '<' && len(text) == 0:
			return nil, errors.New("<< begins a quoted triple of RDF-star, which is not read")
		case c == '\\':
			r, err := t.escape(false)
			if err != nil {
				return nil, err
			}
			if r <= ' ' || strings.ContainsRune(`<>"{}|^`+"`\\", r) {
				return nil, fmt.Errorf("\\u%04X is not allowed in an IRI", r)
			}
			text = utf8.AppendRune(text, r)
			continue
		case c <= ' ' || strings.IndexByte(`<"{}|^`+"`", c) >= 0:
			return nil, fmt.Errorf("%q in an IRI; is its > missing, or should it be %%%02X?", rune(c), c)
		}
		text = append(text, c)
		t.skip()
	}
}

// literal reads a text with its language or type, and writes it as N-Triples has it.
func (t *turtle) literal(quote byte) ([]byte, error) {
	long := false
	if q := t.peek(3); len(q) == 3 && q[1] == quote && q[2] == quote {
		long = true
		t.skip()
		t.skip()
	}
	t.skip()
	text := []byte{'"'}
	for {
		c, err := t.byte()
		if err != nil {
			return nil, cutShort(err)
		}
		if len(text) > lines.MaxLine {
			return nil, tooLong("a literal", lines.MaxLine)
		}
		switch {
		case c == quote && !long:
			t.skip()
			return t.typed(append(text, '"'))
		case c == quote && bytes.Equal(t.peek(3), []byte{quote, quote, quote}):
			for range 3 {
				t.skip()
			}
			if c, err := t.byte(); err == nil && c == quote {
				return nil, fmt.Errorf("more than three quotes end a long text; write those of the text as \\%c", quote)
			}
			return t.typed(append(text, '"'))
		case c == '\\':
			r, err := t.escape(true)
			if err != nil {
				return nil, err
			}
			text = appendEscaped(text, r)
			continue
		case (c == '\n' || c == '\r') && !long:
			return nil, errors.New("no quote ends the text on its line; three quotes begin and end texts of several lines")
		case c < ' ' || c == '"' || c == 0x7f:
			text = appendEscaped(text, rune(c))
		default:
			text = append(text, c)
		}
		t.skip()
	}
}

// typed reads the language or the type behind a text.
func (t *turtle) typed(text []byte) ([]byte, error) {
	c, err := t.byte()
	switch {
	case err != nil && err != io.EOF:
		return nil, err
	case err == nil && c == '@':
		text = append(text, '@')
		t.skip()
		start := len(text)
		for c, err = t.byte(); err == nil && (isName(c) && c != '_' && c < 0x80); c, err = t.byte() {
			if text = append(text, c); len(text)-start > ingest.MaxIDBytes {
				return nil, tooLong("a language", ingest.MaxIDBytes)
			}
			t.skip()
		}
		if len(text) == start || text[start] < 'A' {
			return nil, errors.New("a language as in @en follows the @")
		}
	case err == nil && c == '^':
		t.skip()
		if c, err = t.byte(); err != nil || c != '^' {
			return nil, errors.New("^^ and an IRI name the type of a text")
		}
		t.skip()
		if c, err = t.sign(); err != nil {
			return nil, cutShort(err)
		}
		if c == '"' || c == '\'' { // a type has no type of its own
			return nil, errors.New("^^ and an IRI name the type of a text")
		}
		node, literal, err := t.term(c)
		if err == nil && (literal || bytes.HasPrefix(node, []byte("_:"))) {
			err = errors.New("^^ and an IRI name the type of a text")
		}
		if err != nil {
			return nil, err
		}
		return append(append(append(text, "^^<"...), node...), '>'), nil
	}
	return text, nil
}

// escape reads a backslash and what it stands for.
func (t *turtle) escape(literal bool) (rune, error) {
	e := t.peek(2)
	if len(e) < 2 {
		return 0, cutShort(io.EOF)
	}
	if at := strings.IndexByte(`tbnrf"'\`, e[1]); literal && at >= 0 {
		t.skip()
		t.skip()
		return rune("\t\b\n\r\f\"'\\"[at]), nil
	}
	digits := map[byte]int{'u': 4, 'U': 8}[e[1]]
	e = t.peek(2 + digits)
	n, err := strconv.ParseUint(string(e[min(2, len(e)):]), 16, 32)
	if digits == 0 || len(e) < 2+digits || err != nil || !utf8.ValidRune(rune(n)) || n > utf8.MaxRune {
		return 0, badEscape(e)
	}
	for range 2 + digits {
		t.skip()
	}
	return rune(n), nil
}

// appendEscaped appends a character of a literal as N-Triples writes it.
func appendEscaped(text []byte, r rune) []byte {
	if at := strings.IndexRune("\t\b\n\r\f\"\\", r); at >= 0 {
		return append(text, '\\', `tbnrf"\`[at])
	}
	if r < ' ' || r == 0x7f {
		return fmt.Appendf(text, "\\u%04X", r)
	}
	return utf8.AppendRune(text, r)
}

func tooLong(what string, most int) error {
	return fmt.Errorf("%s of more than %d bytes; is its end missing?", what, most)
}

// cutShort words the end of a file within a statement.
func cutShort(err error) error {
	if err == io.EOF {
		return errors.New("the file ends within a statement; is it complete?")
	}
	return err
}
