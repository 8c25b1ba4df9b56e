package triples

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/lines"
)

const (
	rdfNS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	xsdNS = "http://www.w3.org/2001/XMLSchema#"
	// mostOpen bounds the nesting of brackets. Each holds a subject and a predicate in memory.
	mostOpen     = 1000
	mostPrefixes = 1 << 12
)

var (
	rdfType  = []byte(rdfNS + "type")
	rdfNil   = []byte(rdfNS + "nil")
	rdfFirst = []byte(rdfNS + "first")
	rdfRest  = []byte(rdfNS + "rest")
)

// turtle reads the triples of a Turtle file (W3C Recommendation of 2014) by recursive descent. It
// holds the subjects and predicates of open brackets. Names are spelled as in N-Triples.
type turtle struct {
	characters
	base     string
	prefixes map[string]string
	blank    string // begins the names of nodes without a label; a number follows
	blanks   int64  // nodes without a label so far
	depth    int    // brackets that are open
	visit    func(*triple) error
	stopped  error // from visit
	out      triple
}

// newTurtle reads a file. blank is another text for each file, so that nodes without a label differ
// between files.
func newTurtle(name string, r io.Reader, blank string) *turtle {
	text := characters{name: name, r: r, line: 1}
	return &turtle{characters: text, prefixes: map[string]string{}, blank: "_:." + blank}
}

// each visits the triples, each lent until visit returns.
func (t *turtle) each(visit func(*triple) error) error {
	t.visit = visit
	if err := t.statements(); err != nil && t.stopped == nil {
		return t.errorf("%w", err)
	}
	return t.stopped
}

func (t *turtle) emit(subject, predicate, object []byte, literal bool) error {
	t.out = triple{subject, predicate, object, literal}
	t.stopped = t.visit(&t.out)
	return t.stopped
}

// fresh returns a new node without a label. Its name begins with a full stop, and labels do not, so
// no other node has it.
func (t *turtle) fresh() []byte {
	t.blanks++
	return strconv.AppendInt([]byte(t.blank), t.blanks, 10)
}

// inner returns the next sign of a statement. The end of the file is an error.
func (t *turtle) inner() (byte, error) {
	c, err := t.sign()
	return c, cutShort(err)
}

func (t *turtle) statements() error {
	for {
		c, err := t.sign()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = t.statement(c)
		}
		if err != nil {
			return err
		}
	}
}

// statement reads a directive or the triples of a subject.
func (t *turtle) statement(c byte) error {
	switch {
	case c == '@':
		t.skip()
		return t.directive(t.word(), true)
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
	subject, alone, err := t.subject(c)
	if err != nil {
		return err
	}
	if c, err = t.inner(); err == nil && alone && c == '.' {
		t.skip()
		return nil
	}
	return t.predicates(subject, '.')
}

// directive reads a prefix or a base. If stop, a full stop ends it.
func (t *turtle) directive(word string, stop bool) error {
	name := ""
	if word == "prefix" {
		if _, err := t.inner(); err != nil {
			return err
		}
		name = t.word()
		if t.byte() != ':' {
			return errors.New("a prefix is a name, a colon and an IRI, as in @prefix ex: <http://example.org/>")
		}
		t.skip()
	} else if word != "base" {
		return fmt.Errorf("@%s is neither @prefix nor @base", lines.Clip([]byte(word)))
	}
	c, err := t.inner()
	if err != nil {
		return err
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
	if c, err = t.inner(); err != nil {
		return err
	}
	if c != '.' {
		return fmt.Errorf("a full stop ends @%s", word)
	}
	t.skip()
	return nil
}

// subject reads the subject of a statement. A subject in brackets may stand alone, without further
// predicates.
func (t *turtle) subject(c byte) (node []byte, alone bool, err error) {
	if c == '[' || c == '(' {
		node, filled, err := t.enter(c)
		if err == nil && filled {
			err = t.bracket(c, node)
		}
		return node, filled && c == '[', err
	}
	node, literal, err := t.term(c)
	if err == nil && literal {
		err = fmt.Errorf("the subject is the literal %s; only objects are literals", lines.Clip(node))
	}
	return node, false, err
}

// predicates reads the predicates of a subject and their objects, and the sign that ends them.
func (t *turtle) predicates(subject []byte, end byte) error {
	for {
		predicate, err := t.predicate()
		if err != nil {
			return err
		}
		c, err := t.objects(subject, predicate)
		more := c == ';'
		for err == nil && c == ';' {
			t.skip()
			c, err = t.inner()
		}
		switch {
		case err != nil:
			return err
		case c == end:
			t.skip()
			return nil
		case more && c != '.' && c != ']':
		case end == ']':
			return fmt.Errorf("%q follows an object; a comma, a semicolon or ] does", rune(c))
		case c == '<' || c == '_':
			return fmt.Errorf("%q follows an object; if it is the name of a graph, as N-Quads have it, rename the file to end in .nq", rune(c))
		default:
			return fmt.Errorf("%q follows an object; a comma, a semicolon or a full stop does", rune(c))
		}
	}
}

func (t *turtle) predicate() ([]byte, error) {
	c, err := t.inner()
	if err != nil {
		return nil, err
	}
	if t.keyword() == "a" {
		t.word()
		return rdfType, nil
	}
	node, literal, err := t.term(c)
	switch {
	case err != nil:
		return nil, err
	case literal:
		return nil, fmt.Errorf("the predicate is the literal %s; only objects are literals", lines.Clip(node))
	case bytes.HasPrefix(node, []byte("_:")):
		return nil, fmt.Errorf("the predicate is the blank node %s; predicates are IRIs", lines.Clip(node))
	}
	return node, nil
}

// objects reads objects with commas between them, and returns the sign that follows the last.
func (t *turtle) objects(subject, predicate []byte) (c byte, err error) {
	for {
		if err = t.object(subject, predicate); err == nil {
			c, err = t.inner()
		}
		if err != nil || c != ',' {
			return c, err
		}
		t.skip()
	}
}

// object reads an object and, if it is in brackets, their triples.
func (t *turtle) object(subject, predicate []byte) error {
	c, err := t.inner()
	if err != nil {
		return err
	}
	if c != '[' && c != '(' {
		node, literal, err := t.term(c)
		if err != nil {
			return err
		}
		return t.emit(subject, predicate, node, literal)
	}
	node, filled, err := t.enter(c)
	if err == nil {
		err = t.emit(subject, predicate, node, false)
	}
	if err != nil || !filled {
		return err
	}
	return t.bracket(c, node)
}

// enter reads the start of [ … ] or of the list ( … ), and all of an empty one. It returns the
// node, which for a list is its first cell.
func (t *turtle) enter(open byte) (node []byte, filled bool, err error) {
	t.skip()
	c, err := t.inner()
	if err != nil {
		return nil, false, err
	}
	switch {
	case open == '(' && c == ')':
		t.skip()
		return rdfNil, false, nil
	case open == '[' && c == ']':
		t.skip()
		return t.fresh(), false, nil
	}
	return t.fresh(), true, nil
}

// bracket reads the triples of a node in brackets.
func (t *turtle) bracket(open byte, node []byte) error {
	if t.depth == mostOpen {
		return fmt.Errorf("more than %d brackets in one another; is a ] or ) missing?", mostOpen)
	}
	t.depth++
	defer func() { t.depth-- }()
	if open == '[' {
		return t.predicates(node, ']')
	}
	return t.items(node)
}

// items reads the items of a list. Each has a cell, and the last cell leads to rdf:nil.
func (t *turtle) items(cell []byte) error {
	for {
		if err := t.object(cell, rdfFirst); err != nil {
			return err
		}
		c, err := t.inner()
		if err != nil {
			return err
		}
		if c == ')' {
			t.skip()
			return t.emit(cell, rdfRest, rdfNil, false)
		}
		next := t.fresh()
		if err := t.emit(cell, rdfRest, next, false); err != nil {
			return err
		}
		cell = next
	}
}

// cutShort words the end of a file within a statement.
func cutShort(err error) error {
	if err == io.EOF {
		return errors.New("the file ends within a statement; is it complete?")
	}
	return err
}
